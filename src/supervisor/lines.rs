//! Lines out of a byte stream, with a bound on what one line may hold in memory.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub bytes: Vec<u8>,
    /// How many bytes at the end did not fit.
    pub cut: usize,
}

/// Reads the next line; `None` at the end of the stream. Of a longer line than `limit` only its beginning is kept.
///
/// # Errors
/// What reading gives.
pub(crate) async fn read_line<R>(reader: &mut R, limit: usize) -> std::io::Result<Option<Line>>
where
    R: AsyncBufRead + Unpin,
{
    let mut line = Line {
        bytes: Vec::new(),
        cut: 0,
    };
    let mut started = false;
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(started.then_some(line));
        }
        started = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let (content, _) = chunk.split_at(end.unwrap_or(chunk.len()));
        let room = limit.saturating_sub(line.bytes.len()).min(content.len());
        let (kept, cut) = content.split_at(room);
        line.bytes.extend_from_slice(kept);
        line.cut += cut.len();
        let used = content.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            if line.bytes.last() == Some(&b'\r') {
                line.bytes.pop();
            }
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(mut input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input, limit).await.unwrap() {
            lines.push(line);
        }
        lines
    }

    fn line(text: &str, cut: usize) -> Line {
        Line {
            bytes: text.as_bytes().to_vec(),
            cut,
        }
    }

    #[tokio::test]
    async fn lines_end_at_newlines_and_the_last_may_lack_one() {
        assert_eq!(
            all(b"a\r\n\nb", 9).await,
            [line("a", 0), line("", 0), line("b", 0)]
        );
        assert_eq!(all(b"", 9).await, []);
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_cut_and_the_next_one_is_whole() {
        assert_eq!(
            all(b"abcdef\nxy\n", 4).await,
            [line("abcd", 2), line("xy", 0)]
        );
    }
}
