//! Reads a Dag file's text as Python would: byte-order mark, coding line, any line ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::error::LoadError;

/// The text of `file`.
///
/// # Errors
/// It is not there, not a readable file, larger than `limit` bytes, or not UTF-8.
pub(super) fn read(file: &Path, limit: u64) -> Result<String, LoadError> {
    let shown = || file.display().to_string();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            LoadError::NotThere { file: shown() }
        }
        _ => LoadError::NotReadable {
            file: shown(),
            source,
        },
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(LoadError::NotReadable {
            file: shown(),
            source: io::Error::other("it is not a file"),
        });
    }
    let mut bytes = Vec::new();
    // One byte more than the limit, because the file may grow after it was measured.
    File::open(file)
        .and_then(|open| open.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let size = metadata.len().max(bytes.len() as u64);
    if size > limit {
        return Err(LoadError::TooLarge {
            file: shown(),
            size,
            limit,
        });
    }
    decode(bytes).map_err(|problem| match problem {
        Undecodable::Byte(offset) => LoadError::NotUtf8 {
            file: shown(),
            offset,
        },
        Undecodable::Null(offset) => LoadError::NullByte {
            file: shown(),
            offset,
        },
        Undecodable::Encoding(encoding) => LoadError::Encoding {
            file: shown(),
            encoding,
        },
    })
}

#[derive(Debug, PartialEq)]
enum Undecodable {
    /// Offset of the first byte that is not UTF-8.
    Byte(usize),
    Null(usize),
    Encoding(String),
}

fn decode(bytes: Vec<u8>) -> Result<String, Undecodable> {
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    };
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(Undecodable::Null(offset));
    }
    if let Some(encoding) = declared_encoding(&bytes) {
        match encoding.to_ascii_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii" => {}
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => {
                return Ok(bytes.iter().map(|byte| char::from(*byte)).collect());
            }
            _ => return Err(Undecodable::Encoding(encoding)),
        }
    }
    String::from_utf8(bytes).map_err(|error| Undecodable::Byte(error.utf8_error().valid_up_to()))
}

/// The encoding that a comment on one of the first two lines declares (PEP 263).
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start_matches([' ', '\t', '\x0c']);
        let Some(comment) = line.strip_prefix('#') else {
            // A statement on the first line ends the search.
            if line.trim().is_empty() {
                continue;
            } else {
                return None;
            }
        };
        if let Some((_, rest)) = comment.split_once("coding")
            && let Some(name) = rest.strip_prefix([':', '='])
        {
            let name: String = name
                .trim_start_matches([' ', '\t'])
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
                .collect();
            if !name.is_empty() {
                return Some(name);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_dropped_and_a_coding_line_is_obeyed() {
        assert_eq!(
            decode(b"\xef\xbb\xbfx = 1\r\n".to_vec()).unwrap(),
            "x = 1\r\n"
        );
        assert_eq!(
            decode(b"# -*- coding: utf-8 -*-\nx = '\xc3\xa9'".to_vec()).unwrap(),
            "# -*- coding: utf-8 -*-\nx = 'é'"
        );
        assert_eq!(
            decode(b"#!x\n# vim: set fileencoding=latin-1 :\n'\xe9'".to_vec())
                .unwrap()
                .chars()
                .last(),
            Some('\'')
        );
        assert_eq!(
            decode(b"# coding: koi8-r\n".to_vec()),
            Err(Undecodable::Encoding("koi8-r".to_owned()))
        );
        assert_eq!(
            decode(b"x = 1\n# coding: koi8-r\n".to_vec()).unwrap(),
            "x = 1\n# coding: koi8-r\n"
        );
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_told_by_their_offset() {
        assert_eq!(decode(b"x = '\xff'".to_vec()), Err(Undecodable::Byte(5)));
        assert_eq!(decode(b"x\0".to_vec()), Err(Undecodable::Null(1)));
    }

    #[test]
    fn a_file_over_the_limit_is_refused_with_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("big.py");
        std::fs::write(&file, vec![b'#'; 11]).unwrap();
        assert!(matches!(
            read(&file, 10),
            Err(LoadError::TooLarge {
                size: 11,
                limit: 10,
                ..
            })
        ));
        assert_eq!(read(&file, 11).unwrap().len(), 11);
        assert!(matches!(
            read(&folder.path().join("absent.py"), 10),
            Err(LoadError::NotThere { .. })
        ));
        assert!(matches!(
            read(folder.path(), 10),
            Err(LoadError::NotReadable { .. })
        ));
    }
}
