//! Amazon S3 and what speaks its language, from a connection of type `aws`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{
    AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider,
    resolve_bucket_region,
};
use object_store::client::{HttpConnector as _, ReqwestConnector, StaticCredentialProvider};
use object_store::{Certificate, ClientOptions, RetryConfig};
use reqwest::Url;
use serde_json::{Map, Value};

use super::assume_role::{AssumedRole, Identity};
use super::aws_profile::Profile;
use super::fields::{Fields, filled, text_of};
use super::{Location, METADATA_TIMEOUT, StoreError, expect_type, is_plain_http, retries};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;

/// The region of buckets whose region nobody says.
const DEFAULT_REGION: &str = "us-east-1";
/// How long the public address of S3 may take to say in which region a bucket is.
const REGION_TIMEOUT: Duration = Duration::from_secs(5);
/// Profiles that name each other as their source.
const MAX_PROFILES: usize = 5;

/// A bucket, and what requests need that its client does not send.
pub(super) struct OpenBucket {
    pub store: AmazonS3,
    /// Where the bucket itself answers.
    pub url: String,
    /// The region that requests are signed for.
    pub region: String,
    /// `None`: anonymous.
    pub credentials: Option<AwsCredentialProvider>,
    pub client: ClientOptions,
}

/// Opens a bucket with the connection's credentials, else with the worker's own, else anonymously.
pub(super) async fn open(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<OpenBucket, StoreError> {
    let unnamed = Connection {
        conn_id: "aws".to_owned(),
        conn_type: "aws".to_owned(),
        ..Connection::default()
    };
    let fields = Fields::of(connection.unwrap_or(&unnamed))?;
    if connection.is_some() {
        expect_type(location, fields.connection, &["aws", "s3"], "aws")?;
    }
    let opening = Opening {
        location,
        fields,
        environment,
    };
    opening.open().await
}

struct Opening<'a> {
    location: &'a Location,
    fields: Fields<'a>,
    environment: &'a Environment,
}

impl Opening<'_> {
    fn env(&self, name: &str) -> Option<&str> {
        filled(self.environment.get(name))
    }

    fn client_error(&self, source: object_store::Error) -> StoreError {
        StoreError::Client {
            url: self.location.to_string(),
            source,
        }
    }

    async fn open(&self) -> Result<OpenBucket, StoreError> {
        let fields = &self.fields;
        let named = fields.text("profile_name")?;
        let profile_name = named.or_else(|| self.env("AWS_PROFILE"));
        let profile = self.profile(profile_name.unwrap_or("default"))?;
        if profile_name.is_some() && profile.is_empty() {
            let name = profile_name.unwrap_or_default();
            return Err(StoreError::Ambient(format!(
                "the AWS profile {name:?} could not be found in the files under ~/.aws"
            )));
        }
        let config = fields.object("config_kwargs")?;
        let endpoint = self.endpoint("s3", &profile)?;
        let client = self.client_options(&config, endpoint.as_deref())?;
        let region = fields.text("region_name")?.or(fields.text("region")?);
        let region = region
            .or_else(|| self.env("AWS_DEFAULT_REGION"))
            .or_else(|| self.env("AWS_REGION"))
            .or_else(|| profile.get("region"))
            .map(ToOwned::to_owned);
        let region = match (region, &endpoint) {
            (Some(region), _) => region,
            (None, Some(_)) => DEFAULT_REGION.to_owned(),
            (None, None) => self.region_of_bucket(&client).await,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&self.location.container)
            .with_region(&region)
            .with_retry(retry_config(&config));
        let is_virtual = self.is_virtual_hosted(&config)?;
        let url = bucket_url(
            &self.location.container,
            endpoint.as_deref(),
            is_virtual,
            &region,
        );
        builder = builder.with_virtual_hosted_style_request(is_virtual);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(if is_virtual { url.clone() } else { endpoint });
        }
        if fields.switch("encrypt") {
            let kind = "aws_server_side_encryption".parse();
            let kind: AmazonS3ConfigKey = kind.map_err(|error| self.client_error(error))?;
            builder = builder.with_config(kind, "AES256");
        }
        let is_unsigned =
            config.get("signature_version").and_then(Value::as_str) == Some("unsigned");
        let credentials = if is_unsigned {
            None
        } else {
            let base = self
                .base(named.is_some(), &profile, &region, &client)
                .await?;
            let credentials = self.assumed(base, &region, &client)?;
            if credentials.is_none() {
                tracing::info!(target: "airflow.providers.amazon.aws.fs.s3", "No credentials found, using anonymous access");
            }
            credentials
        };
        builder = match &credentials {
            Some(credentials) => builder.with_credentials(Arc::clone(credentials)),
            None => builder.with_skip_signature(true),
        };
        let store = builder
            .with_client_options(client.clone())
            .build()
            .map_err(|error| self.client_error(error))?;
        Ok(OpenBucket {
            store,
            url,
            region,
            credentials,
            client,
        })
    }

    fn profile(&self, name: &str) -> Result<Profile, StoreError> {
        Profile::read(name, self.environment).map_err(StoreError::Ambient)
    }

    /// The address of a service that is not AWS's own.
    fn endpoint(&self, service: &str, profile: &Profile) -> Result<Option<String>, StoreError> {
        let fields = &self.fields;
        let services = fields.object("service_config")?;
        let of_service = services
            .get(service)
            .and_then(|service| service.get("endpoint_url"));
        let field = format!("extra's service_config.{service}.endpoint_url");
        let of_service = filled(text_of(fields, &field, of_service)?);
        // Airflow never asks STS at the general address.
        let general = match service {
            "sts" => None,
            _ => fields.text("endpoint_url")?.or(fields.text("endpoint")?),
        };
        let is_url = |url: &str| Url::parse(url).is_ok_and(|url| url.has_host());
        if let Some(url) = of_service.or(general) {
            if !is_url(url) {
                let field = of_service.map_or("extra's endpoint_url", |_| &field);
                return Err(fields.error(field, format!("is no URL: {url:?}")));
            }
            return Ok(Some(url.to_owned()));
        }
        let variable = format!("AWS_ENDPOINT_URL_{}", service.to_uppercase());
        let places = [
            (variable.as_str(), self.env(&variable)),
            ("AWS_ENDPOINT_URL", self.env("AWS_ENDPOINT_URL")),
            (
                "the AWS profile's endpoint_url",
                profile.get("endpoint_url"),
            ),
        ];
        let found = places
            .into_iter()
            .find_map(|(place, url)| Some((place, url?)));
        match found {
            Some((place, url)) if !is_url(url) => {
                Err(StoreError::Ambient(format!("{place} is no URL: {url:?}")))
            }
            found => Ok(found.map(|(_, url)| url.to_owned())),
        }
    }

    fn client_options(
        &self,
        config: &Map<String, Value>,
        endpoint: Option<&str>,
    ) -> Result<ClientOptions, StoreError> {
        let mut options = ClientOptions::new().with_allow_http(endpoint.is_some_and(is_plain_http));
        let seconds = |name: &str| {
            let seconds = config.get(name).and_then(Value::as_f64)?;
            Duration::try_from_secs_f64(seconds).ok()
        };
        if let Some(timeout) = seconds("connect_timeout") {
            options = options.with_connect_timeout(timeout);
        }
        if let Some(timeout) = seconds("read_timeout") {
            options = options.with_timeout(timeout);
        }
        if let Some(proxies) = config.get("proxies").and_then(Value::as_object)
            && let Some(proxy) = proxies.get("https").or_else(|| proxies.get("http"))
            && let Some(proxy) = proxy.as_str()
        {
            options = options.with_proxy_url(proxy);
        }
        match self.fields.value("verify") {
            Some(Value::Bool(false)) => options = options.with_allow_invalid_certificates(true),
            Some(Value::String(file)) => {
                let wrong = |error: String| self.fields.error("extra's verify", error);
                let pem = std::fs::read(file)
                    .map_err(|error| wrong(format!("names the file {file}: {error}")))?;
                let certificates = Certificate::from_pem_bundle(&pem)
                    .map_err(|error| wrong(format!("names the file {file}: {error}")))?;
                for certificate in certificates {
                    options = options.with_root_certificate(certificate);
                }
            }
            _ => {}
        }
        Ok(options)
    }

    async fn region_of_bucket(&self, client: &ClientOptions) -> String {
        let bucket = &self.location.container;
        let found =
            tokio::time::timeout(REGION_TIMEOUT, resolve_bucket_region(bucket, client)).await;
        match found {
            Ok(Ok(region)) => region,
            // What is wrong with the bucket, the first request says better.
            Ok(Err(_)) | Err(_) => DEFAULT_REGION.to_owned(),
        }
    }

    /// Does the bucket's name stand in the host, and not in the path?
    fn is_virtual_hosted(&self, config: &Map<String, Value>) -> Result<bool, StoreError> {
        let style = config
            .get("s3")
            .and_then(|s3| s3.get("addressing_style"))
            .and_then(Value::as_str);
        match style {
            Some("virtual") => Ok(true),
            None | Some("path" | "auto") => Ok(false),
            Some(other) => Err(self.fields.error(
                "extra's config_kwargs.s3.addressing_style",
                format!("must be path, virtual or auto, not {other:?}"),
            )),
        }
    }

    /// The credentials before a role is assumed; `None` when there are none anywhere.
    async fn base(
        &self,
        profile_is_named: bool,
        profile: &Profile,
        region: &str,
        client: &ClientOptions,
    ) -> Result<Option<AwsCredentialProvider>, StoreError> {
        if let Some(credential) = self.of_connection()? {
            return Ok(Some(self.fixed(credential)?));
        }
        // A profile that was asked for goes before the environment.
        if !profile_is_named && let Some(credential) = self.of_environment() {
            return Ok(Some(self.fixed(credential)?));
        }
        if let Some(provider) = self.of_profile(profile, region, client, MAX_PROFILES)? {
            return Ok(Some(provider));
        }
        // A role of the connection by web identity says itself who it is.
        let method = self.fields.text("assume_role_method")?;
        if method == Some("assume_role_with_web_identity") {
            return Ok(None);
        }
        self.of_machine(region, client).await
    }

    fn of_connection(&self) -> Result<Option<AwsCredential>, StoreError> {
        let fields = &self.fields;
        let session = fields.object("session_kwargs")?;
        let session = |name: &str| session.get(name).and_then(Value::as_str);
        let token = filled(fields.text("aws_session_token")?).or(session("aws_session_token"));
        let pairs = [
            (fields.login(), fields.password()),
            (
                fields.text("aws_access_key_id")?,
                fields.text("aws_secret_access_key")?,
            ),
            (
                session("aws_access_key_id"),
                session("aws_secret_access_key"),
            ),
        ];
        for (key_id, secret_key) in pairs {
            if let (Some(key_id), Some(secret_key)) = (filled(key_id), filled(secret_key)) {
                return Ok(Some(credential(key_id, secret_key, token)));
            }
        }
        let half = pairs
            .iter()
            .any(|(key_id, secret)| filled(*key_id).is_some() != filled(*secret).is_some());
        if half {
            return Err(fields.error(
                "login and password",
                "must both be set: the access key id and the secret access key",
            ));
        }
        Ok(None)
    }

    fn of_environment(&self) -> Option<AwsCredential> {
        Some(credential(
            self.env("AWS_ACCESS_KEY_ID")?,
            self.env("AWS_SECRET_ACCESS_KEY")?,
            self.env("AWS_SESSION_TOKEN")
                .or_else(|| self.env("AWS_SECURITY_TOKEN")),
        ))
    }

    fn of_profile(
        &self,
        profile: &Profile,
        region: &str,
        client: &ClientOptions,
        depth: usize,
    ) -> Result<Option<AwsCredentialProvider>, StoreError> {
        if let (Some(key_id), Some(secret_key)) = (
            profile.get("aws_access_key_id"),
            profile.get("aws_secret_access_key"),
        ) {
            let token = profile.get("aws_session_token");
            return Ok(Some(self.fixed(credential(key_id, secret_key, token))?));
        }
        if let Some(role_arn) = profile.get("role_arn") {
            let identity = match (
                profile.get("source_profile"),
                profile.get("web_identity_token_file"),
            ) {
                (_, Some(file)) => Identity::TokenFile(PathBuf::from(file)),
                (Some(source), None) if depth > 0 => {
                    let source = self.profile(source)?;
                    let base = self.of_profile(&source, region, client, depth - 1)?;
                    Identity::Credentials(base.ok_or_else(|| {
                        StoreError::Ambient(
                            "the source profile of an AWS profile holds no credentials".to_owned(),
                        )
                    })?)
                }
                _ => {
                    return Err(StoreError::Ambient(
                        "an AWS profile with role_arn needs source_profile or web_identity_token_file".to_owned(),
                    ));
                }
            };
            let mut parameters = Map::new();
            let session = profile.get("role_session_name").unwrap_or("updraft");
            parameters.insert("RoleSessionName".to_owned(), session.into());
            if let Some(external_id) = profile.get("external_id") {
                parameters.insert("ExternalId".to_owned(), external_id.into());
            }
            return Ok(Some(
                self.role(identity, role_arn, parameters, region, client)?,
            ));
        }
        if let Some(setting) = ["credential_process", "sso_start_url", "sso_session"]
            .into_iter()
            .find(|setting| profile.get(setting).is_some())
        {
            return Err(StoreError::Ambient(format!(
                "the AWS profile takes its credentials from {setting}, which this worker does not do: put keys into \
                 the connection or into the environment"
            )));
        }
        Ok(None)
    }

    /// What the machine itself may do: a web identity, a container's role, an instance's role.
    async fn of_machine(
        &self,
        region: &str,
        client: &ClientOptions,
    ) -> Result<Option<AwsCredentialProvider>, StoreError> {
        if let (Some(file), Some(role_arn)) = (
            self.env("AWS_WEB_IDENTITY_TOKEN_FILE"),
            self.env("AWS_ROLE_ARN"),
        ) {
            let session = self.env("AWS_ROLE_SESSION_NAME").unwrap_or("updraft");
            let mut parameters = Map::new();
            parameters.insert("RoleSessionName".to_owned(), session.into());
            let identity = Identity::TokenFile(PathBuf::from(file));
            return Ok(Some(
                self.role(identity, role_arn, parameters, region, client)?,
            ));
        }
        let has = |variable: &str| self.env(variable).is_some();
        // Without one the client would take the machine's role, which is not the container's.
        if has("AWS_CONTAINER_CREDENTIALS_FULL_URI")
            && !has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
            && !has("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        {
            return Err(StoreError::Ambient(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI is followed only with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, \
                 which is not set: set it, unset the other one, or put keys into the connection"
                    .to_owned(),
            ));
        }
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name("credentials")
            .with_region(region);
        let settings = [
            (
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
            ),
            (
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                AmazonS3ConfigKey::ContainerCredentialsFullUri,
            ),
            (
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                AmazonS3ConfigKey::ContainerAuthorizationTokenFile,
            ),
            (
                "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                AmazonS3ConfigKey::MetadataEndpoint,
            ),
        ];
        let mut has_container = false;
        for (variable, key) in settings {
            if let Some(value) = self.env(variable) {
                builder = builder.with_config(key, value);
                has_container |= variable.starts_with("AWS_CONTAINER_CREDENTIALS");
            }
        }
        let is_off = self
            .env("AWS_EC2_METADATA_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_off && !has_container {
            return Ok(None);
        }
        let provider = |retry: RetryConfig| -> Result<AwsCredentialProvider, StoreError> {
            let made = builder.clone().with_retry(retry).build();
            let made = made.map_err(|error| self.client_error(error))?;
            Ok(made.credentials().clone())
        };
        let probe = provider(RetryConfig {
            max_retries: 0,
            ..retries()
        })?;
        // Off AWS there is no metadata service, and nobody answers.
        match tokio::time::timeout(METADATA_TIMEOUT, probe.get_credential()).await {
            Ok(Ok(_)) => Ok(Some(provider(retries())?)),
            Ok(Err(error)) if has_container => Err(self.client_error(error)),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// The role of the connection, if it names one, else the credentials themselves.
    fn assumed(
        &self,
        base: Option<AwsCredentialProvider>,
        region: &str,
        client: &ClientOptions,
    ) -> Result<Option<AwsCredentialProvider>, StoreError> {
        let fields = &self.fields;
        let Some(role_arn) = fields.text("role_arn")? else {
            return Ok(base);
        };
        let mut parameters = Map::new();
        let name = session_name(&fields.connection.conn_id);
        parameters.insert("RoleSessionName".to_owned(), name.into());
        parameters.extend(fields.object("assume_role_kwargs")?);
        let identity = match fields.text("assume_role_method")? {
            None | Some("assume_role") => Identity::Credentials(base.ok_or_else(|| {
                fields.error(
                    "extra's role_arn",
                    "needs credentials that may assume the role: set login and password, or give the worker some",
                )
            })?),
            Some("assume_role_with_web_identity") => {
                let federation = fields.text("assume_role_with_web_identity_federation")?;
                if federation != Some("file") {
                    return Err(fields.error(
                        "extra's assume_role_with_web_identity_federation",
                        "must be file: no other federation has a native counterpart here",
                    ));
                }
                let file = fields
                    .text("assume_role_with_web_identity_token_file")?
                    .or_else(|| self.env("AWS_WEB_IDENTITY_TOKEN_FILE"));
                Identity::TokenFile(PathBuf::from(file.ok_or_else(|| {
                    fields.error(
                        "extra's assume_role_with_web_identity_token_file",
                        "must name the file with the token",
                    )
                })?))
            }
            Some(other) => {
                return Err(fields.error(
                    "extra's assume_role_method",
                    format!("{other:?} has no native counterpart here: use assume_role or assume_role_with_web_identity"),
                ));
            }
        };
        Ok(Some(
            self.role(identity, role_arn, parameters, region, client)?,
        ))
    }

    fn role(
        &self,
        identity: Identity,
        role_arn: &str,
        parameters: Map<String, Value>,
        region: &str,
        client: &ClientOptions,
    ) -> Result<AwsCredentialProvider, StoreError> {
        let own = self.endpoint("sts", &Profile::default())?;
        let plain = own.as_deref().is_some_and(is_plain_http);
        let endpoint = own.unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com"));
        let endpoint: Url = endpoint.parse().map_err(|_| {
            self.fields
                .error("extra's region_name", "makes no address of STS")
        })?;
        let client = ReqwestConnector::default()
            .connect(&client.clone().with_allow_http(plain))
            .map_err(|error| self.client_error(error))?;
        let role_arn = role_arn.to_owned();
        let region = region.to_owned();
        Ok(Arc::new(AssumedRole::new(
            identity, role_arn, parameters, endpoint, region, client,
        )))
    }

    /// Credentials go into headers, where not every character may stand.
    fn fixed(&self, credential: AwsCredential) -> Result<AwsCredentialProvider, StoreError> {
        let parts = [Some(&credential.key_id), credential.token.as_ref()];
        if parts
            .into_iter()
            .flatten()
            .any(|part| !part.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(self.fields.error(
                "the access key or session token",
                "holds a space or another character that no key has",
            ));
        }
        Ok(Arc::new(StaticCredentialProvider::new(credential)))
    }
}

fn bucket_url(bucket: &str, endpoint: Option<&str>, is_virtual: bool, region: &str) -> String {
    let amazons = format!("https://s3.{region}.amazonaws.com");
    let endpoint = endpoint.unwrap_or(&amazons).trim_end_matches('/');
    if is_virtual {
        let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", endpoint));
        format!("{scheme}://{bucket}.{host}")
    } else {
        format!("{endpoint}/{bucket}")
    }
}

fn credential(key_id: &str, secret_key: &str, token: Option<&str>) -> AwsCredential {
    AwsCredential {
        key_id: key_id.to_owned(),
        secret_key: secret_key.to_owned(),
        token: filled(token).map(ToOwned::to_owned),
    }
}

/// What the Python provider calls a session of the connection.
fn session_name(conn_id: &str) -> String {
    let mut name = String::new();
    for c in format!("airflow_{conn_id}").to_lowercase().chars() {
        if c.is_ascii_alphanumeric() || "_+=,.@-".contains(c) {
            name.push(c);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_matches('-').chars().take(64).collect()
}

fn retry_config(config: &Map<String, Value>) -> RetryConfig {
    let mut retry = retries();
    let asked = config.get("retries").and_then(|retries| {
        let total = retries.get("total_max_attempts").and_then(Value::as_u64);
        let after_first = retries.get("max_attempts").and_then(Value::as_u64);
        total.map(|total| total.saturating_sub(1)).or(after_first)
    });
    if let Some(asked) = asked.and_then(|asked| usize::try_from(asked).ok()) {
        retry.max_retries = asked;
    }
    retry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_wrong_in_the_environment_is_named_as_it_stands_there() {
        let opened = async |variable: (&str, &str), extra: &str| {
            let own = [("HOME", "/nowhere"), ("AWS_REGION", "eu-north-1"), variable];
            let connection = Connection {
                conn_id: "lake".to_owned(),
                conn_type: "aws".to_owned(),
                extra: Some(extra.to_owned()),
                ..Connection::default()
            };
            let location = Location::parse("s3://b").unwrap();
            let opened = open(&location, Some(&connection), &own.into_iter().collect()).await;
            opened.err().unwrap().to_string()
        };
        let told = opened(
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1"),
            "{}",
        )
        .await;
        assert!(
            told.starts_with("AWS_CONTAINER_CREDENTIALS_FULL_URI is followed only with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
            "{told}"
        );
        for variable in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"] {
            let told = opened((variable, "nowhere"), "{}").await;
            assert_eq!(told, format!("{variable} is no URL: \"nowhere\""));
        }
        let told = opened(("AWS_ENDPOINT_URL", "nowhere"), r#"{"endpoint": "here"}"#).await;
        assert_eq!(
            told,
            "connection `lake`: extra's endpoint_url is no URL: \"here\""
        );
    }

    #[test]
    fn a_bucket_answers_under_its_name_in_the_path_or_in_the_host() {
        let url = |endpoint, is_virtual| bucket_url("b", endpoint, is_virtual, "eu-north-1");
        assert_eq!(url(None, false), "https://s3.eu-north-1.amazonaws.com/b");
        assert_eq!(url(None, true), "https://b.s3.eu-north-1.amazonaws.com");
        assert_eq!(
            url(Some("http://127.0.0.1:9/"), false),
            "http://127.0.0.1:9/b"
        );
        assert_eq!(
            url(Some("https://minio.example"), true),
            "https://b.minio.example"
        );
    }
}
