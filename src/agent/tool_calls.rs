//! The tool calls of one turn: parallel up to the barriers, one result each, in the order of the calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::arguments::{InvalidArguments, validate};
use super::error::AgentError;
use super::events;
use super::message::{RequestPart, ToolCall, ToolOutcome, ToolReturn};
use super::render::tool_result_text;
use super::spans::{RunSpan, ToolAttempt};
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
                    let describe = |toolset: &Arc<dyn Toolset>| {
                        format!("{} {}", toolset.label(), repr_str(&toolset.id()))
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

    /// Calls that may overlap, in groups that may not: a sequential tool is a group of its own.
    fn groups<'c>(&self, calls: &'c [ToolCall]) -> Vec<Vec<(usize, &'c ToolCall)>> {
        let mut groups: Vec<Vec<(usize, &ToolCall)>> = Vec::new();
        let mut open = false;
        for (index, call) in calls.iter().enumerate() {
            let barrier = self
                .find(&call.tool_name)
                .is_some_and(|(definition, _)| definition.sequential);
            match groups.last_mut() {
                Some(group) if open && !barrier => group.push((index, call)),
                _ => groups.push(vec![(index, call)]),
            }
            open = !barrier;
        }
        groups
    }

    /// Runs the calls and returns their results in call order. The first failure that ends the run drops what is still
    /// running.
    pub(super) async fn run(
        &self,
        calls: &[ToolCall],
        retries: &mut RetryCounts,
        usage: &mut RunUsage,
        default_max_retries: u32,
        turn: u64,
        span: &RunSpan,
    ) -> Result<Vec<RequestPart>, AgentError> {
        let mut results: Vec<(usize, ToolReturn)> = Vec::with_capacity(calls.len());
        let mut failed = HashSet::new();
        let mut succeeded = HashSet::new();
        for group in self.groups(calls) {
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|(index, call)| {
                    let attempt = retries.of(&call.tool_name);
                    async move {
                        (
                            index,
                            self.run_one(call, attempt, default_max_retries, turn, span)
                                .await,
                        )
                    }
                })
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
        call: &ToolCall,
        failed_turns: u32,
        default_max_retries: u32,
        turn: u64,
        span: &RunSpan,
    ) -> Result<ToolReturn, AgentError> {
        events::tool_call(turn, call);
        let tool_span = span.tool(call);
        let started = Instant::now();
        let (max_retries, result) = match self.find(&call.tool_name) {
            None => (
                default_max_retries,
                Err(CallError::Retry(
                    self.unknown(&call.tool_name),
                    Some("unknown_tool"),
                )),
            ),
            Some((definition, toolset)) => (
                definition.max_retries.unwrap_or(default_max_retries),
                call_tool(definition, toolset, call).await,
            ),
        };
        let (outcome, content) = match result {
            Ok(content) => (ToolOutcome::Success, content),
            Err(CallError::Retry(content, cause)) => {
                tool_span.retry(
                    &ToolAttempt {
                        attempt: failed_turns + 1,
                        max_retries,
                        cause,
                    },
                    &content,
                );
                if failed_turns >= max_retries {
                    events::tool_return(
                        turn,
                        call,
                        None,
                        &tool_result_text(&content),
                        started.elapsed(),
                    );
                    return Err(AgentError::ToolRetriesExceeded {
                        tool_name: call.tool_name.clone(),
                        max_retries,
                    });
                }
                (ToolOutcome::Retried, content)
            }
            Err(CallError::Failed(text)) => (ToolOutcome::Failed, Value::String(text)),
            Err(CallError::Fatal(text)) => {
                tool_span.fail(&text);
                events::tool_return(turn, call, None, &text, started.elapsed());
                return Err(AgentError::Tool(text));
            }
        };
        let text = tool_result_text(&content);
        if outcome == ToolOutcome::Success {
            tool_span.succeed(&text);
        }
        events::tool_return(turn, call, Some(outcome), &text, started.elapsed());
        Ok(ToolReturn {
            tool_name: call.tool_name.clone(),
            tool_call_id: call.tool_call_id.clone(),
            content,
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

/// Why a call has no ordinary result.
enum CallError {
    /// What the model is told, and the cause where pydantic-ai names one.
    Retry(Value, Option<&'static str>),
    Failed(String),
    Fatal(String),
}

async fn call_tool(
    definition: &ToolDefinition,
    toolset: &Arc<dyn Toolset>,
    call: &ToolCall,
) -> Result<Value, CallError> {
    let arguments = validate(&call.args, &definition.parameters)
        .map_err(|InvalidArguments(items)| CallError::Retry(items, None))?;
    toolset
        .call(&call.tool_name, arguments)
        .await
        .map_err(|error| match error {
            ToolError::Retry(text) => CallError::Retry(Value::String(text), None),
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
