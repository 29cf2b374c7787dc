//! Google Cloud Storage, from a connection of type `google_cloud_platform`.

use std::path::Path;
use std::sync::Arc;

use object_store::client::{ClientOptions, StaticCredentialProvider};
use object_store::gcp::{GcpCredential, GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::fields::{Fields, filled};
use super::{Location, METADATA_TIMEOUT, StoreError, expect_type, is_plain_http, retries};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;

/// Ways to authenticate that the Python provider has and this worker has not.
const REFUSED: [&str; 4] = [
    "key_secret_name",
    "credential_config_file",
    "impersonation_chain",
    "idp_issuer_url",
];

/// Opens a bucket with the connection's key, else with the worker's own credentials. Without a connection a worker that
/// has none asks anonymously.
pub(super) async fn open(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<GoogleCloudStorage, StoreError> {
    let client_error = |source| StoreError::Client {
        url: location.to_string(),
        source,
    };
    let unnamed = Connection {
        conn_id: "google_cloud_platform".to_owned(),
        conn_type: "google_cloud_platform".to_owned(),
        ..Connection::default()
    };
    let fields = Fields::of(connection.unwrap_or(&unnamed))?;
    if connection.is_some() {
        let types = ["google_cloud_platform", "gcpbigquery"];
        expect_type(location, fields.connection, &types, "google_cloud_platform")?;
    }
    let emulator = filled(environment.get("STORAGE_EMULATOR_HOST"))
        .filter(|host| *host != "default")
        .map(|host| match host.contains("://") {
            true => host.to_owned(),
            false => format!("http://{host}"),
        });
    let endpoint = fields.text("gcs.endpoint")?.map(ToOwned::to_owned);
    let endpoint = endpoint.or_else(|| emulator.clone());
    let plain = endpoint.as_deref().is_some_and(is_plain_http);
    let mut options = ClientOptions::new().with_allow_http(plain);
    if let Some(project) = fields.text("quota_project_id")? {
        let project = HeaderValue::from_str(project)
            .map_err(|error| fields.error("extra's quota_project_id", error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert("x-goog-user-project", project);
        options = options.with_default_headers(headers);
    }
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&location.container)
        .with_retry(retries());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    let anonymous = |builder: GoogleCloudStorageBuilder| {
        let nobody = GcpCredential {
            bearer: String::new(),
        };
        builder
            .with_skip_signature(true)
            .with_credentials(Arc::new(StaticCredentialProvider::new(nobody)))
    };
    if fields.switch("is_anonymous") {
        let builder = anonymous(builder).with_client_options(options);
        return builder.build().map_err(client_error);
    }
    fields.refuse(
        &REFUSED,
        "use key_path or keyfile_dict, or credentials of the worker itself",
    )?;
    builder = match credentials(&fields, environment)? {
        Credentials::Key(key) => builder.with_service_account_key(key),
        Credentials::File(file) => builder.with_application_credentials(file),
        Credentials::None if connection.is_none() && emulator.is_some() => anonymous(builder),
        Credentials::None => {
            let own = builder.clone().with_client_options(options.clone());
            let own = own.build().map_err(client_error)?.credentials().clone();
            // Off Google's machines there is no metadata service, and nobody answers.
            match tokio::time::timeout(METADATA_TIMEOUT, own.get_credential()).await {
                Ok(Ok(_)) => builder.with_credentials(own),
                _ if connection.is_none() => anonymous(builder),
                _ => {
                    return Err(fields.error(
                        "extra",
                        "holds no credentials and the worker has none of its own: set keyfile_dict or key_path, \
                         is_anonymous for a public bucket, or GOOGLE_APPLICATION_CREDENTIALS on the worker",
                    ));
                }
            }
        }
    };
    builder
        .with_client_options(options)
        .build()
        .map_err(client_error)
}

enum Credentials {
    /// The JSON of a service account's key.
    Key(String),
    /// A file that the Google command line wrote for a person.
    File(String),
    None,
}

fn credentials(fields: &Fields<'_>, environment: &Environment) -> Result<Credentials, StoreError> {
    let key_path = fields.text("key_path")?;
    let dict = fields.value("keyfile_dict");
    if key_path.is_some() && dict.is_some() {
        return Err(fields.error(
            "extra's keyfile_dict and key_path",
            "are mutually exclusive: provide only one",
        ));
    }
    if dict.is_some() {
        let key = fields.object("keyfile_dict")?;
        return service_account(key.into())
            .map_err(|problem| fields.error("extra's keyfile_dict", problem));
    }
    if let Some(path) = key_path {
        if Path::new(path)
            .extension()
            .is_none_or(|ending| ending != "json")
        {
            return Err(fields.error(
                "extra's key_path",
                format!("must name a JSON key file, not {path:?}"),
            ));
        }
        return of_file(path).map_err(|problem| {
            fields.error("extra's key_path", format!("names {path}: {problem}"))
        });
    }
    if let Some(path) = filled(environment.get("GOOGLE_APPLICATION_CREDENTIALS")) {
        return of_file(path).map_err(|problem| {
            StoreError::Ambient(format!(
                "GOOGLE_APPLICATION_CREDENTIALS names {path}: {problem}"
            ))
        });
    }
    let home = environment.get("HOME").unwrap_or_default();
    let own = format!("{home}/.config/gcloud/application_default_credentials.json");
    if !home.is_empty() && Path::new(&own).is_file() {
        return of_file(&own).map_err(|problem| StoreError::Ambient(format!("{own}: {problem}")));
    }
    Ok(Credentials::None)
}

fn of_file(path: &str) -> Result<Credentials, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let key: Value =
        serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))?;
    match key.get("type").and_then(Value::as_str) {
        Some("authorized_user") => Ok(Credentials::File(path.to_owned())),
        _ => service_account(key),
    }
}

fn service_account(mut key: Value) -> Result<Credentials, String> {
    match key.get("type").and_then(Value::as_str) {
        None | Some("service_account") => {}
        Some(other) => {
            return Err(format!(
                "it is of the type {other:?}, and only service_account has a native counterpart here"
            ));
        }
    }
    let Some(Value::String(private)) = key.get_mut("private_key") else {
        return Err("it has no private_key".to_owned());
    };
    // As forms and environment variables often leave it.
    *private = private.replace("\\n", "\n");
    Ok(Credentials::Key(key.to_string()))
}
