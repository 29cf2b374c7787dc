//! The Dag interpreter's view of the world: answered by the control plane.

use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Map, Value};

use super::attempt::Attempt;
use super::log::{LogLevel, TaskLogger};
use super::native_hooks;
use super::services::{LookupError, Services};
use crate::control_plane::resolve::ResolveError;
use crate::dag::host::{Host, HostError, LogRecord, XComQuery};

/// Answers on the interpreter's thread, by requests on the runtime's.
pub struct TaskHost {
    services: Services,
    log: TaskLogger,
    /// The try, once there is one. Not held: it holds the interpreter, which holds this.
    attempt: OnceLock<Weak<Attempt>>,
}

impl TaskHost {
    /// A host for one task instance.
    #[must_use]
    pub fn new(services: Services, log: TaskLogger) -> Self {
        Self {
            services,
            log,
            attempt: OnceLock::new(),
        }
    }

    /// From now on templates are rendered with this try's context.
    pub fn set_attempt(&self, attempt: &Arc<Attempt>) {
        // A task process runs one try.
        let _ = self.attempt.set(Arc::downgrade(attempt));
    }
}

impl From<LookupError> for HostError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Secret(ResolveError::ConnectionNotFound(_))
            | LookupError::NoVariable(_) => Self::NotFound(error.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Host for TaskHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        let connection = self.services.connection(conn_id)?;
        serde_json::to_value(connection).map_err(|error| HostError::Other(error.to_string()))
    }

    fn variable(&self, key: &str) -> Result<Option<String>, HostError> {
        Ok(self.services.variable(key)?)
    }

    fn set_variable(
        &self,
        key: &str,
        value: Option<&str>,
        description: Option<&str>,
    ) -> Result<(), HostError> {
        Ok(self.services.set_variable(key, value, description)?)
    }

    fn xcom_pull(&self, query: XComQuery) -> Result<Value, HostError> {
        Ok(self.services.xcom_pull(&query)?)
    }

    fn xcom_push(&self, key: &str, value: Value) -> Result<(), HostError> {
        Ok(self.services.xcom_push(key, value)?)
    }

    fn request(&self, body: Value) -> Result<Value, HostError> {
        self.services
            .dag_code_request(body)
            .map_err(HostError::Other)
    }

    fn render_template(&self, text: &str, more: &Map<String, Value>) -> Result<String, HostError> {
        let attempt = self.attempt.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::Other("templates are rendered while a task runs, and none does".to_owned())
        })?;
        attempt
            .render_for_dag_code(text, more)
            .map_err(HostError::Other)
    }

    fn config(&self, section: &str, key: &str) -> Option<String> {
        match self.services.config.get(section, key) {
            Ok(value) => value,
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        }
    }

    fn mask_secret(&self, value: &Value, name: Option<&str>) {
        self.services.resolver.masker().add_value(value, name);
    }

    fn mask(&self, text: &str) -> String {
        self.services.resolver.masker().mask_str(text).into_owned()
    }

    fn toolset(&self, request: &Value) -> Result<Value, HostError> {
        let attempt = self.attempt.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::Other("toolsets are there while a task runs, and none does".to_owned())
        })?;
        Ok(self
            .services
            .runtime()
            .block_on(attempt.native_toolsets.answer(request)))
    }

    fn hook(&self, request: &Value) -> Result<Value, HostError> {
        self.services
            .runtime()
            .block_on(native_hooks::answer(&self.services, request))
            .map_err(|text| HostError::Other(self.mask(&text)))
    }

    fn log(&self, mut record: LogRecord) {
        // On the way to the supervisor it has another name.
        if let Some(detail) = record.fields.shift_remove("error_detail") {
            record.fields.insert("exception".to_owned(), detail);
        }
        let level = LogLevel::parse(&record.level);
        self.log
            .write(&record.logger, level, &record.message, record.fields);
    }
}
