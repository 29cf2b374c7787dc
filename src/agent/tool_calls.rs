//! The tool calls of one turn: parallel up to the barriers, one result each, in the order of the calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value};

use super::binary_content::ToolOutput;
use super::error::AgentError;
use super::events;
use super::message::{RequestPart, ToolCall, ToolOutcome, ToolReturn};
use super::render::tool_result_text;
use super::spans::{RunSpan, ToolAttempt, ToolSpan};
use super::toolset::{ToolDefinition, ToolError, Toolset};
use super::usage::RunUsage;
use crate::airflow::python_text::repr_str;

/// In how many turns each tool has failed since it last succeeded.
#[derive(Debug, Default)]
pub(super) struct RetryCounts(HashMap<String, u32>);

impl RetryCounts {
    fn of(&self, tool_name: &str) -> u32 {
        self.0.get(tool_name).copied().unwrap_or(0)
    }

    /// A tool that failed in a turn is one further, however often it failed and even if it also succeeded; one that
    /// only succeeded starts again.
    fn close_turn(&mut self, failed: HashSet<String>, succeeded: &HashSet<String>) {
        self.0
            .retain(|name, _| failed.contains(name) || !succeeded.contains(name));
        for name in failed {
            *self.0.entry(name).or_default() += 1;
        }
    }
}

/// The tools of a turn.
pub(super) struct Tools<'a>(Vec<(ToolDefinition, &'a Arc<dyn Toolset>)>);

impl<'a> Tools<'a> {
    /// Asks every toolset, each turn anew: a server's list may change in the midst of a run.
    pub(super) async fn collect(toolsets: &'a [Arc<dyn Toolset>]) -> Result<Self, AgentError> {
        let mut tools: Vec<(ToolDefinition, &Arc<dyn Toolset>)> = Vec::new();
        for toolset in toolsets {
            let definitions = toolset
                .tools()
                .await
                .map_err(|error| AgentError::Tool(error.to_string()))?;
            for definition in definitions {
                if let Some((_, other)) = tools
                    .iter()
                    .find(|(known, _)| known.name == definition.name)
                {
                    let describe = |toolset: &Arc<dyn Toolset>| match toolset.id() {
                        id if id.is_empty() => toolset.label().to_owned(),
                        id => format!("{} {}", toolset.label(), repr_str(&id)),
                    };
                    return Err(AgentError::ToolNameConflict {
                        toolset: describe(toolset),
                        other: describe(other),
                        tool_name: definition.name,
                    });
                }
                tools.push((definition, toolset));
            }
        }
        Ok(Self(tools))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn definitions(&self) -> Vec<ToolDefinition> {
        self.0
            .iter()
            .map(|(definition, _)| definition.clone())
            .collect()
    }

    fn find(&self, name: &str) -> Option<&(ToolDefinition, &'a Arc<dyn Toolset>)> {
        self.0
            .iter()
            .find(|(definition, _)| definition.name == name)
    }

    /// Looks the tools up and validates the arguments, before any of the calls is made.
    ///
    /// # Errors
    /// A call that is wrong once too often ends the run, so that no call beside it is made either.
    pub(super) async fn prepare<'c>(
        &self,
        calls: &'c [ToolCall],
        retries: &RetryCounts,
        default_max_retries: u32,
        span: &RunSpan,
    ) -> Result<Vec<Prepared<'c>>, AgentError> {
        let mut all = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            let tool = self.find(&call.tool_name);
            let refusal = |content, cause| Err(Refusal { content, cause });
            let arguments = match tool {
                None => refusal(self.unknown(&call.tool_name), Some("unknown_tool")),
                Some((definition, toolset)) => toolset
                    .validate(definition, &call.args)
                    .await
                    .or_else(|error| refusal(error, None)),
            };
            let prepared = Prepared {
                index,
                call,
                arguments,
                sequential: tool.is_some_and(|(definition, _)| definition.sequential),
                failed_turns: retries.of(&call.tool_name),
                max_retries: tool
                    .and_then(|(definition, _)| definition.max_retries)
                    .unwrap_or(default_max_retries),
            };
            if let Err(refusal) = &prepared.arguments {
                prepared.check_budget(refusal, &span.tool(call))?;
            }
            all.push(prepared);
        }
        Ok(all)
    }

    /// Makes the calls and returns their results in call order. The first failure that ends the run drops what is still
    /// running.
    pub(super) async fn run(
        &self,
        calls: Vec<Prepared<'_>>,
        retries: &mut RetryCounts,
        usage: &mut RunUsage,
        turn: u64,
        span: &RunSpan,
    ) -> Result<Vec<RequestPart>, AgentError> {
        let mut results: Vec<(usize, ToolReturn)> = Vec::with_capacity(calls.len());
        let mut failed = HashSet::new();
        let mut succeeded = HashSet::new();
        for group in groups(calls) {
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|call| async move { (call.index, self.run_one(call, turn, span).await) })
                .collect();
            while let Some((index, result)) = running.next().await {
                let result = result?;
                match result.outcome {
                    ToolOutcome::Success => {
                        usage.tool_calls += 1;
                        succeeded.insert(result.tool_name.clone());
                    }
                    ToolOutcome::Retried => {
                        failed.insert(result.tool_name.clone());
                    }
                    ToolOutcome::Failed => {}
                }
                results.push((index, result));
            }
        }
        retries.close_turn(failed, &succeeded);
        results.sort_by_key(|(index, _)| *index);
        Ok(results
            .into_iter()
            .map(|(_, result)| RequestPart::ToolReturn(result))
            .collect())
    }

    async fn run_one(
        &self,
        mut prepared: Prepared<'_>,
        turn: u64,
        span: &RunSpan,
    ) -> Result<ToolReturn, AgentError> {
        let call = prepared.call;
        events::tool_call(turn, call);
        let tool_span = span.tool(call);
        let started = Instant::now();
        let arguments = std::mem::replace(&mut prepared.arguments, Ok(Map::new()));
        let result = match (arguments, self.find(&call.tool_name)) {
            (Ok(arguments), Some((_, toolset))) => call_tool(toolset, call, arguments).await,
            (Ok(_), None) => Err(CallError::Fatal(format!(
                "the tool {} is gone",
                call.tool_name
            ))),
            (Err(refusal), _) => Err(CallError::Retry(refusal)),
        };
        let ended =
            |outcome, text: &str| events::tool_return(turn, call, outcome, text, started.elapsed());
        let mut files = Vec::new();
        let (outcome, content) = match result {
            Ok(output) => {
                files = output.files;
                (ToolOutcome::Success, output.content)
            }
            Err(CallError::Retry(refusal)) => {
                if let Err(error) = prepared.check_budget(&refusal, &tool_span) {
                    ended(None, &tool_result_text(&refusal.content));
                    return Err(error);
                }
                (ToolOutcome::Retried, refusal.content)
            }
            Err(CallError::Failed(text)) => (ToolOutcome::Failed, Value::String(text)),
            Err(CallError::Fatal(text)) => {
                tool_span.fail(&text);
                ended(None, &text);
                return Err(AgentError::Tool(text));
            }
        };
        let text = tool_result_text(&content);
        if outcome == ToolOutcome::Success {
            tool_span.succeed(&text);
        }
        ended(Some(outcome), &text);
        Ok(ToolReturn {
            tool_name: call.tool_name.clone(),
            tool_call_id: call.tool_call_id.clone(),
            content,
            files,
            outcome,
        })
    }

    fn unknown(&self, name: &str) -> Value {
        let mut names: Vec<&str> = self
            .0
            .iter()
            .map(|(definition, _)| definition.name.as_str())
            .collect();
        names.sort_unstable();
        let available = if names.is_empty() {
            "No tools available.".to_owned()
        } else {
            let names: Vec<String> = names.into_iter().map(repr_str).collect();
            format!("Available tools: {}", names.join(", "))
        };
        Value::String(format!(
            "Unknown tool name: {}. {available}",
            repr_str(name)
        ))
    }
}

/// A call that is ready to be made, or to be refused.
pub(super) struct Prepared<'c> {
    index: usize,
    call: &'c ToolCall,
    arguments: Result<Map<String, Value>, Refusal>,
    sequential: bool,
    failed_turns: u32,
    max_retries: u32,
}

/// What the model is told of a call it should make otherwise, and the cause where pydantic-ai names one.
struct Refusal {
    content: Value,
    cause: Option<&'static str>,
}

impl Prepared<'_> {
    fn check_budget(&self, refusal: &Refusal, span: &ToolSpan) -> Result<(), AgentError> {
        let attempt = ToolAttempt {
            attempt: self.failed_turns + 1,
            max_retries: self.max_retries,
            cause: refusal.cause,
        };
        span.retry(&attempt, &refusal.content);
        if self.failed_turns < self.max_retries {
            return Ok(());
        }
        Err(AgentError::ToolRetriesExceeded {
            tool_name: self.call.tool_name.clone(),
            max_retries: self.max_retries,
        })
    }
}

/// Calls that may overlap, in groups that may not: a sequential tool is a group of its own.
fn groups(calls: Vec<Prepared<'_>>) -> Vec<Vec<Prepared<'_>>> {
    let mut groups: Vec<Vec<Prepared<'_>>> = Vec::new();
    let mut open = false;
    for call in calls {
        let barrier = call.sequential;
        match groups.last_mut() {
            Some(group) if open && !barrier => group.push(call),
            _ => groups.push(vec![call]),
        }
        open = !barrier;
    }
    groups
}

/// Why a call has no ordinary result.
enum CallError {
    Retry(Refusal),
    Failed(String),
    Fatal(String),
}

async fn call_tool(
    toolset: &Arc<dyn Toolset>,
    call: &ToolCall,
    arguments: Map<String, Value>,
) -> Result<ToolOutput, CallError> {
    toolset
        .call_for_files(&call.tool_name, arguments)
        .await
        .map_err(|error| match error {
            ToolError::Retry(text) => CallError::Retry(Refusal {
                content: Value::String(text),
                cause: None,
            }),
            ToolError::Failed(text) => CallError::Failed(text),
            ToolError::Fatal(text) => CallError::Fatal(text),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_tool_that_failed_twice_in_a_turn_is_counted_once() {
        let mut counts = RetryCounts::default();
        counts.close_turn(names(&["query"]), &names(&["list_tables"]));
        assert_eq!((counts.of("query"), counts.of("list_tables")), (1, 0));
    }

    #[test]
    fn a_success_beside_a_failure_resets_nothing_and_a_success_alone_resets() {
        let mut counts = RetryCounts::default();
        counts.close_turn(names(&["query"]), &names(&["query"]));
        assert_eq!(counts.of("query"), 1);
        counts.close_turn(names(&[]), &names(&["list_tables"]));
        assert_eq!(counts.of("query"), 1);
        counts.close_turn(names(&[]), &names(&["query"]));
        assert_eq!(counts.of("query"), 0);
    }
}
