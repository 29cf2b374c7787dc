//! Toolsets: what an agent may call. One folder or file each; wrappers are toolsets around toolsets.

mod avro_file;
pub mod combined;
pub mod datafusion;
pub mod deferred;
pub mod filtered;
pub mod logging;
pub mod masking;
pub mod mcp;
pub mod object_storage;
pub mod prefixed;
pub mod renamed;
pub mod skills;
pub mod sql;
pub mod work_folder;
pub mod wrapper;
