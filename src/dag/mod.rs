//! The Dag interpreter: reads a Dag file with an embedded Python and hands back plain data.

pub mod definitions;
pub mod host;
