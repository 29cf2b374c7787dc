//! Durable runs of Dag code whose loop is Python's: it names each step and says what was asked, as a digest.
//!
//! Requests are those of `durable/openai_agents.py` among the stand-ins.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::durable::{DurableRun, JournalError, Step, StepKind};
use crate::task::attempt::Attempt;

/// What Dag code asks.
#[derive(Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Asked {
    /// A run begins. The answer is its number.
    Start,
    /// A step is about to be made: `{"step", "replayed"}`, and the recorded payload under `payload` if it is not to be.
    Claim {
        run: u64,
        name: String,
        kind: Kind,
        fingerprint: String,
    },
    /// The work of a step begins.
    Begin {
        run: u64,
        step: u64,
    },
    Record {
        run: u64,
        step: u64,
        payload: Value,
    },
    /// The step failed: it is made again by the next attempt.
    Raise {
        run: u64,
        step: u64,
    },
    Fail {
        run: u64,
        model_at_fault: bool,
    },
    Succeed {
        run: u64,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Model,
    Tool,
}

/// The runs under way, by their numbers.
#[derive(Default)]
pub struct NamedRuns(Mutex<(u64, HashMap<u64, Run>)>);

struct Run {
    run: Arc<DurableRun>,
    steps: Vec<Arc<Step>>,
}

const NO_RUN: &str = "there is no such durable run, or no such step of it";

impl NamedRuns {
    fn locked(&self) -> MutexGuard<'_, (u64, HashMap<u64, Run>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, number: u64) -> Result<Arc<DurableRun>, String> {
        let runs = self.locked();
        let run = runs.1.get(&number).ok_or(NO_RUN)?;
        Ok(Arc::clone(&run.run))
    }

    fn step(&self, number: u64, step: u64) -> Result<Arc<Step>, String> {
        let runs = self.locked();
        let steps = runs.1.get(&number).map(|run| run.steps.as_slice());
        let step = usize::try_from(step).ok().and_then(|at| steps?.get(at));
        Ok(Arc::clone(step.ok_or(NO_RUN)?))
    }

    /// Does what Dag code asks.
    ///
    /// # Errors
    /// The journal can't be read, or there is no place for it.
    pub async fn answer(&self, attempt: &Attempt, asked: &Value) -> Result<Value, String> {
        let asked = serde_json::from_value(asked.clone()).map_err(|error| error.to_string())?;
        let unreadable = |error: JournalError| error.to_string();
        match asked {
            Asked::Start => {
                let journal = match attempt.agents.journal(attempt).await {
                    Ok(journal) => journal,
                    Err(failure) => return Ok(json!({ "error": failure.message })),
                };
                let run = journal.start_run("", None).await.map_err(unreadable)?;
                let mut runs = self.locked();
                runs.0 += 1;
                let number = runs.0;
                let steps = Vec::new();
                runs.1.insert(number, Run { run, steps });
                Ok(json!({ "run": number }))
            }
            Asked::Claim {
                run: number,
                name,
                kind,
                fingerprint,
            } => {
                let kind = match kind {
                    Kind::Model => StepKind::Model,
                    Kind::Tool => StepKind::Tool,
                };
                let run = self.run(number)?;
                let step = run.claim_named(name, kind, fingerprint).await;
                let step = step.map_err(unreadable)?;
                let payload = step.payload().cloned();
                let mut runs = self.locked();
                let steps = &mut runs.1.get_mut(&number).ok_or(NO_RUN)?.steps;
                steps.push(step);
                Ok(json!({
                    "step": steps.len() - 1, "replayed": payload.is_some(), "payload": payload,
                }))
            }
            Asked::Begin { run, step } => {
                self.step(run, step)?.begin();
                Ok(Value::Null)
            }
            Asked::Record { run, step, payload } => {
                self.step(run, step)?.record(payload).await;
                Ok(Value::Null)
            }
            Asked::Raise { run, step } => {
                self.step(run, step)?.raised();
                Ok(Value::Null)
            }
            Asked::Fail {
                run,
                model_at_fault,
            } => {
                self.run(run)?.fail(model_at_fault).await;
                self.locked().1.remove(&run);
                Ok(Value::Null)
            }
            Asked::Succeed { run } => {
                self.run(run)?.succeed().await;
                self.locked().1.remove(&run);
                Ok(Value::Null)
            }
        }
    }
}
