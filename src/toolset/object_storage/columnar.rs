//! Parquet and Avro files as the model is shown them: how many rows, the schema, the first rows.

mod avro_schema;
mod sample;

use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow_avro::reader::ReaderBuilder;
use datafusion::parquet::arrow::ParquetRecordBatchStreamBuilder;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};

use super::storage::{StorageError, StoredFile};
use super::window::size_text;
use crate::hook::blocking;
use crate::toolset::datafusion::python_name;
use crate::toolset::sql::Mask;

/// Rows that are shown.
const SAMPLE_ROWS: usize = 20;
/// A sample longer than this many characters keeps its head and its tail.
const MAX_CHARS: usize = 10_000;
const HEAD_CHARS: usize = 8_000;
const GAP: &str = "\n...\n";
/// Bytes at the end of a Parquet file that are asked for first: most footers are smaller.
const FOOTER: usize = 64 << 10;

/// A Parquet file. Only its footer and the pages of the first rows are read.
pub(super) async fn parquet(
    file: &Arc<dyn StoredFile>,
    mask: &Mask,
) -> Result<String, StorageError> {
    let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
    let reader = FileReader(Arc::clone(file));
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(reader, options)
        .await
        .map_err(|error| parquet_error(&error))?;
    let total = builder.metadata().file_metadata().num_rows();
    let schema: Vec<_> = builder
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{}: {}", field.name(), python_name(field.data_type())))
        .collect();
    let batches: Vec<RecordBatch> = builder
        .with_batch_size(SAMPLE_ROWS)
        .with_limit(SAMPLE_ROWS)
        .build()
        .map_err(|error| parquet_error(&error))?
        .try_collect()
        .await
        .map_err(|error| parquet_error(&error))?;
    let rows = sample::rows(&batches, SAMPLE_ROWS, mask)?;
    let schema = mask(&schema.join(", "));
    Ok(described(total, "Parquet", &schema, &rows))
}

/// An Avro file, whose rows are counted block by block.
pub(super) async fn avro(file: &Arc<dyn StoredFile>, mask: &Mask) -> Result<String, StorageError> {
    let content = file.read(0..file.size()).await?;
    let mask = Arc::clone(mask);
    let done = blocking::run(move || avro_text(content, &mask)).await;
    done.unwrap_or_else(|error| Err(StorageError::exception("RuntimeError", error.to_string())))
}

fn avro_text(content: Bytes, mask: &Mask) -> Result<String, StorageError> {
    let wrong = |text: String| StorageError::exception("ValueError", text);
    let mut reader = ReaderBuilder::new()
        .with_batch_size(SAMPLE_ROWS)
        .build(Cursor::new(content.clone()))
        .map_err(|error| wrong(error.to_string()))?;
    let header = reader.avro_header();
    let schema = header.get("avro.schema").unwrap_or_default();
    let schema = serde_json::from_slice(schema)
        .map_err(|error| wrong(format!("its schema is not JSON: {error}")))?;
    let total = avro_rows(&content, header.sync())
        .ok_or_else(|| wrong("its blocks are cut short or damaged".to_owned()))?;
    let mut batches = Vec::new();
    let mut found = 0;
    while found < SAMPLE_ROWS
        && let Some(batch) = reader.next()
    {
        let batch = batch.map_err(|error| wrong(error.to_string()))?;
        found += batch.num_rows();
        batches.push(batch);
    }
    let rows = sample::rows(&batches, SAMPLE_ROWS, mask)?;
    let schema = sample::json(&avro_schema::qualified(schema), mask);
    Ok(described(total, "Avro", &schema, &rows))
}

/// Counts the rows that the blocks say they hold; `None` when they do not add up to the file.
fn avro_rows(content: &[u8], sync: [u8; 16]) -> Option<i64> {
    // The header ends with the first of the marks that also end each block.
    let end = content.windows(sync.len()).position(|part| part == sync)?;
    let mut rest = content.get(end + sync.len()..)?;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let count = long(&mut rest)?;
        let length = usize::try_from(long(&mut rest)?).ok()?;
        rest = rest.get(length..)?.strip_prefix(&sync)?;
        total = total.checked_add(count)?;
    }
    Some(total)
}

/// Avro's whole numbers: seven bits a byte, lowest first, zigzag.
fn long(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let magnitude = i64::try_from(value >> 1).ok()?;
            return Some(if value & 1 == 0 {
                magnitude
            } else {
                -magnitude - 1
            });
        }
    }
    None
}

fn described(total: i64, kind: &str, schema: &str, rows: &str) -> String {
    let shown = total.min(i64::try_from(SAMPLE_ROWS).unwrap_or(i64::MAX));
    let sample = format!("Schema: {schema}\nSample rows:\n{rows}");
    format!(
        "Rows: {total}. The schema and the first {shown} rows follow; offset and limit do not apply to {kind} \
         files.\n{}",
        head_and_tail(sample)
    )
}

fn head_and_tail(text: String) -> String {
    let count = text.chars().count();
    if count <= MAX_CHARS {
        return text;
    }
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let head = text.get(..at(HEAD_CHARS)).unwrap_or_default();
    let tail = MAX_CHARS - HEAD_CHARS - GAP.len();
    let tail = text.get(at(count - tail)..).unwrap_or_default();
    format!("{head}{GAP}{tail}")
}

/// Cuts a text to a number of bytes, and says so.
pub(super) fn cut(text: String, max_bytes: u64) -> String {
    let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    if text.len() <= max {
        return text;
    }
    let kept = text
        .get(..text.floor_char_boundary(max))
        .unwrap_or_default();
    format!("{kept}\n[... cut at {}]", size_text(max_bytes))
}

fn parquet_error(error: &ParquetError) -> StorageError {
    match error {
        ParquetError::External(inner) => match inner.downcast_ref::<StorageError>() {
            Some(error) => error.clone(),
            None => StorageError::exception("OSError", inner.to_string()),
        },
        other => StorageError::exception("ArrowInvalid", other.to_string()),
    }
}

struct FileReader(Arc<dyn StoredFile>);

impl AsyncFileReader for FileReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let bytes = self.0.read(range).await;
            bytes.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let size = self.0.size();
            let hint = usize::try_from(size).unwrap_or(FOOTER).min(FOOTER);
            let metadata = ParquetMetaDataReader::new()
                .with_arrow_reader_options(options)
                .with_prefetch_hint(Some(hint))
                .load_and_finish(self, size)
                .await?;
            Ok(Arc::new(metadata))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn long_samples_keep_head_and_tail() {
        let text: String = ('a'..='z').cycle().take(12_000).collect();
        let kept = head_and_tail(text.clone());
        assert_eq!(kept.len(), MAX_CHARS);
        assert_eq!(
            kept,
            format!("{}\n...\n{}", &text[..8000], &text[12_000 - 1995..])
        );
        assert_eq!(head_and_tail("é".repeat(MAX_CHARS)), "é".repeat(MAX_CHARS));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aéb".to_owned(), 2), "a\n[... cut at 2B]");
        assert_eq!(cut("aéb".to_owned(), 4), "aéb");
    }
}
