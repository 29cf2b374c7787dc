//! Files of an HTTP server; directories where it speaks WebDAV.

use object_store::client::ClientOptions;
use object_store::http::{HttpBuilder, HttpStore};
use object_store::{HeaderMap, HeaderValue};

use super::fields::Fields;
use super::{Location, StoreError, expect_type, is_plain_http};
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
        let own = own.split_once("://").map_or(own, |(_, host)| host);
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
