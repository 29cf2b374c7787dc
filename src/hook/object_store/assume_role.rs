//! Credentials of an assumed role: a request to AWS STS, repeated before they run out.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};
use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::{AwsAuthorizer, AwsCredential, AwsCredentialProvider};
use object_store::client::{CredentialProvider, HttpClient, HttpRequest};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::failure::element;
use crate::airflow::error_chain::error_chain;

/// Credentials are asked for anew this long before they run out.
const MARGIN: TimeDelta = TimeDelta::minutes(5);
const VERSION: &str = "2011-06-15";
/// How long STS has before it is asked again for the first time; twice as long each time after.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// How often STS is asked again where the reason may pass.
const RETRIES: usize = 4;

/// Who asks for the role.
pub(super) enum Identity {
    /// Somebody with credentials: `AssumeRole`.
    Credentials(AwsCredentialProvider),
    /// The bearer of a token in a file, which may change: `AssumeRoleWithWebIdentity`.
    TokenFile(PathBuf),
}

/// Why STS gave no credentials. Never holds any.
#[derive(Debug, thiserror::Error)]
enum AssumeRoleError {
    #[error("the token file {file}: {source}")]
    TokenFile {
        file: String,
        source: std::io::Error,
    },
    #[error("STS could not be asked for role {role_arn}: {reason}")]
    Request { role_arn: String, reason: String },
    #[error("STS refuses role {role_arn} ({status}): {reason}")]
    Refused {
        role_arn: String,
        status: u16,
        reason: String,
    },
    #[error("STS answered the request for role {role_arn} with something else")]
    Answer { role_arn: String },
    /// There are no credentials to ask with.
    #[error(transparent)]
    Credentials(#[from] object_store::Error),
}

impl AssumeRoleError {
    fn may_pass(&self) -> bool {
        match self {
            Self::Request { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::TokenFile { .. } | Self::Answer { .. } | Self::Credentials(_) => false,
        }
    }
}

impl From<AssumeRoleError> for object_store::Error {
    fn from(error: AssumeRoleError) -> Self {
        match error {
            AssumeRoleError::Credentials(error) => error,
            error => Self::Unauthenticated {
                path: "the connection's role".to_owned(),
                source: Box::new(error),
            },
        }
    }
}

/// A role to assume.
pub(super) struct AssumedRole {
    pub identity: Identity,
    pub role_arn: String,
    /// Parameters as boto3 names them: `RoleSessionName`, `ExternalId`, `DurationSeconds`, `Policy`, `Tags` ...
    pub parameters: Map<String, Value>,
    pub endpoint: Url,
    /// The region that requests are signed for.
    pub region: String,
    pub client: HttpClient,
    current: Mutex<Option<(Arc<AwsCredential>, DateTime<Utc>)>>,
}

impl fmt::Debug for AssumedRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssumedRole")
            .field("role_arn", &self.role_arn)
            .field("endpoint", &self.endpoint.as_str())
            .finish_non_exhaustive()
    }
}

impl AssumedRole {
    pub fn new(
        identity: Identity,
        role_arn: String,
        parameters: Map<String, Value>,
        endpoint: Url,
        region: String,
        client: HttpClient,
    ) -> Self {
        Self {
            identity,
            role_arn,
            parameters,
            endpoint,
            region,
            client,
            current: Mutex::default(),
        }
    }

    /// The request's body.
    async fn form(&self) -> Result<String, AssumeRoleError> {
        let token = match &self.identity {
            Identity::Credentials(_) => None,
            Identity::TokenFile(file) => {
                let text = tokio::fs::read_to_string(file).await;
                Some(text.map_err(|source| AssumeRoleError::TokenFile {
                    file: file.display().to_string(),
                    source,
                })?)
            }
        };
        let mut form = self.endpoint.clone();
        form.set_query(None);
        let mut pairs = form.query_pairs_mut();
        let action = match token {
            None => "AssumeRole",
            Some(_) => "AssumeRoleWithWebIdentity",
        };
        pairs.append_pair("Action", action);
        pairs.append_pair("Version", VERSION);
        pairs.append_pair("RoleArn", &self.role_arn);
        for (name, value) in &self.parameters {
            flatten(name, value, &mut |name, value| {
                pairs.append_pair(name, value);
            });
        }
        if let Some(token) = token {
            pairs.append_pair("WebIdentityToken", token.trim());
        }
        drop(pairs);
        Ok(form.query().unwrap_or_default().to_owned())
    }

    async fn assume(&self) -> Result<(Arc<AwsCredential>, DateTime<Utc>), AssumeRoleError> {
        let body = self.form().await?;
        let failed = |reason: String| AssumeRoleError::Request {
            role_arn: self.role_arn.clone(),
            reason,
        };
        let mut request = HttpRequest::new(body.into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self
            .endpoint
            .as_str()
            .parse()
            .map_err(|_| failed(format!("{} is no address", self.endpoint)))?;
        request.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"),
        );
        if let Identity::Credentials(provider) = &self.identity {
            let credential = provider.get_credential().await?;
            AwsAuthorizer::new(&credential, "sts", &self.region).authorize(&mut request, None);
        }
        let answer = self
            .client
            .execute(request)
            .await
            .map_err(|error| failed(error_chain(&error)))?;
        let status = answer.status();
        let text = answer
            .into_body()
            .bytes()
            .await
            .map_err(|error| failed(error_chain(&error)))?;
        let text = String::from_utf8_lossy(&text);
        if !status.is_success() {
            return Err(AssumeRoleError::Refused {
                role_arn: self.role_arn.clone(),
                status: status.as_u16(),
                reason: element(&text, "Message").unwrap_or_default().to_owned(),
            });
        }
        credentials(&text).ok_or_else(|| AssumeRoleError::Answer {
            role_arn: self.role_arn.clone(),
        })
    }
}

#[async_trait]
impl CredentialProvider for AssumedRole {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut current = self.current.lock().await;
        if let Some((credential, until)) = current.as_ref()
            && *until - Utc::now() > MARGIN
        {
            return Ok(Arc::clone(credential));
        }
        let policy = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_times(RETRIES)
            .with_jitter();
        let assume = || self.assume();
        let (credential, until) = assume.retry(policy).when(AssumeRoleError::may_pass).await?;
        *current = Some((Arc::clone(&credential), until));
        Ok(credential)
    }
}

/// Parameters in the form of AWS's query protocol: `Tags.member.1.Key`.
fn flatten(name: &str, value: &Value, add: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Null => {}
        Value::String(text) => add(name, text),
        Value::Bool(_) | Value::Number(_) => add(name, &value.to_string()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{name}.member.{}", index + 1), item, add);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                flatten(&format!("{name}.{key}"), item, add);
            }
        }
    }
}

fn credentials(answer: &str) -> Option<(Arc<AwsCredential>, DateTime<Utc>)> {
    let answer = element(answer, "Credentials")?;
    let credential = AwsCredential {
        key_id: element(answer, "AccessKeyId")?.to_owned(),
        secret_key: element(answer, "SecretAccessKey")?.to_owned(),
        token: element(answer, "SessionToken").map(ToOwned::to_owned),
    };
    let until = element(answer, "Expiration")?.parse().ok()?;
    Some((Arc::new(credential), until))
}

#[cfg(test)]
mod tests {
    use object_store::client::{
        ClientOptions, HttpConnector as _, ReqwestConnector, StaticCredentialProvider,
    };
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use wiremock::matchers::{body_string_contains, header_exists, method};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    const GRANTED: &str = "<AssumeRoleResponse><AssumeRoleResult><Credentials>\
        <AccessKeyId>ASIAMADEUP</AccessKeyId><SecretAccessKey>made/up+secret=</SecretAccessKey>\
        <SessionToken>made-up-token</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>\
        </Credentials></AssumeRoleResult></AssumeRoleResponse>";

    fn role(identity: Identity, server: &MockServer) -> AssumedRole {
        let options = ClientOptions::new().with_allow_http(true);
        let Value::Object(parameters) =
            json!({"RoleSessionName": "airflow_c", "Tags": [{"Key": "a", "Value": "b c"}]})
        else {
            unreachable!()
        };
        AssumedRole::new(
            identity,
            "arn:aws:iam::1:role/r".to_owned(),
            parameters,
            server.uri().parse().unwrap(),
            "us-east-1".to_owned(),
            ReqwestConnector::default().connect(&options).unwrap(),
        )
    }

    fn somebody() -> Identity {
        Identity::Credentials(Arc::new(StaticCredentialProvider::new(AwsCredential {
            key_id: "AKIAMADEUP".to_owned(),
            secret_key: "made-up".to_owned(),
            token: None,
        })))
    }

    #[tokio::test]
    async fn a_role_is_asked_for_once_and_with_a_signature() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(header_exists("authorization"))
            .and(body_string_contains("Action=AssumeRole&"))
            .and(body_string_contains("Tags.member.1.Value=b+c"))
            .respond_with(ResponseTemplate::new(200).set_body_string(GRANTED))
            .expect(1)
            .mount(&server)
            .await;
        let role = role(somebody(), &server);
        let first = role.get_credential().await.unwrap();
        assert_eq!(first.secret_key, "made/up+secret=");
        assert_eq!(first.token.as_deref(), Some("made-up-token"));
        assert!(Arc::ptr_eq(&first, &role.get_credential().await.unwrap()));
    }

    #[tokio::test]
    async fn a_web_identity_needs_no_credentials_and_its_file_is_read_each_time() {
        let server = MockServer::start().await;
        Mock::given(body_string_contains("Action=AssumeRoleWithWebIdentity&"))
            .and(body_string_contains("WebIdentityToken=made-up-jwt"))
            .respond_with(ResponseTemplate::new(200).set_body_string(GRANTED))
            .mount(&server)
            .await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "made-up-jwt\n").unwrap();
        let role = role(Identity::TokenFile(file.path().to_owned()), &server);
        assert_eq!(role.get_credential().await.unwrap().key_id, "ASIAMADEUP");
    }

    #[tokio::test]
    async fn sts_is_asked_again_when_it_is_not_well_and_not_when_it_refuses() {
        let server = MockServer::start().await;
        let unwell = ResponseTemplate::new(503);
        Mock::given(method("POST"))
            .respond_with(unwell)
            .up_to_n_times(1)
            .expect(1)
            .mount(&server)
            .await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(200).set_body_string(GRANTED))
            .mount(&server)
            .await;
        let found = role(somebody(), &server).get_credential().await;
        assert_eq!(found.unwrap().key_id, "ASIAMADEUP");

        server.reset().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(403))
            .expect(1)
            .mount(&server)
            .await;
        assert!(role(somebody(), &server).get_credential().await.is_err());
    }

    #[tokio::test]
    async fn a_refusal_says_which_role_and_why() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(403).set_body_string(
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not for you</Message></Error></ErrorResponse>",
            ))
            .mount(&server)
            .await;
        let error = role(somebody(), &server)
            .get_credential()
            .await
            .unwrap_err();
        let text = error_chain(&error);
        assert!(
            text.contains("STS refuses role arn:aws:iam::1:role/r (403): not for you"),
            "{text}"
        );
    }
}
