//! OpenAI's two APIs, and the many servers that speak the older one.

mod chat;
pub mod chat_providers;
mod openrouter_cache;
mod profile;
mod responses;
mod responses_answer;
mod schema;

pub use chat::OpenAiChat;
pub use responses::OpenAiResponses;
