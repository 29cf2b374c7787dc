//! The bytes of a file, decompressed, up to a limit. Nothing beyond it is asked for.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use tokio::runtime::Handle;

use super::file_format::Codec;
use super::storage::{StorageError, StoredFile};
use crate::hook::blocking;

/// Bytes of a compressed file that are asked for at a time.
const STEP: u64 = 1 << 20;

/// Reads a file that is no larger than `max_bytes` when it is decompressed.
pub(super) async fn read(
    file: &Arc<dyn StoredFile>,
    codec: Option<Codec>,
    max_bytes: u64,
) -> Result<Bytes, StorageError> {
    let Some(codec) = codec else {
        if file.size() > max_bytes {
            return Err(StorageError::TooLarge);
        }
        return file.read(0..file.size()).await;
    };
    let reader = RangeReader {
        file: Arc::clone(file),
        runtime: Handle::current(),
        at: 0,
        step: STEP.min(max_bytes.saturating_add(1024)),
        buffer: Bytes::new(),
    };
    let done = blocking::run(move || decompress(reader, codec, max_bytes)).await;
    done.unwrap_or_else(|error| Err(StorageError::exception("RuntimeError", error.to_string())))
}

fn decompress(
    mut reader: impl BufRead,
    codec: Codec,
    max_bytes: u64,
) -> Result<Bytes, StorageError> {
    let start = reader
        .fill_buf()
        .map_err(|error| python_error(&error, codec))?;
    if codec == Codec::Gzip {
        match start {
            // An empty file is empty, to Python.
            [] => return Ok(Bytes::new()),
            [0x1f, 0x8b, ..] => {}
            other => {
                return Err(StorageError::exception(
                    "BadGzipFile",
                    format!(
                        "Not a gzipped file ({})",
                        repr_bytes(other.get(..2).unwrap_or(other))
                    ),
                ));
            }
        }
    }
    let mut decoder: Box<dyn Read> = match codec {
        Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(reader)),
        Codec::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(reader)),
    };
    let mut content = Vec::new();
    let mut bounded = decoder.by_ref().take(max_bytes.saturating_add(1));
    bounded
        .read_to_end(&mut content)
        .map_err(|error| python_error(&error, codec))?;
    if content.len() as u64 > max_bytes {
        return Err(StorageError::TooLarge);
    }
    Ok(content.into())
}

/// The exception that Python's module for the codec raises.
fn python_error(error: &io::Error, codec: Codec) -> StorageError {
    if let Some(error) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<StorageError>())
    {
        return error.clone();
    }
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let text = "Compressed file ended before the end-of-stream marker was reached";
        return StorageError::exception("EOFError", text);
    }
    match codec {
        // The class is zlib's, which is called just that.
        Codec::Gzip if error.to_string().contains("deflate") => {
            StorageError::exception("error", "Error -3 while decompressing data: invalid data")
        }
        Codec::Gzip => StorageError::exception("BadGzipFile", error.to_string()),
        Codec::Bzip2 => StorageError::exception("OSError", "Invalid data stream"),
        Codec::Xz if error.to_string().contains("format") => {
            StorageError::exception("LZMAError", "Input format not supported by decoder")
        }
        Codec::Xz => StorageError::exception("LZMAError", "Corrupt input data"),
    }
}

/// `repr(bytes)`.
fn repr_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut text = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' if char::from(*byte) == quote => {
                text.push('\\');
                text.push(quote);
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text.push(quote);
    text
}

/// Reads a file in steps, on a thread that may wait.
struct RangeReader {
    file: Arc<dyn StoredFile>,
    runtime: Handle,
    at: u64,
    step: u64,
    buffer: Bytes,
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let count = available.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for RangeReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let size = self.file.size();
        if self.buffer.is_empty() && self.at < size {
            let end = self.at.saturating_add(self.step).min(size);
            let read = self.file.read(self.at..end);
            self.buffer = self.runtime.block_on(read).map_err(io::Error::other)?;
            self.at = end;
        }
        Ok(&self.buffer)
    }

    fn consume(&mut self, count: usize) {
        self.buffer.advance(count.min(self.buffer.len()));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use pretty_assertions::assert_eq;

    use super::*;

    fn packed(codec: Codec, text: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Bzip2 => {
                let mut encoder =
                    bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    const ALL: [Codec; 3] = [Codec::Gzip, Codec::Bzip2, Codec::Xz];

    #[test]
    fn every_codec_is_undone_also_of_several_streams_in_one_file() {
        for codec in ALL {
            let mut file = packed(codec, b"one\n");
            file.extend(packed(codec, b"two\n"));
            let text = decompress(&file[..], codec, 8).unwrap();
            assert_eq!(&text[..], b"one\ntwo\n", "{codec:?}");
        }
    }

    #[test]
    fn a_bomb_is_not_unpacked_beyond_the_limit() {
        for codec in ALL {
            let bomb = packed(codec, &vec![b'x'; 4 << 20]);
            assert_eq!(
                decompress(&bomb[..], codec, 1000),
                Err(StorageError::TooLarge),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn broken_files_have_the_errors_of_python() {
        let text = |codec, bytes: &[u8]| decompress(bytes, codec, 100).unwrap_err().to_string();
        assert_eq!(
            text(Codec::Gzip, b"no"),
            "BadGzipFile: Not a gzipped file (b'no')"
        );
        assert_eq!(
            text(Codec::Gzip, b"\x00'x"),
            "BadGzipFile: Not a gzipped file (b\"\\x00'\")"
        );
        assert_eq!(
            text(Codec::Bzip2, b"no bzip"),
            "OSError: Invalid data stream"
        );
        assert_eq!(
            text(Codec::Xz, b"no lzma at all"),
            "LZMAError: Input format not supported by decoder"
        );
        for codec in ALL {
            let whole = packed(codec, b"some text that is packed");
            let cut = &whole[..whole.len() - 6];
            assert_eq!(
                text(codec, cut),
                "EOFError: Compressed file ended before the end-of-stream marker was reached",
                "{codec:?}"
            );
        }
        assert!(decompress(&b""[..], Codec::Gzip, 1).unwrap().is_empty());
    }
}
