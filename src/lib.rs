//! Updraft: a worker runtime for Apache Airflow that runs LLM-agent tasks without CPython.
//!
//! The folders are floors; a module may use the floors below its own and never one above:
//!
//! `sdk > cli > worker > supervisor > task > dag > toolset > hook > agent, model > control_plane > secrets, telemetry > airflow`

pub mod agent;
pub mod airflow;
pub mod cli;
pub mod control_plane;
pub mod dag;
pub mod hook;
pub mod model;
pub mod sdk;
pub mod secrets;
pub mod supervisor;
pub mod task;
pub mod telemetry;
pub mod toolset;
pub mod worker;
