//! One file per command. Only this folder and `main.rs` print for a person.
