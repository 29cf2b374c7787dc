//! `airflow.cfg`: the dialect of Python's `configparser` that Airflow reads.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::ConfigError;

/// A parsed `airflow.cfg`; empty when there is no such file.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    path: PathBuf,
    sections: HashMap<String, HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    line: usize,
    text: String,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(Self::default())
            }
            Err(error) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            }),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut file = Self {
            path: path.to_owned(),
            sections: HashMap::new(),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut section: Option<String> = None;
        let mut option: Option<String> = None;
        let mut option_indent = 0;
        for (index, raw) in text.lines().enumerate() {
            let line = index + 1;
            let content = raw.trim();
            if content.starts_with(['#', ';']) {
                continue;
            }
            let indent = raw.len() - raw.trim_start().len();
            let current = match (&section, &option) {
                (Some(section), Some(option)) => file
                    .sections
                    .get_mut(section)
                    .and_then(|options| options.get_mut(option)),
                _ => None,
            };
            if content.is_empty() {
                if let Some(entry) = current {
                    entry.text.push('\n');
                }
                continue;
            }
            if let Some(entry) = current
                && indent > option_indent
            {
                entry.text.push('\n');
                entry.text.push_str(content);
                continue;
            }
            if let Some(name) = content
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'))
                .map(|(name, _)| name)
            {
                file.sections.entry(name.to_owned()).or_default();
                section = Some(name.to_owned());
                option = None;
                continue;
            }
            let Some(name) = &section else {
                return Err(file.syntax(line, "an option stands before the first [section]"));
            };
            let Some((key, value)) = content.split_once(['=', ':']) else {
                return Err(file.syntax(
                    line,
                    "neither a [section] nor an option such as key = value",
                ));
            };
            let (name, key) = (name.clone(), key.trim().to_owned());
            let entry = Entry {
                line,
                text: value.trim().to_owned(),
            };
            if file
                .sections
                .entry(name.clone())
                .or_default()
                .insert(key.clone(), entry)
                .is_some()
            {
                return Err(file.syntax(
                    line,
                    format!("[{name}] {key} is set a second time: remove one of the two"),
                ));
            }
            option = Some(key);
            option_indent = indent;
        }
        Ok(file)
    }

    /// The option's text with `%%` and `%(other)s` replaced.
    pub(super) fn get(&self, section: &str, key: &str) -> Result<Option<String>, ConfigError> {
        let Some(entry) = self.entry(section, key) else {
            return Ok(None);
        };
        // Blank lines belong to a value only when more of it follows.
        self.interpolate(section, entry.text.trim_end_matches('\n'), entry.line, 0)
            .map(Some)
    }

    fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let options = self.sections.get(section)?;
        options
            .get(key)
            .or_else(|| self.sections.get("DEFAULT")?.get(key))
    }

    fn interpolate(
        &self,
        section: &str,
        text: &str,
        line: usize,
        depth: usize,
    ) -> Result<String, ConfigError> {
        if depth > 10 {
            return Err(self.syntax(line, "%(...)s references go in a circle"));
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            if let Some(tail) = after.strip_prefix('%') {
                out.push('%');
                rest = tail;
            } else if let Some((name, tail)) = after
                .strip_prefix('(')
                .and_then(|inner| inner.split_once(")s"))
            {
                let entry = self.entry(section, name).ok_or_else(|| {
                    self.syntax(
                        line,
                        format!("%({name})s: [{section}] has no option {name}"),
                    )
                })?;
                out.push_str(&self.interpolate(section, &entry.text, entry.line, depth + 1)?);
                rest = tail;
            } else {
                return Err(self.syntax(line, "a % in a value must be written %%"));
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn syntax(&self, line: usize, reason: impl Into<String>) -> ConfigError {
        ConfigError::Syntax {
            path: self.path.clone(),
            line,
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(Path::new("airflow.cfg"), text)
    }

    #[test]
    fn comments_continuations_and_both_delimiters_are_understood() {
        let file = parse(
            "# top\n[core]\ndags_folder = /d # kept\n; note\nempty =\n\n[dag_processor]\nlist = [\n    {\"a\": 1},\n\n    {}\n  ]\n\nnext: x\n",
        )
        .unwrap();
        let get = |section, key| file.get(section, key).unwrap();
        assert_eq!(get("core", "dags_folder").as_deref(), Some("/d # kept"));
        assert_eq!(get("core", "empty").as_deref(), Some(""));
        assert_eq!(
            get("dag_processor", "list").as_deref(),
            Some("[\n{\"a\": 1},\n\n{}\n]")
        );
        assert_eq!(get("dag_processor", "next").as_deref(), Some("x"));
        assert_eq!(get("core", "nothing"), None);
        assert_eq!(get("nowhere", "nothing"), None);
    }

    #[test]
    fn percent_signs_are_doubled_and_name_other_options() {
        let file = parse(
            "[DEFAULT]\nroot = /r\n[a]\nx = 100%%\ny = %(root)s/%(x)s\nz = 5%\nloop = %(loop)s\n",
        )
        .unwrap();
        assert_eq!(file.get("a", "y").unwrap().as_deref(), Some("/r/100%"));
        assert_eq!(
            file.get("a", "z").unwrap_err().to_string(),
            "airflow.cfg, line 6: a % in a value must be written %%"
        );
        assert!(file.get("a", "loop").is_err());
    }

    #[test]
    fn malformed_files_say_which_line() {
        let text = |text| parse(text).unwrap_err().to_string();
        assert_eq!(
            text("x = 1\n"),
            "airflow.cfg, line 1: an option stands before the first [section]"
        );
        assert_eq!(
            text("[a]\nnonsense\n"),
            "airflow.cfg, line 2: neither a [section] nor an option such as key = value"
        );
        assert_eq!(
            text("[a]\nx = 1\nx = 2\n"),
            "airflow.cfg, line 3: [a] x is set a second time: remove one of the two"
        );
    }
}
