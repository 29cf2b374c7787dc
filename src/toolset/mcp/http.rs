//! The HTTP client for MCP servers: it keeps a connection's token to the server that it is for.

use std::error::Error;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use secrecy::ExposeSecret as _;

use super::server::HttpServer;

/// How many redirects a request follows.
const MAX_REDIRECTS: usize = 10;

/// A client that sends the server's headers with every request and follows redirects within the server only.
///
/// # Errors
/// A header that can't be sent; its value is not in the text.
pub(super) fn client(server: &HttpServer, read_timeout: Duration) -> Result<Client, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &server.headers {
        let refused = || format!("the header {name:?} holds what can't be sent in an HTTP header");
        let key: HeaderName = name.parse().map_err(|_| refused())?;
        let mut value: HeaderValue = value.expose_secret().parse().map_err(|_| refused())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Client::builder()
        .user_agent(concat!("updraft/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(Policy::custom(within_origin))
        .read_timeout(read_timeout)
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))
}

fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let stays = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if stays && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Why a server can't be reached. A connection that nobody takes reads as in Python.
pub(super) fn connect_text(error: &reqwest::Error) -> String {
    if error.is_connect() && !is_about_certificates(error) {
        return "All connection attempts failed".to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn is_about_certificates(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.to_string().contains("certificate") {
            return true;
        }
        source = cause.source();
    }
    false
}
