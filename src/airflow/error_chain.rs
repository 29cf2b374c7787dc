//! The text of an error with its causes.

use std::error::Error;

/// An error and its causes, separated by colons. HTTP libraries in particular keep what matters for the causes. A cause
/// that the text holds already is not said twice.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        cause: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Option<Box<Layer>> {
        let (text, rest) = texts.split_first()?;
        Some(Box::new(Layer {
            text,
            cause: layers(rest),
        }))
    }

    #[test]
    fn causes_follow_and_none_is_said_twice() {
        let error = layers(&["sending failed", "connect error: refused", "refused", "x"]).unwrap();
        assert_eq!(
            error_chain(&*error),
            "sending failed: connect error: refused: x"
        );
    }
}
