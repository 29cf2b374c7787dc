//! The Dag interpreter: reads a Dag file with an embedded Python and hands back plain data.

pub mod definitions;
mod error;
mod files;
mod frozen;
mod function_names;
mod guarded_imports;
pub mod host;
mod interpreter;
mod native;
mod nesting;
mod posix;
mod source;
mod vm;
mod world;

pub use error::{LoadError, PythonError, TraceFrame};
pub use interpreter::{Interpreter, Interruption, LoadOptions, Served};
