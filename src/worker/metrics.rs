//! Figures of a worker in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::status::Snapshot;

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 16] = [
    0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];

/// What has been counted since the worker started.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Jobs that have ended, by the state of the task instance, or by why there is none.
    ended: BTreeMap<&'static str, u64>,
    jobs: Histogram,
    overhead: Histogram,
    failed_requests: u64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS) {
            if seconds <= bound {
                *bucket += 1;
            }
        }
        self.count += 1;
        self.sum += seconds;
    }

    fn write(&self, text: &mut String, name: &str, help: &str) {
        head(text, name, "histogram", help);
        for (count, bound) in self.buckets.iter().zip(BUCKETS) {
            line(text, &format!("{name}_bucket{{le=\"{bound}\"}}"), count);
        }
        line(text, &format!("{name}_bucket{{le=\"+Inf\"}}"), self.count);
        line(text, &format!("{name}_sum"), self.sum);
        line(text, &format!("{name}_count"), self.count);
    }
}

impl Metrics {
    /// Counts a job that has ended after `took`, of which its task process had `in_process`.
    pub(super) fn job_ended(
        &self,
        state: &'static str,
        took: Duration,
        in_process: Option<Duration>,
    ) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.ended.entry(state).or_default() += 1;
        if let Some(in_process) = in_process {
            counts.jobs.add(took);
            counts.overhead.add(took.saturating_sub(in_process));
        }
    }

    /// Counts a heartbeat, registration or fetch that got no good answer.
    pub(super) fn request_failed(&self) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.failed_requests += 1;
    }

    /// Everything there is to tell, with what the worker does at the moment.
    pub(super) fn render(&self, now: &Snapshot) -> String {
        let status = now.now();
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let out = &mut text;
        head(out, "updraft_build_info", "gauge", "The running version.");
        line(
            out,
            concat!(
                "updraft_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"}"
            ),
            1,
        );
        let state = status.state.to_string();
        head(
            out,
            "updraft_worker_state",
            "gauge",
            "1 for the state that the server is told.",
        );
        line(
            out,
            &format!("updraft_worker_state{{state=\"{state}\"}}"),
            1,
        );
        for (name, help, value) in [
            (
                "updraft_worker_registered",
                "Whether the server knows this worker.",
                u64::from(status.registered),
            ),
            (
                "updraft_slots",
                "Tasks that may run at a time.",
                u64::from(status.concurrency),
            ),
            (
                "updraft_slots_free",
                "Slots that no task takes.",
                u64::from(status.free_concurrency),
            ),
            (
                "updraft_jobs_running",
                "Jobs that run now.",
                status.job_count as u64,
            ),
        ] {
            head(out, name, "gauge", help);
            line(out, name, value);
        }
        if let Some(age) = status.heartbeat_age {
            let name = "updraft_heartbeat_age_seconds";
            head(
                out,
                name,
                "gauge",
                "Seconds since the server last took a heartbeat.",
            );
            line(out, name, age);
        }
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Memory of the worker itself, without its tasks.",
                resident_memory(),
            ),
            (
                "process_open_fds",
                "Open files and sockets of the worker itself.",
                open_files(),
            ),
        ] {
            if let Some(value) = value {
                head(out, name, "gauge", help);
                line(out, name, value);
            }
        }
        head(
            out,
            "updraft_jobs_total",
            "counter",
            "Jobs that have ended, by the state of their task instance.",
        );
        for (state, count) in &counts.ended {
            line(
                out,
                &format!("updraft_jobs_total{{state=\"{state}\"}}"),
                count,
            );
        }
        head(
            out,
            "updraft_requests_failed_total",
            "counter",
            "Heartbeats, registrations and fetches that got no good answer.",
        );
        line(out, "updraft_requests_failed_total", counts.failed_requests);
        counts.jobs.write(
            out,
            "updraft_job_seconds",
            "From the arrival of a job until the server knew its end.",
        );
        counts.overhead.write(
            out,
            "updraft_job_overhead_seconds",
            "Of that, what was spent outside the task process: before it was told what to run, and after it had ended.",
        );
        text
    }
}

fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn open_files() -> Option<u64> {
    // The folder that is read is open as well.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some(open.saturating_sub(1))
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airflow::edge::WorkerState;

    #[test]
    fn buckets_count_what_is_within_them_and_a_job_without_a_process_has_no_duration() {
        let metrics = Metrics::default();
        let milliseconds = Duration::from_millis;
        metrics.job_ended("success", milliseconds(150), Some(milliseconds(130)));
        metrics.job_ended("success", milliseconds(900), Some(milliseconds(300)));
        metrics.job_ended("not_started", milliseconds(1), None);
        metrics.request_failed();
        let mut now = Snapshot::new("w", "");
        now.status.state = WorkerState::MaintenanceMode;
        now.status.concurrency = 8;
        now.status.free_concurrency = 7;
        let text = metrics.render(&now);
        for expected in [
            "updraft_worker_state{state=\"maintenance mode\"} 1",
            "updraft_slots 8",
            "updraft_slots_free 7",
            "updraft_jobs_total{state=\"not_started\"} 1",
            "updraft_jobs_total{state=\"success\"} 2",
            "updraft_requests_failed_total 1",
            "updraft_job_seconds_bucket{le=\"0.1\"} 0",
            "updraft_job_seconds_bucket{le=\"0.2\"} 1",
            "updraft_job_seconds_bucket{le=\"1\"} 2",
            "updraft_job_seconds_count 2",
            "updraft_job_overhead_seconds_bucket{le=\"0.025\"} 1",
            "updraft_job_overhead_seconds_bucket{le=\"+Inf\"} 2",
            "updraft_job_overhead_seconds_sum 0.62",
        ] {
            assert!(
                text.lines().any(|line| line == expected),
                "no {expected} in\n{text}"
            );
        }
        assert!(!text.contains("heartbeat_age"), "{text}");
        let figure = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        assert!(figure("process_resident_memory_bytes ") > 1_000_000);
        assert!(figure("process_open_fds ") > 2);
    }
}
