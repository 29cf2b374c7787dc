//! The edge worker: registration, heartbeat, fetch, slots and drain. What happens inside one job is the supervisor's.

mod edge_api;
mod job;
mod log_file;
mod log_push;
mod service;
mod settings;
mod state;

pub use edge_api::{EdgeApi, EdgeError, Signing};
pub use log_file::{LogFile, LogFileError, LogFolder};
pub use service::{Shutdown, WorkerError, run};
pub use settings::{Settings, SettingsError};
