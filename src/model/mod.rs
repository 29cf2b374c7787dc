//! Model providers behind [`crate::agent::Model`]. One file knows the wire of each provider; nothing else does.
//!
//! What may not go in here: anything about tasks, logs or tools; how a connection is looked up.

pub mod chat_providers;
pub mod fallback;
pub mod genai;
pub mod http;
pub mod openai_chat;
mod openai_profile;
mod openai_schema;
mod prices;
pub mod recording;
pub mod resolve;
pub mod scripted;
mod tool_files;
