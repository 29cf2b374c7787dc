//! The files of a table, wherever they are: metadata may name any bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::IcebergError;
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;
use crate::hook::object_store::{self as stores, Location, Scheme};

/// The root of files on the worker's own disk.
pub(super) const LOCAL_ROOT: &str = "file://";

/// Opens stores as they are met.
pub(super) struct TableFiles<'a> {
    credentials: Credentials,
    environment: &'a Environment,
    stores: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>>,
}

enum Credentials {
    /// Of the table's path.
    Connection(Option<Box<Connection>>),
    /// pyiceberg's file properties: `s3.access-key-id` and the like.
    Properties(BTreeMap<String, String>),
}

impl<'a> TableFiles<'a> {
    pub fn of_connection(connection: Option<Connection>, environment: &'a Environment) -> Self {
        Self::new(
            Credentials::Connection(connection.map(Box::new)),
            environment,
        )
    }

    pub fn of_properties(
        properties: BTreeMap<String, String>,
        environment: &'a Environment,
    ) -> Self {
        Self::new(Credentials::Properties(properties), environment)
    }

    fn new(credentials: Credentials, environment: &'a Environment) -> Self {
        Self {
            credentials,
            environment,
            stores: Mutex::default(),
        }
    }

    /// The store of a file.
    pub async fn store(&self, location: &Location) -> Result<Arc<dyn ObjectStore>, IcebergError> {
        let root = root(location);
        let mut known = self.stores.lock().await;
        if let Some(store) = known.get(&root) {
            return Ok(Arc::clone(store));
        }
        let connection = match &self.credentials {
            Credentials::Connection(connection) => connection.as_deref().cloned(),
            Credentials::Properties(properties) => of_properties(location.scheme, properties)?,
        };
        let store = stores::open(location, connection.as_ref(), self.environment).await?;
        known.insert(root, Arc::clone(&store));
        Ok(store)
    }

    pub async fn read(&self, file: &str) -> Result<Vec<u8>, IcebergError> {
        let location = Location::parse(file)?;
        let store = self.store(&location).await?;
        let failed = |source| IcebergError::Read {
            file: file.to_owned(),
            source,
        };
        let found = store.get(&location.object_path()?).await.map_err(failed)?;
        Ok(found.bytes().await.map_err(failed)?.into())
    }

    pub async fn read_json(&self, file: &str) -> Result<Value, IcebergError> {
        serde_json::from_slice(&self.read(file).await?)
            .map_err(|error| IcebergError::Metadata(format!("{file}: {error}")))
    }

    /// The newest metadata file of the table at a path.
    pub async fn newest_metadata(&self, table: &str) -> Result<String, IcebergError> {
        let table = table.trim_end_matches('/');
        let folder = format!("{table}/metadata");
        let location = Location::parse(&folder)?;
        let store = self.store(&location).await?;
        let prefix = location.object_path()?;
        let files: Vec<_> = store
            .list(Some(&prefix))
            .try_collect()
            .await
            .map_err(|source| IcebergError::Read {
                file: folder.clone(),
                source,
            })?;
        let names = files.iter().filter_map(|file| file.location.filename());
        let newest = names
            .filter_map(|name| Some((version(name)?, name)))
            .max()
            .map(|(_, name)| format!("{folder}/{name}"));
        newest.ok_or_else(|| IcebergError::NoTable(table.to_owned()))
    }
}

/// `00003-<uuid>.metadata.json` of catalogs, `v3.metadata.json` of tables in folders.
fn version(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".metadata.json")?;
    let number = stem.split('-').next().unwrap_or(stem);
    number.strip_prefix('v').unwrap_or(number).parse().ok()
}

/// Scheme and bucket or container: what a store is found by.
pub(super) fn root(location: &Location) -> String {
    match location.scheme {
        Scheme::File => LOCAL_ROOT.to_owned(),
        Scheme::S3 => format!("s3://{}", location.container),
        Scheme::Gcs => format!("gs://{}", location.container),
        Scheme::Azure => {
            let account = location.account_host.as_deref();
            match account.and_then(|host| host.split('.').next()) {
                Some(account) => format!("az://{account}.{}", location.container),
                None => format!("az://{}", location.container),
            }
        }
        Scheme::Http => location.container.clone(),
    }
}

/// The properties as the connection that means the same; `None` where they say nothing of a store, which is opened with
/// the worker's own credentials then.
fn of_properties(
    scheme: Scheme,
    properties: &BTreeMap<String, String>,
) -> Result<Option<Connection>, IcebergError> {
    let get = |names: &[&str]| {
        let found = names.iter().find_map(|name| properties.get(*name));
        found.filter(|value| !value.is_empty()).cloned()
    };
    let on = |name: &str| get(&[name]).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let mut connection = Connection {
        conn_id: "the catalog's properties".to_owned(),
        ..Connection::default()
    };
    let mut extra = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            extra.insert(name.to_owned(), value.into());
        }
    };
    match scheme {
        Scheme::S3 => {
            if on("s3.remote-signing-enabled") {
                return Err(IcebergError::Unsupported("remote signing".to_owned()));
            }
            connection.conn_type = "aws".to_owned();
            connection.login = get(&["s3.access-key-id", "client.access-key-id"]);
            connection.password = get(&["s3.secret-access-key", "client.secret-access-key"]);
            put(
                "aws_session_token",
                get(&["s3.session-token", "client.session-token"]),
            );
            put("endpoint_url", get(&["s3.endpoint"]));
            put("region_name", get(&["s3.region", "client.region"]));
            put("role_arn", get(&["s3.role-arn", "client.role-arn"]));
            if on("s3.anonymous") {
                let unsigned = json!({"signature_version": "unsigned"});
                extra.insert("config_kwargs".to_owned(), unsigned);
            } else if on("s3.force-virtual-addressing") {
                let style = json!({"s3": {"addressing_style": "virtual"}});
                extra.insert("config_kwargs".to_owned(), style);
            }
        }
        Scheme::Gcs => {
            if get(&["gcs.oauth2.token"]).is_some() {
                return Err(IcebergError::Unsupported(
                    "a table whose catalog gives tokens for Google Cloud Storage".to_owned(),
                ));
            }
            connection.conn_type = "google_cloud_platform".to_owned();
            put("gcs.endpoint", get(&["gcs.service.host"]));
        }
        Scheme::Azure => {
            connection.conn_type = "wasb".to_owned();
            connection.login = get(&["adls.client-id", "adls.account-name"]);
            connection.password = get(&["adls.client-secret", "adls.account-key"]);
            put("account_name", get(&["adls.account-name"]));
            put("account_host", get(&["adls.account-host"]));
            put("tenant_id", get(&["adls.tenant-id"]));
            put("sas_token", get(&["adls.sas-token"]));
            put("connection_string", get(&["adls.connection-string"]));
        }
        Scheme::File | Scheme::Http => return Ok(None),
    }
    if connection.login.is_none() && extra.is_empty() {
        return Ok(None);
    }
    connection.extra = Some(Value::Object(extra).to_string());
    Ok(Some(connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_metadata_is_that_of_the_highest_version() {
        assert_eq!(version("00012-0c7f.metadata.json"), Some(12));
        assert_eq!(version("v9.metadata.json"), Some(9));
        assert_eq!(version("snap-1.avro"), None);
        assert!(version("v10.metadata.json") > version("v9.metadata.json"));
    }

    #[test]
    fn file_properties_say_the_same_as_a_connection() {
        let properties = [
            ("client.access-key-id", "id"),
            ("s3.secret-access-key", "not a real key"),
            ("s3.endpoint", "http://127.0.0.1:1"),
        ];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let connection = of_properties(Scheme::S3, &properties.into())
            .unwrap()
            .unwrap();
        assert_eq!(connection.conn_type, "aws");
        assert_eq!(connection.login.as_deref(), Some("id"));
        assert_eq!(
            connection.extra.as_deref(),
            Some(r#"{"endpoint_url":"http://127.0.0.1:1"}"#)
        );
        assert_eq!(of_properties(Scheme::S3, &BTreeMap::new()).unwrap(), None);
    }
}
