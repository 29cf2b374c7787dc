//! The masker, and the places on a worker that secrets come from before the control plane is asked.
//!
//! What may not go in here: anything that knows tasks or asks a server for a connection (`control_plane::resolve`).

pub mod environment;
pub mod masker;

pub use masker::Masker;
