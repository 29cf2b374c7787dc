//! Parquet and Avro files as the model is shown them: how many rows, the schema, the first rows.

mod avro_schema;
pub(super) mod sample;

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
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
use crate::toolset::avro_file::{AvroFile, AvroFileError};
use crate::toolset::datafusion::python_name;
use crate::toolset::sql::Mask;

/// Rows that are shown.
const SAMPLE_ROWS: usize = 20;
/// A sample longer than this many characters keeps its head and its tail.
const MAX_CHARS: usize = 10_000;
const HEAD_CHARS: usize = 8_000;
const GAP: &str = "\n...\n";
/// Bytes that a Parquet file's first row group may come to when it is unpacked.
const MAX_UNPACKED: u64 = 256 << 20;
/// Bytes at the end of a Parquet file that are asked for first: most footers are smaller.
const FOOTER: usize = 64 << 10;

/// A file's schema and first rows.
pub(super) struct Sample {
    /// `Schema: ...`, and the rows below it. It may be long.
    pub text: String,
    /// Rows of the whole file.
    pub total_rows: i64,
}

/// A Parquet file as `read_file` shows it.
pub(super) async fn parquet(
    file: &Arc<dyn StoredFile>,
    mask: &Mask,
) -> Result<String, StorageError> {
    let sample = sample_parquet(file, SAMPLE_ROWS, mask).await?;
    Ok(described(sample, "Parquet"))
}

/// An Avro file as `read_file` shows it.
pub(super) async fn avro(file: &Arc<dyn StoredFile>, mask: &Mask) -> Result<String, StorageError> {
    let sample = sample_avro(file, SAMPLE_ROWS, mask).await?;
    Ok(described(sample, "Avro"))
}

/// The first `rows` rows of a Parquet file. Only its footer and the pages of those rows are read.
pub(super) async fn sample_parquet(
    file: &Arc<dyn StoredFile>,
    rows: usize,
    mask: &Mask,
) -> Result<Sample, StorageError> {
    // A damaged file may be one that the decoder panics at.
    let sample = AssertUnwindSafe(parquet_sample(file, rows, mask)).catch_unwind();
    sample.await.unwrap_or_else(|_| {
        let text = "the file is damaged: its decoder failed".to_owned();
        Err(StorageError::exception("ArrowInvalid", text))
    })
}

async fn parquet_sample(
    file: &Arc<dyn StoredFile>,
    count: usize,
    mask: &Mask,
) -> Result<Sample, StorageError> {
    let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
    let reader = FileReader(Arc::clone(file));
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(reader, options)
        .await
        .map_err(|error| parquet_error(&error))?;
    let total = builder.metadata().file_metadata().num_rows();
    if let Some(first) = builder.metadata().row_groups().first() {
        let columns = first.columns().iter();
        let unpacked = columns.fold(0_u64, |sum, column| {
            sum.saturating_add(column.uncompressed_size().unsigned_abs())
        });
        if unpacked > MAX_UNPACKED {
            let limit = size_text(MAX_UNPACKED);
            let text =
                format!("its first row group comes to more than {limit} when it is unpacked");
            return Err(StorageError::exception("ArrowInvalid", text));
        }
    }
    let schema: Vec<_> = builder
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{}: {}", field.name(), python_name(field.data_type())))
        .collect();
    let batches: Vec<RecordBatch> = builder
        .with_batch_size(count)
        .with_limit(count)
        .build()
        .map_err(|error| parquet_error(&error))?
        .try_collect()
        .await
        .map_err(|error| parquet_error(&error))?;
    let rows = sample::rows(&batches, count, mask)?;
    let schema = mask(&schema.join(", "));
    Ok(Sample {
        text: format!("Schema: {schema}\nSample rows:\n{rows}"),
        total_rows: total,
    })
}

/// The first `rows` rows of an Avro file, whose rows are counted block by block.
pub(super) async fn sample_avro(
    file: &Arc<dyn StoredFile>,
    rows: usize,
    mask: &Mask,
) -> Result<Sample, StorageError> {
    let content = file.read(0..file.size()).await?;
    let mask = Arc::clone(mask);
    let done = blocking::run(move || avro_sample(&content, rows, &mask)).await;
    done.unwrap_or_else(|error| Err(StorageError::exception("RuntimeError", error.to_string())))
}

fn avro_sample(content: &[u8], count: usize, mask: &Mask) -> Result<Sample, StorageError> {
    let wrong = |error: AvroFileError| StorageError::exception("ValueError", error.to_string());
    let file = AvroFile::open(content).map_err(wrong)?;
    let blocks = file.blocks.iter();
    let total = blocks.fold(0, |sum: usize, block| sum.saturating_add(block.rows));
    let mut batches = Vec::new();
    let mut found = 0;
    for block in &file.blocks {
        if found == count {
            break;
        }
        if let Some(batch) = file.rows(block, count - found, None).map_err(wrong)? {
            found += batch.num_rows();
            batches.push(batch);
        }
    }
    let rows = sample::rows(&batches, count, mask)?;
    let schema = sample::json(&avro_schema::qualified(file.schema), mask);
    Ok(Sample {
        text: format!("Schema: {schema}\nSample rows:\n{rows}"),
        total_rows: i64::try_from(total).unwrap_or(i64::MAX),
    })
}

fn described(sample: Sample, kind: &str) -> String {
    let total = sample.total_rows;
    let shown = total.min(i64::try_from(SAMPLE_ROWS).unwrap_or(i64::MAX));
    format!(
        "Rows: {total}. The schema and the first {shown} rows follow; offset and limit do not apply to {kind} \
         files.\n{}",
        head_and_tail(sample.text)
    )
}

/// A text as it is shown: a long one keeps its head and its tail.
pub(super) fn head_and_tail(text: String) -> String {
    head_and_tail_within(text, MAX_CHARS)
}

/// A text of at most `max` characters.
pub(super) fn head_and_tail_within(text: String, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text;
    }
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let head = if max >= MAX_CHARS {
        HEAD_CHARS
    } else {
        max / 2
    };
    let tail = max.saturating_sub(head + GAP.len());
    if max <= 32 || tail == 0 {
        return text.get(..at(max)).unwrap_or_default().to_owned();
    }
    let start = text.get(..at(head)).unwrap_or_default();
    let end = text.get(at(count - tail)..).unwrap_or_default();
    format!("{start}{GAP}{end}")
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
