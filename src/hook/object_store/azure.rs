//! Azure Blob Storage, from a connection of type `wasb` or `adls`.

use object_store::RetryConfig;
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::ClientOptions;
use reqwest::Url;
use serde_json::Value;

use super::fields::{Fields, filled};
use super::{Location, METADATA_TIMEOUT, StoreError, expect_type, is_plain_http, retries};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;

/// The longest name of a storage account.
const MAX_ACCOUNT: usize = 24;
const PUBLIC_SUFFIX: &str = "blob.core.windows.net";
/// What the hosts of storage accounts end with, in each of Microsoft's clouds and in OneLake.
const CLOUDS: [&str; 4] = [
    "core.windows.net",
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
    "fabric.microsoft.com",
];
/// Account and key that every Azurite has; both are in Microsoft's documentation.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Opens a container with the connection's credentials, else with the worker's own.
pub(super) async fn open(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<MicrosoftAzure, StoreError> {
    let unnamed = Connection {
        conn_id: "wasb".to_owned(),
        conn_type: "wasb".to_owned(),
        ..Connection::default()
    };
    let fields = Fields::of(connection.unwrap_or(&unnamed))?;
    if connection.is_some() {
        let types = ["wasb", "adls", "azure_data_lake"];
        expect_type(location, fields.connection, &types, "wasb or adls")?;
    }
    let settings = Reading {
        location,
        fields: &fields,
        environment,
    }
    .read()?;
    let client_error = |source| StoreError::Client {
        url: location.to_string(),
        source,
    };
    let Some(account) = &settings.account else {
        return Err(fields.error(
            "login or host",
            "must name the storage account: its name in login, or its URL in host",
        ));
    };
    let endpoint = settings
        .endpoint
        .clone()
        .unwrap_or_else(|| format!("https://{account}.{PUBLIC_SUFFIX}"));
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(&location.container)
        .with_account(account)
        .with_client_options(ClientOptions::new().with_allow_http(is_plain_http(&endpoint)))
        .with_retry(retries())
        .with_endpoint(endpoint);
    if let Some(authority) = &settings.authority {
        builder = builder.with_authority_host(authority);
    }
    builder = match settings.credentials {
        Credentials::Key(key) => builder.with_access_key(key),
        Credentials::Sas(sas) => builder.with_config(AzureConfigKey::SasKey, sas),
        Credentials::ServicePrincipal {
            tenant_id,
            client_id,
            secret,
        } => builder.with_client_secret_authorization(client_id, secret, tenant_id),
        Credentials::WorkloadIdentity {
            tenant_id,
            client_id,
            token_file,
        } => builder
            .with_tenant_id(tenant_id)
            .with_client_id(client_id)
            .with_federated_token_file(token_file),
        Credentials::Anonymous => builder.with_skip_signature(true),
        Credentials::ManagedIdentity { client_id } => {
            if let Some(client_id) = client_id {
                builder = builder.with_client_id(client_id);
            }
            if let Some(endpoint) = filled(environment.get("IDENTITY_ENDPOINT")) {
                builder = builder.with_msi_endpoint(endpoint);
            }
            let probe = builder.clone().with_retry(RetryConfig {
                max_retries: 0,
                ..retries()
            });
            let own = probe.build().map_err(client_error)?.credentials().clone();
            // Off Azure's machines there is no metadata service, and nobody answers.
            match tokio::time::timeout(METADATA_TIMEOUT, own.get_credential()).await {
                Ok(Ok(_)) => builder,
                _ => {
                    return Err(fields.error(
                        "password",
                        "is empty, the extra holds no credentials, and the worker has none of its own: set the \
                         account's key as password, or sas_token, connection_string, tenant_id (with login and \
                         password) or anon in the extra",
                    ));
                }
            }
        }
    };
    builder.build().map_err(client_error)
}

#[derive(Debug, PartialEq)]
struct Settings {
    account: Option<String>,
    /// The account's URL, where it is not the public one.
    endpoint: Option<String>,
    authority: Option<String>,
    credentials: Credentials,
}

#[derive(PartialEq)]
enum Credentials {
    Key(String),
    Sas(String),
    ServicePrincipal {
        tenant_id: String,
        client_id: String,
        secret: String,
    },
    WorkloadIdentity {
        tenant_id: String,
        client_id: String,
        token_file: String,
    },
    ManagedIdentity {
        client_id: Option<String>,
    },
    Anonymous,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Sas(_) => "Sas",
            Self::ServicePrincipal { .. } => "ServicePrincipal",
            Self::WorkloadIdentity { .. } => "WorkloadIdentity",
            Self::ManagedIdentity { .. } => "ManagedIdentity",
            Self::Anonymous => "Anonymous",
        })
    }
}

struct Reading<'a> {
    location: &'a Location,
    fields: &'a Fields<'a>,
    environment: &'a Environment,
}

impl Reading<'_> {
    fn env(&self, name: &str) -> Option<String> {
        filled(self.environment.get(name)).map(ToOwned::to_owned)
    }

    fn read(&self) -> Result<Settings, StoreError> {
        let fields = self.fields;
        // A connection string goes before everything else.
        if let Some(text) = fields.text("connection_string")? {
            return connection_string(text)
                .map_err(|problem| fields.error("extra's connection_string", problem));
        }
        let mut settings = Settings {
            account: None,
            endpoint: None,
            authority: self.authority()?,
            credentials: Credentials::Anonymous,
        };
        self.account(&mut settings)?;
        if let Some(credentials) = self.of_connection(&mut settings)? {
            settings.credentials = credentials;
            return Ok(settings);
        }
        if fields.switch("anon")
            || self
                .env("AZURE_STORAGE_ANON")
                .is_some_and(|on| on == "true")
        {
            return Ok(settings);
        }
        if settings.account.is_none() {
            if let Some(text) = self.env("AZURE_STORAGE_CONNECTION_STRING") {
                return connection_string(&text).map_err(|problem| {
                    StoreError::Ambient(format!("AZURE_STORAGE_CONNECTION_STRING {problem}"))
                });
            }
            settings.account = self.env("AZURE_STORAGE_ACCOUNT_NAME");
        }
        settings.credentials = self.of_worker()?;
        Ok(settings)
    }

    fn authority(&self) -> Result<Option<String>, StoreError> {
        let config = self.fields.object("client_secret_auth_config")?;
        let host = config.get("authority").and_then(Value::as_str);
        let host = host.map(ToOwned::to_owned);
        Ok(host
            .or_else(|| self.env("AZURE_AUTHORITY_HOST"))
            .map(|host| match host.contains("://") {
                true => host,
                false => format!("https://{host}"),
            }))
    }

    /// The account's name and address: from the URL of the files, from `host`, else from `login`.
    fn account(&self, settings: &mut Settings) -> Result<(), StoreError> {
        let fields = self.fields;
        if let Some(name) = fields.text("account_name")? {
            settings.account = Some(name.to_owned());
        } else if let Some(host) = fields.host() {
            let url = match host.contains("://") {
                true => host.to_owned(),
                false => format!("https://{host}"),
            };
            let url: Url = url
                .parse()
                .map_err(|error| fields.error("host", format!("is no address: {error}")))?;
            self.host(&url, settings);
        } else if fields.text("tenant_id")?.is_none() {
            // With a tenant the login is a client's id, and names no account.
            settings.account = fields.login().map(cut);
        }
        if let Some(host) = fields.text("account_host")? {
            settings.endpoint = Some(match host.contains("://") {
                true => host.to_owned(),
                false => format!("https://{host}"),
            });
        }
        if let Some(host) = &self.location.account_host {
            let (named, suffix) = host.split_once('.').unwrap_or((host, ""));
            if let Some(own) = &settings.account
                && !own.eq_ignore_ascii_case(named)
            {
                return Err(fields.error(
                    "host or login",
                    format!(
                        "names the storage account {own:?}, and {} names {named:?}",
                        self.location
                    ),
                ));
            }
            settings.account = Some(named.to_owned());
            if settings.endpoint.is_none() {
                // A model may have written the URL, and credentials go where it leads.
                if !is_microsofts(suffix) {
                    return Err(StoreError::Url {
                        url: self.location.to_string(),
                        problem: format!(
                            "{host} is no storage account in one of Microsoft's clouds; for another address, set the \
                             connection's host and leave the account out of the URL"
                        ),
                    });
                }
                // The address for files of Data Lake Gen2 has a twin for blobs.
                let suffix = suffix
                    .strip_prefix("dfs.")
                    .map_or_else(|| suffix.to_owned(), |suffix| format!("blob.{suffix}"));
                settings.endpoint = Some(format!("https://{named}.{suffix}"));
            }
        }
        Ok(())
    }

    fn host(&self, url: &Url, settings: &mut Settings) {
        let host = url.host_str().unwrap_or_default();
        let login = self.fields.login().map(cut);
        let is_address =
            url.port().is_some() || host == "localhost" || host.parse::<std::net::IpAddr>().is_ok();
        if is_address {
            // An emulator: the account is the first part of the path.
            let of_path = url.path_segments().and_then(|mut parts| parts.next());
            let of_path = filled(of_path).map(ToOwned::to_owned);
            let account = of_path
                .or(login)
                .unwrap_or_else(|| EMULATOR_ACCOUNT.to_owned());
            let origin = url.origin().ascii_serialization();
            settings.endpoint = Some(format!("{origin}/{account}"));
            settings.account = Some(account);
        } else if !host.contains('.') {
            // The id of a directory, and no address.
            settings.account = login;
        } else {
            let (label, suffix) = host.split_once('.').unwrap_or((host, ""));
            let account = cut(label);
            settings.endpoint = Some(format!("https://{account}.{suffix}"));
            settings.account = Some(account);
        }
    }

    fn of_connection(&self, settings: &mut Settings) -> Result<Option<Credentials>, StoreError> {
        let fields = self.fields;
        if let Some(tenant_id) = fields.text("tenant_id")? {
            let (Some(client_id), Some(secret)) = (fields.login(), fields.password()) else {
                let missing = match fields.login() {
                    None => "login (the client's id)",
                    Some(_) => "password (the client's secret)",
                };
                return Err(fields.error(
                    "extra's tenant_id",
                    format!("asks for a service principal, and {missing} is not set"),
                ));
            };
            return Ok(Some(Credentials::ServicePrincipal {
                tenant_id: tenant_id.to_owned(),
                client_id: client_id.to_owned(),
                secret: secret.to_owned(),
            }));
        }
        if let Some(key) = fields.text("shared_access_key")? {
            return Ok(Some(Credentials::Key(key.to_owned())));
        }
        if let Some(sas) = fields.text("sas_token")? {
            if !sas.starts_with("http") {
                return Ok(Some(Credentials::Sas(sas.to_owned())));
            }
            // The account's URL with the token as its query.
            let url: Url = sas.parse().map_err(|_| {
                fields.error("extra's sas_token", "is neither a token nor a URL with one")
            })?;
            self.host(&url, settings);
            return Ok(Some(Credentials::Sas(
                url.query().unwrap_or_default().to_owned(),
            )));
        }
        if let Some(key) = fields.password().or(fields.text("account_key")?) {
            return Ok(Some(Credentials::Key(key.to_owned())));
        }
        let client_id = fields.text("managed_identity_client_id")?;
        if let Some(tenant_id) = fields.text("workload_identity_tenant_id")? {
            let client_id = fields.text("workload_identity_client_id")?.or(client_id);
            if let (Some(client_id), Some(token_file)) =
                (client_id, self.env("AZURE_FEDERATED_TOKEN_FILE"))
            {
                return Ok(Some(Credentials::WorkloadIdentity {
                    tenant_id: tenant_id.to_owned(),
                    client_id: client_id.to_owned(),
                    token_file,
                }));
            }
        }
        Ok(client_id.map(|client_id| Credentials::ManagedIdentity {
            client_id: Some(client_id.to_owned()),
        }))
    }

    /// What the worker's environment holds, in the order of Azure's own libraries.
    fn of_worker(&self) -> Result<Credentials, StoreError> {
        if let Some(key) = self.env("AZURE_STORAGE_ACCOUNT_KEY") {
            return Ok(Credentials::Key(key));
        }
        if let Some(sas) = self.env("AZURE_STORAGE_SAS_TOKEN") {
            return Ok(Credentials::Sas(sas));
        }
        let either = |name: &str| {
            self.env(&format!("AZURE_STORAGE_{name}"))
                .or_else(|| self.env(&format!("AZURE_{name}")))
        };
        let client_id = either("CLIENT_ID");
        if let (Some(client_id), Some(tenant_id)) = (&client_id, either("TENANT_ID")) {
            let (client_id, secret) = (client_id.clone(), either("CLIENT_SECRET"));
            if let Some(secret) = secret {
                return Ok(Credentials::ServicePrincipal {
                    tenant_id,
                    client_id,
                    secret,
                });
            }
            if let Some(token_file) = self.env("AZURE_FEDERATED_TOKEN_FILE") {
                return Ok(Credentials::WorkloadIdentity {
                    tenant_id,
                    client_id,
                    token_file,
                });
            }
        }
        Ok(Credentials::ManagedIdentity { client_id })
    }
}

/// Is what follows an account's name in its host in one of [`CLOUDS`]?
fn is_microsofts(suffix: &str) -> bool {
    let suffix = suffix.to_ascii_lowercase();
    CLOUDS.iter().any(|cloud| {
        suffix
            .strip_suffix(cloud)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

fn cut(name: &str) -> String {
    name.chars().take(MAX_ACCOUNT).collect()
}

/// Azure's own form: `AccountName=a;AccountKey=k;...`.
fn connection_string(text: &str) -> Result<Settings, String> {
    let part = |name: &str| {
        text.split(';').find_map(|part| {
            let (key, value) = part.split_once('=')?;
            (key.trim().eq_ignore_ascii_case(name) && !value.trim().is_empty())
                .then(|| value.trim().to_owned())
        })
    };
    if part("UseDevelopmentStorage").is_some_and(|on| on.eq_ignore_ascii_case("true")) {
        return Ok(Settings {
            account: Some(EMULATOR_ACCOUNT.to_owned()),
            endpoint: Some(format!("http://127.0.0.1:10000/{EMULATOR_ACCOUNT}")),
            authority: None,
            credentials: Credentials::Key(EMULATOR_KEY.to_owned()),
        });
    }
    let endpoint = part("BlobEndpoint");
    let of_endpoint = endpoint.as_deref().and_then(|endpoint| {
        let url = Url::parse(endpoint).ok()?;
        let host = url.host_str()?;
        let in_path = url.path_segments()?.next().filter(|part| !part.is_empty());
        let label = host.split('.').next().unwrap_or(host);
        Some(in_path.unwrap_or(label).to_owned())
    });
    let Some(account) = part("AccountName").or(of_endpoint) else {
        return Err("names no account: AccountName or BlobEndpoint is missing".to_owned());
    };
    let credentials = match (part("AccountKey"), part("SharedAccessSignature")) {
        (Some(key), _) => Credentials::Key(key),
        (None, Some(sas)) => Credentials::Sas(sas),
        (None, None) => match endpoint.as_deref().and_then(|url| url.split_once('?')) {
            Some((_, sas)) => Credentials::Sas(sas.to_owned()),
            None => {
                return Err("holds neither AccountKey nor SharedAccessSignature".to_owned());
            }
        },
    };
    let endpoint = match endpoint {
        Some(endpoint) => {
            let address = endpoint.split('?').next().unwrap_or(&endpoint);
            address.trim_end_matches('/').to_owned()
        }
        None => {
            let scheme = part("DefaultEndpointsProtocol").unwrap_or_else(|| "https".to_owned());
            let suffix = part("EndpointSuffix").unwrap_or_else(|| "core.windows.net".to_owned());
            format!("{scheme}://{account}.blob.{suffix}")
        }
    };
    Ok(Settings {
        account: Some(account),
        endpoint: Some(endpoint),
        authority: None,
        credentials,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn read(
        url: &str,
        connection: &Connection,
        environment: &[(&str, &str)],
    ) -> Result<Settings, StoreError> {
        let location = Location::parse(url).unwrap();
        Reading {
            location: &location,
            fields: &Fields::of(connection).unwrap(),
            environment: &environment.iter().copied().collect(),
        }
        .read()
    }

    fn wasb(host: &str, login: &str, password: &str, extra: Value) -> Connection {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Connection {
            conn_id: "w".to_owned(),
            conn_type: "wasb".to_owned(),
            host: text(host),
            login: text(login),
            password: text(password),
            extra: Some(extra.to_string()),
            ..Connection::default()
        }
    }

    #[test]
    fn the_account_is_the_hosts_first_label_else_the_login() {
        let key = || Credentials::Key("k".to_owned());
        let of = |host: &str, login: &str| {
            let settings = read("abfs://c/p", &wasb(host, login, "k", json!({})), &[]).unwrap();
            assert_eq!(settings.credentials, key());
            (settings.account.unwrap(), settings.endpoint)
        };
        assert_eq!(of("", "acc"), ("acc".to_owned(), None));
        assert_eq!(
            of("https://acc.blob.core.usgovcloudapi.net/", "x"),
            (
                "acc".to_owned(),
                Some("https://acc.blob.core.usgovcloudapi.net".to_owned())
            )
        );
        assert_eq!(of("a-directory-id", "acc"), ("acc".to_owned(), None));
        assert_eq!(
            of("http://127.0.0.1:10000/acc", "x"),
            (
                "acc".to_owned(),
                Some("http://127.0.0.1:10000/acc".to_owned())
            )
        );
    }

    #[test]
    fn credentials_are_taken_in_the_order_of_the_python_hook() {
        let of = |extra: Value, password: &str| {
            read("abfs://c/p", &wasb("", "acc", password, extra), &[])
                .unwrap()
                .credentials
        };
        let both = json!({"shared_access_key": "shared", "sas_token": "sv=1"});
        assert_eq!(of(both, "p"), Credentials::Key("shared".to_owned()));
        let sas = json!({"extra__wasb__sas_token": "?sv=1"});
        assert_eq!(of(sas, "p"), Credentials::Sas("?sv=1".to_owned()));
        let key = json!({"account_key": "k"});
        assert_eq!(of(key.clone(), "p"), Credentials::Key("p".to_owned()));
        assert_eq!(of(key, ""), Credentials::Key("k".to_owned()));
        assert_eq!(of(json!({"anon": true}), ""), Credentials::Anonymous);
        let url = json!({"sas_token": "https://other.blob.core.windows.net/?sv=1&sig=x"});
        assert_eq!(of(url, ""), Credentials::Sas("sv=1&sig=x".to_owned()));
    }

    #[test]
    fn a_tenant_needs_login_and_password() {
        let error = |login: &str, password: &str| {
            let connection = wasb(
                "acc.blob.core.windows.net",
                login,
                password,
                json!({"tenant_id": "t"}),
            );
            read("abfs://c/p", &connection, &[])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("", "s"),
            "connection `w`: extra's tenant_id asks for a service principal, and login (the client's id) is not set"
        );
        assert!(error("c", "").contains("password (the client's secret) is not set"));
    }

    #[test]
    fn a_connection_string_goes_before_everything() {
        let text = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5PT0=;EndpointSuffix=core.windows.net";
        let connection = wasb("h.example", "l", "p", json!({"connection_string": text}));
        assert_eq!(
            read("abfs://c/p", &connection, &[]).unwrap(),
            Settings {
                account: Some("acc".to_owned()),
                endpoint: Some("https://acc.blob.core.windows.net".to_owned()),
                authority: None,
                credentials: Credentials::Key("a2V5PT0=".to_owned()),
            }
        );
        let bad = wasb("", "", "", json!({"connection_string": "AccountName=acc"}));
        assert_eq!(
            read("abfs://c/p", &bad, &[]).unwrap_err().to_string(),
            "connection `w`: extra's connection_string holds neither AccountKey nor SharedAccessSignature"
        );
    }

    #[test]
    fn the_account_of_the_url_and_of_the_connection_must_agree() {
        let url = "abfss://c@other.dfs.core.windows.net/p";
        let error = read(url, &wasb("", "acc", "k", json!({})), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "connection `w`: host or login names the storage account \"acc\", and \
             abfss://c@other.dfs.core.windows.net/p names \"other\""
        );
        let settings = read(url, &wasb("", "other", "k", json!({})), &[]).unwrap();
        assert_eq!(
            settings.endpoint.as_deref(),
            Some("https://other.blob.core.windows.net")
        );
    }

    #[test]
    fn a_url_leads_credentials_to_microsofts_clouds_only() {
        let sas = wasb("", "", "", json!({"sas_token": "sv=1&sig=made-up"}));
        let endpoint = |url: &str| read(url, &sas, &[]).map(|settings| settings.endpoint);
        for (url, expected) in [
            (
                "abfss://c@acc.dfs.core.usgovcloudapi.net/p",
                "https://acc.blob.core.usgovcloudapi.net",
            ),
            (
                "wasbs://c@acc.Blob.Core.Windows.net",
                "https://acc.Blob.Core.Windows.net",
            ),
            (
                "abfss://c@onelake.dfs.fabric.microsoft.com/p",
                "https://onelake.blob.fabric.microsoft.com",
            ),
        ] {
            assert_eq!(endpoint(url).unwrap().as_deref(), Some(expected), "{url}");
        }
        for host in [
            "acc.evil.example",
            "acc.evilcore.windows.net",
            "core.windows.net.evil.example",
        ] {
            let error = endpoint(&format!("wasb://c@{host}")).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "wasb://c@{host}: {host} is no storage account in one of Microsoft's clouds; for another address, \
                     set the connection's host and leave the account out of the URL"
                )
            );
        }
        // The connection itself may name any address.
        let own = wasb("https://acc.files.example", "", "k", json!({}));
        let settings = read("abfs://c@acc.evil.example/p", &own, &[]).unwrap();
        assert_eq!(
            settings.endpoint.as_deref(),
            Some("https://acc.files.example")
        );
    }

    #[test]
    fn the_workers_own_credentials_are_used_when_the_connection_has_none() {
        let environment = [
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_SECRET", "s"),
        ];
        assert_eq!(
            read("abfs://c/p", &wasb("", "acc", "", json!({})), &environment)
                .unwrap()
                .credentials,
            Credentials::ServicePrincipal {
                tenant_id: "t".to_owned(),
                client_id: "c".to_owned(),
                secret: "s".to_owned()
            }
        );
    }
}
