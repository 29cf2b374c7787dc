//! What a store's answer says went wrong.

use object_store::Error;

use crate::airflow::error_chain::error_chain;

/// Why a request failed, for a person or a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    pub kind: FailureKind,
    /// The store's own words where it has some.
    pub text: String,
}

/// The kinds that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such object, bucket or container.
    NotFound,
    /// The credentials are missing, wrong, or not enough.
    Denied,
    /// The store, or its client, does not do this.
    Unsupported,
    /// The key can't be addressed.
    Path,
    Other,
}

/// Reads an error of the client. For requests that name no object the client itself tells the kinds apart by their text
/// only.
#[must_use]
pub fn failure(error: &Error) -> StoreFailure {
    let text = error_chain(error);
    let kind = match error {
        Error::NotFound { .. } => FailureKind::NotFound,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => FailureKind::Denied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => FailureKind::Unsupported,
        Error::InvalidPath { .. } => FailureKind::Path,
        _ if text.contains("404 Not Found") => FailureKind::NotFound,
        _ if text.contains("403 Forbidden") || text.contains("401 Unauthorized") => {
            FailureKind::Denied
        }
        _ => FailureKind::Other,
    };
    let text = match (element(&text, "Code"), element(&text, "Message")) {
        (Some(code), Some(message)) => {
            // Azure's message goes on with the number of the request and the time.
            format!("{code}: {}", message.lines().next().unwrap_or_default())
        }
        _ => text,
    };
    StoreFailure { kind, text }
}

/// The text of the first XML element of this name. The values of interest hold nothing that XML would escape.
pub(super) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_stores_own_words_are_kept_and_its_markup_is_not() {
        let answer = "Error performing list request: Server returned non-2xx status code: 404 Not Found: \
            <Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist\nTime:1</Message></Error>";
        let error = Error::Generic {
            store: "S3",
            source: answer.into(),
        };
        assert_eq!(
            failure(&error),
            StoreFailure {
                kind: FailureKind::NotFound,
                text: "NoSuchBucket: The specified bucket does not exist".to_owned()
            }
        );
    }

    #[test]
    fn without_words_of_the_store_the_causes_are_said() {
        let error = Error::Generic {
            store: "S3",
            source: "connection refused".into(),
        };
        assert_eq!(failure(&error).text, "Generic S3 error: connection refused");
    }
}
