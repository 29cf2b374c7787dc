//! Model providers behind [`crate::agent::Model`]. One file knows the wire of each provider; nothing else does.
//!
//! What may not go in here: anything about tasks, logs or tools; how a connection is looked up.

mod anthropic;
mod anthropic_profile;
mod anthropic_response;
mod anthropic_schema;
mod aws_signature;
mod bedrock;
pub mod chat_providers;
mod cohere;
mod connect;
mod conversation;
pub mod endpoint;
pub mod fallback;
mod gemini;
mod gemini_answer;
mod gemini_profile;
mod gemini_schema;
mod google_token;
pub mod http;
mod llm_connection;
pub mod openai_chat;
mod openai_profile;
mod openai_responses;
mod openai_schema;
mod openrouter_cache;
pub mod own_apis;
mod prices;
pub mod recording;
pub mod resolve;
mod responses_answer;
pub mod scripted;
mod server_sent_events;
mod test_model;
mod thinking;
mod tool_files;
#[cfg(test)]
mod wire_tests;
