//! How a worker proves to Vault who it is.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::super::BackendError;
use super::super::kwargs::Kwargs;
use crate::airflow::config::Environment;

/// `auth_type` and its arguments.
#[derive(Debug)]
pub(super) enum Auth {
    /// A token from the arguments or from `VAULT_TOKEN`.
    Token(SecretString),
    /// A file that holds a token, which somebody else may keep fresh.
    TokenFile(PathBuf),
    /// A login that is answered with a token.
    Login {
        /// Where the method is mounted.
        mount: String,
        method: Method,
    },
}

#[derive(Debug)]
pub(super) enum Method {
    AppRole {
        role_id: String,
        secret_id: Option<SecretString>,
    },
    /// The pod's service account token, read at each login.
    Kubernetes { role: String, token: PathBuf },
}

impl Auth {
    /// Reads `auth_type` and what belongs to it.
    ///
    /// # Errors
    /// A type that is not supported, or one of its arguments is missing.
    pub fn new(kwargs: &mut Kwargs, environment: &Environment) -> Result<Self, BackendError> {
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        let kind = set(kwargs.text("auth_type")?).unwrap_or_else(|| "token".to_owned());
        let mount = set(kwargs.text("auth_mount_point")?);
        let token = set(kwargs.text("token")?);
        let token_path = set(kwargs.text("token_path")?);
        let role_id = set(kwargs.text("role_id")?);
        let secret_id = set(kwargs.text("secret_id")?);
        let role = set(kwargs.text("kubernetes_role")?);
        let service_token = set(kwargs.text("kubernetes_jwt_path")?)
            .unwrap_or_else(|| "/var/run/secrets/kubernetes.io/serviceaccount/token".to_owned());
        let method = match kind.as_str() {
            "token" => {
                let from_environment = || {
                    environment
                        .get("VAULT_TOKEN")
                        .filter(|token| !token.is_empty())
                };
                return match (token_path, token.as_deref().or_else(from_environment)) {
                    (Some(path), _) => Ok(Self::TokenFile(path.into())),
                    (None, Some(token)) => Ok(Self::Token(token.into())),
                    (None, None) => Err(kwargs.wrong(
                        "token",
                        "is missing: give it, or token_path, or set VAULT_TOKEN",
                    )),
                };
            }
            "approle" => Method::AppRole {
                role_id: role_id.ok_or_else(|| kwargs.wrong("role_id", "is missing"))?,
                secret_id: secret_id.map(Into::into),
            },
            "kubernetes" => Method::Kubernetes {
                role: role.ok_or_else(|| kwargs.wrong("kubernetes_role", "is missing"))?,
                token: service_token.into(),
            },
            other => {
                return Err(kwargs.wrong(
                    "auth_type",
                    format!("is {other:?}: Updraft knows token, approle and kubernetes"),
                ));
            }
        };
        Ok(Self::Login {
            mount: mount.unwrap_or(kind),
            method,
        })
    }
}

impl Method {
    /// The body of the login request.
    ///
    /// # Errors
    /// The service account's token can't be read.
    pub fn body(&self) -> Result<Value, String> {
        Ok(match self {
            Self::AppRole { role_id, secret_id } => json!({
                "role_id": role_id,
                "secret_id": secret_id.as_ref().map(ExposeSecret::expose_secret),
            }),
            Self::Kubernetes { role, token } => {
                json!({"role": role, "jwt": read_token(token)?.expose_secret()})
            }
        })
    }
}

/// A token from a file.
///
/// # Errors
/// The file can't be read.
pub(super) fn read_token(path: &std::path::Path) -> Result<SecretString, String> {
    std::fs::read_to_string(path)
        .map(|text| text.trim().into())
        .map_err(|error| format!("the token file {} can't be read: {error}", path.display()))
}
