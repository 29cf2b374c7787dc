//! Files of an HTTP server; directories where it speaks WebDAV.

use object_store::client::ClientOptions;
use object_store::http::{HttpBuilder, HttpStore};
use object_store::{HeaderMap, HeaderValue};

use super::fields::Fields;
use super::{Location, StoreError, expect_type, is_plain_http, retries};
use crate::airflow::connection::Connection;

/// The server at the location. Login and password of a connection of type `http` are its basic authentication, and go
/// to the connection's own host only.
pub(super) fn open(
    location: &Location,
    connection: Option<&Connection>,
) -> Result<HttpStore, StoreError> {
    let server = &location.container;
    let mut options = ClientOptions::new().with_allow_http(is_plain_http(server));
    if let Some(connection) = connection {
        expect_type(location, connection, &["http"], "http")?;
        let fields = Fields::of(connection)?;
        let own = fields.host().unwrap_or_default();
        let (scheme, own) = match own.split_once("://") {
            Some((scheme, host)) => (Some(scheme), host),
            None => (connection.schema.as_deref(), own),
        };
        if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
            && is_plain_http(server)
        {
            return Err(fields.error(
                "host or schema",
                format!("says https, and its credentials are not sent to {server}"),
            ));
        }
        let own = match connection.port {
            Some(port) => format!("{}:{port}", own.trim_end_matches('/')),
            None => own.trim_end_matches('/').to_owned(),
        };
        let asked = server.split_once("://").map_or("", |(_, host)| host);
        if !own.eq_ignore_ascii_case(asked) {
            return Err(fields.error(
                "host",
                format!("is {own:?}, and its credentials are not sent to {asked}"),
            ));
        }
        if let Some(login) = fields.login() {
            let mut headers = HeaderMap::new();
            headers.insert(
                "authorization",
                basic(login, fields.password().unwrap_or_default(), &fields)?,
            );
            options = options.with_default_headers(headers);
        }
    }
    HttpBuilder::new()
        .with_url(server)
        .with_client_options(options)
        .with_retry(retries())
        .build()
        .map_err(|source| StoreError::Client {
            url: location.to_string(),
            source,
        })
}

fn basic(login: &str, password: &str, fields: &Fields<'_>) -> Result<HeaderValue, StoreError> {
    use base64::Engine as _;

    let text = base64::engine::general_purpose::STANDARD.encode(format!("{login}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {text}"))
        .map_err(|error| fields.error("login", error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_goes_to_the_connections_own_host_and_never_plainly_where_it_says_https() {
        let opened = |url: &str, host: &str, schema: &str| {
            let connection = Connection {
                conn_id: "web".to_owned(),
                conn_type: "http".to_owned(),
                host: Some(host.to_owned()),
                schema: Some(schema.to_owned()),
                login: Some("ada".to_owned()),
                password: Some("made-up".to_owned()),
                ..Connection::default()
            };
            let location = Location::parse(url).unwrap();
            let opened = open(&location, Some(&connection)).map(|_| ());
            opened.map_err(|error| error.to_string())
        };
        for (url, host, schema) in [
            ("https://web/x", "web", ""),
            ("https://web/x", "https://web", ""),
            ("https://web/x", "web", "https"),
            ("http://web/x", "web", ""),
            ("http://web/x", "http://web", "https"),
        ] {
            assert_eq!(opened(url, host, schema), Ok(()), "{url} {host} {schema}");
        }
        let plain = "connection `web`: host or schema says https, and its credentials are not sent to http://web";
        for (host, schema) in [("https://web", ""), ("web", "HTTPS")] {
            assert_eq!(opened("http://web/x", host, schema), Err(plain.to_owned()));
        }
        let other = opened("https://elsewhere/x", "web", "https").unwrap_err();
        assert!(
            other.ends_with("its credentials are not sent to elsewhere"),
            "{other}"
        );
    }
}
