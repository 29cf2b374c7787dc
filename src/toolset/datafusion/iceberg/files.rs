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

/// Opens stores as they are met.
pub(super) struct TableFiles<'a> {
    credentials: Credentials,
    /// Where the table is.
    home: Location,
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
    pub fn of_connection(
        connection: Option<Connection>,
        home: Location,
        environment: &'a Environment,
    ) -> Self {
        let credentials = Credentials::Connection(connection.map(Box::new));
        Self::new(credentials, home, environment)
    }

    pub fn of_properties(
        properties: BTreeMap<String, String>,
        home: Location,
        environment: &'a Environment,
    ) -> Self {
        Self::new(Credentials::Properties(properties), home, environment)
    }

    fn new(credentials: Credentials, home: Location, environment: &'a Environment) -> Self {
        Self {
            credentials,
            home,
            environment,
            stores: Mutex::default(),
        }
    }

    /// Where a file is that the table names.
    ///
    /// # Errors
    /// On the worker's disk or on a web server, and the table is not: who may write a table must not choose what the
    /// worker reads.
    pub fn locate(&self, file: &str) -> Result<Location, IcebergError> {
        let location = Location::parse(file)?;
        let is_free = !matches!(location.scheme, Scheme::File | Scheme::Http);
        if is_free || location.root() == self.home.root() {
            return Ok(location);
        }
        Err(IcebergError::Elsewhere {
            file: file.to_owned(),
            home: self.home.root(),
        })
    }

    /// The store of a file.
    pub async fn store(&self, location: &Location) -> Result<Arc<dyn ObjectStore>, IcebergError> {
        let root = location.root();
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
        let location = self.locate(file)?;
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
        let location = self.locate(&folder)?;
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
    fn only_a_table_on_the_disk_or_on_a_web_server_may_name_files_there() {
        let environment = Environment::default();
        let locate = |home: &str, file: &str| {
            let home = Location::parse(home).unwrap();
            let files = TableFiles::of_connection(None, home, &environment);
            let found = files.locate(file);
            found
                .map(|location| location.to_string())
                .map_err(|error| error.to_string())
        };
        for (home, file) in [
            ("s3://b/t", "s3://other/x"),
            ("s3://b/t", "gs://other/x"),
            ("/t", "file:///elsewhere/x"),
            ("/t", "s3://b/x"),
            ("https://web/t", "https://web/x"),
        ] {
            assert_eq!(locate(home, file), Ok(file.to_owned()));
        }
        for (home, file) in [
            ("s3://b/t", "/etc/passwd"),
            ("gs://b/t", "file:///etc/passwd"),
            ("s3://b/t", "http://169.254.169.254/x"),
            ("https://web/t", "http://web/x"),
            ("https://web/t", "https://other/x"),
            ("/t", "http://127.0.0.1/x"),
        ] {
            let told = locate(home, file).unwrap_err();
            assert!(
                told.starts_with(&format!("the table names the file {file}")),
                "{told}"
            );
        }
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
