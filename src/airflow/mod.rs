//! Airflow's wire types and formats: plain data, parsing and printing. No HTTP, no processes.
//!
//! `serde_json` runs with `arbitrary_precision` here, because XComs hold integers of any size. Tagged enums must
//! therefore be read with `serde_json::from_value`, never straight from text (buffered numbers would not parse).

pub mod bundle;
pub mod config;
pub mod connection;
pub mod edge;
pub mod error_chain;
pub mod executable_bundle;
pub mod execution;
pub mod frame;
pub mod python_text;
pub mod supervisor;
pub mod task_log;
pub mod url_text;
pub mod xcom;
pub mod yaml;
