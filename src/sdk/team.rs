//! Agents that hand a conversation on to each other, as one agent of the loop: its model, its instructions and its tools
//! are those of whoever has the conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::agent::message::{Message, ModelResponse};
use crate::agent::model::RequestParameters;
use crate::agent::{Model, ModelError, ToolDefinition, ToolError, ToolOutput, Toolset};

/// One agent of a team.
#[derive(Clone)]
pub(super) struct Member {
    pub name: String,
    pub handoff_description: Option<String>,
    pub instructions: String,
    pub model: Arc<dyn Model>,
    pub toolset: Arc<dyn Toolset>,
    /// Names of those that it may hand the conversation to.
    pub handoffs: Vec<String>,
}

/// The agents of a run, and which of them has the conversation.
pub(super) struct Team {
    first: Member,
    others: Vec<Member>,
    /// Its place among the members.
    current: AtomicUsize,
    /// Whose tools the model was offered in the turn under way.
    of_turn: AtomicUsize,
}

impl Team {
    /// The first one begins.
    pub fn new(first: Member, others: Vec<Member>) -> Arc<Self> {
        Arc::new(Self {
            first,
            others,
            current: AtomicUsize::new(0),
            of_turn: AtomicUsize::new(0),
        })
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn member(&self, place: &AtomicUsize) -> &Member {
        let place = place.load(Ordering::Relaxed);
        self.members().nth(place).unwrap_or(&self.first)
    }

    pub fn current(&self) -> &Member {
        self.member(&self.current)
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        self.members().position(|member| member.name == name)
    }

    /// The tool by which a conversation is handed to an agent.
    fn transfer(&self, name: &str) -> Option<ToolDefinition> {
        let member = self.members().find(|member| member.name == name)?;
        let mut description = format!("Handoff to the {name} agent to handle the request.");
        if let Some(more) = &member.handoff_description {
            description = format!("{description} {more}");
        }
        Some(ToolDefinition {
            name: transfer_name(name),
            description: Some(description),
            parameters: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            sequential: true,
            max_retries: None,
        })
    }
}

fn transfer_name(agent: &str) -> String {
    let name: String = agent
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    format!("transfer_to_{name}")
}

/// The tools of whoever has the conversation, and those that hand it on.
pub(super) struct TeamToolset(pub Arc<Team>);

impl TeamToolset {
    fn of_turn(&self) -> &Member {
        self.0.member(&self.0.of_turn)
    }

    /// The agent that a handoff's tool leads to.
    fn target(&self, tool: &str) -> Option<&str> {
        let mut names = self.of_turn().handoffs.iter();
        names
            .find(|name| transfer_name(name) == tool)
            .map(String::as_str)
    }
}

#[async_trait]
impl Toolset for TeamToolset {
    fn id(&self) -> String {
        String::new()
    }

    fn label(&self) -> &str {
        "Team"
    }

    async fn open(&self) -> Result<(), ToolError> {
        for member in self.0.members() {
            member.toolset.open().await?;
        }
        Ok(())
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        let member = self.0.current();
        let mut parts = vec![member.instructions.trim().to_owned()];
        parts.extend(member.toolset.instructions().await?);
        parts.retain(|part| !part.is_empty());
        Ok(Some(parts.join("\n\n")).filter(|text| !text.is_empty()))
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let current = self.0.current.load(Ordering::Relaxed);
        self.0.of_turn.store(current, Ordering::Relaxed);
        let member = self.0.current();
        let mut tools = member.toolset.tools().await?;
        tools.extend(
            member
                .handoffs
                .iter()
                .filter_map(|name| self.0.transfer(name)),
        );
        Ok(tools)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        if self.target(&tool.name).is_some() {
            // A handoff takes no arguments, whatever the model writes.
            return Ok(Map::new());
        }
        self.of_turn().toolset.validate(tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let output = self.call_for_files(name, args).await?;
        Ok(output.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        let Some(target) = self.target(name) else {
            return self.of_turn().toolset.call_for_files(name, args).await;
        };
        let place = self.0.place_of(target).ok_or_else(|| {
            ToolError::Fatal(format!(
                "there is no agent {target:?} to hand the conversation to"
            ))
        })?;
        let of_turn = self.0.of_turn.load(Ordering::Relaxed);
        // The first handoff of a turn counts.
        let (order, current) = (Ordering::Relaxed, &self.0.current);
        let text = match current.compare_exchange(of_turn, place, order, order) {
            Ok(_) => json!({"assistant": target}).to_string(),
            Err(_) => "The conversation was handed on already; this handoff is ignored.".to_owned(),
        };
        Ok(Value::from(text).into())
    }

    fn recorded_as(&self, name: &str) -> Option<(String, String)> {
        // A handoff is made anew on each attempt, as it is what the rest depends on.
        if self.target(name).is_some() {
            return None;
        }
        self.of_turn().toolset.recorded_as(name)
    }

    async fn close(&self) {
        for member in self.0.members() {
            member.toolset.close().await;
        }
    }
}

/// The model of whoever has the conversation.
pub(super) struct TeamModel(pub Arc<Team>);

#[async_trait]
impl Model for TeamModel {
    fn name(&self) -> &str {
        self.0.current().model.name()
    }

    fn provider(&self) -> &str {
        self.0.current().model.provider()
    }

    fn server(&self) -> Option<(String, u16)> {
        self.0.current().model.server()
    }

    fn is_replayed(&self) {
        self.0.current().model.is_replayed();
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        self.0.current().model.request(messages, parameters).await
    }
}
