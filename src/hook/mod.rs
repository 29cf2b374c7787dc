//! Native hooks and the database drivers behind them, shared with `toolset/sql`.
//!
//! A driver reads a connection's fields as the Airflow provider of its type does. Nothing here knows of agents, tools
//! or the guard: a driver runs what it is given, within the [`Access`] it was opened with.

pub mod blocking;
mod called_functions;
mod connect;
mod database;
#[cfg(feature = "duckdb")]
pub mod duckdb;
pub mod http;
pub mod local_storage;
pub mod mssql;
pub mod mysql;
pub mod object_store;
pub mod parameters;
pub mod postgres;
pub(crate) mod python_value;
mod script;
mod session_slot;
pub mod shell;
pub mod slack;
pub mod smtp;
pub mod sqlite;
pub mod table_keys;

pub use connect::{ConnectionError, ConnectionSource, connect};
pub use database::{Access, Cell, Column, Database, DatabaseError, ResultSet, TableFilter};
pub use script::{Script, ScriptStatement};
