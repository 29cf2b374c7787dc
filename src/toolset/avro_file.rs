//! Avro object containers, block by block.
//!
//! arrow-avro unpacks a block whatever it comes to, and goes round for ever in one that holds more than its count of
//! rows. So each block is measured before it is unpacked, and has a reader of its own that is asked once.

use std::io::{self, Cursor, Read as _};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow_avro::compression::CompressionCodec;
use datafusion::arrow_avro::errors::AvroError;
use datafusion::arrow_avro::reader::{ReaderBuilder, read_header_info};
use datafusion::arrow_avro::schema::AvroSchema;
use serde_json::Value;

/// Bytes that one block may come to when it is unpacked.
const MAX_UNPACKED: u64 = 256 << 20;
/// Bytes of the checksum at the end of a Snappy block.
const CHECKSUM: usize = 4;

/// Why a file is none, or is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(in crate::toolset) enum AvroFileError {
    #[error(transparent)]
    Header(#[from] AvroError),
    #[error(transparent)]
    Rows(#[from] ArrowError),
    #[error("its schema is not JSON: {0}")]
    Schema(#[from] serde_json::Error),
    #[error("its blocks are cut short or damaged")]
    Damaged,
    #[error("a block can't be unpacked: {0}")]
    Unpacked(#[from] io::Error),
    #[error("a block comes to more than {} MB when it is unpacked", MAX_UNPACKED >> 20)]
    TooLarge,
}

/// A file, of which header and blocks are known.
pub(in crate::toolset) struct AvroFile<'a> {
    header: &'a [u8],
    codec: Option<CompressionCodec>,
    /// As it was written.
    pub schema: Value,
    pub blocks: Vec<Block<'a>>,
}

/// Some rows.
pub(in crate::toolset) struct Block<'a> {
    /// How many, by its own word.
    pub rows: usize,
    /// With its lengths and the mark at its end.
    whole: &'a [u8],
    packed: &'a [u8],
}

impl<'a> AvroFile<'a> {
    /// Reads the header, and walks over the blocks.
    pub fn open(content: &'a [u8]) -> Result<Self, AvroFileError> {
        let info = read_header_info(Cursor::new(content))?;
        let schema = serde_json::from_str(&info.writer_schema()?.json_string)?;
        let (header, mut rest) = usize::try_from(info.header_len())
            .ok()
            .and_then(|length| content.split_at_checked(length))
            .ok_or(AvroFileError::Damaged)?;
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let (block, after) = Block::first(rest, info.sync()).ok_or(AvroFileError::Damaged)?;
            blocks.push(block);
            rest = after;
        }
        Ok(Self {
            header,
            codec: info.compression()?,
            schema,
            blocks,
        })
    }

    /// The first `limit` rows of a block, with the fields of `schema` where one is given.
    pub fn rows(
        &self,
        block: &Block<'_>,
        limit: usize,
        schema: Option<&Value>,
    ) -> Result<Option<RecordBatch>, AvroFileError> {
        let wanted = limit.min(block.rows);
        if wanted == 0 {
            return Ok(None);
        }
        block.measure(self.codec)?;
        let mut builder = ReaderBuilder::new().with_batch_size(wanted);
        if let Some(schema) = schema {
            builder = builder.with_reader_schema(AvroSchema::new(schema.to_string()));
        }
        let file = Cursor::new(self.header).chain(Cursor::new(block.whole));
        Ok(builder.build(file)?.next().transpose()?)
    }
}

impl<'a> Block<'a> {
    /// A block from the front, and what stands after it.
    fn first(content: &'a [u8], sync: [u8; 16]) -> Option<(Self, &'a [u8])> {
        let mut rest = content;
        let rows = usize::try_from(long(&mut rest)?).ok()?;
        let length = usize::try_from(long(&mut rest)?).ok()?;
        let (packed, rest) = rest.split_at_checked(length)?;
        let rest = rest.strip_prefix(&sync)?;
        let whole = content.get(..content.len() - rest.len())?;
        let block = Self {
            rows,
            whole,
            packed,
        };
        Some((block, rest))
    }

    /// Refuses a block that would unpack to more than [`MAX_UNPACKED`].
    fn measure(&self, codec: Option<CompressionCodec>) -> Result<(), AvroFileError> {
        let mut unpacked: Box<dyn io::Read + '_> = match codec {
            None => return Ok(()),
            // The length stands before the rest.
            Some(CompressionCodec::Snappy) => {
                let end = self.packed.len().checked_sub(CHECKSUM);
                let mut packed = end
                    .and_then(|end| self.packed.get(..end))
                    .ok_or(AvroFileError::Damaged)?;
                return match varint(&mut packed) {
                    Some(length) if length > MAX_UNPACKED => Err(AvroFileError::TooLarge),
                    Some(_) => Ok(()),
                    None => Err(AvroFileError::Damaged),
                };
            }
            Some(CompressionCodec::Deflate) => {
                Box::new(flate2::read::DeflateDecoder::new(self.packed))
            }
            Some(CompressionCodec::ZStandard) => {
                Box::new(zstd::stream::read::Decoder::new(self.packed)?)
            }
            Some(CompressionCodec::Bzip2) => Box::new(bzip2::read::BzDecoder::new(self.packed)),
            Some(CompressionCodec::Xz) => Box::new(liblzma::read::XzDecoder::new(self.packed)),
        };
        let mut bounded = unpacked.by_ref().take(MAX_UNPACKED + 1);
        if io::copy(&mut bounded, &mut io::sink())? > MAX_UNPACKED {
            return Err(AvroFileError::TooLarge);
        }
        Ok(())
    }
}

/// Avro's whole numbers: seven bits a byte, lowest first, zigzag.
fn long(bytes: &mut &[u8]) -> Option<i64> {
    let value = varint(bytes)?;
    let magnitude = i64::try_from(value >> 1).ok()?;
    Some(if value & 1 == 0 {
        magnitude
    } else {
        -magnitude - 1
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: [u8; 16] = [7; 16];
    const SCHEMA: &str =
        r#"{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}"#;

    fn number(value: usize, out: &mut Vec<u8>) {
        let mut left = value << 1;
        while left >= 0x80 {
            out.push(u8::try_from(left & 0x7f).unwrap() | 0x80);
            left >>= 7;
        }
        out.push(u8::try_from(left).unwrap());
    }

    /// A file of one block.
    fn file(codec: &str, rows: usize, packed: &[u8]) -> Vec<u8> {
        let mut out = b"Obj\x01".to_vec();
        number(2, &mut out);
        for text in ["avro.schema", SCHEMA, "avro.codec", codec] {
            number(text.len(), &mut out);
            out.extend(text.as_bytes());
        }
        number(0, &mut out);
        out.extend(SYNC);
        number(rows, &mut out);
        number(packed.len(), &mut out);
        out.extend(packed);
        out.extend(SYNC);
        out
    }

    fn first_rows(content: &[u8]) -> Result<usize, String> {
        let file = AvroFile::open(content).map_err(|error| error.to_string())?;
        let found = file.rows(&file.blocks[0], 20, None);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.map_or(0, |batch| batch.num_rows()))
    }

    /// The same zeros, packed in every way.
    fn packed(codec: &str, size: usize) -> Vec<u8> {
        let fill = |out: &mut dyn io::Write| {
            let zeros = vec![0; 1 << 20];
            for start in (0..size).step_by(zeros.len()) {
                let count = zeros.len().min(size - start);
                out.write_all(&zeros[..count]).unwrap();
            }
        };
        match codec {
            "deflate" => {
                let level = flate2::Compression::fast();
                let mut out = flate2::write::DeflateEncoder::new(Vec::new(), level);
                fill(&mut out);
                out.finish().unwrap()
            }
            "bzip2" => {
                let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                fill(&mut out);
                out.finish().unwrap()
            }
            "xz" => {
                let mut out = liblzma::write::XzEncoder::new(Vec::new(), 0);
                fill(&mut out);
                out.finish().unwrap()
            }
            _ => {
                let mut out = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
                fill(&mut out);
                out.finish().unwrap()
            }
        }
    }

    #[test]
    fn every_codec_is_read_and_its_bombs_are_not_unpacked() {
        for codec in ["deflate", "zstandard", "bzip2", "xz"] {
            assert_eq!(
                first_rows(&file(codec, 5, &packed(codec, 5))),
                Ok(5),
                "{codec}"
            );
        }
        for codec in ["deflate", "zstandard"] {
            let bomb = packed(codec, usize::try_from(MAX_UNPACKED).unwrap() + 1);
            assert!(bomb.len() < 10 << 20);
            assert_eq!(
                first_rows(&file(codec, 20, &bomb)),
                Err("a block comes to more than 256 MB when it is unpacked".to_owned()),
                "{codec}"
            );
        }
        // Snappy says how long it will be.
        let bomb = [&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0][..], &[0; 4]].concat();
        assert_eq!(
            first_rows(&file("snappy", 1, &bomb)),
            Err("a block comes to more than 256 MB when it is unpacked".to_owned())
        );
    }

    #[test]
    fn blocks_that_lie_of_themselves_neither_panic_nor_go_round_for_ever() {
        // More than the count says.
        assert_eq!(first_rows(&file("null", 2, &[0; 5])), Ok(2));
        assert_eq!(first_rows(&file("null", 0, &[0; 5])), Ok(0));
        // Less.
        assert!(first_rows(&file("null", 5, &[0; 2])).is_err());
        for short in [&[][..], &[0], &[0; 3], &[0; 4]] {
            let told = first_rows(&file("snappy", 1, short)).unwrap_err();
            assert_eq!(told, "its blocks are cut short or damaged");
        }
        let whole = file("null", 5, &[0; 5]);
        let told = first_rows(&whole[..whole.len() - 1]).unwrap_err();
        assert_eq!(told, "its blocks are cut short or damaged");
        let mut damaged = whole;
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert!(first_rows(&damaged).is_err());
        let mut deflate = packed("deflate", 5);
        deflate.truncate(2);
        assert!(first_rows(&file("deflate", 5, &deflate)).is_err());
    }
}
