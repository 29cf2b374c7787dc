//! The HTTP client for MCP servers: it keeps a connection's token to the server that it is for.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
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

/// An address as it may be shown: the server. Hosted servers put keys into the path, the query and the user.
pub(super) fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
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
    match error.url() {
        Some(url) => text.replace(url.as_str(), &shown(url)),
        None => text,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_in_an_address_is_in_no_error() {
        // Something that takes connections and answers nonsense.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"nonsense\r\n\r\n").await;
            }
        });
        let server = HttpServer {
            url: format!(
                "http://user:made-up-password@127.0.0.1:{port}/s/made-up-path?apiKey=made-up-key"
            ),
            headers: Vec::new(),
            event_timeout: None,
        };
        let client = client(&server, Duration::MAX).unwrap();
        let error = client.get(&server.url).send().await.unwrap_err();
        let text = connect_text(&error);
        assert!(text.contains(&format!("http://127.0.0.1:{port}")), "{text}");
        assert!(!text.contains("made-up"), "{text}");
    }
}
