//! Brings a task's log to the API server while the task runs, piece by piece and complete at its end.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio_util::sync::CancellationToken;

use super::edge_api::{EdgeApi, EdgeError};
use super::log_file::Spill;
use crate::airflow::edge::JobKey;

/// How much of the file is held in memory at a time, in bytes.
const BLOCK: u64 = 1024 * 1024;

/// Follows one log file.
#[derive(Debug)]
pub struct LogPush {
    api: EdgeApi,
    key: JobKey,
    path: PathBuf,
    /// `[edge] push_log_chunk_size`, in characters.
    chunk: usize,
    offset: u64,
    /// What the file did not take.
    spill: Spill,
    spilled: Vec<u8>,
    /// Bytes that were read and are only the beginning of a character.
    held: Vec<u8>,
    /// Part of the primary key of the server's row: never the same microsecond twice.
    last_time: DateTime<Utc>,
    /// Pieces that were read and not pushed yet.
    unsent: VecDeque<String>,
}

impl LogPush {
    /// Starts where the file ends now: what an earlier part of the try wrote has been pushed by it.
    #[must_use]
    pub fn new(api: EdgeApi, key: JobKey, path: PathBuf, chunk: usize, spill: Spill) -> Self {
        let offset = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Self {
            api,
            key,
            path,
            chunk: chunk.max(1),
            offset,
            spill,
            spilled: Vec::new(),
            held: Vec::new(),
            last_time: DateTime::UNIX_EPOCH,
            unsent: VecDeque::new(),
        }
    }

    /// Pushes what is new every `interval` until `done`, and then the rest.
    pub async fn follow(mut self, interval: Duration, done: CancellationToken) {
        loop {
            let finished = tokio::select! {
                () = done.cancelled() => true,
                () = tokio::time::sleep(interval) => false,
            };
            if let Err(error) = self.push_new(finished).await {
                tracing::error!(job = %self.key, %error, "a piece of a task log did not reach the API server");
                if !error.is_transient() || finished {
                    return;
                }
            }
            if finished {
                return;
            }
        }
    }

    /// Pushes everything new. Unless it is the `last` time, a character cut in two at the end waits for the rest.
    async fn push_new(&mut self, last: bool) -> Result<(), EdgeError> {
        loop {
            self.push_unsent().await?;
            // Before the file: once there is something, the file grows no more, and comes first.
            self.spilled.extend(self.spill.take());
            let read = match read_from(&self.path, self.offset) {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::error!(path = %self.path.display(), %error, "a task log can't be read back");
                    return Ok(());
                }
            };
            self.offset += read.len() as u64;
            let whole = read.len() as u64 == BLOCK;
            let mut bytes = std::mem::take(&mut self.held);
            bytes.extend(read);
            if !whole {
                bytes.append(&mut self.spilled);
            }
            let (text, used) = decode(&bytes, last && !whole);
            self.held = bytes.split_off(used.min(bytes.len()));
            if text.is_empty() {
                return Ok(());
            }
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let end = rest
                    .char_indices()
                    .nth(self.chunk)
                    .map_or(rest.len(), |(index, _)| index);
                let (piece, more) = rest.split_at(end);
                self.unsent.push_back(piece.to_owned());
                rest = more;
            }
        }
    }

    /// Piece by piece, so that a push that fails sends nothing twice that the server has.
    async fn push_unsent(&mut self) -> Result<(), EdgeError> {
        while let Some(piece) = self.unsent.pop_front() {
            let last = &mut self.last_time;
            let clock = || {
                *last = Utc::now().max(*last + TimeDelta::microseconds(1));
                *last
            };
            if let Err(error) = self.api.push_log(&self.key, clock, &piece).await {
                self.unsent.push_front(piece);
                return Err(error);
            }
        }
        Ok(())
    }
}

fn read_from(path: &Path, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(BLOCK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Text of the bytes, and how many of them it stands for. Bytes that are not UTF-8 become `\xNN`; NUL, which databases
/// refuse, becomes U+FFFD. With `last` unset, an incomplete character at the end is left for the next time.
fn decode(bytes: &[u8], last: bool) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        text.extend(
            chunk
                .valid()
                .chars()
                .map(|c| if c == '\0' { '\u{fffd}' } else { c }),
        );
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        let at_end = used + invalid.len() == bytes.len();
        let may_go_on =
            std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if at_end && may_go_on && !last {
            break;
        }
        for byte in invalid {
            text.push_str(&format!("\\x{byte:02x}"));
        }
        used += invalid.len();
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_character_cut_in_two_waits_for_its_other_half() {
        let bytes = "aä".as_bytes();
        assert_eq!(decode(&bytes[..2], false), ("a".into(), 1));
        assert_eq!(decode(&bytes[..2], true), ("a\\xc3".into(), 2));
        assert_eq!(decode(bytes, false), ("aä".into(), 3));
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped_and_nul_is_replaced() {
        assert_eq!(
            decode(b"a\xffb\0\xc3(", false),
            ("a\\xffb\u{fffd}\\xc3(".into(), 6)
        );
    }
}
