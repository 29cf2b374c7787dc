//! AWS Signature Version 4: how a request to AWS says who sends it.

use async_trait::async_trait;
use aws_lc_rs::{digest, hmac};
use chrono::{DateTime, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::http::{Authorize, secret_header};
use crate::agent::ModelError;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// All but the unreserved characters and the slashes between segments.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// An IAM identity, and what it is used for.
pub struct AwsSigner {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    pub session_token: Option<SecretString>,
    pub region: String,
    /// `bedrock`.
    pub service: &'static str,
}

#[async_trait]
impl Authorize for AwsSigner {
    async fn add_to(
        &self,
        headers: &mut HeaderMap,
        url: &str,
        body: &[u8],
    ) -> Result<(), ModelError> {
        self.sign(url, body, Utc::now(), headers)
    }
}

impl AwsSigner {
    /// Adds the headers that sign a POST of `body` at `now`.
    ///
    /// # Errors
    /// The address is none, or a key can't be sent.
    pub fn sign(
        &self,
        url: &str,
        body: &[u8],
        now: DateTime<Utc>,
        headers: &mut HeaderMap,
    ) -> Result<(), ModelError> {
        let url = Url::parse(url).map_err(|error| {
            ModelError::Configuration(format!("the address {url:?} can't be used: {error}"))
        })?;
        let time = now.format("%Y%m%dT%H%M%SZ").to_string();
        let day = now.format("%Y%m%d").to_string();
        let mut signed = vec![("host", host(&url)), ("x-amz-date", time.clone())];
        if let Some(token) = &self.session_token {
            let token = token.expose_secret();
            headers.insert("x-amz-security-token", secret_header(token)?);
            signed.push(("x-amz-security-token", token.to_owned()));
        }
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        // The path is encoded once more than it is sent.
        let path = utf8_percent_encode(url.path(), ENCODED);
        let query = url.query().unwrap_or_default();
        let request = format!("POST\n{path}\n{query}\n{lines}\n{names}\n{}", hash(body));
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hash(request.as_bytes()));
        let secret = format!("AWS4{}", self.secret_access_key.expose_secret());
        let key = [&day, self.region.as_str(), self.service, "aws4_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| keyed(&key, part));
        let signature = hex(&keyed(&key, &text));
        let credential = format!("{}/{scope}", self.access_key_id);
        let authorization = format!(
            "{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        );
        headers.insert(AUTHORIZATION, secret_header(&authorization)?);
        let time = HeaderValue::from_str(&time)
            .map_err(|error| ModelError::Configuration(error.to_string()))?;
        headers.insert("x-amz-date", time);
        Ok(())
    }
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn signature(service: &'static str, url: &str, body: &[u8]) -> String {
        let signer = AwsSigner {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: "us-east-1".to_owned(),
            service,
        };
        let now = DateTime::from_timestamp(1_440_938_160, 0).unwrap();
        let mut headers = HeaderMap::new();
        signer.sign(url, body, now, &mut headers).unwrap();
        assert_eq!(headers["x-amz-date"], "20150830T123600Z");
        headers[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_signature_is_that_of_the_test_suite_of_aws() {
        assert_eq!(
            signature("service", "https://example.amazonaws.com/", b""),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
    }

    #[test]
    fn a_colon_in_a_models_name_is_encoded_twice() {
        let url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse";
        let signature = signature("bedrock", url, b"{}");
        assert!(
            signature.ends_with("900d7aa5de667100e716ba3fd678c1f739a06789286b6325c7e62b8a82def69b"),
            "{signature}"
        );
    }
}
