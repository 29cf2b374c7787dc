//! The one integration binary: a module for each subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that can't go on fails, and says where"
)]

mod agents_of_dag_code;
mod bash_tasks;
mod capabilities;
mod confinement;
mod dag_calls;
mod dag_code;
mod dag_constructors;
mod dag_files;
mod dag_host;
mod dag_packages;
mod databases;
mod datafusion;
mod datafusion_stores;
mod deferral;
mod hostile_inputs;
mod iceberg;
mod llm_tasks;
mod local_run;
mod mcp;
mod native_hooks;
mod object_stores;
mod openai_agents;
mod openai_agents_durable;
mod openai_agents_tools;
mod parity;
mod python_toolsets;
mod recordings;
mod retry_policies;
mod rust_tasks;
mod secrets_backends;
mod servers;
mod skills;
mod sql_against_sqlite;
mod sql_check;
mod sql_corpus;
mod sql_generated;
mod sql_hostile;
mod task_bodies;
mod task_process;
