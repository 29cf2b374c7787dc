//! Executable bundles: a program that runs the tasks of some Dags, with a manifest of them at its end (`AFBNDL01`).
//!
//! As Airflow 3.3.2's `ExecutableCoordinator` reads them: the executable, its source (may be empty), the manifest
//! (YAML), and a trailer of 64 bytes: three little-endian `u32` (length of the source, length of the manifest, version of
//! the footer), the SHA-256 of the executable alone, 12 bytes of zero, and `AFBNDL01`.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::Value;

use super::supervisor::SCHEMA_VERSION;
use super::yaml;

const MAGIC: &[u8; 8] = b"AFBNDL01";
const FOOTER_VERSION: u32 = 1;
const TRAILER_LEN: u64 = 64;
/// Of a manifest, in bytes. One of ten thousand Dags has half a megabyte.
const MAX_MANIFEST_LEN: u32 = 16 * 1024 * 1024;

/// Why a file with the mark of a bundle can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableBundleError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("its footer has version {0}; this is a reader of version {FOOTER_VERSION}")]
    FooterVersion(u32),
    #[error("its footer is damaged: {0}")]
    Footer(&'static str),
    #[error("its manifest can't be read: {0}")]
    Manifest(String),
    #[error(
        "its executable is not the one that was packed (the SHA-256 differs): it was changed, signed or stripped \
         afterwards, or only a part of it was copied"
    )]
    Changed,
    /// The program speaks another version of the supervisor protocol.
    #[error(
        "it speaks version {0} of the supervisor protocol, and this worker speaks {SCHEMA_VERSION}: build it with an SDK \
         for Airflow 3.3"
    )]
    SchemaVersion(String),
    #[error(
        "its manifest does not say which version of the supervisor protocol it speaks: sdk.supervisor_schema_version \
         must be there, in quotes"
    )]
    NoSchemaVersion,
}

/// What a bundle says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// The manifest of this program for the tasks of these Dags: ids of Dags, each with ids of tasks.
    #[must_use]
    pub fn new(dags: &BTreeMap<String, Vec<String>>) -> Self {
        let dags: serde_json::Map<String, Value> = dags
            .iter()
            .map(|(dag_id, tasks)| (dag_id.clone(), serde_json::json!({ "tasks": tasks })))
            .collect();
        Self(serde_json::json!({
            "airflow_bundle_metadata_version": "1.0",
            "sdk": {
                "language": "rust",
                "version": env!("CARGO_PKG_VERSION"),
                "supervisor_schema_version": SCHEMA_VERSION,
            },
            "dags": dags,
        }))
    }

    fn read(text: &[u8]) -> Result<Self, ExecutableBundleError> {
        let text = std::str::from_utf8(text)
            .map_err(|error| ExecutableBundleError::Manifest(error.to_string()))?;
        let value =
            yaml::load(text).map_err(|error| ExecutableBundleError::Manifest(error.to_string()))?;
        if value.is_object() {
            Ok(Self(value))
        } else {
            Err(ExecutableBundleError::Manifest(
                "it is not a mapping".to_owned(),
            ))
        }
    }

    /// As it stands in the file. Texts are in quotes: a bare `2026-06-16` would be a date, and Airflow refuses one.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        for (section, value) in self.0.as_object().into_iter().flatten() {
            match value {
                Value::Object(entries) if !entries.is_empty() => {
                    text.push_str(&format!("{section}:\n"));
                    for (key, value) in entries {
                        text.push_str(&format!("  {}: {value}\n", Value::from(key.as_str())));
                    }
                }
                other => text.push_str(&format!("{section}: {other}\n")),
            }
        }
        text
    }

    /// Of the supervisor protocol.
    #[must_use]
    pub fn schema_version(&self) -> Option<&str> {
        self.0
            .get("sdk")?
            .get("supervisor_schema_version")?
            .as_str()
            .filter(|version| !version.is_empty())
    }

    /// The Dags, each with its tasks where the manifest names them.
    pub fn dags(&self) -> impl Iterator<Item = (&str, Option<Vec<&str>>)> {
        self.0
            .get("dags")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(dag_id, entry)| (dag_id.as_str(), tasks(entry)))
    }

    /// Does the program run this task? A Dag whose tasks are not named is the program's as a whole.
    #[must_use]
    pub fn runs(&self, dag_id: &str, task_id: &str) -> bool {
        match self
            .0
            .get("dags")
            .and_then(|dags| dags.as_object()?.get(dag_id))
        {
            None => false,
            Some(entry) => tasks(entry).is_none_or(|tasks| tasks.contains(&task_id)),
        }
    }

    /// Can this supervisor talk to the program?
    ///
    /// # Errors
    /// [`ExecutableBundleError::SchemaVersion`] and [`ExecutableBundleError::NoSchemaVersion`].
    pub fn negotiate(&self) -> Result<(), ExecutableBundleError> {
        match self.schema_version() {
            Some(SCHEMA_VERSION) => Ok(()),
            Some(other) => Err(ExecutableBundleError::SchemaVersion(other.to_owned())),
            None => Err(ExecutableBundleError::NoSchemaVersion),
        }
    }
}

fn tasks(entry: &Value) -> Option<Vec<&str>> {
    entry
        .get("tasks")?
        .as_array()?
        .iter()
        .map(Value::as_str)
        .collect()
}

/// The regions of a bundle, and its manifest. The executable is not hashed yet: see [`ExecutableBundle::verify`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutableBundle {
    pub manifest: Manifest,
    /// Length of the executable, in bytes.
    pub executable_len: u64,
    /// Length of the source, in bytes.
    pub source_len: u32,
    /// What the SHA-256 of the executable must be.
    pub sha256: [u8; 32],
}

impl ExecutableBundle {
    /// Reads footer and manifest; `None` when the file has no footer, and is no bundle then.
    ///
    /// # Errors
    /// See [`ExecutableBundleError`].
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Option<Self>, ExecutableBundleError> {
        let size = file.seek(SeekFrom::End(0))?;
        let Some(trailer_start) = size.checked_sub(TRAILER_LEN) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(trailer_start))?;
        let mut number = [0; 4];
        let mut numbers = [0; 3];
        let (mut sha256, mut reserved, mut magic) = ([0; 32], [0; 12], [0; 8]);
        for slot in &mut numbers {
            file.read_exact(&mut number)?;
            *slot = u32::from_le_bytes(number);
        }
        file.read_exact(&mut sha256)?;
        file.read_exact(&mut reserved)?;
        file.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Ok(None);
        }
        let [source_len, manifest_len, version] = numbers;
        if version != FOOTER_VERSION {
            return Err(ExecutableBundleError::FooterVersion(version));
        }
        if reserved != [0; 12] {
            return Err(ExecutableBundleError::Footer(
                "bytes that must be zero are not",
            ));
        }
        if manifest_len > MAX_MANIFEST_LEN {
            return Err(ExecutableBundleError::Footer(
                "the manifest is larger than 16 MiB",
            ));
        }
        let manifest_start = trailer_start.checked_sub(u64::from(manifest_len));
        let executable_len =
            manifest_start.and_then(|start| start.checked_sub(u64::from(source_len)));
        let (Some(manifest_start), Some(executable_len @ 1..)) = (manifest_start, executable_len)
        else {
            return Err(ExecutableBundleError::Footer(
                "its lengths leave no room for an executable",
            ));
        };
        file.seek(SeekFrom::Start(manifest_start))?;
        let mut text = Vec::new();
        file.take(u64::from(manifest_len)).read_to_end(&mut text)?;
        Ok(Some(Self {
            manifest: Manifest::read(&text)?,
            executable_len,
            source_len,
            sha256,
        }))
    }

    /// Is the executable the one that was packed?
    ///
    /// # Errors
    /// [`ExecutableBundleError::Changed`].
    pub fn verify(&self, file: &mut (impl Read + Seek)) -> Result<(), ExecutableBundleError> {
        file.seek(SeekFrom::Start(0))?;
        let (sha256, length) =
            copy_hashed(&mut file.take(self.executable_len), &mut std::io::sink())?;
        if sha256 == self.sha256 && length == self.executable_len {
            Ok(())
        } else {
            Err(ExecutableBundleError::Changed)
        }
    }
}

/// Writes a bundle without source: the first `length` bytes of `program`, the manifest and the trailer.
///
/// # Errors
/// What reading and writing give.
pub fn write(
    program: &mut impl Read,
    length: u64,
    manifest: &Manifest,
    output: &mut impl Write,
) -> std::io::Result<()> {
    let (sha256, copied) = copy_hashed(&mut program.take(length), output)?;
    if copied != length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let text = manifest.to_yaml();
    output.write_all(text.as_bytes())?;
    let manifest_len = u32::try_from(text.len())
        .ok()
        .filter(|length| *length <= MAX_MANIFEST_LEN)
        .ok_or_else(|| std::io::Error::other("the manifest is larger than 16 MiB"))?;
    for number in [0, manifest_len, FOOTER_VERSION] {
        output.write_all(&number.to_le_bytes())?;
    }
    output.write_all(&sha256)?;
    output.write_all(&[0; 12])?;
    output.write_all(MAGIC)
}

fn copy_hashed(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<([u8; 32], u64)> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 20];
    let mut copied = 0;
    loop {
        let length = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        context.update(bytes);
        to.write_all(bytes)?;
        copied += length as u64;
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(context.finish().as_ref());
    Ok((sha256, copied))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use pretty_assertions::assert_eq;

    use super::*;

    fn manifest() -> Manifest {
        Manifest::new(&BTreeMap::from([
            (
                "agents".to_owned(),
                vec!["ask".to_owned(), "tell: all".to_owned()],
            ),
            ("no".to_owned(), vec!["1".to_owned()]),
        ]))
    }

    fn packed() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(
            &mut &b"#!/bin/true\nand more"[..],
            12,
            &manifest(),
            &mut bytes,
        )
        .unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Option<ExecutableBundle>, ExecutableBundleError> {
        ExecutableBundle::read(&mut Cursor::new(bytes))
    }

    #[test]
    fn what_is_packed_is_read_back_and_verified() {
        let bytes = packed();
        let bundle = read(&bytes).unwrap().unwrap();
        assert_eq!((bundle.executable_len, bundle.source_len), (12, 0));
        assert_eq!(bundle.manifest, manifest());
        bundle.verify(&mut Cursor::new(&bytes)).unwrap();
        bundle.manifest.negotiate().unwrap();
        assert!(bundle.manifest.runs("agents", "tell: all"));
        assert!(!bundle.manifest.runs("agents", "other"));
        assert!(!bundle.manifest.runs("other", "ask"));
    }

    #[test]
    fn the_manifest_quotes_what_yaml_would_take_for_something_else() {
        assert_eq!(
            manifest().to_yaml(),
            format!(
                "airflow_bundle_metadata_version: \"1.0\"\nsdk:\n  \"language\": \"rust\"\n  \"version\": \"{}\"\n  \
                 \"supervisor_schema_version\": \"2026-06-16\"\ndags:\n  \"agents\": \
                 {{\"tasks\":[\"ask\",\"tell: all\"]}}\n  \"no\": {{\"tasks\":[\"1\"]}}\n",
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[test]
    fn a_dag_whose_tasks_are_not_named_belongs_to_the_bundle_as_a_whole() {
        let manifest = Manifest::read(b"dags: {a: {}, b: null}").unwrap();
        assert!(manifest.runs("a", "x") && manifest.runs("b", "y") && !manifest.runs("c", "x"));
        // Airflow ignores a list.
        assert!(!Manifest::read(b"dags: [a]").unwrap().runs("a", "x"));
    }

    #[test]
    fn a_changed_executable_is_noticed() {
        let mut bytes = packed();
        bytes[3] ^= 1;
        let bundle = read(&bytes).unwrap().unwrap();
        assert!(matches!(
            bundle.verify(&mut Cursor::new(&bytes)),
            Err(ExecutableBundleError::Changed)
        ));
    }

    #[test]
    fn files_without_the_mark_are_no_bundles_and_damaged_footers_are_errors() {
        assert_eq!(read(b"short").unwrap(), None);
        assert_eq!(read(&[b'x'; 200]).unwrap(), None);
        let good = packed();
        let trailer = good.len() - 64;
        // Position in the trailer, new bytes, part of what is said.
        for (at, bytes, said) in [
            (8, &[2][..], "version 2"),
            (44, &[1], "must be zero"),
            (4, &[255, 255, 0, 0], "no room"),
            (4, &[255, 255, 255, 255], "larger than"),
            (0, &[255, 255, 255, 255], "no room"),
        ] {
            let mut bad = good.clone();
            bad[trailer + at..trailer + at + bytes.len()].copy_from_slice(bytes);
            let text = read(&bad).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
        let no_executable = &good[12..];
        assert!(matches!(
            read(no_executable),
            Err(ExecutableBundleError::Footer(_))
        ));
    }

    #[test]
    fn another_version_of_the_protocol_is_refused_with_both_versions() {
        let read = |text: &str| Manifest::read(text.as_bytes()).unwrap().negotiate();
        let text = read("sdk: {supervisor_schema_version: \"2027-01-01\"}")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("2027-01-01") && text.contains(SCHEMA_VERSION),
            "{text}"
        );
        assert!(matches!(
            read("dags: {}"),
            Err(ExecutableBundleError::NoSchemaVersion)
        ));
    }
}
