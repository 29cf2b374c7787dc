//! The files that the AWS command line writes: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::airflow::config::Environment;

/// The settings of one profile, of both files; the credentials file goes first.
#[derive(Debug, Default)]
pub(super) struct Profile {
    settings: HashMap<String, String>,
}

impl Profile {
    /// A setting, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Reads a profile; files that are not there count as empty.
    ///
    /// # Errors
    /// A file that is there can't be read.
    pub fn read(name: &str, environment: &Environment) -> Result<Self, String> {
        let mut settings = HashMap::new();
        let file = |variable: &str, own: &str| {
            let home = environment.get("HOME").unwrap_or_default();
            match environment.get(variable).filter(|path| !path.is_empty()) {
                Some(path) => match path.strip_prefix("~/") {
                    Some(below) => Path::new(home).join(below),
                    None => PathBuf::from(path),
                },
                None => Path::new(home).join(".aws").join(own),
            }
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        for (path, prefix) in [(config, "profile "), (credentials, "")] {
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{}: {error}", path.display())),
            };
            for (section, key, value) in lines(&text) {
                let named = match section.strip_prefix(prefix) {
                    Some(named) => named.trim().trim_matches('"'),
                    None if section == "default" => section,
                    None => continue,
                };
                if named == name {
                    settings.insert(key.to_owned(), value.to_owned());
                }
            }
        }
        Ok(Self { settings })
    }
}

/// Section, key and value of each line that has them. Indented lines belong to a nested setting, such as `s3 =`.
fn lines(text: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.split(']').next())
        {
            section = name.trim();
        } else if let Some((key, value)) = line.split_once('=') {
            found.push((section, key.trim(), value.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(
            path("config"),
            "[default]\nregion = eu-west-1\n[profile \"a b\"]\nregion=eu-north-1\ns3 =\n  addressing_style = path\n",
        )
        .unwrap();
        std::fs::write(
            path("credentials"),
            "# mine\n[a b]\naws_access_key_id = AKIAMADEUP\naws_secret_access_key = made=up\n",
        )
        .unwrap();
        let environment: Environment = [
            ("AWS_CONFIG_FILE", path("config")),
            ("AWS_SHARED_CREDENTIALS_FILE", path("credentials")),
        ]
        .into_iter()
        .collect();
        let profile = Profile::read("a b", &environment).unwrap();
        assert_eq!(profile.get("region"), Some("eu-north-1"));
        assert_eq!(profile.get("aws_secret_access_key"), Some("made=up"));
        assert_eq!(profile.get("addressing_style"), None);
        let default = Profile::read("default", &environment).unwrap();
        assert_eq!(default.get("region"), Some("eu-west-1"));
        assert!(Profile::read("nobody", &environment).unwrap().is_empty());
    }
}
