//! The object store of a source: its connection decides about credentials, by the rules of the Python engine.
//!
//! The connection is read where all stores are opened, in [`crate::hook::object_store`]. What stands here are the
//! refusals that only this engine has, and the names under which DataFusion finds a store.

use std::sync::Arc;

use object_store::ObjectStore;
use serde_json::Value;

use super::source::{DataSourceConfig, StorageType};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::repr_str;
use crate::hook::object_store::{self as stores, Fields, Location, StoreError};
use crate::hook::{ConnectionError, ConnectionSource};

const AZURE_PUBLIC_SUFFIX: &str = ".blob.core.windows.net";
const AZURE_ACCOUNT_KEYS: [&str; 3] = [
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_MASTER_KEY",
];
const AZURE_CLIENT_IDS: [&str; 2] = ["AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"];
const AZURE_CLIENT_SECRETS: [&str; 2] = ["AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"];
const AZURE_TENANTS: [&str; 4] = [
    "AZURE_STORAGE_TENANT_ID",
    "AZURE_STORAGE_AUTHORITY_ID",
    "AZURE_TENANT_ID",
    "AZURE_AUTHORITY_ID",
];
const AZURE_TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum StoreRefusal {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Extra(#[from] StoreError),
    #[error("Unknown connection type {0}")]
    UnknownType(String),
    #[error(
        "Connection field '{field}' is not supported for DataFusion {store} access; only {instead} are used."
    )]
    Field {
        field: &'static str,
        store: &'static str,
        instead: &'static str,
    },
    #[error(
        "The `keyfile_dict` and `key_path` fields are mutually exclusive. Please provide only one value."
    )]
    TwoKeys,
    #[error(
        "Connection extra 'tenant_id' is set for DataFusion Azure Blob Storage service-principal auth, but {0} is not."
    )]
    HalfPrincipal(&'static str),
    #[error(
        "A URL-form `sas_token` is not supported for DataFusion Azure Blob Storage access; provide the SAS token as a \
         query string instead."
    )]
    SasUrl,
    #[error(
        "Worker environment variable(s) {0} outrank this connection's own credential for Azure Blob Storage. Unset \
         them on the worker, or remove the credential from this connection to rely on the environment."
    )]
    Environment(String),
    #[error(
        "Connection host {0} is an emulator's address (host:port), which names no account. Put the account's name in \
         `login`, leave `host` empty, and set AZURE_STORAGE_ENDPOINT on the worker."
    )]
    EmulatorHost(String),
    #[error(
        "Connection host {0} is no URL and no DNS name, and there is no `login` to name the account instead."
    )]
    NoAccount(String),
    #[error(
        "{0} is not in the public cloud (*{AZURE_PUBLIC_SUFFIX}). For another cloud set AZURE_STORAGE_ENDPOINT on the \
         worker."
    )]
    OtherCloud(String),
    #[error("Error while creating object store for {storage}: {source}")]
    Store {
        storage: &'static str,
        source: StoreError,
    },
    #[error(
        "Error while creating object store for StorageType.AZURE: {0} does not match the required \
         abfs(s)://<container>@<account>.<host>/<path> shape"
    )]
    AbfsShape(String),
}

/// A store, and how DataFusion is told of it and of the files in it.
pub(super) struct OpenedStore {
    pub store: Arc<dyn ObjectStore>,
    /// `s3://bucket`: what DataFusion looks stores up by.
    pub root: String,
    /// The source's path below the root, with its slash.
    pub path: String,
}

/// Opens the store of a source that is not local.
pub(super) async fn open(
    source: &DataSourceConfig,
    storage: StorageType,
    connections: &dyn ConnectionSource,
    environment: &Environment,
) -> Result<OpenedStore, StoreRefusal> {
    let connection = connection(&source.conn_id, connections, environment).await?;
    let failed = |error| StoreRefusal::Store {
        storage: storage.python_name(),
        source: error,
    };
    let location = Location::parse(&source.uri).map_err(failed)?;
    if storage == StorageType::Azure {
        check_abfs(&source.uri, &location, environment)?;
    }
    let store = stores::open(&location, Some(&connection), environment)
        .await
        .map_err(failed)?;
    Ok(OpenedStore {
        store,
        root: location.root(),
        path: format!("/{}", location.path),
    })
}

/// A connection that may open a store, with what the worker's environment adds to it.
pub(super) async fn connection(
    conn_id: &str,
    connections: &dyn ConnectionSource,
    environment: &Environment,
) -> Result<Connection, StoreRefusal> {
    let connection = connections.connection(conn_id).await?;
    match connection.conn_type.as_str() {
        "aws" => Ok(connection),
        "google_cloud_platform" => {
            check_gcs(&Fields::of(&connection)?)?;
            Ok(connection)
        }
        "wasb" => azure(&connection, environment),
        other => Err(StoreRefusal::UnknownType(other.to_owned())),
    }
}

/// Refuses fields that are set to something.
fn refuse(
    extra: &Fields<'_>,
    fields: &[&'static str],
    store: &'static str,
    instead: &'static str,
) -> Result<(), StoreRefusal> {
    match fields.iter().find(|field| extra.value(field).is_some()) {
        None => Ok(()),
        Some(field) => Err(StoreRefusal::Field {
            field,
            store,
            instead,
        }),
    }
}

fn check_gcs(extra: &Fields<'_>) -> Result<(), StoreRefusal> {
    refuse(
        extra,
        &[
            "key_secret_name",
            "credential_config_file",
            "impersonation_chain",
        ],
        "GCS",
        "key_path, keyfile_dict, GOOGLE_APPLICATION_CREDENTIALS, or ambient credentials (gcloud ADC file / metadata server)",
    )?;
    if extra.value("key_path").is_some() && extra.value("keyfile_dict").is_some() {
        return Err(StoreRefusal::TwoKeys);
    }
    Ok(())
}

/// Which kind of credential a connection brings, strongest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AzureCredential {
    Key,
    ClientSecret,
    Sas,
}

/// The connection with what the worker's environment adds to it.
fn azure(connection: &Connection, environment: &Environment) -> Result<Connection, StoreRefusal> {
    let extra = Fields::of(connection)?;
    refuse(
        &extra,
        &[
            "connection_string",
            "managed_identity_client_id",
            "workload_identity_tenant_id",
        ],
        "Azure Blob Storage",
        "tenant_id+login+password (service principal), sas_token, shared_access_key/account_key/password, or ambient \
         credentials (AZURE_* environment variables, managed identity, workload identity, or az login)",
    )?;
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (host, login) = (filled(&connection.host), filled(&connection.login));
    check_azure_host(host.as_deref(), login.is_some(), environment)?;
    let credential = if extra.value("tenant_id").is_some() {
        if login.is_none() {
            return Err(StoreRefusal::HalfPrincipal("login (client_id)"));
        }
        if filled(&connection.password).is_none() {
            return Err(StoreRefusal::HalfPrincipal("password (client_secret)"));
        }
        Some(AzureCredential::ClientSecret)
    } else if extra.value("shared_access_key").is_some() {
        Some(AzureCredential::Key)
    } else if let Some(token) = extra.text("sas_token")? {
        if token.starts_with("http") {
            return Err(StoreRefusal::SasUrl);
        }
        Some(AzureCredential::Sas)
    } else if filled(&connection.password).is_some() || extra.value("account_key").is_some() {
        Some(AzureCredential::Key)
    } else {
        None
    };
    if let Some(credential) = credential {
        let outranking = outranking(credential, environment);
        if !outranking.is_empty() {
            return Err(StoreRefusal::Environment(outranking.join(", ")));
        }
    }
    let has_tenant = extra.value("tenant_id").is_some();
    let mut fields = connection.extra_json().map_err(StoreError::from)?;
    if let Some(endpoint) = azure_endpoint(environment) {
        fields.insert("account_host".to_owned(), endpoint.into());
    }
    let names_no_account = host.is_none() && (login.is_none() || has_tenant);
    if names_no_account && let Some(account) = environment.get("AZURE_STORAGE_ACCOUNT_NAME") {
        fields.insert("account_name".to_owned(), account.into());
    }
    Ok(Connection {
        extra: Some(Value::Object(fields).to_string()),
        ..connection.clone()
    })
}

fn azure_endpoint(environment: &Environment) -> Option<&str> {
    ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"]
        .into_iter()
        .filter_map(|name| environment.get(name))
        .find(|endpoint| !endpoint.is_empty())
}

/// The account is the first label of the host's name, so the host must be one with such a label.
fn check_azure_host(
    host: Option<&str>,
    has_login: bool,
    environment: &Environment,
) -> Result<(), StoreRefusal> {
    let Some(host) = host else {
        return Ok(());
    };
    let authority = host.split_once("://").map_or(host, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    if authority.contains(':') {
        return Err(StoreRefusal::EmulatorHost(repr_str(host)));
    }
    if !authority.contains('.') {
        return match has_login {
            true => Ok(()),
            false => Err(StoreRefusal::NoAccount(repr_str(host))),
        };
    }
    if !authority.ends_with(AZURE_PUBLIC_SUFFIX) && azure_endpoint(environment).is_none() {
        return Err(StoreRefusal::OtherCloud(format!(
            "Connection host {}",
            repr_str(host)
        )));
    }
    Ok(())
}

fn check_abfs(
    uri: &str,
    location: &Location,
    environment: &Environment,
) -> Result<(), StoreRefusal> {
    if !uri.starts_with("abfs") {
        return Ok(());
    }
    let Some(host) = &location.account_host else {
        return Err(StoreRefusal::AbfsShape(repr_str(uri)));
    };
    let domain = host.split_once('.').map_or("", |(_, domain)| domain);
    let domain = domain.to_ascii_lowercase();
    if domain == "core.windows.net"
        || domain.ends_with(".core.windows.net")
        || azure_endpoint(environment).is_some()
    {
        return Ok(());
    }
    Err(StoreRefusal::OtherCloud(format!("URI {}", repr_str(uri))))
}

/// The variables of the worker that say another identity than the connection does. The order of precedence is a token,
/// an account key, a workload identity, a client secret, a SAS; a group counts when it is complete.
fn outranking(credential: AzureCredential, environment: &Environment) -> Vec<&'static str> {
    let set = |names: &[&'static str]| -> Vec<&'static str> {
        let is_set =
            |name: &&&'static str| environment.get(name).is_some_and(|text| !text.is_empty());
        names.iter().filter(is_set).copied().collect()
    };
    let mut found = set(&["AZURE_STORAGE_TOKEN"]);
    if credential == AzureCredential::Key {
        return found;
    }
    found.extend(set(&AZURE_ACCOUNT_KEYS));
    let token_file = set(&[AZURE_TOKEN_FILE]);
    if credential == AzureCredential::ClientSecret {
        found.extend(token_file);
        return found;
    }
    let (ids, tenants) = (set(&AZURE_CLIENT_IDS), set(&AZURE_TENANTS));
    for last in [token_file, set(&AZURE_CLIENT_SECRETS)] {
        if !ids.is_empty() && !tenants.is_empty() && !last.is_empty() {
            for name in ids.iter().chain(&tenants).chain(&last) {
                if !found.contains(name) {
                    found.push(name);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn connection(conn_type: &str, extra: Value) -> Connection {
        Connection {
            conn_id: "c".to_owned(),
            conn_type: conn_type.to_owned(),
            extra: Some(extra.to_string()),
            ..Connection::default()
        }
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().copied().collect()
    }

    fn refusal(connection: &Connection, variables: &[(&str, &str)]) -> String {
        azure(connection, &environment(variables))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn fields_that_the_engine_does_not_read_are_refused_by_name() {
        for field in [
            "key_secret_name",
            "extra__google_cloud_platform__impersonation_chain",
        ] {
            let connection = connection("google_cloud_platform", json!({field: "x"}));
            let told = check_gcs(&Fields::of(&connection).unwrap())
                .unwrap_err()
                .to_string();
            let name = field.rsplit("__").next().unwrap();
            assert!(told.starts_with(&format!(
                "Connection field '{name}' is not supported for DataFusion GCS access"
            )));
        }
        let both = connection(
            "google_cloud_platform",
            json!({"key_path": "/k", "keyfile_dict": {"a": 1}}),
        );
        let told = check_gcs(&Fields::of(&both).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            told.starts_with("The `keyfile_dict` and `key_path` fields are mutually exclusive.")
        );
        let told = refusal(&connection("wasb", json!({"connection_string": "x"})), &[]);
        assert!(told.contains(
            "'connection_string' is not supported for DataFusion Azure Blob Storage access"
        ));
        let told = refusal(
            &connection("wasb", json!({"sas_token": "https://a/?sv=1"})),
            &[],
        );
        assert!(told.starts_with("A URL-form `sas_token` is not supported"));
        let told = refusal(&connection("wasb", json!({"tenant_id": "t"})), &[]);
        assert!(told.ends_with("but login (client_id) is not."));
    }

    #[test]
    fn a_host_must_lead_to_an_account_of_a_cloud_that_is_known() {
        let at = |host: &str| Connection {
            host: Some(host.to_owned()),
            ..connection("wasb", json!({}))
        };
        assert!(azure(&at("https://acc.blob.core.windows.net"), &environment(&[])).is_ok());
        assert!(refusal(&at("http://127.0.0.1:10000/acc"), &[]).contains("emulator's address"));
        assert!(refusal(&at("just-an-id"), &[]).contains("there is no `login`"));
        let other = at("acc.blob.core.chinacloudapi.cn");
        assert!(refusal(&other, &[]).contains("is not in the public cloud"));
        let told = azure(
            &other,
            &environment(&[("AZURE_STORAGE_ENDPOINT", "https://e")]),
        );
        assert!(
            told.unwrap()
                .extra
                .unwrap()
                .contains("\"account_host\":\"https://e\"")
        );
    }

    #[test]
    fn variables_that_outrank_a_connections_credential_are_named() {
        let key = connection("wasb", json!({"account_key": "not a real key"}));
        let sas = connection("wasb", json!({"sas_token": "sv=1"}));
        let workload = [
            ("AZURE_CLIENT_ID", "i"),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_FEDERATED_TOKEN_FILE", "/f"),
        ];
        assert!(azure(&key, &environment(&workload)).is_ok());
        let told = refusal(&key, &[("AZURE_STORAGE_TOKEN", "x")]);
        assert!(told.starts_with("Worker environment variable(s) AZURE_STORAGE_TOKEN outrank"));
        let told = refusal(&sas, &workload);
        assert!(
            told.contains("AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE outrank")
        );
        assert!(azure(&sas, &environment(workload.get(..2).unwrap())).is_ok());
        let told = refusal(&sas, &[("AZURE_STORAGE_MASTER_KEY", "x")]);
        assert!(told.contains("AZURE_STORAGE_MASTER_KEY outrank"));
        // Without a credential of its own the connection leaves it to the environment.
        assert!(azure(&connection("wasb", json!({})), &environment(&workload)).is_ok());
    }

    #[test]
    fn a_tenant_that_is_set_leaves_the_account_to_the_environment() {
        let account = |extra: Value| {
            let connection = Connection {
                login: Some("login".to_owned()),
                password: Some("made-up".to_owned()),
                ..connection("wasb", extra)
            };
            let variables = environment(&[("AZURE_STORAGE_ACCOUNT_NAME", "acc")]);
            let made = azure(&connection, &variables).unwrap();
            made.extra_json().unwrap().get("account_name").cloned()
        };
        let named = Some(json!("acc"));
        assert_eq!(account(json!({"tenant_id": "t"})), named);
        assert_eq!(account(json!({"extra__wasb__tenant_id": "t"})), named);
        assert_eq!(account(json!({"tenant_id": ""})), None);
        assert_eq!(account(json!({"tenant_id": null})), None);
    }

    #[test]
    fn an_abfs_uri_names_container_account_and_host() {
        let check = |uri: &str| {
            let location = Location::parse(uri).unwrap();
            check_abfs(uri, &location, &environment(&[])).map_err(|error| error.to_string())
        };
        assert_eq!(check("abfss://box@acc.dfs.core.windows.net/x"), Ok(()));
        assert!(
            check("abfs://box/x")
                .unwrap_err()
                .contains("does not match the required abfs(s)://")
        );
        assert!(
            check("abfs://box@acc.dfs.example.com/x")
                .unwrap_err()
                .contains("is not in the public cloud")
        );
    }
}
