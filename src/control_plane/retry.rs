//! How often and after which waits a request to Airflow's API server is repeated.

use std::time::Duration;

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
}

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
        })
    }

    /// How long to wait after `failures` failures (1 is the first).
    #[must_use]
    pub fn wait(&self, failures: u32) -> Duration {
        let doubled = Duration::from_secs(
            1u64.checked_shl(failures.saturating_sub(1))
                .unwrap_or(u64::MAX),
        );
        let longest = doubled.max(self.wait_min).min(self.wait_max);
        let spread = longest.saturating_sub(self.wait_min);
        self.wait_min + spread.mul_f64(fastrand::f64())
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
}
