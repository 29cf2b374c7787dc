//! What a `git` connection says, and where a repository lies: read before anything is asked of a server.

use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::SkillsError;
use super::github_app::{self, GithubApp};
use super::host_keys::Checking;
use super::ssh_config::SshConfig;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::repr_str;

/// Bytes of a key file or a configuration file.
const MAX_FILE: u64 = 65_536;

/// Where a repository lies, taken apart as far as the rules need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub transport: Transport,
    /// Lower case; empty for a folder.
    pub host: String,
    pub port: Option<u16>,
    pub user: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    Http,
    Ssh,
    /// `git://`, a folder: no credentials.
    Plain,
}

impl Address {
    /// Reads a URL or `user@host:path`.
    ///
    /// # Errors
    /// Credentials in it, or text that can't be a repository's address.
    pub fn parse(url: &str) -> Result<Self, SkillsError> {
        if url.is_empty() || url.chars().any(|c| c.is_control() || c == ' ') {
            return Err(SkillsError::BadUrl(repr_str(url)));
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(Self::of_scp_form(url)?.unwrap_or(Self {
                transport: Transport::Plain,
                host: String::new(),
                port: None,
                user: None,
            }));
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@')
            && !user.is_empty()
        {
            return Err(SkillsError::CredentialsInUrl);
        }
        let transport = match scheme.to_ascii_lowercase().as_str() {
            "https" => Transport::Https,
            "http" => Transport::Http,
            "ssh" | "git+ssh" | "ssh+git" => Transport::Ssh,
            "git" | "file" => Transport::Plain,
            _ => return Err(SkillsError::BadUrl(repr_str(url))),
        };
        let authority = authority.trim_start_matches('@');
        // An IPv6 address has colons of its own, in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (
                host,
                Some(
                    port.parse()
                        .map_err(|_| SkillsError::BadUrl(repr_str(url)))?,
                ),
            ),
            _ => (authority, None),
        };
        Ok(Self {
            transport,
            host: host.trim_matches(['[', ']']).to_ascii_lowercase(),
            port,
            user: None,
        })
    }

    /// `user@host:path`, as OpenSSH's tools write it.
    fn of_scp_form(url: &str) -> Result<Option<Self>, SkillsError> {
        let Some((before, _)) = url.split_once(':') else {
            return Ok(None);
        };
        if before.contains('/') {
            return Ok(None);
        }
        let (user, host) = match url.split_once('@') {
            // The part before a second colon would be a password.
            Some((user, _)) if user.contains(':') => return Err(SkillsError::CredentialsInUrl),
            Some((user, rest)) => (Some(user.to_owned()), rest.split(':').next()),
            None => (None, Some(before)),
        };
        Ok(Some(Self {
            transport: Transport::Ssh,
            host: host.unwrap_or_default().to_ascii_lowercase(),
            port: None,
            user,
        }))
    }
}

/// The folder that a repository's address names; `None` for one on a server.
#[must_use]
pub fn local_repository(url: &str) -> Option<PathBuf> {
    let address = Address::parse(url).ok()?;
    if address.transport != Transport::Plain {
        return None;
    }
    match url.split_once("://") {
        None => Some(url.into()),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("git") => None,
        // One that is no path is none that can be cloned: nothing is there.
        Some((_, rest)) => Some(
            reqwest::Url::parse(url)
                .ok()
                .and_then(|url| url.to_file_path().ok())
                .unwrap_or_else(|| rest.into()),
        ),
    }
}

/// What a connection gives.
#[derive(Default)]
pub(super) struct Credential {
    pub user: Option<String>,
    pub token: Option<SecretString>,
    /// For SSH.
    pub key: Option<SecretString>,
    pub passphrase: Option<SecretString>,
    pub checking: Checking,
    pub known_hosts: Option<PathBuf>,
    /// For SSH; one in the URL goes before it.
    pub port: Option<u16>,
    /// `host_proxy_cmd`.
    pub proxy_command: Option<String>,
    /// Gives the token, and goes in place of it.
    pub app: Option<GithubApp>,
    ssh_config: Option<PathBuf>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("checking", &self.checking)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Reads a connection's fields as Airflow's git provider does.
    ///
    /// # Errors
    /// [`SkillsError::Connection`] with what is wrong about them.
    pub fn of(connection: &Connection, address: &Address) -> Result<Self, SkillsError> {
        let wrong = |reason: String| SkillsError::Connection {
            conn_id: connection.conn_id.clone(),
            reason,
        };
        if connection.conn_type != "git" {
            return Err(wrong(format!(
                "is of type {}, and GitSkills needs one of type 'git'",
                repr_str(&connection.conn_type)
            )));
        }
        let extra = connection
            .extra_json()
            .map_err(|error| wrong(format!("can't be used: {error}")))?;
        let key = match (text(&extra, "private_key"), text(&extra, "key_file")) {
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "has both 'key_file' and 'private_key' in its extra: leave one of them"
                        .to_owned(),
                ));
            }
            (Some(key), None) => Some(key),
            (None, Some(file)) => Some(read("key_file", Path::new(&file)).map_err(wrong)?),
            (None, None) => None,
        };
        let checking = match text(&extra, "strict_host_key_checking") {
            None => Checking::AcceptNew,
            Some(value) => Checking::parse(&value).ok_or_else(|| {
                wrong(format!(
                    "has the strict_host_key_checking {}, which must be one of 'accept-new', 'ask', 'no', 'off', 'yes'",
                    repr_str(&value)
                ))
            })?,
        };
        let port = text(&extra, "ssh_port")
            .map(|port| {
                port.parse()
                    .map_err(|_| wrong("has an ssh_port that is no port".to_owned()))
            })
            .transpose()?;
        let token = connection
            .password
            .clone()
            .filter(|token| !token.is_empty())
            .map(SecretString::from);
        let mut credential = Self {
            user: connection.login.clone().filter(|login| !login.is_empty()),
            token,
            key: key.map(SecretString::from),
            passphrase: text(&extra, "private_key_passphrase").map(SecretString::from),
            checking,
            known_hosts: text(&extra, "known_hosts_file").map(PathBuf::from),
            port,
            proxy_command: text(&extra, "host_proxy_cmd"),
            app: None,
            ssh_config: text(&extra, "ssh_config_file").map(PathBuf::from),
        };
        credential.read_app(&extra, address).map_err(wrong)?;
        Ok(credential)
    }

    /// `github_app_id` and `github_installation_id`, with the key.
    fn read_app(&mut self, extra: &Map<String, Value>, address: &Address) -> Result<(), String> {
        let (app_id, installation_id) = match (
            text(extra, "github_app_id"),
            text(extra, "github_installation_id"),
        ) {
            (None, None) => return Ok(()),
            (Some(app_id), Some(installation_id)) => (app_id, installation_id),
            _ => {
                return Err(
                    "has one of 'github_app_id' and 'github_installation_id' in its extra: a GitHub App needs both"
                        .to_owned(),
                );
            }
        };
        if self.token.is_some() {
            return Err("has a password, which must be empty for a GitHub App".to_owned());
        }
        if address.transport != Transport::Https {
            return Err("is of a GitHub App, which needs an https:// URL".to_owned());
        }
        if installation_id.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Err("has a github_installation_id that is no number".to_owned());
        }
        let private_key = self.key.take().ok_or_else(|| {
            "is of a GitHub App and has no key: set private_key or key_file in its extra".to_owned()
        })?;
        self.user = Some(github_app::USER.to_owned());
        self.app = Some(GithubApp {
            app_id,
            installation_id,
            private_key,
        });
        Ok(())
    }

    /// Where the server of an ssh address is, after what the connection and its `ssh_config_file` say. What the file
    /// says of keys goes where the connection says nothing.
    ///
    /// # Errors
    /// The file can't be read, or says what is not known here.
    pub fn route(&mut self, address: &Address) -> Result<Route, String> {
        let config = match &self.ssh_config {
            None => SshConfig::default(),
            Some(file) => {
                let home = std::env::var("HOME").ok();
                let text = read("ssh_config_file", file)?;
                SshConfig::of(&text, &address.host, home.as_deref()).map_err(|error| {
                    format!("has the ssh_config_file {}, {error}", file.display())
                })?
            }
        };
        if self.key.is_none() {
            let mut files = config.identity_files.iter();
            if let Some(file) = files.find(|file| file.exists()) {
                self.key = Some(SecretString::from(read("ssh_config_file", file)?));
            }
        }
        if self.known_hosts.is_none() {
            self.known_hosts = config.known_hosts;
        }
        Ok(Route {
            host: config.host_name.unwrap_or_else(|| address.host.clone()),
            port: address.port.or(self.port).or(config.port),
            user: address
                .user
                .clone()
                .or(config.user)
                .or_else(|| self.user.clone())
                .unwrap_or_else(|| "git".to_owned()),
            proxy_command: self.proxy_command.take().or(config.proxy_command),
        })
    }
}

/// How an SSH server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub host: String,
    pub port: Option<u16>,
    pub user: String,
    pub proxy_command: Option<String>,
}

fn text(extra: &Map<String, Value>, name: &str) -> Option<String> {
    match extra.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a file that the field names.
fn read(field: &str, file: &Path) -> Result<String, String> {
    let size = file.metadata().map(|metadata| metadata.len());
    match size {
        Ok(size) if size > MAX_FILE => Err(format!("has a {field} that is none: {size} bytes")),
        Ok(_) => std::fs::read_to_string(file)
            .map_err(|error| format!("has a {field} that can't be read: {error}")),
        Err(error) => Err(format!("has a {field} that can't be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn credential(
        url: &str,
        password: Option<&str>,
        extra: &Value,
    ) -> Result<(Address, Credential), String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let connection = Connection {
            conn_id: "skills".to_owned(),
            conn_type: "git".to_owned(),
            login: Some("reader".to_owned()),
            password: password.map(ToOwned::to_owned),
            extra: Some(extra.to_string()),
            ..Connection::default()
        };
        let credential =
            Credential::of(&connection, &address).map_err(|error| error.to_string())?;
        Ok((address, credential))
    }

    #[test]
    fn a_github_app_needs_both_ids_a_key_an_https_url_and_no_password() {
        let app =
            json!({"github_app_id": 7, "github_installation_id": "42", "private_key": "made-up"});
        let without = |name: &str| {
            let mut extra = app.clone();
            extra.as_object_mut().unwrap().remove(name);
            extra
        };
        let url = "https://git.example.com/skills.git";
        let (_, found) = credential(url, None, &app).unwrap();
        assert_eq!(found.user.as_deref(), Some("x-access-token"));
        assert!(found.app.is_some() && found.key.is_none());
        for (url, password, extra) in [
            (url, None, without("github_app_id")),
            (url, None, without("github_installation_id")),
            (url, None, without("private_key")),
            (url, Some("made-up"), app.clone()),
            ("git@git.example.com:skills.git", None, app.clone()),
            (
                url,
                None,
                json!({"github_app_id": "7", "github_installation_id": "../2", "private_key": "made-up"}),
            ),
        ] {
            assert!(credential(url, password, &extra).is_err(), "{url} {extra}");
        }
    }

    #[test]
    fn the_url_goes_before_the_connection_and_that_before_its_ssh_config() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let key = folder.path().join("key");
        std::fs::write(&key, "made-up-key").unwrap();
        let config = format!(
            "Host git\n HostName git.example.com\n Port 7\n User mate\n IdentityFile /nowhere\n IdentityFile {}\n \
             ProxyCommand nc %h %p\n",
            key.display()
        );
        std::fs::write(&file, config).unwrap();
        let extra = json!({"ssh_config_file": file.display().to_string()});
        let (address, mut found) = credential("git:skills.git", None, &extra).unwrap();
        assert_eq!(
            found.route(&address).unwrap(),
            Route {
                host: "git.example.com".to_owned(),
                port: Some(7),
                user: "mate".to_owned(),
                proxy_command: Some("nc %h %p".to_owned()),
            }
        );
        assert!(found.key.is_some());
        let extra = json!({"ssh_config_file": file.display().to_string(), "ssh_port": 8, "host_proxy_cmd": "own"});
        let (address, mut found) = credential("me@git:skills.git", None, &extra).unwrap();
        let route = found.route(&address).unwrap();
        assert_eq!(
            (
                route.port,
                route.user.as_str(),
                route.proxy_command.as_deref()
            ),
            (Some(8), "me", Some("own"))
        );
        let missing = json!({"ssh_config_file": "/nowhere/config"});
        let (address, mut found) = credential("git:skills.git", None, &missing).unwrap();
        assert!(
            found
                .route(&address)
                .unwrap_err()
                .contains("ssh_config_file")
        );
    }
}
