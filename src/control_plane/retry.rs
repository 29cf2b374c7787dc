//! How often and after which waits a request to Airflow's API server is repeated.

use std::time::{Duration, Instant};

use crate::airflow::config::{Config, ConfigError};

/// Attempts and waits. The wait after the n-th failure is drawn between `wait_min` and 2^(n-1) seconds, the latter
/// held between `wait_min` and `wait_max`: Airflow's own rule, in its clients for both APIs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all; at least one is made.
    pub attempts: u32,
    /// Shortest wait.
    pub wait_min: Duration,
    /// Longest wait.
    pub wait_max: Duration,
    /// How long a server that is away (no answer, 502, 503, 504) is waited for, whatever the number of attempts. Airflow
    /// itself counts attempts alone, which costs every running task when an API server takes a minute to restart.
    pub outage: Duration,
}

/// Longest wait between attempts at a server that is away: it may be back any moment, and a task waits for it.
const OUTAGE_WAIT_MAX: Duration = Duration::from_secs(5);
const OUTAGE_WAIT_MIN: Duration = Duration::from_millis(200);

impl RetryPolicy {
    /// The policy for the Execution API: `[workers] execution_api_retries` and its two waits.
    ///
    /// # Errors
    /// One of the options can't be read.
    pub fn for_execution_api(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            attempts: u32::try_from(config.get_uint("workers", "execution_api_retries")?)
                .unwrap_or(u32::MAX),
            wait_min: config.get_seconds("workers", "execution_api_retry_wait_min")?,
            wait_max: config.get_seconds("workers", "execution_api_retry_wait_max")?,
            outage: heartbeat_timeout(config)?,
        })
    }

    /// How long to wait before the next attempt, after `failures` failures since `begun`; `None` when it is time to give
    /// up. `away`: the last failure says that the server is not there.
    #[must_use]
    pub fn next_wait(&self, failures: u32, begun: Instant, away: bool) -> Option<Duration> {
        let wait = self.wait(failures);
        if away && begun.elapsed() < self.outage {
            return Some(wait.min(OUTAGE_WAIT_MAX).max(OUTAGE_WAIT_MIN));
        }
        (failures < self.attempts).then_some(wait)
    }

    /// How long to wait after `failures` failures (1 is the first).
    fn wait(&self, failures: u32) -> Duration {
        let doubled = Duration::from_secs(
            1u64.checked_shl(failures.saturating_sub(1))
                .unwrap_or(u64::MAX),
        );
        let longest = doubled.max(self.wait_min).min(self.wait_max);
        let spread = longest.saturating_sub(self.wait_min);
        self.wait_min + spread.mul_f64(fastrand::f64())
    }
}

/// `[scheduler] task_instance_heartbeat_timeout` (300 s): after this long the scheduler gives a task without heartbeats to
/// somebody else, so that waiting longer for the server is in vain.
///
/// # Errors
/// The option can't be read.
pub fn heartbeat_timeout(config: &Config) -> Result<Duration, ConfigError> {
    match config.text("scheduler", "task_instance_heartbeat_timeout")? {
        Some(_) => config.get_seconds("scheduler", "task_instance_heartbeat_timeout"),
        None => Ok(Duration::from_secs(300)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_the_shortest_to_the_longest_and_never_leave_these_bounds() {
        let seconds = Duration::from_secs;
        let policy = RetryPolicy {
            attempts: 5,
            wait_min: seconds(1),
            wait_max: seconds(90),
            outage: seconds(60),
        };
        assert_eq!(policy.wait(1), seconds(1));
        for failures in 2..100 {
            let longest =
                seconds(1 << (failures - 1).min(6)).max(seconds(if failures > 7 { 90 } else { 0 }));
            let wait = policy.wait(failures);
            assert!(
                wait >= seconds(1) && wait <= longest,
                "{failures}: {wait:?}"
            );
        }
    }

    #[test]
    fn a_server_that_is_away_is_waited_for_by_time_and_a_broken_one_by_attempts() {
        let seconds = Duration::from_secs;
        let policy = RetryPolicy {
            attempts: 5,
            wait_min: seconds(1),
            wait_max: seconds(90),
            outage: seconds(60),
        };
        let now = Instant::now();
        assert!(policy.next_wait(4, now, false).is_some());
        assert_eq!(policy.next_wait(5, now, false), None);
        assert!(
            policy
                .next_wait(50, now, true)
                .is_some_and(|wait| wait <= seconds(5))
        );
        if let Some(long_ago) = now.checked_sub(seconds(61)) {
            assert_eq!(policy.next_wait(50, long_ago, true), None);
        }
    }
}
