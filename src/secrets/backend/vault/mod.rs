//! `VaultBackend` of Airflow's hashicorp provider (4.8): connections, variables and options in HashiCorp Vault's
//! key-value store, or OpenBao's.

mod auth;
mod client;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::kwargs::Kwargs;
use super::{BackendError, SecretsBackend, text_of};
use crate::airflow::config::Config;
use crate::airflow::connection::Connection;
use auth::Auth;
use client::{KvVersion, VaultClient};

/// Arguments of the Python class for ways to authenticate that are refused here: with `token` and the like they have no
/// effect there either.
const WITHOUT_EFFECT: &[&str] = &[
    "assume_role_kwargs",
    "azure_resource",
    "azure_tenant_id",
    "gcp_key_path",
    "gcp_keyfile_dict",
    "gcp_scopes",
    "jwt_role",
    "jwt_token",
    "jwt_token_path",
    "key_id",
    "password",
    "radius_host",
    "radius_port",
    "radius_secret",
    "region",
    "username",
];

/// Where the backend looks, and how.
#[derive(Debug)]
pub(super) struct VaultBackend {
    /// Folders to look in, in order. Empty: not asked.
    connections: Vec<String>,
    variables: Vec<String>,
    configs: Vec<String>,
    /// The mount of the store; `None`: the first segment of each id or key names it.
    mount_point: Option<String>,
    /// In multi-team set-ups a slash in an id could lead into a team's folder.
    refuses_slashes: bool,
    client: VaultClient,
}

impl VaultBackend {
    /// Takes the arguments of the Python class, with its defaults. Nothing is asked yet.
    ///
    /// # Errors
    /// Unknown or malformed arguments, and ways to authenticate that are not supported here.
    pub fn new(mut kwargs: Kwargs, config: &Config) -> Result<Self, BackendError> {
        let mut folders = |name: &str, default: &str| paths(&mut kwargs, name, default);
        let mut connections = folders("connections_path", "connections")?;
        let mut variables = folders("variables_path", "variables")?;
        let mut configs = folders("config_path", "config")?;
        if let Some(more) = kwargs.text("global_secrets_path")? {
            for list in [&mut connections, &mut variables, &mut configs] {
                list.push(more.trim_end_matches('/').to_owned());
            }
        }
        let mount_point = match kwargs.take("mount_point") {
            None => Some("secret".to_owned()),
            Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
            Some(_) => return Err(kwargs.wrong("mount_point", "must be a text or null")),
        };
        let team_paths = kwargs.flag("use_team_secrets_path")?.unwrap_or(true);
        let version = match kwargs.number("kv_engine_version")? {
            None => KvVersion::Two,
            Some(2.0) => KvVersion::Two,
            Some(1.0) => KvVersion::One,
            Some(_) => return Err(kwargs.wrong("kv_engine_version", "must be 1 or 2")),
        };
        let auth = Auth::new(&mut kwargs, config.environment())?;
        let client = VaultClient::new(&mut kwargs, config.environment(), auth, version)?;
        for name in WITHOUT_EFFECT {
            kwargs.take(name);
        }
        kwargs.finish()?;
        Ok(Self {
            connections,
            variables,
            configs,
            mount_point,
            refuses_slashes: team_paths && config.get_bool("core", "multi_team")?,
            client,
        })
    }

    /// The first secret that one of the folders has under this key.
    async fn secret(
        &self,
        folders: &[String],
        key: &str,
    ) -> Result<Option<Map<String, Value>>, BackendError> {
        let (mount, name) = match &self.mount_point {
            Some(mount) => (mount.as_str(), key),
            // Airflow finds nothing either for an id that names no mount.
            None => match key.split_once('/') {
                Some(parts) => parts,
                None => return Ok(None),
            },
        };
        for folder in folders {
            let path = if folder.is_empty() {
                name.to_owned()
            } else {
                format!("{folder}/{name}")
            };
            if let Some(secret) = self.client.read(mount, &path).await? {
                return Ok(Some(secret));
            }
        }
        Ok(None)
    }

    /// May a task ask for this id or key?
    fn refuses(&self, key: &str) -> bool {
        let name = match &self.mount_point {
            Some(_) => key,
            None => key.split_once('/').map_or("", |(_, name)| name),
        };
        let refused = self.refuses_slashes && name.contains('/');
        if refused {
            tracing::warn!(
                "{key:?} is not looked up in Vault: with [core] multi_team a slash could lead to a team's secrets"
            );
        }
        refused
    }
}

/// One folder or a list of them; null is none.
fn paths(kwargs: &mut Kwargs, name: &str, default: &str) -> Result<Vec<String>, BackendError> {
    let wrong = |kwargs: &Kwargs| kwargs.wrong(name, "must be a text, a list of texts or null");
    let texts = match kwargs.take(name) {
        None => vec![default.to_owned()],
        Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(wrong(kwargs)),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(wrong(kwargs)),
    };
    Ok(texts
        .into_iter()
        .map(|text| text.trim_end_matches('/').to_owned())
        .collect())
}

/// `value` of a secret that was found.
fn value_of(secret: Option<Map<String, Value>>, key: &str) -> Option<String> {
    let mut secret = secret.filter(|secret| !secret.is_empty())?;
    match secret.remove("value") {
        Some(Value::Null) => None,
        Some(value) => Some(text_of(value)),
        None => {
            tracing::warn!("the secret {key:?} in Vault has no key \"value\"");
            None
        }
    }
}

#[async_trait]
impl SecretsBackend for VaultBackend {
    fn name(&self) -> &'static str {
        "VaultBackend"
    }

    async fn connection(&self, conn_id: &str) -> Result<Option<Connection>, BackendError> {
        if self.refuses(conn_id) {
            return Ok(None);
        }
        let Some(secret) = self.secret(&self.connections, conn_id).await? else {
            return Ok(None);
        };
        let text = match secret.get("conn_uri") {
            Some(Value::String(uri)) if !uri.is_empty() => uri.clone(),
            _ => Value::Object(secret).to_string(),
        };
        let origin = format!("the secret of connection {conn_id} in Vault");
        Ok(Some(Connection::from_env_text(conn_id, &text, &origin)?))
    }

    async fn variable(&self, key: &str) -> Result<Option<String>, BackendError> {
        if self.refuses(key) {
            return Ok(None);
        }
        Ok(value_of(self.secret(&self.variables, key).await?, key))
    }

    async fn config(&self, key: &str) -> Result<Option<String>, BackendError> {
        Ok(value_of(self.secret(&self.configs, key).await?, key))
    }
}

#[cfg(test)]
mod tests;
