//! Where blocking tool calls run: one at a time in the whole process, on a thread that may wait.
//!
//! The Python toolsets for SQL, hooks, object storage and DataFusion share one lock, so that a hook that is not
//! thread-safe never meets itself. Tools that could overlap here and not there would behave differently.

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinError;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Waits for the process-wide turn. The turn ends when the guard is dropped.
pub async fn exclusive() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().await
}

/// Runs `work` on a thread that may block, under the caller's span and log subscriber.
///
/// # Errors
/// When `work` panics or the runtime is shutting down.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || {
        tracing::dispatcher::with_default(&dispatch, || span.in_scope(work))
    })
    .await
}
