//! Processes that a task has started and that have left its process group, such as daemons: found by a mark in their
//! environment, which every process inherits unless it takes pains not to.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that holds the mark.
const VARIABLE: &str = "UPDRAFT_TASK_PROCESS";

/// How often strays are looked for: one may be starting another.
const LOOKS: usize = 5;

/// What the processes of one try have in their environment.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// One that no other process has.
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// The variable to start a task process with.
    pub fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.0)
    }

    /// Kills every process that has the mark, and returns how many there were. Blocks for some milliseconds.
    pub fn kill_all(&self) -> usize {
        let wanted = format!("{VARIABLE}={}", self.0);
        let mut killed = std::collections::BTreeSet::new();
        for _ in 0..LOOKS {
            let found: Vec<_> = processes().filter(|pid| has(*pid, &wanted)).collect();
            if found.is_empty() {
                break;
            }
            for pid in found {
                // One that has just ended is as good as killed.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                killed.insert(pid);
            }
        }
        killed.len()
    }
}

fn processes() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Is this variable in the environment that the process was started with? (That of a process which has ended is empty.)
fn has(pid: i32, wanted: &str) -> bool {
    std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).is_ok_and(|variables| {
        variables
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn processes_with_the_mark_are_killed_and_others_are_not() {
        let (mark, other) = (Mark::new(), Mark::new());
        let start = |mark: &Mark| {
            let (name, value) = mark.variable();
            Command::new("sleep")
                .arg("60")
                .env(name, value)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let (mut stray, mut stranger) = (start(&mark), start(&other));
        assert_eq!(mark.kill_all(), 1);
        assert!(!stray.wait().unwrap().success());
        assert!(stranger.try_wait().unwrap().is_none());
        assert_eq!(other.kill_all(), 1);
        stranger.wait().unwrap();
        assert_eq!(mark.kill_all(), 0);
    }
}
