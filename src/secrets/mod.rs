//! The masker, and the places on a worker that secrets come from before the control plane is asked.
//!
//! What may not go in here: anything that knows tasks or asks a server of Airflow's (`control_plane::resolve`).

pub mod backend;
pub mod environment;
pub mod masker;
pub mod search_path;

pub use backend::{BackendError, SecretsBackend};
pub use masker::Masker;
pub use search_path::SearchPath;
