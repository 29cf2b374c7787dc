//! Files made ready for one question to a model: what `LLMFileAnalysisOperator` sends. Texts are the Python provider's.

mod csv;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::columnar::{self, head_and_tail, head_and_tail_within};
use super::file_format::{Codec, suffixes};
use super::storage::{Entry, Info, Storage, StorageError, StoredFile};
use super::{Problem, content, open_storage};
use crate::agent::BinaryContent;
use crate::airflow::config::Environment;
use crate::airflow::python_text::{repr_str, repr_value};
use crate::hook::ConnectionSource;
use crate::hook::object_store::{Location, Scheme};
use crate::toolset::sql::Mask;

/// Airflow's logger for the same lines.
const LOGGER: &str = "airflow.providers.common.ai.utils.file_analysis";

macro_rules! say {
    ($($argument:tt)*) => {
        tracing::info!(target: "airflow.task", logger = LOGGER, $($argument)*)
    };
}

/// Formats by their endings, sorted.
const FORMATS: [&str; 11] = [
    "avro", "csv", "jpeg", "jpg", "json", "log", "md", "parquet", "pdf", "png", "txt",
];

/// Which files, and how much of them.
#[derive(Clone, Debug)]
pub struct FileSelection {
    /// A file or a folder: a URL, or a path on the worker's disk.
    pub file_path: String,
    /// Goes before the connection that the path names.
    pub file_conn_id: Option<String>,
    /// Images and PDFs go along.
    pub multi_modal: bool,
    /// Files of a folder, by name; the rest is only counted.
    pub max_files: usize,
    /// Bytes of one file.
    pub max_file_size_bytes: u64,
    /// Bytes of all files.
    pub max_total_size_bytes: u64,
    /// Characters of all contents.
    pub max_text_chars: usize,
    /// Rows of CSV, Parquet and Avro files.
    pub sample_rows: usize,
}

/// What the model is told of the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileAnalysisRequest {
    pub text: String,
    /// Images and PDFs, in the order of their files.
    pub attachments: Vec<BinaryContent>,
    pub files: usize,
    pub text_files: usize,
    pub total_size_bytes: u64,
    pub omitted_files: usize,
    pub text_truncated: bool,
}

/// Why files can't be analysed: a Python exception.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct FileAnalysisError {
    /// The exception's class, with its module.
    pub class: &'static str,
    pub text: String,
}

impl FileAnalysisError {
    fn new(class: &'static str, text: impl Into<String>) -> Self {
        Self {
            class,
            text: text.into(),
        }
    }

    fn limit(text: String) -> Self {
        Self::new(
            "airflow.providers.common.ai.exceptions.LLMFileAnalysisLimitExceededError",
            text,
        )
    }

    fn format(text: String) -> Self {
        Self::new(
            "airflow.providers.common.ai.exceptions.LLMFileAnalysisUnsupportedFormatError",
            text,
        )
    }
}

impl From<Problem> for FileAnalysisError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Storage(error) => error.into(),
            Problem::Refused(text) | Problem::Fatal(text) => Self::new("ValueError", text),
        }
    }
}

impl From<StorageError> for FileAnalysisError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Exception { class, text } => Self::new(class, text),
            other => Self::new("ValueError", format!("a file {other}")),
        }
    }
}

/// A file that was found, by its path below the root; the root itself has none.
struct Found {
    parts: Vec<String>,
    /// The whole path, as people see it.
    shown: String,
    size: u64,
    format: &'static str,
    compression: Option<(&'static str, Codec)>,
}

struct Prepared {
    found: Found,
    estimated_rows: Option<usize>,
    text: Option<String>,
    attachment: Option<BinaryContent>,
    /// Bytes, decompressed.
    content_size: u64,
    truncated: bool,
    omitted: bool,
}

/// Reads the files and puts the question together.
///
/// # Errors
/// No file, one of a format that is not read, or more than the limits allow.
pub async fn build_request(
    selection: &FileSelection,
    prompt: &str,
    connections: &dyn ConnectionSource,
    environment: &Environment,
    mask: &Mask,
) -> Result<FileAnalysisRequest, FileAnalysisError> {
    let python_bool = |value| if value { "True" } else { "False" };
    say!(
        "Preparing file analysis request for path={}, file_conn_id={}, multi_modal={}, max_files={}, \
         max_file_size_bytes={}, max_total_size_bytes={}, max_text_chars={}, sample_rows={}",
        selection.file_path,
        selection.file_conn_id.as_deref().unwrap_or("None"),
        python_bool(selection.multi_modal),
        selection.max_files,
        selection.max_file_size_bytes,
        selection.max_total_size_bytes,
        selection.max_text_chars,
        selection.sample_rows,
    );
    let location = Location::parse(&selection.file_path).map_err(Problem::from)?;
    let conn_id = selection.file_conn_id.as_deref();
    let storage = open_storage(&location, conn_id, connections, environment).await?;
    let shown_root = shown_root(&location, conn_id);
    let (paths, omitted_files) = resolve(&*storage, &shown_root, selection.max_files).await?;
    let omission = match omitted_files {
        0 => String::new(),
        count => format!("; omitted {count} additional file(s) due to max_files limit"),
    };
    say!(
        "Resolved {} file(s) from {}{omission}",
        paths.len(),
        selection.file_path
    );

    let mut total_size_bytes = 0;
    let mut found = Vec::new();
    for (shown, (parts, size)) in paths {
        let (format, compression) = detect_format(&shown)?;
        let limit = selection.max_file_size_bytes;
        if size > limit {
            say!(
                "Rejecting file {shown} because size_bytes={size} exceeds the per-file limit={limit}."
            );
            return Err(FileAnalysisError::limit(format!(
                "File {shown} exceeds the configured per-file limit: {size} bytes > {limit} bytes."
            )));
        }
        total_size_bytes += size;
        let limit = selection.max_total_size_bytes;
        if total_size_bytes > limit {
            say!(
                "Rejecting file set before content reads because cumulative size reached {total_size_bytes} bytes \
                 (limit={limit} bytes)."
            );
            return Err(FileAnalysisError::limit(format!(
                "Total input size exceeds the configured limit: {total_size_bytes} bytes > {limit} bytes."
            )));
        }
        found.push(Found {
            parts,
            shown,
            size,
            format,
            compression,
        });
    }
    say!(
        "Validated byte limits for {} file(s) before reading file contents; total_size_bytes={total_size_bytes}.",
        found.len()
    );

    let mut prepared = Vec::new();
    let mut processed = 0;
    for file in found {
        let left = selection.max_total_size_bytes.saturating_sub(processed);
        if left == 0 {
            return Err(FileAnalysisError::limit(
                "Total processed input size exceeds the configured limit after decompression."
                    .to_owned(),
            ));
        }
        let max_bytes = selection.max_file_size_bytes.min(left);
        let file = prepare(&*storage, file, selection, max_bytes, mask).await?;
        processed += file.content_size;
        prepared.push(file);
    }
    let text_truncated = fit(&mut prepared, selection.max_text_chars);
    if text_truncated {
        say!(
            "Normalized text content exceeded max_text_chars={} and was truncated.",
            selection.max_text_chars
        );
    }
    let text = preamble(prompt, &prepared, omitted_files, text_truncated);
    let request = FileAnalysisRequest {
        text,
        files: prepared.len(),
        text_files: prepared.iter().filter(|file| file.text.is_some()).count(),
        attachments: prepared
            .into_iter()
            .filter_map(|file| file.attachment)
            .collect(),
        total_size_bytes,
        omitted_files,
        text_truncated,
    };
    say!(
        "Prepared file analysis request with {} text file(s), {} attachment(s), total_size_bytes={total_size_bytes}.",
        request.text_files,
        request.attachments.len()
    );
    Ok(request)
}

/// The root as `str(ObjectStoragePath)` has it: with the connection, where one is named.
fn shown_root(location: &Location, conn_id: Option<&str>) -> String {
    let url = location.to_string();
    let url = url.trim_end_matches('/');
    match (
        conn_id.or(location.conn_id.as_deref()),
        url.split_once("://"),
    ) {
        (Some(conn_id), Some((scheme, rest))) if location.scheme != Scheme::Http => {
            format!("{scheme}://{conn_id}@{rest}")
        }
        _ => url.to_owned(),
    }
}

/// Files by their shown paths: the parts below the root, and the size.
type Paths = BTreeMap<String, (Vec<String>, u64)>;

/// The files, and how many more there are.
async fn resolve(
    storage: &dyn Storage,
    root: &str,
    max_files: usize,
) -> Result<(Paths, usize), FileAnalysisError> {
    let mut found = Paths::new();
    if let Some(Info::File { size, .. }) = storage.info(&[]).await? {
        found.insert(root.to_owned(), (Vec::new(), size));
        return Ok((found, 0));
    }
    let mut omitted = 0;
    let mut folders: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(folder) = folders.pop() {
        let parts: Vec<&str> = folder.iter().map(String::as_str).collect();
        let entries = match storage.list(&parts).await {
            Ok(entries) => entries.unwrap_or_default(),
            Err(StorageError::Exception {
                class: "FileNotFoundError" | "NotADirectoryError",
                ..
            }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let mut parts = folder.clone();
            parts.push(entry.name().to_owned());
            match entry {
                Entry::Directory { .. } => folders.push(parts),
                Entry::File { size, .. } => {
                    found.insert(format!("{root}/{}", parts.join("/")), (parts, size));
                    if found.len() > max_files {
                        found.pop_last();
                        omitted += 1;
                    }
                }
            }
        }
    }
    if found.is_empty() {
        let text = format!("No files found for {root}.");
        return Err(FileAnalysisError::new("FileNotFoundError", text));
    }
    Ok((found, omitted))
}

/// A format, and a compression with its name.
type Format = (&'static str, Option<(&'static str, Codec)>);

/// The format and the compression that a name's endings say.
fn detect_format(shown: &str) -> Result<Format, FileAnalysisError> {
    let name = shown.rsplit('/').next().unwrap_or_default();
    let mut endings = suffixes(name);
    let compression = match endings.last().map(String::as_str) {
        Some("bz2") => Some(("bzip2", Some(Codec::Bzip2))),
        Some("gz") => Some(("gzip", Some(Codec::Gzip))),
        Some("xz") => Some(("xz", Some(Codec::Xz))),
        Some("snappy") => Some(("snappy", None)),
        Some("zst") => Some(("zstd", None)),
        _ => None,
    };
    if compression.is_some() {
        endings.pop();
    }
    let ending = endings.pop().unwrap_or_else(|| "log".to_owned());
    let Some(format) = FORMATS.iter().copied().find(|format| *format == ending) else {
        return Err(FileAnalysisError::format(format!(
            "Unsupported file format {} for {shown}. Supported formats: {}.",
            repr_str(&ending),
            FORMATS.join(", ")
        )));
    };
    match compression {
        None => Ok((format, None)),
        Some((name, None)) => {
            say!("Rejecting file {shown} because compression={name} is not supported.");
            Err(FileAnalysisError::format(format!(
                "Compression '{name}' is not supported for file analysis."
            )))
        }
        Some((name, Some(_))) if !["csv", "json", "log", "txt", "md"].contains(&format) => {
            Err(FileAnalysisError::format(format!(
                "Compression '{name}' is not supported for '{format}' file analysis."
            )))
        }
        Some((name, Some(codec))) => Ok((format, Some((name, codec)))),
    }
}

fn media_type(format: &str) -> Option<&'static str> {
    Some(match format {
        "jpeg" | "jpg" => "image/jpeg",
        "pdf" => "application/pdf",
        "png" => "image/png",
        _ => return None,
    })
}

async fn prepare(
    storage: &dyn Storage,
    found: Found,
    selection: &FileSelection,
    max_bytes: u64,
    mask: &Mask,
) -> Result<Prepared, FileAnalysisError> {
    let parts: Vec<&str> = found.parts.iter().map(String::as_str).collect();
    let media_type = media_type(found.format);
    if media_type.is_some() && !selection.multi_modal {
        let Found { shown, format, .. } = &found;
        say!("Rejecting file {shown} because format={format} requires multi_modal=True.");
        return Err(FileAnalysisError::new(
            "airflow.providers.common.ai.exceptions.LLMFileAnalysisMultimodalRequiredError",
            format!(
                "File {shown} has format '{format}'; set multi_modal=True to analyze images or PDFs."
            ),
        ));
    }
    let file = storage.open(&parts).await?.ok_or_else(|| {
        FileAnalysisError::new("FileNotFoundError", format!("{} is gone", found.shown))
    })?;
    let mut prepared = Prepared {
        found,
        estimated_rows: None,
        text: None,
        attachment: None,
        content_size: 0,
        truncated: false,
        omitted: false,
    };
    if matches!(prepared.found.format, "parquet" | "avro") {
        let (size, shown) = (file.size(), &prepared.found.shown);
        if size > max_bytes {
            return Err(FileAnalysisError::limit(format!(
                "File {shown} exceeds the configured processed-content limit: {size} bytes > {max_bytes} bytes."
            )));
        }
        prepared.content_size = size;
        let rows = selection.sample_rows;
        let (sample, counts_all) = if prepared.found.format == "parquet" {
            (columnar::sample_parquet(&file, rows, mask).await?, true)
        } else {
            (columnar::sample_avro(&file, rows, mask).await?, false)
        };
        // Of an Avro file, the original knows how many rows there are once it has read beyond the last.
        prepared.estimated_rows = usize::try_from(sample.total_rows)
            .ok()
            .filter(|total| counts_all || *total < rows);
        prepared.text = Some(head_and_tail(sample.text));
        return Ok(prepared);
    }
    let bytes = read(&file, &prepared.found, max_bytes).await?;
    prepared.content_size = bytes.len() as u64;
    if let Some(media_type) = media_type {
        prepared.attachment = Some(BinaryContent {
            data: bytes.to_vec(),
            media_type: media_type.to_owned(),
        });
        return Ok(prepared);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = match prepared.found.format {
        "json" => {
            let document: Value = serde_json::from_str(&text).map_err(|error| {
                let text = format!("{}: {error}", prepared.found.shown);
                FileAnalysisError::new("json.decoder.JSONDecodeError", text)
            })?;
            prepared.estimated_rows = document.as_array().map(Vec::len);
            columnar::sample::json(&sorted(document), mask)
        }
        "csv" => {
            let rows = csv::rows(&text)?;
            prepared.estimated_rows = Some(rows.len().saturating_sub(1));
            csv_text(&rows, selection.sample_rows)
        }
        _ => text.into_owned(),
    };
    prepared.text = Some(head_and_tail(text));
    Ok(prepared)
}

async fn read(
    file: &Arc<dyn StoredFile>,
    found: &Found,
    max_bytes: u64,
) -> Result<bytes::Bytes, FileAnalysisError> {
    let codec = found.compression.map(|(_, codec)| codec);
    content::read(file, codec, max_bytes)
        .await
        .map_err(|error| match error {
            StorageError::TooLarge => FileAnalysisError::limit(format!(
                "File {} exceeds the configured processed-content limit: > {max_bytes} bytes.",
                found.shown
            )),
            other => other.into(),
        })
}

/// Keys in order, and decimal numbers as the floats that Python makes of them.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(entries) => {
            let entries: BTreeMap<String, Value> = entries
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            entries.into_iter().collect()
        }
        Value::Number(number) if number.to_string().contains(['.', 'e', 'E']) => {
            number.as_f64().map_or(Value::Number(number), Value::from)
        }
        other => other,
    }
}

fn csv_text(rows: &[Vec<String>], sample_rows: usize) -> String {
    let Some((header, rows)) = rows.split_first() else {
        return String::new();
    };
    let mut lines = vec![format!("Header: {}", header.join(", "))];
    if !rows.is_empty() {
        lines.push("Sample rows:".to_owned());
        lines.extend(rows.iter().take(sample_rows).map(|row| row.join(", ")));
    }
    lines.join("\n")
}

/// Cuts the contents, in their order, to so many characters; says whether anything was cut.
fn fit(files: &mut [Prepared], max_chars: usize) -> bool {
    let mut left = max_chars;
    let mut is_cut = false;
    for file in files {
        let Some(text) = file.text.take() else {
            continue;
        };
        if left == 0 {
            file.omitted = true;
            is_cut = true;
            continue;
        }
        if text.chars().count() > left {
            file.truncated = true;
            is_cut = true;
        }
        let text = head_and_tail_within(text, left);
        left = left.saturating_sub(text.chars().count());
        file.text = Some(text);
    }
    is_cut
}

fn preamble(prompt: &str, files: &[Prepared], omitted_files: usize, is_cut: bool) -> String {
    let mut lines = vec![
        "User request:".to_owned(),
        prompt.to_owned(),
        String::new(),
        "Resolved files:".to_owned(),
    ];
    lines.extend(files.iter().map(|file| format!("- {}", metadata(file))));
    if omitted_files > 0 {
        lines.push(format!(
            "- omitted_files={omitted_files} (max_files limit reached)"
        ));
    }
    if is_cut {
        lines.push("- text_context_truncated=True".to_owned());
    }
    let mut sections = files
        .iter()
        .filter_map(|file| {
            let text = file.text.as_ref()?;
            Some(format!("### File: {}\n{text}", file.found.shown))
        })
        .peekable();
    if sections.peek().is_some() {
        lines.extend([String::new(), "Normalized content:".to_owned()]);
        lines.extend(sections);
    }
    if files.iter().any(|file| file.attachment.is_some()) {
        lines.extend([
            String::new(),
            "Attached multimodal files follow this text block.".to_owned(),
            "Use the matching file metadata above when referring to those attachments.".to_owned(),
        ]);
    }
    lines.join("\n")
}

fn metadata(file: &Prepared) -> String {
    let found = &file.found;
    let mut parts = vec![
        format!("path={}", found.shown),
        format!("format={}", found.format),
        format!("size_bytes={}", found.size),
    ];
    if let Some((name, _)) = found.compression {
        parts.push(format!("compression={name}"));
    }
    if let Some(rows) = file.estimated_rows {
        parts.push(format!("estimated_rows={rows}"));
    }
    let path = found
        .shown
        .split_once("://")
        .map_or(found.shown.as_str(), |(_, path)| path);
    let partitions: Vec<&str> = path.split('/').filter(|part| part.contains('=')).collect();
    if !partitions.is_empty() {
        parts.push(format!("partitions={}", repr_value(&json!(partitions))));
    }
    let flags = [
        (file.truncated, "content_truncated=True"),
        (file.omitted, "content_omitted=True"),
        (file.attachment.is_some(), "attached_as_binary=True"),
    ];
    parts.extend(
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, flag)| (*flag).to_owned()),
    );
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_endings_say_format_and_compression() {
        let format = |name: &str| detect_format(&format!("file:///a.b/{name}"));
        assert_eq!(format("x").unwrap().0, "log");
        assert_eq!(format(".csv").unwrap().0, "log");
        assert_eq!(format("x.tar.JSON").unwrap().0, "json");
        let (name, compression) = format("x.md.bz2").unwrap();
        assert_eq!((name, compression.unwrap().0), ("md", "bzip2"));
        assert_eq!(
            format("x.gz").unwrap().1.map(|(name, _)| name),
            Some("gzip")
        );
        for (name, text) in [
            (
                "x.csv.zst",
                "Compression 'zstd' is not supported for file analysis.",
            ),
            (
                "x.png.gz",
                "Compression 'gzip' is not supported for 'png' file analysis.",
            ),
        ] {
            assert_eq!(format(name).unwrap_err().text, text);
        }
    }

    #[test]
    fn a_connection_stands_in_the_paths_that_the_model_sees() {
        let shown =
            |url: &str, conn_id: Option<&str>| shown_root(&Location::parse(url).unwrap(), conn_id);
        assert_eq!(
            shown("s3://own@bucket/key/", Some("other")),
            "s3://other@bucket/key"
        );
        assert_eq!(shown("s3://own@bucket/key", None), "s3://own@bucket/key");
        assert_eq!(shown("/data/x", None), "file:///data/x");
    }
}
