//! The task process: one try of one task, from its start-up details to its terminal message.

pub mod arguments;
pub mod context;
pub mod services;
pub mod templates;

#[cfg(test)]
mod context_tests;
