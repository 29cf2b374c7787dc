//! Limits of memory and CPU for each task process, by control groups (cgroup v2). The worker must be allowed to make
//! groups below its own: a systemd unit with `Delegate=yes`, or root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::airflow::config::{Config, ConfigError};

/// The group that the worker itself moves to: a group with members can't hand controllers on.
const WORKER: &str = "updraft-worker";
/// How the groups of tasks are called.
const TASK: &str = "updraft-task-";
/// The period that shares of a CPU are measured over, in microseconds.
const PERIOD: u64 = 100_000;

/// What a task process and all that it starts may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allowance {
    /// `[updraft] task_memory_max`, in bytes.
    pub memory: Option<u64>,
    /// `[updraft] task_cpu_max`, in CPUs.
    pub cpus: Option<f64>,
}

impl Allowance {
    /// As it is configured.
    ///
    /// # Errors
    /// An option that is no amount.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let read = |key: &str, expected: &str| {
            config
                .text("updraft", key)?
                .map(|text| amount(&text).ok_or_else(|| config.invalid("updraft", key, expected)))
                .transpose()
        };
        Ok(Self {
            memory: read("task_memory_max", "bytes, such as 512M or 2G")?.map(|bytes| bytes as u64),
            cpus: read("task_cpu_max", "a number of CPUs, such as 0.5 or 2")?,
        })
    }

    fn is_none(&self) -> bool {
        self.memory.is_none() && self.cpus.is_none()
    }

    fn controllers(&self) -> String {
        let mut names = Vec::new();
        if self.memory.is_some() {
            names.push("+memory");
        }
        if self.cpus.is_some() {
            names.push("+cpu");
        }
        names.join(" ")
    }
}

/// A positive number with an optional K, M, G or T (of 1024).
fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (text.get(..text.len() - 1)?, 1024.0),
        'M' => (text.get(..text.len() - 1)?, 1024.0 * 1024.0),
        'G' => (text.get(..text.len() - 1)?, 1024.0 * 1024.0 * 1024.0),
        'T' => (
            text.get(..text.len() - 1)?,
            1024.0 * 1024.0 * 1024.0 * 1024.0,
        ),
        _ => (text, 1.0),
    };
    let number: f64 = digits.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number * factor)
}

/// Why tasks can't be limited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The system has no cgroup v2.
    #[error("this system has no cgroup v2")]
    Unavailable,
    /// A group can't be made or set.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was written or made.
        path: PathBuf,
        /// Why it could not be.
        #[source]
        source: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Io { path, source }
}

fn set(group: &Path, file: &str, value: &str) -> Result<(), CgroupError> {
    let path = group.join(file);
    // Never made: a file that is not there is a controller that is not there.
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
        .map_err(at(&path))
}

/// The worker's group, in which each task gets one.
#[derive(Debug)]
pub struct Cgroups {
    parent: PathBuf,
    allowance: Allowance,
    /// Groups that could not be removed yet, because their last process was still ending.
    leftovers: Mutex<Vec<PathBuf>>,
}

impl Cgroups {
    /// Makes ready for tasks with limits; `None` when there is nothing to limit.
    ///
    /// # Errors
    /// The worker may not make groups, or the system has none.
    pub fn prepare(allowance: Allowance) -> Result<Option<Self>, CgroupError> {
        if allowance.is_none() {
            return Ok(None);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let parent = own_group(&mounts, &own).ok_or(CgroupError::Unavailable)?;
        Self::below(parent, allowance, std::process::id()).map(Some)
    }

    fn below(parent: PathBuf, allowance: Allowance, worker: u32) -> Result<Self, CgroupError> {
        let leaf = parent.join(WORKER);
        match fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(&leaf)(error));
            }
            _ => {}
        }
        set(&leaf, "cgroup.procs", &worker.to_string())?;
        set(&parent, "cgroup.subtree_control", &allowance.controllers())?;
        Ok(Self {
            parent,
            allowance,
            leftovers: Mutex::default(),
        })
    }

    /// Puts a process that has just started into a group of its own.
    ///
    /// # Errors
    /// The group can't be made or set.
    pub(super) fn take(&self, pid: u32) -> Result<TaskGroup, CgroupError> {
        self.leftovers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|path| fs::remove_dir(path).is_err());
        let path = self.parent.join(format!("{TASK}{pid}"));
        fs::create_dir(&path).map_err(at(&path))?;
        let group = TaskGroup { path };
        if let Some(bytes) = self.allowance.memory {
            set(&group.path, "memory.max", &bytes.to_string())?;
            // All of the task ends, not the process that asked last. What could be swapped out is no limit.
            for (file, value) in [("memory.oom.group", "1"), ("memory.swap.max", "0")] {
                if let Err(error) = set(&group.path, file, value) {
                    tracing::debug!(%error, "a control group is set in part");
                }
            }
        }
        if let Some(cpus) = self.allowance.cpus {
            let quota = (cpus * PERIOD as f64) as u64;
            let quota = quota.max(1000);
            set(&group.path, "cpu.max", &format!("{quota} {PERIOD}"))?;
        }
        set(&group.path, "cgroup.procs", &pid.to_string())?;
        Ok(group)
    }

    /// Ends what is left of a task, and its group.
    pub(super) fn clear(&self, group: &TaskGroup) {
        // Kernels before 5.14 have no such file; the process group is killed in any case.
        let _ = set(&group.path, "cgroup.kill", "1");
        if fs::remove_dir(&group.path).is_err() {
            self.leftovers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(group.path.clone());
        }
    }

    /// Was a process of the group killed because the group used more memory than it may?
    pub(super) fn ran_out_of_memory(&self, group: &TaskGroup) -> Option<u64> {
        let events = fs::read_to_string(group.path.join("memory.events")).ok()?;
        let killed = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())?;
        (killed > 0).then_some(self.allowance.memory).flatten()
    }
}

/// The group of one task.
#[derive(Debug)]
pub(super) struct TaskGroup {
    path: PathBuf,
}

/// Where this process's cgroup v2 is, by `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_v2 = after.split(' ').next()? == "cgroup2";
        let point = before.split(' ').nth(4)?;
        is_v2.then(|| PathBuf::from(point))
    })?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(mount.join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, expected) in [
            ("1024", Some(1024.0)),
            ("512M", Some(536_870_912.0)),
            (" 1.5 g ", Some(1_610_612_736.0)),
            ("0.5", Some(0.5)),
            ("0", None),
            ("-1G", None),
            ("much", None),
            ("", None),
        ] {
            assert_eq!(amount(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_own_group_is_found_beside_groups_of_the_first_version() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                      40 30 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/elsewhere\n0::/system.slice/updraft.service\n";
        assert_eq!(
            own_group(mounts, own),
            Some("/sys/fs/cgroup/unified/system.slice/updraft.service".into())
        );
        assert_eq!(own_group("", own), None);
        assert_eq!(own_group(mounts, "4:memory:/x\n"), None);
    }

    /// A folder with the files that the kernel would put there.
    fn group(path: &Path, files: &[&str]) {
        fs::create_dir_all(path).unwrap();
        for file in files {
            fs::write(path.join(file), "").unwrap();
        }
    }

    #[test]
    fn a_group_without_the_controller_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        group(folder.path(), &[]);
        group(&folder.path().join(WORKER), &["cgroup.procs"]);
        let allowance = Allowance {
            memory: Some(1 << 30),
            cpus: None,
        };
        let error = Cgroups::below(folder.path().to_owned(), allowance, 7).unwrap_err();
        assert!(
            error.to_string().contains("cgroup.subtree_control"),
            "{error}"
        );
        group(folder.path(), &["cgroup.subtree_control"]);
        let groups = Cgroups::below(folder.path().to_owned(), allowance, 7).unwrap();
        let controllers = fs::read_to_string(folder.path().join("cgroup.subtree_control"));
        assert_eq!(controllers.unwrap(), "+memory");
        let error = groups.take(8).unwrap_err();
        assert!(error.to_string().contains("memory.max"), "{error}");
    }

    #[test]
    fn what_the_kernel_killed_for_memory_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let groups = Cgroups {
            parent: folder.path().to_owned(),
            allowance: Allowance {
                memory: Some(4096),
                cpus: Some(0.5),
            },
            leftovers: Mutex::default(),
        };
        let task = TaskGroup {
            path: folder.path().join("t"),
        };
        group(&task.path, &["memory.events"]);
        assert_eq!(groups.ran_out_of_memory(&task), None);
        fs::write(
            task.path.join("memory.events"),
            "low 0\noom 1\noom_kill 1\n",
        )
        .unwrap();
        assert_eq!(groups.ran_out_of_memory(&task), Some(4096));
        // Not empty: it stays for the next look.
        groups.clear(&task);
        assert_eq!(groups.leftovers.lock().unwrap().len(), 1);
    }

    #[test]
    fn nothing_is_made_ready_when_nothing_is_limited() {
        assert!(Cgroups::prepare(Allowance::default()).unwrap().is_none());
    }
}
