//! Options whose text is kept in a secrets backend (`_SECRET`, `_secret`).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Asks the secrets backend for the text of an option by the name that a `_SECRET` option gives. `None`: it has none.
type AskBackend = dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync;

/// The secrets backend, with what it has answered: it is asked once for each name.
#[derive(Clone)]
pub(super) struct SecretOptions {
    ask: Arc<AskBackend>,
    answers: Arc<Mutex<HashMap<String, Option<String>>>>,
}

impl fmt::Debug for SecretOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretOptions")
    }
}

impl SecretOptions {
    pub fn new(
        ask: impl Fn(&str) -> Result<Option<String>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            ask: Arc::new(ask),
            answers: Arc::default(),
        }
    }

    pub fn get(&self, name: &str) -> Result<Option<String>, String> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answers.get(name) {
            return Ok(answer.clone());
        }
        let answer = (self.ask)(name)?;
        answers.insert(name.to_owned(), answer.clone());
        Ok(answer)
    }
}
