//! One try of one task, seen from outside the task process: starting it, answering its requests, keeping its log,
//! and delivering its final state. Everything here works with any [`ControlPlane`](crate::control_plane::ControlPlane)
//! and any [`LogSink`]; nothing here knows the Edge API.

pub mod cgroup;
pub mod heartbeat;
mod lines;
mod peer;
mod run;
mod serve;
mod strays;
mod task_log;
mod task_process;

pub use run::{
    FinalState, Limits, Outcome, StopReason, StopSender, StopSignal, SupervisedTask, run_task,
    stop_channel,
};
pub use task_log::{LogSink, TaskLog};
pub use task_process::{ConnectError, TaskCommand, TaskProcess, is_withheld};
