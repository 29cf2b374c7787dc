//! The task process: one try of one task, from its start-up details to its terminal message.

pub mod arguments;
pub mod comms;
pub mod host;
pub mod context;
pub mod log;
pub mod mapping;
pub mod rendered_fields;
pub mod services;
pub mod templates;
pub mod xcom_push;

#[cfg(test)]
mod context_tests;
