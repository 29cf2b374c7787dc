//! The edge worker: registration, heartbeat, fetch, slots and drain; which runtime runs a job. What happens inside one
//! job is the supervisor's, or that of the Python beside the worker.

pub mod control;
mod dag_index;
mod edge_api;
mod executables;
mod http;
mod job;
mod log_file;
mod log_push;
mod metrics;
mod process_tree;
mod python;
mod runtimes;
mod service;
mod settings;
mod state;
mod status;
mod systemd;
mod versions;

pub use dag_index::{DagIndex, Verdict};
pub use edge_api::{EdgeApi, EdgeError, Signing};
pub use executables::{Executables, UnusableBundles};
pub use log_file::{LogFile, LogFileError, LogFolder};
pub use metrics::Metrics;
pub use python::{PythonError, PythonRuntime};
pub use runtimes::{Runtime, Runtimes};
pub use service::{WorkerError, run};
pub use settings::{Settings, SettingsError, hostname};
pub use status::{JobStatus, Status};
pub use versions::Versions;
