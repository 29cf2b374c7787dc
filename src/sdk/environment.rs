//! Connections and models for a program that is no worker: from its environment.

use std::sync::Arc;

use crate::agent::Model;
use crate::airflow::config::Config;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::hook::ConnectionSource;
use crate::model::resolve::{ModelChoice, resolve};
use crate::secrets::{Masker, SearchPath};
use crate::task::rust::TaskError;
use crate::task::toolsets::Connections;
use crate::toolset::sql::Mask;

/// What `AIRFLOW_CONN_*`, `AIRFLOW_VAR_*` and the secrets backend of the configuration (`AIRFLOW__*`, `airflow.cfg`) give.
///
/// ```no_run
/// # async fn example() -> Result<(), updraft::sdk::TaskError> {
/// use updraft::sdk::{Agent, Environment};
///
/// let airflow = Environment::load()?;
/// let model = airflow.model("pydanticai_default", None).await?;
/// let answer = Agent::builder("greeter", model).build().run("Greet.").await?;
/// println!("{}", answer.output);
/// # Ok(())
/// # }
/// ```
pub struct Environment {
    config: Config,
    resolver: Resolver,
}

impl Environment {
    /// Reads the configuration.
    ///
    /// # Errors
    /// It can't be read, or names a secrets backend that is not known.
    pub fn load() -> Result<Self, TaskError> {
        let config = Config::from_env();
        let masker = Masker::from_config(&config)?;
        let nobody = Arc::new(LocalControlPlane::new());
        let resolver = Resolver::new(SearchPath::from_config(&config)?, nobody, masker);
        Ok(Self { config, resolver })
    }

    /// The model of a connection, as an operator's `llm_conn_id` and `model_id` name one.
    ///
    /// # Errors
    /// The connection is missing or names no model that is known.
    pub async fn model(
        &self,
        llm_conn_id: &str,
        model_id: Option<&str>,
    ) -> Result<Arc<dyn Model>, TaskError> {
        let choice = ModelChoice {
            llm_conn_id,
            model_id,
            fallback_conn_ids: None,
        };
        Ok(resolve(choice, &self.resolver, self.config.environment()).await?)
    }

    /// Takes the secrets that have been come across out of a text: what toolsets want.
    #[must_use]
    pub fn mask(&self) -> Mask {
        let masker = self.resolver.masker().clone();
        Arc::new(move |text| masker.mask_str(text).into_owned())
    }

    /// Connections for toolsets of [`crate::toolset`].
    #[must_use]
    pub fn connections(&self) -> Arc<dyn ConnectionSource> {
        Arc::new(Connections(self.resolver.clone()))
    }
}
