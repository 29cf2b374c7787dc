//! `updraft worker status`, `drain` and `maintenance`: commands to a worker that runs on this machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;

use crate::airflow::config::Config;
use crate::airflow::edge::WorkerState;
use crate::worker::control::{self, Command as Told, ControlError};
use crate::worker::{Status, hostname};

/// Between two looks at a worker that is waited for.
const LOOK: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say what the worker does: its state, slots, queues and jobs.
    Status {
        #[command(flatten)]
        whom: Whom,
        /// Print one JSON object, with the fields of `airflow edge status` and more.
        #[arg(long)]
        json: bool,
    },
    /// Let the running tasks finish, take no new ones, and end; as SIGTERM does.
    #[command(visible_alias = "stop")]
    Drain {
        #[command(flatten)]
        whom: Whom,
        /// Terminate the running tasks instead of waiting for them.
        #[arg(long)]
        now: bool,
        /// Return when the worker has ended.
        #[arg(short, long)]
        wait: bool,
    },
    /// Take no new tasks for the time being (on), or take them again (off).
    Maintenance {
        #[command(subcommand)]
        switch: Switch,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum Switch {
    /// Let the running tasks finish and take no new ones.
    On {
        #[command(flatten)]
        whom: Whom,
        /// Why; shown on Airflow's page of edge workers.
        #[arg(short, long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
        comments: String,
        /// Return when no task runs any more.
        #[arg(short, long)]
        wait: bool,
    },
    /// Take tasks again.
    Off {
        #[command(flatten)]
        whom: Whom,
        /// Return when Airflow knows.
        #[arg(short, long)]
        wait: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Whom {
    /// The worker's name [default: that of the only worker with this AIRFLOW_HOME].
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
}

/// A worker that can be spoken to.
struct Worker {
    home: PathBuf,
    name: String,
}

impl Worker {
    fn find(whom: Whom) -> Result<Self, ControlError> {
        let home = Config::from_env().airflow_home().to_owned();
        let name = control::choose(&home, whom.worker_name, hostname())?;
        Ok(Self { home, name })
    }

    fn tell(&self, told: &Told) -> Result<Status, ControlError> {
        control::ask(&self.home, &self.name, told)
    }

    /// Waits until the worker is as wanted. `false`: it has ended meanwhile.
    fn wait(&self, wanted: impl Fn(&Status) -> bool) -> Result<bool, ControlError> {
        loop {
            match self.tell(&Told::Status) {
                Ok(status) if wanted(&status) => return Ok(true),
                Ok(_) => sleep(LOOK),
                Err(ControlError::NotRunning { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Status { whom, json } => {
            let status = Worker::find(whom)?.tell(&Told::Status)?;
            if json {
                outln!("{}", serde_json::to_string_pretty(&status)?);
            } else {
                print(&status);
            }
        }
        Command::Drain { whom, now, wait } => {
            let worker = Worker::find(whom)?;
            let told = if now { Told::Terminate } else { Told::Drain };
            let status = worker.tell(&told)?;
            if wait {
                worker.wait(|_| false)?;
                outln!("{}: ended", worker.name);
            } else {
                print(&status);
            }
        }
        Command::Maintenance {
            switch:
                Switch::On {
                    whom,
                    comments,
                    wait,
                },
        } => {
            let worker = Worker::find(whom)?;
            let comments = signed(&comments);
            let mut status = worker.tell(&Told::EnterMaintenance { comments })?;
            if wait {
                let quiet = |status: &Status| status.job_count == 0 || !status.maintenance;
                if !worker.wait(quiet)? {
                    anyhow::bail!("the worker {:?} has ended", worker.name);
                }
                status = worker.tell(&Told::Status)?;
                if !status.maintenance {
                    anyhow::bail!("somebody else has ended the maintenance");
                }
            }
            print(&status);
        }
        Command::Maintenance {
            switch: Switch::Off { whom, wait },
        } => {
            let worker = Worker::find(whom)?;
            let mut status = worker.tell(&Told::LeaveMaintenance)?;
            if wait {
                // The heartbeat that says so is on its way; one that is younger than that has been answered.
                sleep(LOOK);
                let told = |status: &Status| status.heartbeat_age.is_some_and(|age| age < 5.0);
                if !worker.wait(told)? {
                    anyhow::bail!("the worker {:?} has ended", worker.name);
                }
                status = worker.tell(&Told::Status)?;
            }
            print(&status);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The reason with its author and time, as Airflow's own command writes it.
fn signed(comments: &str) -> String {
    let user = match nix::unistd::User::from_uid(nix::unistd::geteuid()) {
        Ok(Some(user)) => user.name,
        _ => nix::unistd::geteuid().to_string(),
    };
    let now = chrono::Local::now().format("%Y-%m-%d %H:%M");
    format!("[{now}] - {user} on the worker's host: {comments}")
}

fn print(status: &Status) {
    let queues = status
        .queues
        .as_ref()
        .map_or_else(|| "every queue".to_owned(), |queues| queues.join(", "));
    outln!(
        "{}: {}{}, process {}",
        status.worker_name,
        status.state,
        match (status.registered, status.drain) {
            (false, _) => " (waits for the server)",
            (true, true) if status.state != WorkerState::Offline => " (ends with its last task)",
            _ => "",
        },
        status.pid
    );
    outln!(
        "slots: {} of {} free; queues: {queues}",
        status.free_concurrency,
        status.concurrency
    );
    if let Some(comments) = &status.maintenance_comments {
        outln!("maintenance: {comments}");
    }
    match status.heartbeat_age {
        Some(age) => outln!("last heartbeat: {age:.0} s ago"),
        None => outln!("last heartbeat: none yet"),
    }
    for job in &status.jobs {
        let mapped = if job.map_index >= 0 {
            format!(" [{}]", job.map_index)
        } else {
            String::new()
        };
        outln!(
            "  {}.{} {}{mapped} try {}, for {:.0} s",
            job.dag_id,
            job.task_id,
            job.run_id,
            job.try_number,
            job.seconds
        );
    }
}
