//! The edge worker: registration, heartbeat, fetch, slots and drain; which runtime runs a job. What happens inside one
//! job is the supervisor's, or that of the Python beside the worker.

mod dag_index;
mod edge_api;
mod executables;
mod job;
mod log_file;
mod log_push;
mod process_tree;
mod python;
mod runtimes;
mod service;
mod settings;
mod state;
mod versions;

pub use dag_index::{DagIndex, Verdict};
pub use edge_api::{EdgeApi, EdgeError, Signing};
pub use executables::{Executables, UnusableBundles};
pub use log_file::{LogFile, LogFileError, LogFolder};
pub use python::{PythonError, PythonRuntime};
pub use runtimes::{Runtime, Runtimes};
pub use service::{Shutdown, WorkerError, run};
pub use settings::{Settings, SettingsError};
pub use versions::Versions;
