//! Threads for queries: they compute, and the task's own thread serves its sockets meanwhile.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Plans are trees, and are walked by recursion.
const STACK: usize = 8 << 20;

/// Why nothing ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ThreadsError {
    #[error("the threads for queries could not be started: {0}")]
    Start(std::io::Error),
    #[error("the query ended early: {0}")]
    Ended(String),
}

/// A runtime that ends with its owner.
pub(super) struct Threads(Option<Runtime>);

impl Threads {
    pub fn start(count: usize) -> Result<Self, ThreadsError> {
        Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("datafusion")
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
            .map_err(ThreadsError::Start)
    }

    /// Runs `work` on these threads. Dropping the future stops it.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ThreadsError> {
        let ended = |why: &str| ThreadsError::Ended(why.to_owned());
        let runtime = self.0.as_ref().ok_or_else(|| ended("the task has ended"))?;
        let mut running = JoinSet::new();
        running.spawn_on(work, runtime.handle());
        match running.join_next().await {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(ended(&error.to_string())),
            None => Err(ended("it was never begun")),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
