//! Model providers behind [`crate::agent::Model`]. One file knows the wire of each provider; nothing else does.
//!
//! What may not go in here: anything about tasks, logs or tools; how a connection is looked up.

mod anthropic;
mod aws_signature;
mod bedrock;
pub mod choice_error;
mod cohere;
mod connect;
mod conversation;
pub mod endpoint;
pub mod exchange;
pub mod fallback;
mod gemini;
mod google_token;
pub mod http;
mod llm_connection;
pub mod openai;
pub mod own_apis;
pub mod prefixes;
mod prices;
pub mod recording;
pub mod resolve;
pub mod scripted;
mod server_sent_events;
mod test_model;
mod thinking;
mod tool_files;
#[cfg(test)]
mod wire_tests;
