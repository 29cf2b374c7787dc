//! What the worker is about to do and what it tells the server: draining, maintenance, slots.

use crate::airflow::edge::{WorkerSetStateReturn, WorkerState};

/// The worker's own view of itself, moved by signals and by the server's answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// No new jobs; ends when the running ones have ended.
    pub draining: bool,
    /// No new jobs until the server says otherwise.
    pub maintenance: bool,
    /// Why maintenance, in an administrator's words.
    pub maintenance_comments: Option<String>,
    /// Queues to serve; `None` is every queue.
    pub queues: Option<Vec<String>>,
    /// Slots.
    pub concurrency: u32,
    /// Slots the worker was started with.
    own_concurrency: u32,
}

/// What a heartbeat's answer changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The server sees another state than the one reported: report again soon.
    pub disagreement: bool,
    /// The server asks the worker to shut down.
    pub shutdown: bool,
}

impl Mode {
    /// A worker that has just started.
    #[must_use]
    pub fn new(queues: Option<Vec<String>>, concurrency: u32) -> Self {
        Self {
            draining: false,
            maintenance: false,
            maintenance_comments: None,
            queues,
            concurrency,
            own_concurrency: concurrency,
        }
    }

    /// The state to report with this many jobs running.
    #[must_use]
    pub fn state(&self, jobs: usize) -> WorkerState {
        match (jobs > 0, self.draining, self.maintenance) {
            (true, true, _) => WorkerState::Terminating,
            (true, false, true) => WorkerState::MaintenancePending,
            (true, false, false) => WorkerState::Running,
            (false, true, true) => WorkerState::OfflineMaintenance,
            (false, true, false) => WorkerState::Offline,
            (false, false, true) => WorkerState::MaintenanceMode,
            (false, false, false) => WorkerState::Idle,
        }
    }

    /// May jobs be fetched?
    #[must_use]
    pub fn takes_jobs(&self) -> bool {
        !self.draining && !self.maintenance
    }

    /// Follows the server's answer to a heartbeat that reported `sent`.
    pub fn follow(&mut self, sent: WorkerState, answer: &WorkerSetStateReturn) -> Changes {
        // The answer to a heartbeat from before maintenance began says nothing about it.
        let informed = matches!(
            sent,
            WorkerState::MaintenancePending | WorkerState::MaintenanceMode
        ) || answer.state == WorkerState::MaintenanceRequest;
        match answer.state {
            WorkerState::MaintenanceRequest => self.maintenance = true,
            WorkerState::Idle | WorkerState::Running if informed => self.maintenance = false,
            WorkerState::ShutdownRequest => self.draining = true,
            _ => {}
        }
        if !self.maintenance {
            self.maintenance_comments = None;
        } else if informed {
            self.maintenance_comments
                .clone_from(&answer.maintenance_comments);
        }
        self.queues.clone_from(&answer.queues);
        self.concurrency = answer.concurrency.unwrap_or(self.own_concurrency);
        Changes {
            disagreement: answer.state != sent,
            shutdown: answer.state == WorkerState::ShutdownRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn answer(state: WorkerState) -> WorkerSetStateReturn {
        WorkerSetStateReturn {
            state,
            queues: Some(vec!["agents".into()]),
            maintenance_comments: None,
            concurrency: None,
            versions_match: None,
        }
    }

    #[test]
    fn the_reported_state_follows_from_jobs_drain_and_maintenance() {
        let mut mode = Mode::new(None, 4);
        assert_eq!(
            (mode.state(0), mode.state(2)),
            (WorkerState::Idle, WorkerState::Running)
        );
        mode.maintenance = true;
        assert_eq!(
            (mode.state(0), mode.state(2)),
            (
                WorkerState::MaintenanceMode,
                WorkerState::MaintenancePending
            )
        );
        mode.draining = true;
        assert_eq!(
            (mode.state(0), mode.state(2)),
            (WorkerState::OfflineMaintenance, WorkerState::Terminating)
        );
        mode.maintenance = false;
        assert_eq!(
            (mode.state(0), mode.state(2)),
            (WorkerState::Offline, WorkerState::Terminating)
        );
    }

    #[test]
    fn a_maintenance_request_stops_fetching_until_the_server_ends_it() {
        let mut mode = Mode::new(None, 4);
        let request = WorkerSetStateReturn {
            maintenance_comments: Some("disk".into()),
            ..answer(WorkerState::MaintenanceRequest)
        };
        assert!(mode.follow(WorkerState::Idle, &request).disagreement);
        assert!(!mode.takes_jobs());
        assert_eq!(mode.maintenance_comments.as_deref(), Some("disk"));
        assert!(
            !mode
                .follow(
                    WorkerState::MaintenanceMode,
                    &answer(WorkerState::MaintenanceMode)
                )
                .disagreement
        );
        assert!(
            mode.follow(WorkerState::MaintenanceMode, &answer(WorkerState::Idle))
                .disagreement
        );
        assert!(mode.takes_jobs());
        assert_eq!(mode.maintenance_comments, None);
    }

    #[test]
    fn maintenance_begun_here_outlasts_the_answer_to_a_heartbeat_from_before() {
        let mut mode = Mode::new(None, 4);
        mode.maintenance = true;
        mode.maintenance_comments = Some("disk".into());
        mode.follow(WorkerState::Idle, &answer(WorkerState::Idle));
        assert!(mode.maintenance);
        assert_eq!(mode.maintenance_comments.as_deref(), Some("disk"));
        mode.follow(
            WorkerState::MaintenanceMode,
            &answer(WorkerState::MaintenanceMode),
        );
        assert!(mode.maintenance);
        // Left here; the answer to the last heartbeat from within comes afterwards.
        mode.maintenance = false;
        mode.follow(
            WorkerState::MaintenanceMode,
            &answer(WorkerState::MaintenanceMode),
        );
        assert!(!mode.maintenance);
    }

    #[test]
    fn a_shutdown_request_drains() {
        let mut mode = Mode::new(None, 4);
        assert!(
            mode.follow(WorkerState::Running, &answer(WorkerState::ShutdownRequest))
                .shutdown
        );
        assert_eq!(mode.state(1), WorkerState::Terminating);
    }

    #[test]
    fn queues_and_concurrency_are_the_servers_to_decide() {
        let mut mode = Mode::new(Some(vec!["default".into()]), 4);
        mode.follow(
            WorkerState::Idle,
            &WorkerSetStateReturn {
                concurrency: Some(2),
                ..answer(WorkerState::Idle)
            },
        );
        assert_eq!(
            (mode.concurrency, mode.queues.clone()),
            (2, Some(vec!["agents".into()]))
        );
        mode.follow(WorkerState::Idle, &answer(WorkerState::Idle));
        assert_eq!(mode.concurrency, 4);
    }
}
