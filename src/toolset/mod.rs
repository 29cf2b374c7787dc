//! Toolsets: what an agent may call. One folder or file each; wrappers are toolsets around toolsets.

pub mod sql;
