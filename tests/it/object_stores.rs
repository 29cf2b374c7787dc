//! Object stores against real servers: moto for S3 and STS, fake-gcs-server, Python's own HTTP server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::{Value, json};
use updraft::agent::{ToolError, Toolset as _};
use updraft::airflow::config::Environment;
use updraft::airflow::connection::Connection;
use updraft::hook::object_store::{self as store, Location};
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::toolset::object_storage::{ObjectStorageToolset, ObjectStorageToolsetConfig};

use crate::servers;

struct Connections(Vec<Connection>);

#[async_trait]
impl ConnectionSource for Connections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        let found = self.0.iter().find(|known| known.conn_id == conn_id);
        let missing = || ConnectionError::NotDefined(conn_id.to_owned());
        found.cloned().ok_or_else(missing)
    }
}

fn connection(conn_type: &str, login: &str, password: &str, extra: Value) -> Connection {
    let text =
        json!({"conn_type": conn_type, "login": login, "password": password, "extra": extra});
    Connection::from_env_text("store", &text.to_string(), "the test").unwrap()
}

fn environment(more: &[(&str, &str)]) -> Environment {
    let off = [("AWS_EC2_METADATA_DISABLED", "true"), ("HOME", "/nowhere")];
    off.iter().chain(more).copied().collect()
}

fn toolset(path: &str, connection: Connection) -> ObjectStorageToolset {
    let config = ObjectStorageToolsetConfig {
        conn_id: Some("store".to_owned()),
        ..ObjectStorageToolsetConfig::new(path)
    };
    let connections = Arc::new(Connections(vec![connection]));
    let mask = Arc::new(ToOwned::to_owned);
    ObjectStorageToolset::new(config, connections, environment(&[]), mask).unwrap()
}

/// The result, or the text with the kind of failure.
async fn call(toolset: &ObjectStorageToolset, tool: &str, args: Value) -> String {
    let args = args.as_object().unwrap().clone();
    match toolset.call(tool, args).await {
        Ok(value) => value.as_str().unwrap().to_owned(),
        Err(ToolError::Failed(text)) => format!("failed: {text}"),
        Err(other) => format!("{other:?}"),
    }
}

/// Keys that a client may get wrong, with their content.
const KEYS: [(&str, &str); 8] = [
    ("root/a b.txt", "one\ntwo\n"),
    ("root/100%25.txt", "p"),
    ("root/100%.txt", "q"),
    ("root/c+d.txt", "r"),
    ("root/é/日本.txt", "s"),
    ("root/~#[1]?&.txt", "t"),
    ("root/both", "b"),
    ("root/both/inner.txt", "i"),
];

async fn fill(store: &dyn ObjectStore) {
    for (key, text) in KEYS {
        let path = object_store::path::Path::parse(key).unwrap();
        store.put(&path, text.into()).await.unwrap();
    }
}

/// Everything is read by the name under which it is listed, as the Python toolset does on the same server.
async fn check(toolset: &ObjectStorageToolset) {
    assert_eq!(
        call(toolset, "list_files", json!({})).await,
        r#"{"path": "/", "entries": [{"name": "100%.txt", "size_bytes": 1}, {"name": "100%25.txt", "size_bytes": 1}, {"name": "a b.txt", "size_bytes": 8}, {"name": "both", "size_bytes": 1}, {"name": "both/"}, {"name": "c+d.txt", "size_bytes": 1}, {"name": "~#[1]?&.txt", "size_bytes": 1}, {"name": "\u00e9/"}]}"#
    );
    for (key, text) in KEYS {
        let path = key.strip_prefix("root/").unwrap();
        let read = call(toolset, "read_file", json!({"path": path})).await;
        assert_eq!(read, text.trim_end(), "{path}");
    }
    let info = call(toolset, "get_file_info", json!({"path": "a b.txt"})).await;
    assert!(
        info.starts_with(r#"{"path": "a b.txt", "type": "file", "size_bytes": 8, "modified": "20"#),
        "{info}"
    );
    let directory = r#"{"path": "é", "type": "directory"}"#.replace('é', "\\u00e9");
    let cases = [
        ("get_file_info", "é", directory.as_str()),
        ("get_file_info", "zz", "failed: 'zz' does not exist."),
        ("list_files", "zz", "failed: 'zz' is not a directory."),
        ("read_file", "zz", "failed: 'zz' is not a file."),
        ("read_file", "é", "failed: 'é' is not a file."),
    ];
    for (tool, path, expected) in cases {
        assert_eq!(call(toolset, tool, json!({"path": path})).await, expected);
    }
}

fn s3() -> &'static str {
    &servers::stores()["UPDRAFT_TEST_S3_URL"]
}

async fn s3_bucket(server: &str, name: &str) {
    let made = reqwest::Client::new()
        .put(format!("{server}/{name}"))
        .send()
        .await;
    made.unwrap().error_for_status().unwrap();
}

async fn open(
    url: &str,
    connection: &Connection,
) -> Result<Arc<dyn ObjectStore>, store::StoreError> {
    let location = Location::parse(url).unwrap();
    store::open(&location, Some(connection), &environment(&[])).await
}

#[tokio::test]
async fn s3_files_are_read_by_the_names_they_are_listed_with() {
    s3_bucket(s3(), "names").await;
    let connection = connection(
        "aws",
        "AKIAMADEUP",
        "made-up",
        json!({"endpoint_url": s3()}),
    );
    fill(open("s3://names", &connection).await.unwrap().as_ref()).await;
    check(&toolset("s3://names/root/", connection.clone())).await;
    let missing = toolset("s3://no-such-bucket/root", connection);
    // As the Python toolset has it.
    assert_eq!(
        call(&missing, "list_files", json!({})).await,
        "failed: '/' is not a directory."
    );
    assert_eq!(
        call(&missing, "get_file_info", json!({"path": ""})).await,
        "failed: '' does not exist."
    );
}

#[tokio::test]
async fn gcs_files_are_read_by_the_names_they_are_listed_with() {
    let server = &servers::stores()["UPDRAFT_TEST_GCS_URL"];
    let made = reqwest::Client::new()
        .post(format!("{server}/storage/v1/b?project=p"))
        .json(&json!({"name": "names"}))
        .send()
        .await;
    made.unwrap().error_for_status().unwrap();
    let extra = json!({"is_anonymous": true, "gcs.endpoint": server});
    let connection = connection("google_cloud_platform", "", "", extra);
    // The server writes by Google's JSON API only, and the client by the other one.
    for (key, text) in KEYS {
        let name = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
        let put = reqwest::Client::new()
            .post(format!(
                "{server}/upload/storage/v1/b/names/o?uploadType=media&name={name}"
            ))
            .body(text)
            .send()
            .await;
        put.unwrap().error_for_status().unwrap();
    }
    check(&toolset("gs://names/root", connection)).await;
}

/// One call of IAM or STS's sister APIs at moto, which looks for the service's name and not for a signature.
async fn aws(server: &str, service: &str, form: &[(&str, &str)]) -> String {
    let scope = format!(
        "AWS4-HMAC-SHA256 Credential=AKIAMADEUP/20260101/us-east-1/{service}/aws4_request, \
         SignedHeaders=host, Signature=0"
    );
    let answer = reqwest::Client::new()
        .post(server)
        .header("authorization", scope)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(
            form.iter()
                .map(|(key, value)| {
                    let value = percent_encoding::utf8_percent_encode(
                        value,
                        percent_encoding::NON_ALPHANUMERIC,
                    );
                    format!("{key}={value}")
                })
                .collect::<Vec<_>>()
                .join("&"),
        )
        .send()
        .await
        .unwrap();
    answer.error_for_status().unwrap().text().await.unwrap()
}

fn element(xml: &str, name: &str) -> String {
    let (_, rest) = xml.split_once(&format!("<{name}>")).unwrap();
    rest.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_role_opens_what_the_user_may_not() {
    let server = &servers::stores()["UPDRAFT_TEST_S3_GUARDED_URL"];
    s3_bucket(server, "guarded").await;
    let put = reqwest::Client::new()
        .put(format!("{server}/guarded/report.txt"))
        .body("for readers")
        .send()
        .await;
    put.unwrap().error_for_status().unwrap();
    let version = ("Version", "2010-05-08");
    let iam = |form: Vec<(&'static str, &'static str)>| async move {
        aws(server, "iam", &[&[version], form.as_slice()].concat()).await
    };
    iam(vec![("Action", "CreateUser"), ("UserName", "agent")]).await;
    let keys = iam(vec![("Action", "CreateAccessKey"), ("UserName", "agent")]).await;
    iam(vec![
        ("Action", "PutUserPolicy"),
        ("UserName", "agent"),
        ("PolicyName", "assume"),
        (
            "PolicyDocument",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"}]}"#,
        ),
    ])
    .await;
    iam(vec![
        ("Action", "CreateRole"),
        ("RoleName", "reader"),
        (
            "AssumeRolePolicyDocument",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::123456789012:user/agent"},"Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"made-up-id"}}}]}"#,
        ),
    ])
    .await;
    iam(vec![
        ("Action", "PutRolePolicy"),
        ("RoleName", "reader"),
        ("PolicyName", "read"),
        (
            "PolicyDocument",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],"Resource":"*"}]}"#,
        ),
    ])
    .await;
    // From here on the server checks signatures and policies.
    let guard = reqwest::Client::new()
        .post(format!("{server}/moto-api/reset-auth"))
        .body("0")
        .send()
        .await;
    guard.unwrap().error_for_status().unwrap();

    let (key_id, secret) = (
        element(&keys, "AccessKeyId"),
        element(&keys, "SecretAccessKey"),
    );
    let read = |secret: &str, extra: Value| {
        let connection = connection("aws", &key_id, secret, extra);
        async move {
            let toolset = toolset("s3://guarded", connection);
            call(&toolset, "read_file", json!({"path": "report.txt"})).await
        }
    };
    let service = json!({"sts": {"endpoint_url": server}, "s3": {"endpoint_url": server}});
    let alone = json!({"service_config": service, "region_name": "us-east-1"});
    let mut role = alone.clone();
    role["role_arn"] = "arn:aws:iam::123456789012:role/reader".into();
    role["assume_role_kwargs"] = json!({"DurationSeconds": 900, "ExternalId": "made-up-id"});
    let refused = read(&secret, alone.clone()).await;
    assert!(
        refused.starts_with("failed: 'report.txt' cannot be read: PermissionError: "),
        "{refused}"
    );
    assert_eq!(read(&secret, role.clone()).await, "for readers");
    let wrong = read("made-up-and-wrong", role).await;
    assert!(
        wrong.contains("STS refuses role arn:aws:iam::123456789012:role/reader (403)"),
        "{wrong}"
    );
    assert!(!wrong.contains("made-up-and-wrong") && !wrong.contains(&secret));
}

#[tokio::test]
async fn the_workers_own_credentials_and_none_at_all_are_tried_in_turn() {
    s3_bucket(s3(), "ambient").await;
    let location = Location::parse("s3://ambient").unwrap();
    let empty = connection("aws", "", "", json!({"endpoint_url": s3()}));
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIAMADEUP"),
        ("AWS_SECRET_ACCESS_KEY", "made-up"),
    ];
    let path = object_store::path::Path::from("own.txt");
    let own = store::open(&location, Some(&empty), &environment(&keys)).await;
    own.unwrap().put(&path, "own".into()).await.unwrap();
    let nobody = store::open(&location, Some(&empty), &environment(&[])).await;
    let error = nobody.unwrap().head(&path).await.unwrap_err();
    assert_eq!(store::failure(&error).kind, store::FailureKind::Denied);
    let endpoint = ("AWS_ENDPOINT_URL_S3", s3());
    let variables = [keys[0], keys[1], endpoint];
    let opened = store::open(&location, None, &environment(&variables)).await;
    assert_eq!(opened.unwrap().head(&path).await.unwrap().size, 3);
}

#[tokio::test]
async fn the_s3_hook_answers_as_the_python_providers_does_on_the_same_server() {
    for bucket in ["hooked", "hooked-too"] {
        s3_bucket(s3(), bucket).await;
    }
    let extra = json!({"endpoint_url": s3(), "region_name": "us-east-1"});
    let mut named = extra.clone();
    named["service_config"] = json!({"s3": {"bucket_name": "hooked"}});
    let aws = |extra: Value| json!({"conn_type": "aws", "login": "AKIAMADEUP", "password": "made-up", "extra": extra});
    let ran = crate::native_hooks::go(
        "from airflow.providers.amazon.aws.hooks.s3 import S3Hook",
        include_str!("../fixtures/native_hooks/s3.py"),
        json!({"s3": aws(extra), "named": aws(named)}),
        &[],
    );
    // What the provider's hook of version 9.39.0 returned for the same code.
    let recorded: Value =
        serde_json::from_str(include_str!("../fixtures/native_hooks/s3.json")).unwrap();
    for (what, expected) in recorded.as_object().unwrap() {
        assert_eq!(&ran.value()[what], expected, "{what}");
    }
}

/// Ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_plain_web_server_has_files_and_says_that_it_has_no_directories() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/a b.txt"), "one\ntwo\n").unwrap();
    let mut server = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = server.stdout.take().unwrap();
    let _server = Ended(server);
    BufReader::new(out).read_line(&mut line).unwrap();
    let url = line.split(['(', ')']).nth(1).unwrap();
    let config = ObjectStorageToolsetConfig::new(format!("{url}sub"));
    let connections = Arc::new(Connections(Vec::new()));
    let mask = Arc::new(ToOwned::to_owned);
    let toolset = ObjectStorageToolset::new(config, connections, environment(&[]), mask).unwrap();
    assert_eq!(
        call(&toolset, "read_file", json!({"path": "a b.txt"})).await,
        "one\ntwo"
    );
    let info = call(&toolset, "get_file_info", json!({"path": "a b.txt"})).await;
    assert!(info.contains(r#""size_bytes": 8"#), "{info}");
    assert_eq!(
        call(&toolset, "read_file", json!({"path": "zz.txt"})).await,
        "failed: 'zz.txt' is not a file."
    );
    let listed = call(&toolset, "list_files", json!({})).await;
    assert!(
        listed.starts_with("failed: '/' cannot be read: "),
        "{listed}"
    );
}
