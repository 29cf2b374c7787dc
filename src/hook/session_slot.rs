//! The one session that a database keeps between calls, and what happens to it when a call is abandoned.

use std::future::Future;
use std::sync::{Mutex as StdMutex, PoisonError};

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

/// A session with a server.
pub(super) trait ServerSession: Sized + Send + 'static {
    /// Whether the server or the network has ended it.
    fn is_lost(&self) -> bool;

    /// Has the server stop what it does for this session, then ends it.
    fn stop(self) -> impl Future<Output = ()> + Send;

    /// Ends it, and waits until the server has been told.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// A place for a session: empty before the first call, and after one that did not leave the session clean.
pub(super) struct SessionSlot<S> {
    session: Mutex<Option<S>>,
    /// Requests to stop a statement that are on their way.
    farewells: StdMutex<Vec<JoinHandle<()>>>,
}

impl<S: ServerSession> SessionSlot<S> {
    pub(super) fn new() -> Self {
        Self {
            session: Mutex::new(None),
            farewells: StdMutex::new(Vec::new()),
        }
    }

    /// The session, opened with `open` when there is none that lives.
    pub(super) async fn hold<E>(
        &self,
        open: impl Future<Output = Result<S, E>>,
    ) -> Result<Held<'_, S>, E> {
        let mut slot = self.session.lock().await;
        let session = match slot.take().filter(|session| !session.is_lost()) {
            Some(session) => session,
            None => open.await?,
        };
        Ok(Held {
            slot,
            session: Some(session),
            farewells: &self.farewells,
        })
    }

    /// Ends the session, and waits for the requests to stop statements of earlier ones.
    pub(super) async fn close(&self) {
        let session = self.session.lock().await.take();
        if let Some(session) = session {
            session.close().await;
        }
        let farewells = std::mem::take(
            &mut *self
                .farewells
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for farewell in farewells {
            if let Err(error) = farewell.await {
                tracing::debug!("a request to stop a statement was itself stopped: {error}");
            }
        }
    }
}

/// The session while a call uses it. Dropped in the middle of the call, it stops what runs on the server.
pub(super) struct Held<'a, S: ServerSession> {
    slot: MutexGuard<'a, Option<S>>,
    session: Option<S>,
    farewells: &'a StdMutex<Vec<JoinHandle<()>>>,
}

impl<S: ServerSession> Held<'_, S> {
    /// The session; there is one until this value is used up.
    pub(super) fn session(&mut self) -> Option<&mut S> {
        self.session.as_mut()
    }

    /// Keeps the session for the next call.
    pub(super) fn put_back(mut self) {
        *self.slot = self.session.take();
    }

    /// Ends the session.
    pub(super) async fn close(mut self) {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

impl<S: ServerSession> Drop for Held<'_, S> {
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) =
            (self.session.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        self.farewells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(runtime.spawn(session.stop()));
    }
}
