//! A connection that names a model: what it says, and the full name of the model.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::choice_error::ModelChoiceError;
use super::prefixes::known_prefix;
use crate::agent::Model;
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::repr_value;
use crate::secrets::Masker;

/// The logger of the Python hook, under which these lines stand in a task log.
pub(super) const LOGGER: &str =
    "airflow.task.hooks.airflow.providers.common.ai.hooks.pydantic_ai.PydanticAIHook";

/// A connection that names a model.
pub(super) struct Llm {
    pub(super) connection: Connection,
    pub(super) extra: Map<String, Value>,
    /// The prefix of bare model names.
    pub(super) platform: Option<&'static str>,
    /// Learns the keys that come from the environment.
    pub(super) masker: Masker,
}

impl Llm {
    pub(super) fn of(connection: Connection, masker: &Masker) -> Result<Self, ModelChoiceError> {
        let platform = match connection.conn_type.as_str() {
            "pydanticai" => None,
            "pydanticai_azure" => Some("azure"),
            "pydanticai_bedrock" => Some("bedrock"),
            "pydanticai_vertex" => Some("google-cloud"),
            other => {
                return Err(ModelChoiceError::WrongType {
                    conn_type: other.to_owned(),
                    conn_id: connection.conn_id,
                });
            }
        };
        let extra = connection.extra_json()?;
        Ok(Self {
            connection,
            extra,
            platform,
            masker: masker.clone(),
        })
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.text("model")
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.extra
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn own_chain(&self) -> Result<Vec<String>, ModelChoiceError> {
        match self.extra.get("fallback_conn_ids") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(list) => chain(&self.connection.conn_id, list),
        }
    }

    /// Connections of Bedrock and Vertex AI have everything in their extra.
    fn is_all_extra(&self) -> bool {
        matches!(self.platform, Some("bedrock" | "google-cloud"))
    }

    pub(super) fn host(&self) -> Option<&str> {
        if self.is_all_extra() {
            return self.text("base_url");
        }
        let host = self.connection.host.as_deref();
        host.filter(|host| !host.is_empty())
    }

    fn password(&self) -> Option<&str> {
        if self.is_all_extra() {
            return self.text("api_key");
        }
        let password = self.connection.password.as_deref();
        password.filter(|password| !password.is_empty())
    }

    /// `primary` is the connection a name was forwarded from.
    pub(super) fn resolve(
        &self,
        model: Option<&str>,
        primary: Option<&str>,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let conn_id = &self.connection.conn_id;
        let Some(model) = model else {
            return Err(ModelChoiceError::NoModel {
                conn_id: conn_id.clone(),
            });
        };
        let qualified = self.qualify(model, primary)?;
        let given = self.given_credentials();
        if !given.is_empty() {
            let given = repr_value(&Value::from(given));
            tracing::info!(
                target: "airflow.task",
                logger = LOGGER,
                "Using explicit credentials for provider with model '{qualified}': {given}"
            );
        }
        let (prefix, name) = qualified.split_once(':').unwrap_or((&qualified, ""));
        self.connect(prefix, name, environment)
    }

    fn qualify(&self, model: &str, primary: Option<&str>) -> Result<String, ModelChoiceError> {
        if model == "test" || known_prefix(model).is_some() {
            return Ok(model.to_owned());
        }
        let conn_id = self.connection.conn_id.clone();
        let prefix = model.split_once(':').map(|(prefix, _)| prefix);
        match (self.platform, primary, prefix) {
            (Some(platform), _, prefix) => {
                if let Some(prefix) = prefix.filter(|prefix| looks_like_a_provider(prefix)) {
                    tracing::warn!(
                        target: "airflow.task",
                        logger = LOGGER,
                        "Model name '{model}' on connection '{conn_id}' contains ':' but its prefix '{prefix}' is not \
                         a provider pydantic-ai recognizes; treating the whole string as a bare {platform} model id \
                         and resolving it as '{platform}:{model}'. If '{prefix}' was meant to be a provider prefix, \
                         this looks like it might be a typo."
                    );
                }
                Ok(format!("{platform}:{model}"))
            }
            (None, Some(primary), _) => Err(ModelChoiceError::ForwardedBareName {
                conn_id,
                model: model.to_owned(),
                primary: primary.to_owned(),
            }),
            (None, None, Some(prefix)) => Err(ModelChoiceError::UnknownPrefix {
                conn_id,
                prefix: prefix.to_owned(),
                model: model.to_owned(),
            }),
            (None, None, None) => Err(ModelChoiceError::BareName {
                conn_id,
                model: model.to_owned(),
            }),
        }
    }

    /// The names of the arguments that the Python hook would hand to the provider, for the log line.
    fn given_credentials(&self) -> Vec<&'static str> {
        let fields: &[(&str, bool)] = match self.platform {
            None => &[
                ("api_key", self.password().is_some()),
                ("base_url", self.host().is_some()),
            ],
            Some("azure") => &[
                ("api_key", self.password().is_some()),
                ("azure_endpoint", self.host().is_some()),
                ("api_version", self.text("api_version").is_some()),
            ],
            Some("bedrock") => &[
                ("region_name", self.text("region_name").is_some()),
                (
                    "aws_access_key_id",
                    self.text("aws_access_key_id").is_some(),
                ),
                (
                    "aws_secret_access_key",
                    self.text("aws_secret_access_key").is_some(),
                ),
                (
                    "aws_session_token",
                    self.text("aws_session_token").is_some(),
                ),
                ("profile_name", self.text("profile_name").is_some()),
                ("api_key", self.text("api_key").is_some()),
                ("base_url", self.text("base_url").is_some()),
            ],
            Some(_) => &[
                ("api_key", self.text("api_key").is_some()),
                ("project", self.text("project").is_some()),
                ("location", self.text("location").is_some()),
                ("base_url", self.text("base_url").is_some()),
                (
                    "credentials",
                    self.extra.contains_key("service_account_info"),
                ),
            ],
        };
        fields
            .iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| *name)
            .collect()
    }

    /// A key from the worker's environment, which is a secret like any other from now on.
    pub(super) fn key_from<'a>(
        &self,
        variables: &[&str],
        environment: &'a Environment,
    ) -> Option<&'a str> {
        let key = variables
            .iter()
            .find_map(|name| environment.get(name).filter(|key| !key.is_empty()))?;
        self.masker.add_secret(key);
        Some(key)
    }

    /// The connection's password, or a variable of the worker's environment, or a placeholder.
    pub(super) fn key(
        &self,
        variables: &[&str],
        placeholder: Option<&str>,
        environment: &Environment,
    ) -> Result<String, ModelChoiceError> {
        self.password()
            .or_else(|| self.key_from(variables, environment))
            .or(placeholder)
            .map(str::to_owned)
            .ok_or_else(|| ModelChoiceError::NoKey {
                conn_id: self.connection.conn_id.clone(),
                variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            })
    }
}

/// Lower-case words with hyphens: the form of a provider's name, misspelt perhaps.
fn looks_like_a_provider(prefix: &str) -> bool {
    prefix.starts_with(|c: char| c.is_ascii_lowercase())
        && prefix.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// The ids of a list of connections.
pub(super) fn chain(conn_id: &str, list: &Value) -> Result<Vec<String>, ModelChoiceError> {
    let malformed = || ModelChoiceError::MalformedChain {
        conn_id: conn_id.to_owned(),
        got: repr_value(list),
    };
    let Value::Array(items) = list else {
        return Err(malformed());
    };
    let mut ids = Vec::new();
    for item in items {
        let id = item.as_str().ok_or_else(malformed)?.trim();
        if !id.is_empty() {
            ids.push(id.to_owned());
        }
    }
    Ok(ids)
}
