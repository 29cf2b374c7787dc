//! What becomes of a try: runs it, and makes of its result or failure the message that ends it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::agent_task;
use super::attempt::{Attempt, Rendered};
use super::dag_code::{self, RetryDecision};
use super::failure::{Failure, Meaning};
use super::framework_spans::FrameworkSpans;
use super::log::{LogLevel, TaskLogger};
use super::loggers;
use super::rendered_fields::rendered_field;
use super::rust;
use super::services::Services;
use super::toolsets;
use super::xcom_push;
use crate::agent;
use crate::airflow::supervisor::{JsonObjectOrText, TaskReply, TaskRequest};
use crate::dag::Interruption;
use crate::dag::definitions::TaskKind;
use crate::telemetry::{TaskSpan, Telemetry, identity};

/// The key of the link that every agent task has; empty unless a human reviews its answer.
const REVIEW_LINK_KEY: &str = "_link_HITLReviewLink";

/// How a try ended.
pub struct Ending {
    /// The message that says so.
    pub message: TaskRequest,
    /// For the task's span and its callbacks.
    pub failure: Option<Failure>,
    /// The task's arguments, as far as it came to them.
    pub rendered: Option<Rendered>,
}

/// How far a try has come.
#[derive(Default)]
struct Progress {
    rendered: Option<Rendered>,
    /// The label of its map index.
    label: Option<String>,
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A try that failed before its task was run.
#[must_use]
pub fn failed_early(failure: &Failure, should_retry: bool, log: &TaskLogger) -> Ending {
    failure.log(log, &failure.message);
    Ending {
        message: failure_message(failure, should_retry, None, RetryDecision::Default, None),
        failure: Some(failure.clone()),
        rendered: None,
    }
}

fn failure_message(
    failure: &Failure,
    should_retry: bool,
    rendered_map_index: Option<String>,
    decision: RetryDecision,
    queue: Option<String>,
) -> TaskRequest {
    match (failure.meaning, decision) {
        (Meaning::Skipped, _) => TaskRequest::TaskState {
            state: "skipped".to_owned(),
            end_date: Some(now()),
            rendered_map_index,
        },
        (Meaning::Rescheduled, _) => TaskRequest::RescheduleTask {
            reschedule_date: failure
                .asks_for("reschedule_date")
                .and_then(Value::as_str)
                .map_or_else(now, ToOwned::to_owned),
            end_date: now(),
        },
        (Meaning::Deferred, _) => {
            let text = |name: &str| failure.asks_for(name).and_then(Value::as_str);
            let map = |name: &str| failure.asks_for(name).and_then(Value::as_object).cloned();
            let timeout = failure.asks_for("timeout").and_then(Value::as_f64);
            TaskRequest::DeferTask {
                classpath: text("classpath").unwrap_or_default().to_owned(),
                trigger_kwargs: JsonObjectOrText::Object(map("trigger_kwargs").unwrap_or_default()),
                trigger_timeout: timeout.map(|seconds| format!("PT{seconds}S").into()),
                queue,
                next_method: text("method_name").unwrap_or("execute").to_owned(),
                next_kwargs: map("kwargs").unwrap_or_default(),
                rendered_map_index,
            }
        }
        (Meaning::AwaitingInput, _) => {
            let text = |name: &str| failure.asks_for(name).and_then(Value::as_str);
            let timeout = failure.asks_for("timeout").and_then(Value::as_f64);
            let kwargs = failure.asks_for("kwargs").and_then(Value::as_object);
            TaskRequest::AwaitInputTask {
                timeout: timeout.map(|seconds| format!("PT{seconds}S").into()),
                next_method: text("method_name").unwrap_or("execute").to_owned(),
                next_kwargs: kwargs.cloned().unwrap_or_default(),
                rendered_map_index,
            }
        }
        (
            Meaning::Failed | Meaning::DownstreamSkipped,
            decision @ (RetryDecision::Default | RetryDecision::Retry { .. }),
        ) if should_retry => {
            let (delay, reason) = match decision {
                RetryDecision::Retry {
                    delay_seconds,
                    reason,
                } => (delay_seconds, reason),
                _ => (None, None),
            };
            TaskRequest::RetryTask {
                end_date: now(),
                rendered_map_index,
                retry_delay_seconds: delay,
                // The server's column holds no more.
                retry_reason: reason.map(|reason| reason.chars().take(500).collect()),
            }
        }
        _ => TaskRequest::TaskState {
            state: "failed".to_owned(),
            end_date: Some(now()),
            rendered_map_index,
        },
    }
}

/// Runs a try to its end.
pub async fn run(
    attempt: Arc<Attempt>,
    log: &TaskLogger,
    span: &TaskSpan,
    telemetry: &Telemetry,
) -> Ending {
    let mut progress = Progress::default();
    let result = execute(&attempt, log, span, telemetry, &mut progress).await;
    // The link is pushed whatever became of the task.
    let (result, ()) = tokio::join!(
        push_result(&attempt, result, log),
        push_review_link(&attempt)
    );
    let result = match result {
        Err(failure) if failure.meaning == Meaning::DownstreamSkipped => {
            log.info("::group::Post Execute");
            log.info("Skipping downstream tasks.");
            skip_downstream(&attempt, &failure).await
        }
        other => other,
    };
    let result = match result {
        Ok(()) => dag_code::outlet_events(&attempt).await,
        Err(failure) => Err(failure),
    };
    let Progress { rendered, label } = progress;
    let failure = match result {
        Ok(outlet_events) => {
            return Ending {
                message: TaskRequest::SucceedTask {
                    end_date: now(),
                    task_outlets: attempt.task.outlets.clone(),
                    outlet_events,
                    rendered_map_index: label,
                },
                failure: None,
                rendered,
            };
        }
        Err(failure) => failure,
    };
    let mut decision = RetryDecision::Default;
    match failure.meaning {
        Meaning::Skipped => {
            log.info("::group::Post Execute");
            if !failure.message.is_empty() {
                log.write("task", LogLevel::Info, "Skipping task.", failure.reason());
            }
        }
        Meaning::Rescheduled => {
            log.info("::group::Post Execute");
            log.info("Rescheduling task, marking task as UP_FOR_RESCHEDULE");
        }
        Meaning::Deferred => say_pause(&attempt, log, "Pausing task as DEFERRED. "),
        Meaning::AwaitingInput => say_pause(&attempt, log, "Pausing task as AWAITING_INPUT."),
        Meaning::Failed | Meaning::FailedForGood | Meaning::DownstreamSkipped => {
            failure.log(log, "Task failed with exception");
            log.info("::group::Post Execute");
            if failure.meaning != Meaning::FailedForGood {
                decision = dag_code::retry_decision(&attempt, rendered.as_ref(), &failure).await;
            }
        }
    }
    let should_retry = attempt.details.ti_context.should_retry;
    let no_failure = matches!(
        failure.meaning,
        Meaning::Skipped | Meaning::Rescheduled | Meaning::Deferred | Meaning::AwaitingInput
    );
    let queue = triggerer_queue(&attempt, &failure);
    Ending {
        message: failure_message(&failure, should_retry, label, decision, queue),
        failure: (!no_failure).then_some(failure),
        rendered,
    }
}

fn say_pause(attempt: &Attempt, log: &TaskLogger, text: &str) {
    log.info("::group::Post Execute");
    let ti = &attempt.services.ti;
    let mut fields = Map::new();
    for (name, value) in [
        ("dag_id", &ti.dag_id),
        ("task_id", &ti.task_id),
        ("run_id", &ti.run_id),
    ] {
        fields.insert(name.to_owned(), value.as_str().into());
    }
    log.write("task", LogLevel::Info, text, fields);
}

/// The queue of triggerers, where these have queues and the trigger goes by them.
fn triggerer_queue(attempt: &Attempt, failure: &Failure) -> Option<String> {
    let queued = failure.asks_for("queued").and_then(Value::as_bool) == Some(true);
    let have_queues = attempt
        .services
        .config
        .get_bool("triggerer", "queues_enabled")
        .unwrap_or(false);
    (queued && have_queues)
        .then(|| attempt.services.ti.queue.clone())
        .flatten()
}

async fn skip_downstream(attempt: &Attempt, failure: &Failure) -> Result<(), Failure> {
    let tasks = failure.asks_for("tasks").and_then(Value::as_array);
    let request = TaskRequest::SkipDownstreamTasks {
        tasks: tasks.cloned().unwrap_or_default(),
    };
    attempt
        .services
        .request(request)
        .await
        .map(drop)
        .map_err(refused("the tasks downstream could not be skipped"))
}

/// The link of `AgentOperator`, which Airflow's task runner pushes whatever became of the task.
async fn push_review_link(attempt: &Attempt) {
    let TaskKind::Agent(agent) = &attempt.task.kind else {
        return;
    };
    if agent.llm.is_some() {
        return;
    }
    let services = &attempt.services;
    let link = match &agent.hitl_review {
        Some(_) => review_link(services),
        None => String::new(),
    };
    if let Err(error) = services
        .request(services.set_xcom(REVIEW_LINK_KEY, link.into(), None))
        .await
    {
        tracing::warn!("Failed to push an xcom for task operator extra link: {error}");
    }
}

/// The page of the `hitl_review` plugin for the task instance, as a path on Airflow's server.
fn review_link(services: &Services) -> String {
    let ti = &services.ti;
    let base = services.config.get("api", "base_url").ok().flatten();
    let base = base.unwrap_or_default();
    let path = match base.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => &base,
    };
    let path = path.trim_matches('/');
    let mapped = match ti.map_index {
        index if index >= 0 => format!("/mapped/{index}"),
        _ => String::new(),
    };
    format!(
        "{}{path}/dags/{}/runs/{}/tasks/{}{mapped}/plugin/hitl-review",
        if path.is_empty() { "" } else { "/" },
        ti.dag_id,
        ti.run_id,
        ti.task_id
    )
}

async fn execute(
    attempt: &Arc<Attempt>,
    log: &TaskLogger,
    span: &TaskSpan,
    telemetry: &Telemetry,
    progress: &mut Progress,
) -> Result<Value, Failure> {
    let services = &attempt.services;
    for key in &attempt.details.ti_context.xcom_keys_to_clear {
        let ti = &services.ti;
        let request = TaskRequest::DeleteXCom {
            key: key.clone(),
            dag_id: ti.dag_id.clone(),
            run_id: ti.run_id.clone(),
            task_id: ti.task_id.clone(),
            map_index: (ti.map_index >= 0).then_some(ti.map_index),
        };
        services
            .request(request)
            .await
            .map_err(refused("the XComs of an earlier try could not be cleared"))?;
    }
    let stage = span.stage("render_templates");
    let renderer = Arc::clone(attempt);
    let rendered = super::blocking(move || renderer.render()).await??;
    drop(stage);
    progress.rendered = Some(rendered.clone());
    let label = &mut progress.label;
    send_rendered_fields(attempt, &rendered).await?;
    *label = early_label(attempt, &rendered).await;
    if let Some(label) = label {
        send_label(attempt, label).await?;
    }
    validate_assets(attempt).await?;
    dag_code::prepare(attempt, &rendered).await?;
    log.info("::endgroup::");

    let stage = span.stage("task.execute");
    let spans = telemetry.gen_ai().map(|gen_ai| {
        agent::Telemetry::global(
            stage.clone(),
            identity(&services.ti),
            gen_ai.capture_content,
        )
    });
    if telemetry.tracer().is_some() {
        let spans = FrameworkSpans::new(stage.clone(), identity(&services.ti));
        attempt.agents.keep_framework_spans(spans);
    }
    let result = run_kind(attempt, rendered.clone(), log, spans).await;
    drop(stage);
    if result.is_ok() {
        log.info("::group::Post Execute");
    }
    let added = dag_code::added_to_context(attempt).await;
    let relabel = Arc::clone(attempt);
    let again = super::blocking(move || relabel.rendered_map_index(&rendered, added)).await?;
    match (&result, again) {
        (_, Ok(Some(new))) if Some(&new) != label.as_ref() => {
            send_label(attempt, &new).await?;
            *label = Some(new);
        }
        (Ok(_), Err(failure)) => return Err(failure),
        _ => {}
    }
    result
}

/// Pushes what the task has returned.
async fn push_result(
    attempt: &Attempt,
    result: Result<Value, Failure>,
    log: &TaskLogger,
) -> Result<(), Failure> {
    let (task, services) = (&attempt.task, &attempt.services);
    let requests = xcom_push::requests(task, task.is_mapped, &result?, services)?;
    if !requests.is_empty() {
        log.info("Pushing xcom");
    }
    xcom_push::push(requests, services).await?;
    Ok(())
}

fn refused(what: &'static str) -> impl Fn(crate::airflow::supervisor::ErrorResponse) -> Failure {
    move |error| {
        Failure::new(
            "airflow.sdk.exceptions.AirflowRuntimeError",
            format!("{what}: {error}"),
        )
    }
}

async fn send_rendered_fields(attempt: &Attempt, rendered: &Rendered) -> Result<(), Failure> {
    if rendered.fields.is_empty() {
        return Ok(());
    }
    let services = &attempt.services;
    let max = services
        .config
        .get_uint("core", "max_templated_field_length")
        .unwrap_or(4096);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let masker = services.resolver.masker();
    let fields: Map<String, Value> = rendered
        .fields
        .iter()
        .map(|(name, value)| (name.clone(), rendered_field(name, value, max, masker)))
        .collect();
    services
        .request(TaskRequest::SetRenderedFields {
            rendered_fields: fields,
        })
        .await
        .map_err(refused("the rendered template fields could not be stored"))?;
    Ok(())
}

/// The label before the task has run; a template that needs what the task makes is rendered again later.
async fn early_label(attempt: &Arc<Attempt>, rendered: &Rendered) -> Option<String> {
    let (attempt, rendered) = (Arc::clone(attempt), rendered.clone());
    match super::blocking(move || attempt.rendered_map_index(&rendered, Map::new())).await {
        Ok(Ok(label)) => label.filter(|label| !label.is_empty()),
        Ok(Err(failure)) | Err(failure) => {
            tracing::debug!(
                "early rendering of map_index_template failed: {}",
                failure.text()
            );
            None
        }
    }
}

async fn send_label(attempt: &Attempt, label: &str) -> Result<(), Failure> {
    if label.is_empty() {
        return Ok(());
    }
    attempt
        .services
        .request(TaskRequest::SetRenderedMapIndex {
            rendered_map_index: label.to_owned(),
        })
        .await
        .map_err(refused("the rendered map index could not be stored"))?;
    Ok(())
}

async fn validate_assets(attempt: &Attempt) -> Result<(), Failure> {
    if attempt.task.inlets.is_empty() && attempt.task.outlets.is_empty() {
        return Ok(());
    }
    let body = json!({ "type": "ValidateInletsAndOutlets", "ti_id": attempt.services.ti.id });
    let Value::Object(body) = body else {
        return Ok(());
    };
    let reply = attempt
        .services
        .request(TaskRequest::Other(body))
        .await
        .map_err(refused(
            "the task's inlets and outlets could not be checked",
        ))?;
    let inactive = match &reply {
        TaskReply::Other(body) => body
            .get("inactive_assets")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    if inactive.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = inactive
        .iter()
        .map(|asset| {
            let field = |key| asset.get(key).and_then(Value::as_str).unwrap_or_default();
            format!(
                "Asset(name=\"{}\", uri=\"{}\")",
                field("name"),
                field("uri")
            )
        })
        .collect();
    let text = format!(
        "Task has the following inactive assets in its inlets or outlets: {}",
        names.join(", ")
    );
    Err(Failure::new(
        "airflow.sdk.exceptions.AirflowInactiveAssetInInletOrOutletException",
        text,
    )
    .for_good())
}

/// Why a running task is stopped.
enum Stop {
    Killed,
    TimedOut,
}

/// Runs the task's own work under its execution timeout and the supervisor's SIGTERM.
async fn run_kind(
    attempt: &Arc<Attempt>,
    rendered: Rendered,
    log: &TaskLogger,
    spans: Option<agent::Telemetry>,
) -> Result<Value, Failure> {
    let cancel = CancellationToken::new();
    let is_agent = matches!(attempt.task.kind, TaskKind::Agent(_));
    let work = async {
        match &attempt.task.kind {
            TaskKind::Agent(task) => {
                let fields = attempt.task.has("post_execute").then(|| rendered.clone());
                let answer =
                    agent_task::run(attempt, task, rendered.clone(), cancel.clone(), spans).await?;
                if let Some(fields) = fields {
                    dag_code::finish(attempt, &fields, &answer).await?;
                }
                Ok(answer)
            }
            TaskKind::Python(_) => {
                attempt.agents.trace(spans);
                toolsets::serve_dag_code(attempt);
                let context = &attempt.details.ti_context;
                let result = match &context.next_method {
                    Some(method) => {
                        let kwargs = context.next_kwargs.clone().unwrap_or_default();
                        dag_code::resume_deferred(attempt, &rendered, method, &kwargs).await?
                    }
                    None => dag_code::execute(attempt, &rendered).await?,
                };
                attempt.agents.left_over()?;
                Ok(result)
            }
            TaskKind::Stub(stub) => {
                let keep = attempt.task.has("post_execute");
                if !keep {
                    dag_code::release_interpreter(attempt).await?;
                }
                let cancel = cancel.clone();
                let result = rust::run(attempt, stub, &rendered, cancel, spans).await?;
                if keep {
                    dag_code::finish(attempt, &rendered, &result).await?;
                }
                Ok(result)
            }
            TaskKind::Empty => {
                dag_code::finish(attempt, &rendered, &Value::Null).await?;
                Ok(Value::Null)
            }
            TaskKind::Unsupported { reason } => {
                Err(Failure::new("NotImplementedError", reason.clone()))
            }
        }
    };
    tokio::pin!(work);
    let stop = tokio::select! {
        biased;
        result = &mut work => return result,
        stop = stopped(attempt.task.execution_timeout) => stop,
    };
    let pid = std::process::id();
    match stop {
        Stop::Killed if is_agent => {
            tracing::info!(
                target: "airflow.task", logger = loggers::AGENT,
                "Task killed, cancelling in-flight agent run"
            );
        }
        Stop::Killed => log.info("Task killed"),
        Stop::TimedOut => {
            let mut fields = Map::new();
            fields.insert("pid".to_owned(), pid.into());
            log.write("task", LogLevel::Error, "Process timed out", fields);
        }
    }
    cancel.cancel();
    let (interruption, text) = match stop {
        Stop::Killed => (
            Interruption::Killed,
            "Task received SIGTERM signal".to_owned(),
        ),
        Stop::TimedOut => (Interruption::TimedOut, format!("Timeout, PID: {pid}")),
    };
    if let Some(interpreter) = attempt.interpreter() {
        interpreter.interrupt(interruption, &text);
    }
    attempt.services.stop_waiting();
    // An agent closes its toolsets and tells what it has used; Python runs its `finally` blocks. After a SIGTERM the
    // supervisor waits for 5 s.
    let patience = match stop {
        Stop::TimedOut if !is_agent => Duration::from_secs(60),
        _ => Duration::from_secs(4),
    };
    let unwound = tokio::time::timeout(patience, &mut work).await.ok();
    match (stop, unwound) {
        // It ended before it noticed, or would not be stopped.
        (Stop::Killed, Some(Ok(result))) => Ok(result),
        (Stop::TimedOut, Some(Ok(result))) if !is_agent => Ok(result),
        (Stop::Killed, Some(Err(failure))) => Err(failure.mended_by_a_retry()),
        (Stop::TimedOut, Some(Err(failure))) if !is_agent => Err(failure),
        (Stop::Killed, None) => Err(Failure::new(
            "airflow.sdk.exceptions.AirflowException",
            text,
        )),
        (Stop::TimedOut, _) => Err(Failure::new(
            "airflow.sdk.exceptions.AirflowTaskTimeout",
            text,
        )),
    }
}

async fn stopped(timeout: Option<f64>) -> Stop {
    let expired = async {
        match timeout {
            Some(seconds) => {
                tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 1e9))).await
            }
            None => std::future::pending().await,
        }
    };
    let killed = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // Without a handler SIGTERM ends the process at once, and the supervisor says so.
            Err(error) => {
                tracing::warn!("no handler for SIGTERM: {error}");
                std::future::pending().await
            }
        }
    };
    tokio::select! {
        () = expired => Stop::TimedOut,
        () = killed => Stop::Killed,
    }
}
