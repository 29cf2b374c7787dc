//! Keeps telling the server that a task is alive, on a task of its own so that nothing else can delay it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::run::{StopReason, StopSender};
use crate::control_plane::execution_api::{ApiError, ExecutionApi};

/// When heartbeats are sent, and when their failure ends the task.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatLimits {
    /// `[workers] min_heartbeat_interval`.
    pub interval: Duration,
    /// `[workers] max_failed_heartbeats`, one after the other, that the server refused.
    pub max_failed: u32,
    /// How long the server may be out of reach. After `[scheduler] task_instance_heartbeat_timeout` the scheduler
    /// gives the task to somebody else; until then a server that restarts must not cost a running task.
    pub max_silence: Duration,
}

/// Sends heartbeats until `ended`; stops the task when the server does not want it any more.
pub async fn keep_alive(
    api: &ExecutionApi,
    limits: HeartbeatLimits,
    stop: &StopSender,
    ended: CancellationToken,
) {
    let mut ticks = interval_at(Instant::now() + limits.interval, limits.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut refused = 0;
    let mut last_success = Instant::now();
    loop {
        let beat = async {
            ticks.tick().await;
            api.heartbeat().await
        };
        let result = tokio::select! {
            () = ended.cancelled() => return,
            result = beat => result,
        };
        let error = match result {
            Ok(()) => {
                refused = 0;
                last_success = Instant::now();
                continue;
            }
            Err(error) => error,
        };
        match &error {
            ApiError::Refused {
                status: 404 | 409 | 410,
                detail,
                ..
            } => {
                stop_task(stop, server_terminated(detail));
                return;
            }
            ApiError::Refused { status, .. } if *status < 500 && *status != 429 => refused += 1,
            _ => {}
        }
        let silence = last_success.elapsed();
        tracing::warn!(%error, refused, "a task's heartbeat failed; it will be sent again");
        if refused >= limits.max_failed.max(1) || silence >= limits.max_silence {
            stop_task(stop, StopReason::HeartbeatsFailed);
            return;
        }
    }
}

fn server_terminated(detail: &Value) -> StopReason {
    StopReason::ServerTerminated {
        detail: detail
            .as_str()
            .map_or_else(|| detail.to_string(), str::to_owned),
        elsewhere: detail.get("reason").and_then(Value::as_str) == Some("running_elsewhere"),
    }
}

/// The first reason to stop a task counts.
pub fn stop_task(stop: &StopSender, reason: StopReason) {
    stop.send_if_modified(|current| {
        let first = current.is_none();
        if first {
            *current = Some(reason);
        }
        first
    });
}
