//! The Dag interpreter's view of the world: answered by the control plane.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use serde_json::{Map, Value};

use super::attempt::Attempt;
use super::dag_agent;
use super::log::{LogLevel, TaskLogger};
use super::native_hooks;
use super::services::{LookupError, Services};
use super::toolsets::{Connections, skill_source};
use crate::control_plane::resolve::ResolveError;
use crate::dag::definitions::SkillSourceSpec;
use crate::dag::host::{ClonedSkills, Host, HostError, LogRecord, XComQuery};
use crate::toolset::skills::{ResolvedSkills, SkillSource, resolve_skills};

/// Answers on the interpreter's thread, by requests on the runtime's.
pub struct TaskHost {
    services: Services,
    log: TaskLogger,
    /// The try, once there is one. Not held: it holds the interpreter, which holds this.
    attempt: OnceLock<Weak<Attempt>>,
    /// Clones that Dag code uses, and the key of the next.
    skills: Mutex<(u64, HashMap<u64, ResolvedSkills>)>,
}

impl TaskHost {
    /// A host for one task instance.
    #[must_use]
    pub fn new(services: Services, log: TaskLogger) -> Self {
        Self {
            services,
            log,
            attempt: OnceLock::new(),
            skills: Mutex::default(),
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

fn stopped() -> HostError {
    HostError::Other(native_hooks::STOPPED.to_owned())
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
        self.services
            .wait(attempt.native_toolsets.answer(request))
            .ok_or_else(stopped)
    }

    fn agent(&self, request: &Value) -> Result<Value, HostError> {
        let attempt = self.attempt.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::Other("agents run while a task runs, and none does".to_owned())
        })?;
        self.services
            .wait(dag_agent::step(&attempt, request))
            .ok_or_else(stopped)?
            .map_err(HostError::Other)
    }

    fn hook(&self, request: &Value) -> Result<Value, HostError> {
        // Not `wait`: a database is told to stop before the answer is given up.
        let stop = self.services.stop_token();
        self.services
            .runtime()
            .block_on(native_hooks::answer(&self.services, request, &stop))
            .map_err(|text| HostError::Other(self.mask(&text)))
    }

    fn clone_skills(&self, repositories: &Value) -> Result<ClonedSkills, HostError> {
        let failed = |text: String| HostError::Other(self.mask(&text));
        let specs: Vec<SkillSourceSpec> = serde_json::from_value(repositories.clone())
            .map_err(|error| failed(error.to_string()))?;
        let sources: Vec<SkillSource> = specs
            .iter()
            .map(skill_source)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let connections = Connections(self.services.resolver.clone());
        // No folder is among them that would lie below a base.
        let cloned = resolve_skills(&sources, Path::new("/"), &connections);
        let cloned = self
            .services
            .wait(cloned)
            .ok_or_else(stopped)?
            .map_err(|error| failed(error.to_string()))?;
        let folders = cloned.folders().to_vec();
        let mut skills = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        skills.0 += 1;
        let key = skills.0;
        skills.1.insert(key, cloned);
        Ok(ClonedSkills { key, folders })
    }

    fn remove_skills(&self, key: u64) {
        let mut skills = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        skills.1.remove(&key);
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
