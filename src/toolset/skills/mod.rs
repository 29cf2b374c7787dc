//! `AgentSkillsToolset`: folders with a SKILL.md that a model loads when it needs them.
//!
//! Sources are resolved when a run begins, on the worker, and clones are gone when it ends. What a model may name is
//! looked up in a catalogue made then; scripts run with little of the worker around them. Nothing here knows of agents
//! beyond the [`Toolset`] trait, and `resolve_skills` serves whoever reads SKILL.md folders.

mod catalogue;
pub(crate) mod confine;
mod git;
mod git_connection;
mod github_app;
mod host_keys;
mod manifest;
mod proxy_command;
mod script;
mod source;
mod ssh_config;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

pub use self::git_connection::local_repository;
pub use self::manifest::ManifestError;
pub use self::script::ScriptError;
pub use self::source::{GitSkills, ResolvedSkills, SkillSource, resolve_skills};

use self::catalogue::Skill;
use self::script::Place;
use crate::agent::{ToolDefinition, ToolError, Toolset, arguments};
use crate::airflow::python_text::repr_str;
use crate::hook::{ConnectionError, ConnectionSource, blocking};
use crate::toolset::work_folder::WorkFolder;

/// The arguments of `AgentSkillsToolset`.
#[derive(Clone, Debug, Default)]
pub struct SkillsToolsetConfig {
    pub sources: Vec<SkillSource>,
    /// Names of tools that the agent does not get.
    pub exclude_tools: Vec<String>,
    /// Patterns of files that are no resources, besides those that never are.
    pub exclude_resources: Vec<String>,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
    /// Where relative folders lie: the Dag file's folder.
    pub base: PathBuf,
}

/// Why skills can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillsError {
    /// `exclude_tools` names a tool that is none.
    #[error("Unknown tools: {{{unknown}}}. Valid: {{{valid}}}")]
    UnknownTools { unknown: String, valid: String },
    /// Credentials would stand in the Dag, in messages and on disk.
    #[error(
        "GitSkills repo_url must not embed a username or password; pass credentials through a git connection via \
         conn_id instead."
    )]
    CredentialsInUrl,
    /// Anybody on the way could read the credential. Holds the connection's id.
    #[error(
        "GitSkills refuses to send credentials from conn_id {0} over plain http://; use an https:// URL (token) or an \
         ssh URL with a key on the connection."
    )]
    PlainHttp(String),
    /// Not an address of a repository.
    #[error(
        "GitSkills repo_url {0} is no address of a repository: use https://, ssh:// or git@host:path"
    )]
    BadUrl(String),
    /// `path` is absolute or goes up.
    #[error("GitSkills path must be a relative sub-path inside the repository; got '{0}'.")]
    PathOutside(String),
    /// A link in the repository leads out of it.
    #[error("GitSkills path '{0}' leads out of the repository by a link in it")]
    PathLeadsOut(String),
    /// An ssh URL without a key for it.
    #[error(
        "{url} needs an SSH key: {}", match conn_id {
            Some(id) => format!("set private_key or key_file in the extra of connection {id}"),
            None => "name a git connection that has one with conn_id".to_owned(),
        }
    )]
    NoKey {
        url: String,
        conn_id: Option<String>,
    },
    /// The connection can't be looked up.
    #[error(transparent)]
    Lookup(#[from] ConnectionError),
    /// It can, and is not what a clone needs.
    #[error("Connection '{conn_id}' {reason}")]
    Connection { conn_id: String, reason: String },
    /// The clone failed. Never holds a credential.
    #[error("Failed to clone {url}: {reason}")]
    Clone { url: String, reason: String },
    /// SKILL.md can't be read.
    #[error("Failed to load skill from {}: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: String },
    /// SKILL.md can be read, and says too little.
    #[error("Skill at {}: {source}", file.display())]
    Manifest {
        file: PathBuf,
        #[source]
        source: ManifestError,
    },
    /// A folder of skills is something else, such as a home folder.
    #[error(
        "{} holds more than {most} files: name the folder of the skills", folder.display()
    )]
    TooManyFiles { folder: PathBuf, most: usize },
}

/// A skill as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SkillSummary {
    pub name: String,
    pub description: String,
    /// Absolute.
    pub folder: PathBuf,
    /// Paths below `folder`.
    pub resources: Vec<String>,
    /// Paths below `folder`.
    pub scripts: Vec<String>,
}

/// The skills in resolved folders, as an agent would find them. Blocks.
///
/// # Errors
/// A SKILL.md that can't be used.
pub fn list_skills(folders: &[PathBuf]) -> Result<Vec<SkillSummary>, SkillsError> {
    let names =
        |files: Vec<catalogue::SkillFile>| files.into_iter().map(|file| file.name).collect();
    let skills = catalogue::discover(folders, &[])?;
    Ok(skills
        .into_iter()
        .map(|skill| SkillSummary {
            name: skill.name,
            description: skill.description,
            folder: skill.folder,
            resources: names(skill.resources),
            scripts: names(skill.scripts),
        })
        .collect())
}

/// The toolset: see the [module](self).
pub struct AgentSkillsToolset {
    config: SkillsToolsetConfig,
    connections: Arc<dyn ConnectionSource>,
    /// What scripts see of the worker's environment.
    environment: BTreeMap<String, String>,
    open: Mutex<Option<Open>>,
    told_of_no_landlock: AtomicBool,
}

/// From the beginning of a run to its end.
struct Open {
    /// Keeps the clones.
    _resolved: ResolvedSkills,
    skills: Arc<[Skill]>,
    /// Made for the first script.
    scratch: Option<Arc<WorkFolder>>,
}

impl AgentSkillsToolset {
    /// A toolset that resolves its sources when it is opened. `is_secret` says whether a text holds a secret: a
    /// variable of the environment that does is kept from scripts.
    #[must_use]
    pub fn new(
        config: SkillsToolsetConfig,
        connections: Arc<dyn ConnectionSource>,
        is_secret: impl Fn(&str) -> bool,
    ) -> Self {
        Self {
            config,
            connections,
            environment: script::visible_environment(std::env::vars_os(), is_secret),
            open: Mutex::new(None),
            told_of_no_landlock: AtomicBool::new(false),
        }
    }

    async fn skills(&self) -> Result<Arc<[Skill]>, ToolError> {
        let open = self.open.lock().await;
        open.as_ref()
            .map(|open| Arc::clone(&open.skills))
            .ok_or_else(|| {
                ToolError::Fatal(
                    "AgentSkillsToolset must be opened before its tools are used.".to_owned(),
                )
            })
    }

    async fn scratch(&self) -> Result<Arc<WorkFolder>, ToolError> {
        let mut open = self.open.lock().await;
        let Some(open) = open.as_mut() else {
            return Err(ToolError::Fatal("the run has ended".to_owned()));
        };
        if let Some(scratch) = &open.scratch {
            return Ok(Arc::clone(scratch));
        }
        let scratch = WorkFolder::new().map(Arc::new).map_err(|error| {
            ToolError::Fatal(format!("no temporary folder for a skill's script: {error}"))
        })?;
        open.scratch = Some(Arc::clone(&scratch));
        Ok(scratch)
    }

    async fn read(&self, skill: &Skill, name: &str) -> Result<Value, ToolError> {
        let Some(resource) = skill.resource(name) else {
            return Err(ToolError::Retry(tools::no_file(
                "Resource",
                name,
                skill,
                &skill.resources,
            )));
        };
        let (skill, resource) = (skill.clone(), resource.clone());
        let name = resource.name.clone();
        blocking::run(move || catalogue::read_resource(&skill, &resource))
            .await
            .map_err(|error| ToolError::Fatal(error.to_string()))?
            .map_err(|reason| ToolError::Retry(format!("Resource '{name}' is not read: {reason}.")))
    }

    async fn run(
        &self,
        skill: &Skill,
        name: &str,
        args: &Map<String, Value>,
    ) -> Result<Value, ToolError> {
        let Some(file) = skill.script(name) else {
            return Err(ToolError::Retry(tools::no_file(
                "Script",
                name,
                skill,
                &skill.scripts,
            )));
        };
        let is_there = file
            .path
            .canonicalize()
            .is_ok_and(|real| real == file.path && real.is_file());
        if !is_there {
            return Err(ToolError::Retry(format!(
                "Script '{name}' is not what it was when the skill was found, and is not run."
            )));
        }
        let scratch = self.scratch().await?;
        let place = Place {
            folder: skill.folder.clone(),
            scratch: scratch.path().to_owned(),
            environment: self.environment.clone(),
            timeout: script::TIMEOUT,
        };
        let (text, confined) = script::run(name, &file.path, args, &place)
            .await
            .map_err(|error| ToolError::Fatal(error.to_string()))?;
        if !confined && !self.told_of_no_landlock.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "This kernel has no Landlock: skill scripts are not confined to their skill's folder and a scratch \
                 folder."
            );
        }
        Ok(Value::String(text))
    }
}

#[async_trait]
impl Toolset for AgentSkillsToolset {
    fn id(&self) -> String {
        String::new()
    }

    fn label(&self) -> &'static str {
        "AgentSkillsToolset"
    }

    async fn open(&self) -> Result<(), ToolError> {
        let fatal = |error: &dyn std::fmt::Display| ToolError::Fatal(error.to_string());
        check_tool_names(&self.config.exclude_tools).map_err(|error| fatal(&error))?;
        let resolved = resolve_skills(
            &self.config.sources,
            &self.config.base,
            self.connections.as_ref(),
        )
        .await
        .map_err(|error| fatal(&error))?;
        let folders = resolved.folders().to_vec();
        let exclude = self.config.exclude_resources.clone();
        let skills = blocking::run(move || catalogue::discover(&folders, &exclude))
            .await
            .map_err(|error| fatal(&error))?
            .map_err(|error| fatal(&error))?;
        *self.open.lock().await = Some(Open {
            _resolved: resolved,
            skills: skills.into(),
            scratch: None,
        });
        Ok(())
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        Ok(tools::catalogue_text(&self.skills().await?))
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut definitions = tools::definitions(self.config.max_retries);
        definitions.retain(|tool| !self.config.exclude_tools.contains(&tool.name));
        Ok(definitions)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        let decoded = (tool.name == tools::RUN_SCRIPT)
            .then(|| with_decoded_args(raw))
            .flatten()
            .transpose()?;
        let raw = decoded.as_deref().unwrap_or(raw);
        let schema = schema_for(&tool.parameters, raw);
        arguments::validate(raw, &schema).map_err(|error| error.0)
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let skills = self.skills().await?;
        let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
        if name == tools::LIST_SKILLS {
            let descriptions: Map<String, Value> = skills
                .iter()
                .map(|skill| (skill.name.clone(), skill.description.as_str().into()))
                .collect();
            return Ok(descriptions.into());
        }
        let skill_name = text("skill_name");
        let Some(skill) = skills.iter().find(|skill| skill.name == skill_name) else {
            let what_to_do = match name {
                tools::LOAD_SKILL => "to see options and try again",
                _ => "first and try again",
            };
            return Err(ToolError::Retry(tools::no_skill(
                &skills, skill_name, what_to_do,
            )));
        };
        match name {
            tools::LOAD_SKILL => Ok(Value::String(tools::skill_text(skill))),
            tools::READ_RESOURCE => self.read(skill, text("resource_name")).await,
            tools::RUN_SCRIPT => {
                let none = Map::new();
                let script_args = args.get("args").and_then(Value::as_object);
                self.run(skill, text("script_name"), script_args.unwrap_or(&none))
                    .await
            }
            other => Err(ToolError::Fatal(format!(
                "Unknown tool: {}",
                repr_str(other)
            ))),
        }
    }

    async fn close(&self) {
        let open = self.open.lock().await.take();
        // Removing a large clone takes a while.
        let _ = blocking::run(move || drop(open)).await;
    }
}

fn check_tool_names(names: &[String]) -> Result<(), SkillsError> {
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| repr_str(name)).collect();
        names.join(", ")
    };
    let unknown: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !tools::NAMES.contains(name))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(SkillsError::UnknownTools {
        unknown: quoted(&unknown),
        valid: quoted(&tools::NAMES),
    })
}

/// The schema as pydantic reads it: `args` is an object that may be null, not a choice between two types, which shows
/// in what the model is told of anything else.
fn schema_for(parameters: &Value, raw: &str) -> Value {
    let mut schema = parameters.clone();
    let is_null = serde_json::from_str::<Value>(raw)
        .ok()
        .is_some_and(|call| call.get("args").is_none_or(Value::is_null));
    if !is_null && let Some(args) = schema.pointer_mut("/properties/args") {
        *args = json!({"type": "object", "additionalProperties": true});
    }
    schema
}

/// Models like to write `args` as JSON text; then the text with an object in its place, or what is wrong with it.
/// `None` when `args` is not text.
fn with_decoded_args(raw: &str) -> Option<Result<String, Value>> {
    let mut call: Map<String, Value> = serde_json::from_str(raw).ok()?;
    let Some(Value::String(text)) = call.get("args").cloned() else {
        return None;
    };
    let refused = |message: String| {
        Some(Err(json!([{
            "type": "value_error",
            "loc": ["args"],
            "msg": format!("Value error, {message}"),
            "input": text,
        }])))
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(args)) => {
            call.insert("args".to_owned(), args.into());
            Some(Ok(Value::Object(call).to_string()))
        }
        Ok(other) => refused(format!(
            "args must be a JSON object, got {}",
            manifest::python_type(&other)
        )),
        Err(error) => {
            let snippet: String = text.chars().take(100).collect();
            // Where the word begins that is none.
            let line = text.lines().nth(error.line().saturating_sub(1));
            let before = line.and_then(|line| line.get(..error.column().saturating_sub(1)));
            let column = before.map_or(0, |before| {
                before
                    .trim_end_matches(char::is_alphanumeric)
                    .chars()
                    .count()
            });
            refused(format!(
                "Invalid JSON string. Error: Expecting value at line {} col {}. Input snippet: {snippet}",
                error.line(),
                column + 1
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pretty_assertions::assert_eq;
    use tempfile::TempDir;

    use super::*;
    use crate::airflow::connection::Connection;

    struct NoConnections;

    #[async_trait]
    impl ConnectionSource for NoConnections {
        async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
            Err(ConnectionError::NotDefined(conn_id.to_owned()))
        }
    }

    fn folder() -> TempDir {
        let root = tempfile::tempdir().unwrap();
        let skill = root.path().join("skills/port-style");
        std::fs::create_dir_all(skill.join("scripts")).unwrap();
        std::fs::write(
            skill.join("SKILL.md"),
            "---\nname: port-style\ndescription: How to write.\n---\nUse short lines.\n",
        )
        .unwrap();
        std::fs::write(skill.join("rates.json"), "{\"berth\": 12.5}").unwrap();
        std::fs::write(skill.join("scripts/count.sh"), "echo \"args: $*\"\n").unwrap();
        root
    }

    fn toolset(base: &Path, exclude_tools: &[&str]) -> AgentSkillsToolset {
        let config = SkillsToolsetConfig {
            sources: vec![SkillSource::Folder("skills".into())],
            exclude_tools: exclude_tools
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            base: base.to_owned(),
            ..SkillsToolsetConfig::default()
        };
        AgentSkillsToolset::new(config, Arc::new(NoConnections), |_| false)
    }

    async fn call(
        toolset: &AgentSkillsToolset,
        name: &str,
        args: Value,
    ) -> Result<Value, ToolError> {
        let tools = toolset.tools().await?;
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let args = toolset
            .validate(tool, &args.to_string())
            .await
            .map_err(|error| ToolError::Retry(error.to_string()))?;
        toolset.call(name, args).await
    }

    #[tokio::test]
    async fn skills_of_a_folder_beside_the_dag_file_are_listed_loaded_read_and_run() {
        let root = folder();
        let toolset = toolset(root.path(), &[]);
        toolset.open().await.unwrap();
        assert!(
            toolset
                .instructions()
                .await
                .unwrap()
                .unwrap()
                .contains("<name>port-style</name>")
        );
        assert_eq!(
            call(&toolset, "list_skills", json!({})).await.unwrap(),
            json!({"port-style": "How to write."})
        );
        let loaded = call(&toolset, "load_skill", json!({"skill_name": "port-style"}))
            .await
            .unwrap();
        assert!(
            loaded
                .as_str()
                .unwrap()
                .contains("<script name=\"scripts/count.sh\" />")
        );
        let resource = json!({"skill_name": "port-style", "resource_name": "rates.json"});
        assert_eq!(
            call(&toolset, "read_skill_resource", resource)
                .await
                .unwrap(),
            json!({"berth": 12.5})
        );
        for args in [json!({"n": 1}), json!("{\"n\": 1}")] {
            let script = json!({"skill_name": "port-style", "script_name": "scripts/count.sh", "args": args});
            assert_eq!(
                call(&toolset, "run_skill_script", script).await.unwrap(),
                json!("args: --n 1")
            );
        }
        toolset.close().await;
    }

    #[tokio::test]
    async fn a_name_that_is_a_path_leads_nowhere() {
        let root = folder();
        let toolset = toolset(root.path(), &[]);
        toolset.open().await.unwrap();
        for name in ["../../etc/passwd", "/etc/passwd", "./rates.json", "scripts"] {
            for (tool, key) in [
                ("read_skill_resource", "resource_name"),
                ("run_skill_script", "script_name"),
            ] {
                let args = json!({"skill_name": "port-style", key: name});
                let error = call(&toolset, tool, args).await.unwrap_err();
                assert!(
                    matches!(&error, ToolError::Retry(text) if text.contains("not found in skill")),
                    "{error}"
                );
            }
        }
    }

    #[tokio::test]
    async fn args_in_text_must_hold_an_object() {
        let root = folder();
        let toolset = toolset(root.path(), &[]);
        toolset.open().await.unwrap();
        for (args, message) in [
            (
                json!("[1]"),
                "Value error, args must be a JSON object, got list",
            ),
            (
                json!("not json"),
                "Value error, Invalid JSON string. Error: Expecting value at line 1 col 1. Input snippet: not json",
            ),
            (json!([1]), "Input should be an object"),
        ] {
            let args = json!({"skill_name": "port-style", "script_name": "scripts/count.sh", "args": args});
            let error = call(&toolset, "run_skill_script", args).await.unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[tokio::test]
    async fn excluded_tools_are_not_offered_and_unknown_ones_are_refused() {
        let root = folder();
        let without = toolset(root.path(), &["run_skill_script"]);
        without.open().await.unwrap();
        let names: Vec<String> = without
            .tools()
            .await
            .unwrap()
            .into_iter()
            .map(|t| t.name)
            .collect();
        assert_eq!(names, ["list_skills", "load_skill", "read_skill_resource"]);
        let error = toolset(root.path(), &["zzz"]).open().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "Unknown tools: {'zzz'}. Valid: {'list_skills', 'load_skill', 'read_skill_resource', 'run_skill_script'}"
        );
    }

    #[tokio::test]
    async fn the_scratch_folder_is_gone_when_the_run_ends() {
        let root = folder();
        std::fs::write(
            root.path().join("skills/port-style/where.sh"),
            "echo x > \"$HOME/x\"; echo \"$HOME\"\n",
        )
        .unwrap();
        let toolset = toolset(root.path(), &[]);
        toolset.open().await.unwrap();
        let args = json!({"skill_name": "port-style", "script_name": "where.sh"});
        let scratch = call(&toolset, "run_skill_script", args).await.unwrap();
        let scratch = Path::new(scratch.as_str().unwrap());
        assert!(scratch.join("x").exists());
        toolset.close().await;
        assert!(!scratch.exists());
    }
}
