//! Is an SSH server the one it should be? OpenSSH's `StrictHostKeyChecking` with its known-hosts files.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::catalogue::matches_glob;

/// What to do about a server whose key is not in a known-hosts file. A key that is another than the known one is
/// refused by all but `Off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Checking {
    /// `yes`, and `ask`, since there is nobody to ask.
    Strict,
    /// `accept-new`: take it and remember it.
    #[default]
    AcceptNew,
    /// `no`, `off`.
    Off,
}

impl Checking {
    /// The `strict_host_key_checking` of a connection's extra.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "yes" | "ask" => Some(Self::Strict),
            "accept-new" => Some(Self::AcceptNew),
            "no" | "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// A server is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostKeyError {
    #[error(
        "the {key_type} host key of {host} is not in {}: add it there (ssh-keyscan shows it), or set \
         strict_host_key_checking to accept-new in the connection's extra", file.display()
    )]
    Unknown {
        host: String,
        key_type: String,
        file: PathBuf,
    },
    #[error(
        "the {key_type} host key of {host} is not the one in {}: somebody may stand between, or the server's key was \
         changed; check it, then correct the file", file.display()
    )]
    Changed {
        host: String,
        key_type: String,
        file: PathBuf,
    },
    #[error("the {key_type} host key of {host} is revoked in {}", file.display())]
    Revoked {
        host: String,
        key_type: String,
        file: PathBuf,
    },
    #[error("{host} did not show a host key that can be read")]
    Malformed { host: String },
}

/// A server and the rules for it.
#[derive(Clone, Debug)]
pub(super) struct HostKeys {
    pub checking: Checking,
    /// New keys are written to the first.
    pub files: Vec<PathBuf>,
    /// As known-hosts files name it: `host`, or `[host]:port`.
    pub host: String,
}

impl HostKeys {
    /// Looks at the key a server shows, in SSH's own encoding.
    ///
    /// # Errors
    /// See [`HostKeyError`].
    pub fn check(&self, key: &[u8]) -> Result<(), HostKeyError> {
        let host = self.host.clone();
        let key_type =
            key_type(key).ok_or_else(|| HostKeyError::Malformed { host: host.clone() })?;
        let mut known = false;
        let mut other = None;
        for file in &self.files {
            let Ok(text) = fs::read_to_string(file) else {
                continue;
            };
            for line in text.lines().filter_map(Line::parse) {
                if !line.names(&self.host) {
                    continue;
                }
                let same = line.key == key;
                match line.marker {
                    Some("@revoked") if same => {
                        return Err(HostKeyError::Revoked {
                            host,
                            key_type,
                            file: file.clone(),
                        });
                    }
                    None if same => known = true,
                    None => other = Some(file.clone()),
                    // Authorities sign certificates, and certificates are not offered here.
                    Some(_) => {}
                }
            }
        }
        let file = self.files.first().cloned().unwrap_or_default();
        match (self.checking, known, other) {
            (_, true, _) | (Checking::Off, ..) => Ok(()),
            (_, false, Some(file)) => Err(HostKeyError::Changed {
                host,
                key_type,
                file,
            }),
            (Checking::Strict, false, None) => Err(HostKeyError::Unknown {
                host,
                key_type,
                file,
            }),
            (Checking::AcceptNew, false, None) => {
                let line = format!("{host} {key_type} {}\n", STANDARD.encode(key));
                if let Err(error) = append(&file, &line) {
                    tracing::warn!(
                        "The host key of {host} was taken and could not be written to {}: {error}",
                        file.display()
                    );
                }
                Ok(())
            }
        }
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent()
        && !folder.is_dir()
    {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file)?
        .write_all(line.as_bytes())
}

/// The type with which a key's encoding begins: `ssh-ed25519`.
fn key_type(key: &[u8]) -> Option<String> {
    let (length, rest) = key.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let text = std::str::from_utf8(rest.get(..length)?).ok()?;
    let plain = |c: char| c.is_ascii_graphic();
    (!text.is_empty() && text.chars().all(plain)).then(|| text.to_owned())
}

/// A line of a known-hosts file: `[marker] hosts type key [comment]`.
struct Line<'a> {
    marker: Option<&'a str>,
    hosts: &'a str,
    key: Vec<u8>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let hosts = words.next().filter(|word| !word.starts_with('#'))?;
        let _type = words.next()?;
        let key = STANDARD.decode(words.next()?).ok()?;
        Some(Self { marker, hosts, key })
    }

    fn names(&self, host: &str) -> bool {
        if let Some(hashed) = self.hosts.strip_prefix("|1|") {
            return is_hash_of(hashed, host).unwrap_or(false);
        }
        let mut named = false;
        for pattern in self.hosts.split(',') {
            match pattern.strip_prefix('!') {
                Some(pattern) if fits(pattern, host) => return false,
                Some(_) => {}
                None => named |= fits(pattern, host),
            }
        }
        named
    }
}

/// `*` and `?` are wildcards; brackets stand for themselves here.
fn fits(pattern: &str, host: &str) -> bool {
    let pattern = pattern.replace('[', "[[]").to_lowercase();
    matches_glob(&pattern, &host.to_lowercase())
}

/// `salt|hash`: HMAC-SHA1 of the name, so that the file does not tell where its owner goes.
fn is_hash_of(hashed: &str, host: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let salt = STANDARD.decode(salt).ok()?;
    let hash = STANDARD.decode(hash).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, host.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `ssh-keygen -t ed25519`, for these tests only.
    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIBMJ1GHbPfCPcr1QLR0Ml0Wm4/2N0m8TRB3cWcvjNOSJ";
    const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAMJ1GHbPfCPcr1QLR0Ml0Wm4/2N0m8TRB3cWcvjNOSJ";

    fn key(text: &str) -> Vec<u8> {
        STANDARD.decode(text).unwrap()
    }

    fn check(checking: Checking, lines: &str, host: &str) -> Result<(), HostKeyError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        fs::write(&file, lines).unwrap();
        let keys = HostKeys {
            checking,
            files: vec![file],
            host: host.to_owned(),
        };
        keys.check(&key(KEY))
    }

    #[test]
    fn a_known_key_is_taken_under_each_way_of_naming_its_host() {
        for hosts in [
            "example.com",
            "other,example.com",
            "*.com",
            "EXAMPLE.com",
            // echo -n example.com | HMAC-SHA1 with the salt.
            "|1|c2FsdHNhbHRzYWx0c2FsdHNhbHQ=|FQ+T8llbOEZw6kMi1xhxPdATPO4=",
        ] {
            let line = format!("# comment\n\n{hosts} ssh-ed25519 {KEY} comment\n");
            assert_eq!(
                check(Checking::Strict, &line, "example.com"),
                Ok(()),
                "{hosts}"
            );
        }
        let line = format!("[example.com]:2222 ssh-ed25519 {KEY}\n");
        assert_eq!(check(Checking::Strict, &line, "[example.com]:2222"), Ok(()));
        assert!(check(Checking::Strict, &line, "example.com").is_err());
        let line = format!("*.com,!example.com ssh-ed25519 {KEY}\n");
        assert!(check(Checking::Strict, &line, "example.com").is_err());
    }

    #[test]
    fn an_unknown_key_is_refused_taken_or_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let keys = |checking| HostKeys {
            checking,
            files: vec![folder.path().join(".ssh/known_hosts")],
            host: "example.com".to_owned(),
        };
        let error = keys(Checking::Strict).check(&key(KEY)).unwrap_err();
        assert!(
            matches!(&error, HostKeyError::Unknown { key_type, .. } if key_type == "ssh-ed25519")
        );
        assert_eq!(keys(Checking::Off).check(&key(KEY)), Ok(()));
        assert!(!folder.path().join(".ssh").exists());
        assert_eq!(keys(Checking::AcceptNew).check(&key(KEY)), Ok(()));
        assert_eq!(keys(Checking::Strict).check(&key(KEY)), Ok(()));
        assert!(matches!(
            keys(Checking::AcceptNew).check(&key(OTHER)),
            Err(HostKeyError::Changed { .. })
        ));
    }

    #[test]
    fn a_changed_or_revoked_key_is_refused() {
        let line = format!("example.com ssh-ed25519 {OTHER}\n");
        for checking in [Checking::Strict, Checking::AcceptNew] {
            assert!(matches!(
                check(checking, &line, "example.com"),
                Err(HostKeyError::Changed { .. })
            ));
        }
        assert_eq!(check(Checking::Off, &line, "example.com"), Ok(()));
        let line = format!("@revoked * ssh-ed25519 {KEY}\n");
        assert!(matches!(
            check(Checking::Off, &line, "example.com"),
            Err(HostKeyError::Revoked { .. })
        ));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let keys = HostKeys {
            checking: Checking::Off,
            files: Vec::new(),
            host: "h".to_owned(),
        };
        for bytes in [
            &b""[..],
            b"\0\0\0\x05ab",
            b"\0\0\0\0",
            b"\xff\xff\xff\xffab",
        ] {
            assert!(matches!(
                keys.check(bytes),
                Err(HostKeyError::Malformed { .. })
            ));
        }
    }
}
