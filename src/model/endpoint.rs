//! Where a provider's requests go, and with what in their heads.

use std::sync::Arc;

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use serde_json::{Map, Value};

use super::http::{Authorize, ErrorBody, MAX_RETRIES, Post, secret_header, timeout};
use crate::agent::ModelError;

/// What the provider's logs show of us.
const AGENT: &str = concat!("updraft/", env!("CARGO_PKG_VERSION"));

/// Where requests go and with what.
pub struct Endpoint {
    /// As the connection gives it.
    pub base_url: String,
    /// `?api-version=...` for Azure, else empty.
    pub query: String,
    pub headers: HeaderMap,
    /// Where the headers don't say already who asks.
    pub authorization: Option<Arc<dyn Authorize>>,
}

impl Endpoint {
    /// A server that is told anew in each request who asks.
    #[must_use]
    pub fn authorized(base_url: &str, authorization: Arc<dyn Authorize>) -> Self {
        Self {
            authorization: Some(authorization),
            ..Self::at(base_url)
        }
    }

    fn at(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            query: String::new(),
            headers: HeaderMap::new(),
            authorization: None,
        }
    }

    /// A server that wants `key` in the header `name`.
    ///
    /// # Errors
    /// The key holds characters that no HTTP header may hold.
    pub fn with_key(base_url: &str, name: &'static str, key: &str) -> Result<Self, ModelError> {
        let mut endpoint = Self::at(base_url);
        endpoint.headers.insert(name, secret_header(key)?);
        Ok(endpoint)
    }

    /// A server that takes a bearer token.
    ///
    /// # Errors
    /// The key holds characters that no HTTP header may hold.
    pub fn bearer(base_url: &str, api_key: &str) -> Result<Self, ModelError> {
        Self::with_key(
            base_url,
            AUTHORIZATION.as_str(),
            &format!("Bearer {api_key}"),
        )
    }

    /// The address of `path` under the base URL.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!(
            "{}/{path}{}",
            self.base_url.trim_end_matches('/'),
            self.query
        )
    }

    /// A request, with what `model_settings` say of its head, its time-out and its retries.
    ///
    /// # Errors
    /// `extra_headers` hold what is no header.
    pub fn post(
        &self,
        path: &str,
        body: Value,
        settings: &Map<String, Value>,
        model_name: &str,
    ) -> Result<Post, ModelError> {
        Ok(Post {
            url: self.url(path),
            headers: self.headers(settings)?,
            body,
            timeout: timeout(settings),
            model_name: model_name.to_owned(),
            max_retries: settings
                .get("max_retries")
                .and_then(Value::as_u64)
                .and_then(|retries| u32::try_from(retries).ok())
                .unwrap_or(MAX_RETRIES),
            error_body: ErrorBody::Inner,
            authorization: self.authorization.clone(),
        })
    }

    fn headers(&self, settings: &Map<String, Value>) -> Result<HeaderMap, ModelError> {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(Value::Object(extra)) = settings.get("extra_headers") {
            for (name, value) in extra {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let (Ok(name), Ok(value)) =
                    (name.parse::<HeaderName>(), text.parse::<HeaderValue>())
                else {
                    return Err(ModelError::Configuration(format!(
                        "model_settings['extra_headers'] holds {name:?}, which can't be sent as an HTTP header"
                    )));
                };
                headers.insert(name, value);
            }
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_line_break_is_refused_with_where_to_look() {
        let error = Endpoint::bearer("http://x", "made-up\nkey").err().unwrap();
        assert!(
            error.to_string().contains("look for line breaks"),
            "{error}"
        );
    }

    #[test]
    fn settings_decide_on_headers_time_and_retries() {
        let endpoint = Endpoint::bearer("http://x/v1/", "made-up").unwrap();
        let settings = serde_json::json!({
            "extra_headers": {"x-team": "harbour"}, "timeout": 2.5, "max_retries": 0,
        });
        let Value::Object(settings) = settings else {
            unreachable!();
        };
        let post = endpoint
            .post("responses", Value::Null, &settings, "m")
            .unwrap();
        assert_eq!(post.url, "http://x/v1/responses");
        assert_eq!(post.headers["x-team"], "harbour");
        assert_eq!((post.timeout.as_millis(), post.max_retries), (2500, 0));
    }
}
