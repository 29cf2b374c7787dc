//! Catalogs: where a table's metadata is. A connection is read as Airflow's `IcebergHook` and pyiceberg read it.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::IcebergError;
use crate::airflow::connection::Connection;
use crate::hook::blocking;

/// How long a catalog may take for one answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What stands between the parts of a namespace (REST catalog API).
const NAMESPACE_SEPARATOR: char = '\u{1f}';

/// A table as its catalog knows it.
pub(super) struct CatalogTable {
    pub metadata_location: String,
    /// Where the catalog sends the metadata along.
    pub metadata: Option<Value>,
    /// What opens the table's files: the connection's properties, and over them those of the catalog for this table.
    pub properties: BTreeMap<String, String>,
}

/// Looks a table up.
pub(super) async fn load(
    connection: &Connection,
    namespace: &str,
    table: &str,
) -> Result<CatalogTable, IcebergError> {
    let catalog = Catalog::of(connection)?;
    match catalog.property("type").unwrap_or("rest") {
        "rest" => catalog.load_over_http(namespace, table).await,
        "sql" => catalog.load_from_sqlite(namespace, table).await,
        other => Err(IcebergError::Unsupported(format!(
            "the catalog type {other:?} of connection '{}' (rest is known, and sql on SQLite)",
            connection.conn_id
        ))),
    }
}

struct Catalog<'a> {
    connection: &'a Connection,
    properties: BTreeMap<String, String>,
}

impl<'a> Catalog<'a> {
    /// The extra's properties; host, login and password go over them.
    fn of(connection: &'a Connection) -> Result<Self, IcebergError> {
        let extra = connection
            .extra_json()
            .map_err(|error| IcebergError::Catalog(error.to_string()))?;
        let mut properties = texts(&extra);
        let host = connection.host.as_deref().unwrap_or_default();
        let host = host.trim_end_matches('/');
        if !host.is_empty() {
            properties.insert("uri".to_owned(), host.to_owned());
        }
        let filled = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
        match (filled(&connection.login), filled(&connection.password)) {
            (Some(login), Some(password)) => {
                properties.insert("credential".to_owned(), format!("{login}:{password}"));
            }
            (None, None) => {}
            _ => tracing::warn!(
                target: "airflow.task",
                "Only one of Client ID / Client Secret is set. Both are required for OAuth2 credential authentication."
            ),
        }
        Ok(Self {
            connection,
            properties,
        })
    }

    fn property(&self, name: &str) -> Option<&str> {
        self.properties
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn failed(&self, what: impl std::fmt::Display) -> IcebergError {
        IcebergError::Catalog(format!(
            "the catalog of connection '{}': {what}",
            self.connection.conn_id
        ))
    }

    async fn load_over_http(
        mut self,
        namespace: &str,
        table: &str,
    ) -> Result<CatalogTable, IcebergError> {
        for unsupported in ["auth", "rest.sigv4-enabled", "ssl"] {
            if self
                .property(unsupported)
                .is_some_and(|value| value != "false")
            {
                return Err(IcebergError::Unsupported(format!(
                    "{unsupported} of a REST catalog"
                )));
            }
        }
        let client = Client::builder()
            .timeout(TIMEOUT)
            // A redirect would take the client's secret along in the body, wherever it leads.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| self.failed(error))?;
        let token = self.token(&client).await?;
        let mut config = self.url(&["v1", "config"])?;
        if let Some(warehouse) = self.property("warehouse") {
            config.query_pairs_mut().append_pair("warehouse", warehouse);
        }
        let config: Config = self.ask(&client, config, token.as_deref()).await?;
        // The catalog's defaults stand behind the connection's properties, its overrides before them.
        let mut properties = texts(&config.defaults);
        properties.append(&mut self.properties);
        properties.extend(texts(&config.overrides));
        self.properties = properties;

        let namespace: Vec<_> = namespace.split('.').collect();
        let namespace = namespace.join(&NAMESPACE_SEPARATOR.to_string());
        let mut path = vec!["v1"];
        path.extend(
            self.property("prefix")
                .into_iter()
                .flat_map(|prefix| prefix.split('/')),
        );
        path.extend(["namespaces", &namespace, "tables", table]);
        let url = self.url(&path)?;
        let loaded: LoadedTable = self.ask(&client, url, token.as_deref()).await?;
        let mut properties = self.properties;
        properties.extend(texts(&loaded.config));
        Ok(CatalogTable {
            metadata_location: loaded.metadata_location.unwrap_or_default(),
            metadata: Some(loaded.metadata),
            properties,
        })
    }

    fn url(&self, path: &[&str]) -> Result<Url, IcebergError> {
        let uri = self.property("uri").ok_or_else(|| {
            self.failed(
                "it has no address: set the connection's host, e.g. https://catalog.example.com/ws",
            )
        })?;
        let mut url = Url::parse(uri).map_err(|error| self.failed(format!("{uri}: {error}")))?;
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(path);
            }
            Err(()) => return Err(self.failed(format!("{uri} is no address of a server"))),
        }
        Ok(url)
    }

    /// A token of the connection's own, or one for its client id and secret.
    async fn token(&self, client: &Client) -> Result<Option<String>, IcebergError> {
        if let Some(token) = self.property("token") {
            return Ok(Some(token.to_owned()));
        }
        let Some(credential) = self.property("credential") else {
            return Ok(None);
        };
        let (id, secret) = match credential.split_once(':') {
            Some((id, secret)) => (Some(id), secret),
            None => (None, credential),
        };
        let url = match self.property("oauth2-server-uri") {
            Some(url) => Url::parse(url).map_err(|error| self.failed(format!("{url}: {error}")))?,
            None => self.url(&["v1", "oauth", "tokens"])?,
        };
        let scope = self.property("scope").unwrap_or("catalog");
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("scope", scope),
            ("client_secret", secret),
        ];
        form.extend(id.map(|id| ("client_id", id)));
        for optional in ["audience", "resource"] {
            form.extend(self.property(optional).map(|value| (optional, value)));
        }
        let body: String = reqwest::Url::parse_with_params("http://form/", &form)
            .map_err(|error| self.failed(error))?
            .query()
            .unwrap_or_default()
            .to_owned();
        let answer = client
            .post(url.clone())
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await;
        let answer: Token = self.read(&url, answer).await?;
        Ok(Some(answer.access_token))
    }

    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        client: &Client,
        url: Url,
        token: Option<&str>,
    ) -> Result<T, IcebergError> {
        let mut request = client
            .get(url.clone())
            .header("X-Iceberg-Access-Delegation", "vended-credentials");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        self.read(&url, request.send().await).await
    }

    async fn read<T: for<'de> Deserialize<'de>>(
        &self,
        url: &Url,
        answer: Result<Response, reqwest::Error>,
    ) -> Result<T, IcebergError> {
        let answer = answer.map_err(|error| self.failed(error.without_url()))?;
        let status = answer.status();
        let text = answer
            .text()
            .await
            .map_err(|error| self.failed(error.without_url()))?;
        if status != StatusCode::OK {
            let told: Option<Refusal> = serde_json::from_str(&text).ok();
            let told = told.map(|told| format!("{}: {}", told.error.kind, told.error.message));
            let path = url.path();
            return Err(self.failed(match told {
                Some(told) => format!("{told} ({status} for {path})"),
                None => format!("it answers {status} for {path}"),
            }));
        }
        serde_json::from_str(&text)
            .map_err(|error| self.failed(format!("its answer can't be read: {error}")))
    }

    /// pyiceberg's SQL catalog: a table of tables.
    async fn load_from_sqlite(
        self,
        namespace: &str,
        table: &str,
    ) -> Result<CatalogTable, IcebergError> {
        let uri = self.property("uri").unwrap_or_default();
        let Some(path) = uri.strip_prefix("sqlite:///").map(ToOwned::to_owned) else {
            let scheme = uri.split("://").next().unwrap_or_default();
            return Err(IcebergError::Unsupported(format!(
                "an SQL catalog on {scheme} (SQLite is known)"
            )));
        };
        let keys = [
            self.connection.conn_id.clone(),
            namespace.to_owned(),
            table.to_owned(),
        ];
        let found = blocking::run(move || {
            let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let database = rusqlite::Connection::open_with_flags(path, flags)?;
            database.query_row(
                "SELECT metadata_location FROM iceberg_tables \
                 WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3",
                keys,
                |row| row.get::<_, String>(0),
            )
        });
        let found = found.await.map_err(|error| self.failed(error))?;
        let metadata_location = found.map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => {
                self.failed(format!("Table does not exist: {namespace}.{table}"))
            }
            other => self.failed(other),
        })?;
        Ok(CatalogTable {
            metadata_location,
            metadata: None,
            properties: self.properties,
        })
    }
}

/// Properties are texts; JSON may write them as numbers and booleans.
fn texts(of: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) => None,
    };
    of.iter()
        .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
        .collect()
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    defaults: Map<String, Value>,
    #[serde(default)]
    overrides: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LoadedTable {
    #[serde(default)]
    metadata_location: Option<String>,
    metadata: Value,
    #[serde(default)]
    config: Map<String, Value>,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalError,
}

#[derive(Deserialize)]
struct RefusalError {
    message: String,
    #[serde(rename = "type", default)]
    kind: String,
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::method;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    #[tokio::test]
    async fn a_redirect_does_not_take_the_clients_secret_along() {
        let (catalog, elsewhere) = (MockServer::start().await, MockServer::start().await);
        let moved = ResponseTemplate::new(307).insert_header("location", elsewhere.uri());
        Mock::given(method("POST"))
            .respond_with(moved)
            .expect(1)
            .mount(&catalog)
            .await;
        let connection = Connection {
            conn_id: "lake".to_owned(),
            conn_type: "iceberg".to_owned(),
            host: Some(catalog.uri()),
            login: Some("client".to_owned()),
            password: Some("made-up-secret".to_owned()),
            ..Connection::default()
        };
        let told = load(&connection, "sea", "t").await.err().unwrap();
        assert_eq!(
            told.to_string(),
            "the catalog of connection 'lake': it answers 307 Temporary Redirect for /v1/oauth/tokens"
        );
        assert!(elsewhere.received_requests().await.unwrap().is_empty());
    }
}
