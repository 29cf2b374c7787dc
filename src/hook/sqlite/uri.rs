//! Where a SQLite connection points, as the Airflow sqlite provider reads its fields.

use std::fmt::Write;

use serde_json::Value;

use crate::airflow::connection::Connection;

/// The SQLite URI of a connection: `file:` and the host as a path, and the extra's text values as parameters.
///
/// A relative path counts from the working directory. Login, password and port, which the Python hook pastes into
/// the path, have no meaning for a file and are left out.
pub(super) fn sqlite_uri(connection: &Connection) -> String {
    let host = connection.host.as_deref().unwrap_or_default();
    let host = host.strip_prefix("sqlite://").unwrap_or(host);
    let mut uri = if host.starts_with("file:") {
        host.to_owned()
    } else {
        format!("file:{}", escaped(host))
    };
    if let Some(schema) = connection
        .schema
        .as_deref()
        .filter(|schema| !schema.is_empty())
    {
        uri.push('/');
        uri.push_str(&escaped(schema));
    }
    let extra = connection
        .extra
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    if let Some(Value::Object(parameters)) = extra {
        for (name, value) in &parameters {
            if let Value::String(value) = value {
                let separator = if uri.contains('?') { '&' } else { '?' };
                // Writing to a String can't fail.
                let _ = write!(uri, "{separator}{}={}", escaped(name), escaped(value));
            }
        }
    }
    uri
}

/// SQLite decodes `%XX` in a URI and ends the path at `?` and `#`. The provider hands the host over as it is, so a
/// `?` in it starts parameters there as here; a `#` belongs to the name.
fn escaped(text: &str) -> String {
    text.replace('#', "%23")
}

/// Whether the URI names a database that lives in memory only.
pub(super) fn is_memory(uri: &str) -> bool {
    let path = uri.strip_prefix("file:").unwrap_or(uri);
    let (path, parameters) = path.split_once('?').unwrap_or((path, ""));
    path.is_empty()
        || path == ":memory:"
        || parameters
            .split('&')
            .any(|parameter| parameter == "mode=memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(host: &str, extra: Option<&str>) -> String {
        sqlite_uri(&Connection {
            conn_type: "sqlite".to_owned(),
            host: Some(host.to_owned()),
            extra: extra.map(str::to_owned),
            ..Connection::default()
        })
    }

    #[test]
    fn the_host_is_the_path_and_text_extras_are_parameters() {
        assert_eq!(uri("/srv/a b.db", None), "file:/srv/a b.db");
        assert_eq!(uri("./rel.db", None), "file:./rel.db");
        assert_eq!(
            uri("/srv/x.db", Some(r#"{"mode":"ro","n":1}"#)),
            "file:/srv/x.db?mode=ro"
        );
        assert_eq!(uri("/srv/x#y.db", None), "file:/srv/x%23y.db");
    }

    #[test]
    fn a_file_uri_in_the_host_is_kept() {
        assert_eq!(
            uri("file:///srv/x.db?mode=ro", None),
            "file:///srv/x.db?mode=ro"
        );
        assert_eq!(
            uri("file:x.db?mode=ro", Some(r#"{"cache":"shared"}"#)),
            "file:x.db?mode=ro&cache=shared"
        );
    }

    #[test]
    fn databases_in_memory_are_recognised() {
        assert!(is_memory("file::memory:"));
        assert!(is_memory("file:"));
        assert!(is_memory("file:x?cache=shared&mode=memory"));
        assert!(!is_memory("file:/srv/x.db"));
    }
}
