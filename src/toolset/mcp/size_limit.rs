//! The largest message that is taken from a server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// In bytes: as much as `rmcp` takes over HTTP.
pub(super) const MAX_MESSAGE: usize = 16 << 20;

/// Has the server sent more than is taken? Then the way to it is closed, and this says why.
#[derive(Clone, Default)]
pub(super) struct TooLarge(Arc<AtomicBool>);

impl TooLarge {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_noted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Lines of a server that is a child process, up to one that is too large. `rmcp` would pass over that one, and whoever
/// asked would wait for the answer until the time is up.
pub(super) struct BoundedLines<R> {
    lines: R,
    /// Bytes of the line so far.
    length: usize,
    too_large: TooLarge,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(lines: R, too_large: TooLarge) -> Self {
        Self {
            lines,
            length: 0,
            too_large,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.lines).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        for part in new.split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            if self.length > MAX_MESSAGE {
                self.too_large.note();
                // Who fails has read nothing.
                buffer.set_filled(before);
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the server sent a message that is too large",
                )));
            }
            if part.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn lines_are_read_up_to_one_that_is_too_large() {
        let mut fits = vec![b'x'; MAX_MESSAGE];
        fits[MAX_MESSAGE - 1] = b'\n';
        for (more, ends) in [
            (&b"short\n"[..], true),
            (&fits[..], true),
            (&[b'x'; MAX_MESSAGE + 1][..], false),
        ] {
            let said = [&fits[..], more].concat();
            let too_large = TooLarge::default();
            let mut lines = BoundedLines::new(said.as_slice(), too_large.clone());
            let read = lines.read_to_end(&mut Vec::new()).await;
            assert_eq!((read.is_ok(), !too_large.is_noted()), (ends, ends));
        }
    }
}
