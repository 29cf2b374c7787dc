//! The tool calls of one turn: parallel up to the barriers, one result each; and which of them ends the run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value};

use super::binary_content::ToolOutput;
use super::durable::{DurableRun, Step};
use super::error::AgentError;
use super::events;
use super::message::{RequestPart, RetryInfo, ToolCall, ToolOutcome, ToolReturn};
use super::output::{EndStrategy, Output, OutputSpec, OutputTool};
use super::render::tool_result_text;
use super::spans::{RunSpan, ToolAttempt, ToolSpan};
use super::toolset::{ToolDefinition, ToolError, Toolset};
use super::usage::{RunUsage, UsageLimits};
use crate::airflow::python_text::repr_str;

/// How often the model may correct itself: pydantic-ai's `retries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Failing turns per tool, for tools that have no budget of their own.
    pub tools: u32,
    /// Responses that are no answer, in the whole run; and failing turns per output tool.
    pub output: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            tools: 1,
            output: 1,
        }
    }
}

/// What stands in the history as the result of a call that was not made, or of an output tool.
const FINAL_RESULT: &str = "Final result processed.";
const RETRY_WINS: &str =
    "Output not used as the final result - addressing tool retries from this round first.";
const OUTPUT_TOO_LATE: &str = "Output tool not used - a final result was already processed.";
const OUTPUT_NOT_FINAL: &str =
    "Output tool processed, but its value will not be the final result of the agent run.";
const OUTPUT_INVALID: &str = "Output tool not used - output failed validation.";
const TOOL_TOO_LATE: &str = "Tool not executed - a final result was already processed.";

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
    ///
    /// # Errors
    /// A toolset fails, or a name is given twice, `output_tools` included.
    pub(super) async fn collect(
        toolsets: &'a [Arc<dyn Toolset>],
        output_tools: &[OutputTool],
    ) -> Result<Self, AgentError> {
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
                    return Err(AgentError::ToolNameConflict {
                        toolset: describe(toolset),
                        other: describe(other),
                        tool_name: definition.name,
                    });
                }
                tools.push((definition, toolset));
            }
        }
        for output in output_tools {
            let name = &output.definition.name;
            if let Some((_, other)) = tools.iter().find(|(known, _)| known.name == *name) {
                return Err(AgentError::ToolNameConflict {
                    toolset: "the agent's output tools".to_owned(),
                    other: describe(other),
                    tool_name: name.clone(),
                });
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

    fn unknown(&self, name: &str, output_tools: &[OutputTool]) -> Value {
        let own = self.0.iter().map(|(definition, _)| definition);
        let mut names: Vec<&str> = own
            .chain(output_tools.iter().map(|output| &output.definition))
            .map(|definition| definition.name.as_str())
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

fn describe(toolset: &Arc<dyn Toolset>) -> String {
    match toolset.id() {
        id if id.is_empty() => toolset.label().to_owned(),
        id => format!("{} {}", toolset.label(), repr_str(&id)),
    }
}

/// What a turn is made with.
#[derive(Clone, Copy)]
pub(super) struct TurnContext<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) output: &'a OutputSpec,
    pub(super) retries: Retries,
    pub(super) limits: &'a UsageLimits,
    pub(super) turn: u64,
    pub(super) span: &'a RunSpan,
    pub(super) durable: Option<&'a Arc<DurableRun>>,
    /// When the response was cut off within its last call: that, and not the call, is what is wrong with it. Inside:
    /// the setting that cut it.
    pub(super) cut_off: Option<&'a Option<String>>,
}

impl TurnContext<'_> {
    fn output_tool(&self, call: &ToolCall) -> Option<&OutputTool> {
        let mut tools = self.output.tools.iter();
        tools.find(|tool| tool.definition.name == call.tool_name)
    }

    /// Is it a call of a function tool, or of one that is not there?
    pub(super) fn is_function(&self, call: &ToolCall) -> bool {
        self.output_tool(call).is_none()
    }

    fn or_cut_off(&self, error: AgentError) -> AgentError {
        match self.cut_off {
            Some(max_tokens) => AgentError::IncompleteToolCall {
                max_tokens: max_tokens.clone(),
            },
            None => error,
        }
    }
}

/// What the calls of a turn came to.
pub(super) struct TurnEnd {
    /// One result for every call.
    pub(super) parts: Vec<RequestPart>,
    /// The answer, if one of the calls gave it.
    pub(super) output: Option<Output>,
    /// Outputs that the model must give again.
    pub(super) refused_outputs: u32,
}

/// One turn's calls under way.
pub(super) struct Turn<'a> {
    context: TurnContext<'a>,
    counts: &'a mut RetryCounts,
    usage: &'a mut RunUsage,
    results: Vec<ToolReturn>,
    output: Option<Output>,
    /// Where the result of the call that gave the answer stands.
    winner: Option<usize>,
    /// A function tool wants to be called again: that comes before any answer.
    retry_wins: bool,
    refused_outputs: u32,
    failed: HashSet<String>,
    succeeded: HashSet<String>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        context: TurnContext<'a>,
        counts: &'a mut RetryCounts,
        usage: &'a mut RunUsage,
    ) -> Self {
        Self {
            context,
            counts,
            usage,
            results: Vec::new(),
            output: None,
            winner: None,
            retry_wins: false,
            refused_outputs: 0,
            failed: HashSet::new(),
            succeeded: HashSet::new(),
        }
    }

    /// Makes the calls. With an answer from elsewhere in the response none is made, but each has its result.
    ///
    /// # Errors
    /// The first failure that ends the run drops what is still running.
    pub(super) async fn run(
        mut self,
        calls: &[ToolCall],
        strategy: EndStrategy,
        answer: Option<Output>,
    ) -> Result<TurnEnd, AgentError> {
        let context = self.context;
        let (functions, outputs): (Vec<&ToolCall>, Vec<&ToolCall>) =
            calls.iter().partition(|call| context.is_function(call));
        self.output = answer;
        match strategy {
            EndStrategy::Early => {
                for call in outputs {
                    self.run_output(call).await?;
                }
                if self.output.is_none() {
                    self.run_functions(&functions).await?;
                } else {
                    for call in functions {
                        self.record(call, TOOL_TOO_LATE);
                    }
                }
            }
            EndStrategy::Graceful => {
                let mut pending = Vec::new();
                for call in calls {
                    if context.is_function(call) {
                        pending.push(call);
                    } else {
                        self.run_functions(&std::mem::take(&mut pending)).await?;
                        self.run_output(call).await?;
                    }
                }
                self.run_functions(&pending).await?;
            }
            EndStrategy::Exhaustive => {
                self.run_functions(&functions).await?;
                self.run_every_output(calls, outputs).await?;
            }
        }
        if self.retry_wins
            && let Some(result) = self.winner.and_then(|winner| self.results.get_mut(winner))
        {
            result.content = RETRY_WINS.into();
            self.output = None;
        }
        self.counts.close_turn(self.failed, &self.succeeded);
        Ok(TurnEnd {
            parts: self
                .results
                .into_iter()
                .map(RequestPart::ToolReturn)
                .collect(),
            output: self.output,
            refused_outputs: self.refused_outputs,
        })
    }

    fn record(&mut self, call: &ToolCall, content: &str) {
        self.results.push(ToolReturn {
            tool_name: call.tool_name.clone(),
            tool_call_id: call.tool_call_id.clone(),
            content: content.into(),
            files: Vec::new(),
            outcome: ToolOutcome::Success,
            retry: None,
        });
    }

    /// Validates one output, unless there is an answer already.
    async fn run_output(&mut self, call: &ToolCall) -> Result<(), AgentError> {
        if self.output.is_some() {
            self.record(call, OUTPUT_TOO_LATE);
            return Ok(());
        }
        match self.validate_output(call).await? {
            Ok(output) => {
                self.winner = Some(self.results.len());
                self.record(call, FINAL_RESULT);
                self.output = Some(output);
            }
            Err(refusal) => {
                let refused = self.refuse_output(call, refusal)?;
                self.results.push(refused);
            }
        }
        Ok(())
    }

    /// Validates every output; the first valid one is the answer. Then the results are put in the order of the calls.
    async fn run_every_output(
        &mut self,
        calls: &[ToolCall],
        outputs: Vec<&ToolCall>,
    ) -> Result<(), AgentError> {
        let mut validated = Vec::new();
        for call in outputs {
            validated.push((call, self.validate_output(call).await?));
        }
        let has_answer = validated.iter().any(|(_, result)| result.is_ok());
        let mut outputs = Vec::new();
        let mut winner = None;
        for (call, result) in validated {
            match result {
                Ok(output) if self.output.is_none() => {
                    winner = Some(call.tool_call_id.clone());
                    self.output = Some(output);
                    self.record(call, FINAL_RESULT);
                }
                Ok(_) => self.record(call, OUTPUT_NOT_FINAL),
                Err(refusal) => match self.refuse_output(call, refusal) {
                    Ok(refused) => self.results.push(refused),
                    Err(_) if has_answer => self.record(call, OUTPUT_INVALID),
                    Err(error) => return Err(error),
                },
            }
            outputs.extend(self.results.pop());
        }
        let mut functions = std::mem::take(&mut self.results).into_iter();
        let mut outputs = outputs.into_iter();
        for call in calls {
            self.results.extend(if self.context.is_function(call) {
                functions.next()
            } else {
                outputs.next()
            });
        }
        self.winner = winner.and_then(|id| {
            let mut results = self.results.iter();
            results.position(|result| result.tool_call_id == id && result.content == FINAL_RESULT)
        });
        Ok(())
    }

    async fn validate_output(
        &self,
        call: &ToolCall,
    ) -> Result<Result<Output, Refusal>, AgentError> {
        let Some(validator) = &self.context.output.validator else {
            let text = format!("nothing reads the output tool {}", call.tool_name);
            return Err(AgentError::Tool(text));
        };
        let started = Instant::now();
        events::tool_call(self.context.turn, call);
        let result = validator.validate(Some(&call.tool_name), &call.args).await;
        let ended = |outcome, text: &str| {
            events::tool_return(self.context.turn, call, outcome, text, started.elapsed());
        };
        match result {
            Ok(output) => {
                ended(Some(ToolOutcome::Success), FINAL_RESULT);
                Ok(Ok(Output::Validated(output)))
            }
            Err(error) => match error.feedback() {
                Ok((content, cause)) => {
                    ended(Some(ToolOutcome::Retried), &tool_result_text(&content));
                    Ok(Err(Refusal { content, cause }))
                }
                Err(text) => {
                    ended(None, &text);
                    Err(AgentError::Tool(text))
                }
            },
        }
    }

    /// The result of an output that is to be given again.
    ///
    /// # Errors
    /// It was wrong once too often.
    fn refuse_output(
        &mut self,
        call: &ToolCall,
        refusal: Refusal,
    ) -> Result<ToolReturn, AgentError> {
        let own = self.context.output_tool(call);
        let max_retries = own
            .and_then(|tool| tool.definition.max_retries)
            .unwrap_or(self.context.retries.output);
        let failed_turns = self.counts.of(&call.tool_name);
        if failed_turns >= max_retries {
            return Err(self
                .context
                .or_cut_off(AgentError::OutputRetriesExceeded { max_retries }));
        }
        self.refused_outputs += 1;
        self.failed.insert(call.tool_name.clone());
        Ok(ToolReturn {
            tool_name: call.tool_name.clone(),
            tool_call_id: call.tool_call_id.clone(),
            content: refusal.content,
            files: Vec::new(),
            outcome: ToolOutcome::Retried,
            retry: Some(RetryInfo {
                cause: refusal.cause.to_owned(),
                attempt: failed_turns + 1,
                max_retries,
            }),
        })
    }

    /// Makes calls of function tools, parallel up to the barriers, and keeps their results in call order.
    async fn run_functions(&mut self, calls: &[&ToolCall]) -> Result<(), AgentError> {
        if calls.is_empty() {
            return Ok(());
        }
        check_unique_ids(calls)?;
        let context = self.context;
        let mut prepared = self
            .prepare(calls)
            .await
            .map_err(|error| context.or_cut_off(error))?;
        self.claim_steps(&mut prepared).await?;
        let mut results: Vec<(usize, ToolReturn)> = Vec::with_capacity(calls.len());
        for group in groups(prepared) {
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|call| async move {
                    let is_replayed = call
                        .step
                        .as_ref()
                        .is_some_and(|step| step.replays_success());
                    (call.index, is_replayed, run_one(&context, call).await)
                })
                .collect();
            while let Some((index, is_replayed, result)) = running.next().await {
                let result = result?;
                match result.outcome {
                    ToolOutcome::Success => {
                        self.usage.tool_calls += u64::from(!is_replayed);
                        self.succeeded.insert(result.tool_name.clone());
                    }
                    ToolOutcome::Retried => {
                        // A tool that is not there has no work to finish before the answer counts.
                        self.retry_wins |= context.tools.find(&result.tool_name).is_some();
                        self.failed.insert(result.tool_name.clone());
                    }
                    ToolOutcome::Failed => {}
                }
                results.push((index, result));
            }
        }
        results.sort_by_key(|(index, _)| *index);
        self.results
            .extend(results.into_iter().map(|(_, result)| result));
        Ok(())
    }

    /// Takes the calls' positions in a durable run, in the order of the model, before any of them is made.
    ///
    /// # Errors
    /// The journal can't be read, or calls that were expected to be replayed are not, and go past a limit.
    async fn claim_steps(&self, calls: &mut [Prepared<'_>]) -> Result<(), AgentError> {
        let Some(durable) = self.context.durable else {
            return Ok(());
        };
        let mut live = 0;
        for prepared in calls {
            let (call, tool) = (
                prepared.call,
                self.context.tools.find(&prepared.call.tool_name),
            );
            let (Ok(arguments), Some((_, toolset))) = (&prepared.arguments, tool) else {
                continue;
            };
            if let Some(recorded_as) = toolset.recorded_as(&call.tool_name) {
                let step = durable.claim_tool(recorded_as, call, arguments).await?;
                prepared.step = Some(step);
            }
            let step = prepared.step.as_ref();
            live += u64::from(!step.is_some_and(|step| step.replays_success()));
        }
        if live > 0 {
            self.context
                .limits
                .check_before_tool_calls(self.usage, live)?;
        }
        Ok(())
    }

    /// Looks the tools up and validates the arguments, before any of the calls is made.
    ///
    /// # Errors
    /// A call that is wrong once too often ends the run, so that no call beside it is made either.
    async fn prepare<'c>(&self, calls: &[&'c ToolCall]) -> Result<Vec<Prepared<'c>>, AgentError> {
        let context = &self.context;
        let mut all = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().copied().enumerate() {
            let tool = context.tools.find(&call.tool_name);
            let refusal = |content: Value, cause| Err(Refusal { content, cause });
            let arguments = match tool {
                None => refusal(
                    context
                        .tools
                        .unknown(&call.tool_name, &context.output.tools),
                    "unknown_tool",
                ),
                Some((definition, toolset)) => toolset
                    .validate(definition, &call.args)
                    .await
                    .or_else(|error| {
                        let cause = if error.is_array() {
                            "validation_error"
                        } else {
                            "model_retry"
                        };
                        refusal(error, cause)
                    }),
            };
            let prepared = Prepared {
                index,
                call,
                arguments,
                step: None,
                sequential: tool.is_some_and(|(definition, _)| definition.sequential),
                failed_turns: self.counts.of(&call.tool_name),
                max_retries: tool
                    .and_then(|(definition, _)| definition.max_retries)
                    .unwrap_or(context.retries.tools),
            };
            if let Err(refusal) = &prepared.arguments
                && prepared.is_spent()
            {
                prepared.check_budget(refusal, &context.span.tool(call))?;
            }
            all.push(prepared);
        }
        Ok(all)
    }
}

async fn run_one(
    context: &TurnContext<'_>,
    mut prepared: Prepared<'_>,
) -> Result<ToolReturn, AgentError> {
    let call = prepared.call;
    events::tool_call(context.turn, call);
    let tool_span = context.span.tool(call);
    let started = Instant::now();
    let arguments = std::mem::replace(&mut prepared.arguments, Ok(Map::new()));
    let result = match (arguments, context.tools.find(&call.tool_name)) {
        (Ok(arguments), Some((_, toolset))) => match &prepared.step {
            Some(step) => step.during(call_tool(toolset, call, arguments)).await,
            None => call_tool(toolset, call, arguments).await,
        },
        (Ok(_), None) => Err(CallError::Fatal(format!(
            "the tool {} is gone",
            call.tool_name
        ))),
        (Err(refusal), _) => Err(CallError::Retry(refusal)),
    };
    let ended = |outcome, text: &str| {
        events::tool_return(context.turn, call, outcome, text, started.elapsed());
    };
    let (mut files, mut retry) = (Vec::new(), None);
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
            retry = Some(RetryInfo {
                cause: refusal.cause.to_owned(),
                attempt: prepared.failed_turns + 1,
                max_retries: prepared.max_retries,
            });
            (ToolOutcome::Retried, refusal.content)
        }
        Err(CallError::Failed(text)) => (ToolOutcome::Failed, Value::String(text)),
        Err(CallError::Fatal(text)) => {
            tool_span.fail(&text);
            ended(None, &text);
            let refusal = prepared.step.as_ref().and_then(|step| step.refusal());
            return Err(refusal.map_or(AgentError::Tool(text), AgentError::Journal));
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
        retry,
    })
}

/// Results are matched to calls by id, so two calls with one id can't both be answered.
fn check_unique_ids(calls: &[&ToolCall]) -> Result<(), AgentError> {
    let mut seen = HashSet::new();
    let mut duplicates: Vec<String> = Vec::new();
    for call in calls {
        let id = &call.tool_call_id;
        if !seen.insert(id) && !duplicates.contains(id) {
            duplicates.push(id.clone());
        }
    }
    if duplicates.is_empty() {
        Ok(())
    } else {
        Err(AgentError::DuplicateToolCallIds {
            tool_call_ids: duplicates,
        })
    }
}

/// A call that is ready to be made, or to be refused.
struct Prepared<'c> {
    index: usize,
    call: &'c ToolCall,
    arguments: Result<Map<String, Value>, Refusal>,
    /// Its position in a durable run.
    step: Option<Arc<Step>>,
    sequential: bool,
    failed_turns: u32,
    max_retries: u32,
}

/// What the model is told of a call it should make otherwise, and pydantic-ai's name for the cause.
struct Refusal {
    content: Value,
    cause: &'static str,
}

impl Prepared<'_> {
    /// Would one more failing turn be one too many?
    fn is_spent(&self) -> bool {
        self.failed_turns >= self.max_retries
    }

    fn check_budget(&self, refusal: &Refusal, span: &ToolSpan) -> Result<(), AgentError> {
        let attempt = ToolAttempt {
            attempt: self.failed_turns + 1,
            max_retries: self.max_retries,
            cause: refusal.cause,
        };
        span.retry(&attempt, &refusal.content);
        if !self.is_spent() {
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
                cause: "model_retry",
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
