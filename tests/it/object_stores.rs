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
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

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
        let name = key.strip_prefix("root/").unwrap();
        let read = call(toolset, "read_file", json!({"path": name})).await;
        assert_eq!(read, text.trim_end(), "{name}");
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

/// What a connection to the server holds.
fn gcs_extra() -> Value {
    json!({"is_anonymous": true, "gcs.endpoint": servers::stores()["UPDRAFT_TEST_GCS_URL"]})
}

/// The server writes by Google's JSON API only, and the client by the other one.
async fn gcs_bucket(bucket: &str, files: &[(&str, &str)]) {
    let server = &servers::stores()["UPDRAFT_TEST_GCS_URL"];
    let client = reqwest::Client::new();
    let made = client
        .post(format!("{server}/storage/v1/b?project=p"))
        .json(&json!({"name": bucket}))
        .send()
        .await;
    made.unwrap().error_for_status().unwrap();
    for (key, text) in files {
        let name = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
        let url = format!("{server}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}");
        let put = client.post(url).body((*text).to_owned()).send().await;
        put.unwrap().error_for_status().unwrap();
    }
}

#[tokio::test]
async fn gcs_files_are_read_by_the_names_they_are_listed_with() {
    gcs_bucket("names", &KEYS).await;
    let connection = connection("google_cloud_platform", "", "", gcs_extra());
    check(&toolset("gs://names/root", connection)).await;
}

#[tokio::test]
async fn the_gcs_hook_lists_finds_and_downloads() {
    gcs_bucket(
        "hooked",
        &[
            ("d/a b.txt", "one"),
            ("d/sub/x+é%.txt", "x"),
            ("top.csv", "t"),
        ],
    )
    .await;
    let ran = crate::native_hooks::go(
        "from airflow.providers.google.cloud.hooks.gcs import GCSHook",
        r#"
hook = GCSHook(gcp_conn_id="google")
try:
    hook.download("hooked", "nope")
except Exception as error:
    failed = f"{type(error).__name__}: {error}"
return {
    "all": hook.list("hooked"),
    "below": hook.list("hooked", prefix="d/"),
    "level": hook.list("hooked", prefix="d/", delimiter="/"),
    "several": hook.list("hooked", prefix=["top", "d/s"]),
    "glob": hook.list("hooked", match_glob="**/*.txt"),
    "there": [hook.exists("hooked", "d/a b.txt"), hook.exists("hooked", "d"), hook.exists("hooked", "nope")],
    "read": hook.download("hooked", "d/sub/x+é%.txt").decode(),
    "size": hook.get_size("hooked", "d/a b.txt"),
    "failed": failed,
}
"#,
        json!({"google": {"conn_type": "google_cloud_platform", "extra": gcs_extra()}}),
        &[],
    );
    assert_eq!(
        ran.value(),
        &json!({
            "all": ["d/a b.txt", "d/sub/x+é%.txt", "top.csv"],
            "below": ["d/a b.txt", "d/sub/x+é%.txt"],
            "level": ["d/sub/"],
            "several": ["top.csv", "d/sub/x+é%.txt"],
            "glob": ["d/a b.txt", "d/sub/x+é%.txt"],
            "there": [true, false, false],
            "read": "x",
            "size": 3,
            "failed": "NotFound: 404 No such object: hooked/nope",
        })
    );
}

/// Writes below `root` with Airflow's paths and says what is found there.
const PATHS: &str = r#"
root = ObjectStoragePath(ROOT)
failed = []
for wrong in (
    lambda: (root / "nope").read_text(),
    lambda: (root / "nope").unlink(),
    lambda: list((root / "nope").iterdir()),
):
    try:
        wrong()
    except (FileNotFoundError, FileExistsError) as error:
        failed.append(type(error).__name__)
sub = root / "sub"
sub.mkdir(parents=True, exist_ok=True)
(root / "a é.json").write_text("[1]\n")
with (sub / "b.bin").open("wb") as file:
    file.write(b"\x00")
    file.write(b"\xff")
with (root / "a é.json").open("a") as file:
    print("[2]", file=file)
before = sorted(path.name for path in root.iterdir())
kinds = [[path.exists(), path.is_file(), path.is_dir()] for path in (root, sub, sub / "b.bin", root / "nope")]
size = (sub / "b.bin").stat().st_size
text = (root / "a é.json").read_text()
try:
    (root / "a é.json").open("x")
except FileExistsError:
    failed.append("there already")
(root / "a é.json").unlink()
(root / "a é.json").unlink(missing_ok=True)
return [text, (sub / "b.bin").read_bytes().hex(), before, kinds, size, failed, [str(p).rpartition("/")[2] for p in root.iterdir()]]
"#;

fn paths_work(root: &str, connections: Value, env: &[(&str, &std::path::Path)]) {
    let imports = format!("from airflow.sdk import ObjectStoragePath\nROOT = {root:?}");
    let ran = crate::native_hooks::go(&imports, PATHS, connections, env);
    assert_eq!(
        ran.value(),
        &json!([
            "[1]\n[2]\n",
            "00ff",
            ["a é.json", "sub"],
            [
                [true, false, true],
                [true, false, true],
                [true, true, false],
                [false, false, false]
            ],
            2,
            [
                "FileNotFoundError",
                "FileNotFoundError",
                "FileNotFoundError",
                "there already"
            ],
            ["sub"],
        ]),
        "{root}"
    );
}

#[tokio::test]
async fn object_storage_paths_of_dag_code_read_and_write_buckets_and_the_folders_that_are_opened() {
    s3_bucket(s3(), "paths").await;
    gcs_bucket("paths", &[("below/a é.json", "[1]"), ("below/sub/b", "")]).await;
    let aws = json!({"endpoint_url": s3(), "region_name": "eu-north-1"});
    let connections = json!({
        "store": {"conn_type": "aws", "login": "made-up", "password": "made-up", "extra": aws},
        "google": {"conn_type": "google_cloud_platform", "extra": gcs_extra()},
    });
    paths_work("s3://store@paths/below", connections.clone(), &[]);
    // Google's server here takes no writes of the kind that the client makes.
    let read = "root = ObjectStoragePath('gs://google@paths/below')\nreturn [sorted(path.name for path in root.iterdir()), \
                (root / 'a é.json').read_text(), (root / 'nope').exists()]";
    let imports = "from airflow.sdk import ObjectStoragePath";
    let ran = crate::native_hooks::go(imports, read, connections.clone(), &[]);
    assert_eq!(ran.value(), &json!([["a é.json", "sub"], "[1]", false]));
    let folder = tempfile::tempdir().unwrap();
    let root = format!("file://{}/below", folder.path().display());
    let open = [("AIRFLOW__UPDRAFT__LOCAL_STORAGE", folder.path())];
    paths_work(&root, connections, &open);
    // Without the setting the same folder is closed.
    let write = format!("return ObjectStoragePath({root:?}).joinpath('x').write_text('x')");
    let ran = crate::native_hooks::go(imports, &write, json!({}), &[]);
    let told = "[Errno 13] Dag code on this worker reads and writes no local files there: name the folder in [updraft] \
                local_storage on the worker, or use an object store";
    assert!(ran.error().contains(told), "{}", ran.error());
}

/// A page of a list as Azure's documentation has it.
fn azure_page(names: &[&str], below: &[&str], next: &str) -> String {
    let blobs = names.iter().map(|name| {
        format!(
            "<Blob><Name>{name}</Name><Properties><Last-Modified>Thu, 01 Jul 2021 10:45:02 GMT</Last-Modified>\
             <Etag>0x1</Etag><Content-Length>3</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob>"
        )
    });
    let prefixes = below
        .iter()
        .map(|name| format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>"));
    let found: String = blobs.chain(prefixes).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>{found}</Blobs>\
         <NextMarker>{next}</NextMarker></EnumerationResults>"
    )
}

/// There is no server of Azure's to test against: this one answers with what its documentation says.
async fn azure() -> MockServer {
    let server = MockServer::start().await;
    let list = || {
        Mock::given(method("GET"))
            .and(path("/acc/box"))
            .and(query_param("comp", "list"))
    };
    let page = |names: &[&str], below: &[&str], next: &str| {
        ResponseTemplate::new(200).set_body_string(azure_page(names, below, next))
    };
    list()
        .and(query_param("marker", "next"))
        .respond_with(page(&["d/b.txt"], &[], ""))
        .with_priority(1)
        .mount(&server)
        .await;
    list()
        .and(query_param("delimiter", "/"))
        .respond_with(page(&["d/a b.txt"], &["d/sub/"], ""))
        .with_priority(2)
        .mount(&server)
        .await;
    list()
        .and(query_param("delimiter", "--"))
        .respond_with(page(&[], &["d/x--"], ""))
        .with_priority(2)
        .mount(&server)
        .await;
    list()
        .and(query_param("prefix", "d"))
        .respond_with(page(&["d", "d/a b.txt"], &[], "next"))
        .mount(&server)
        .await;
    for (blob, text) in [("d", "dee"), ("d/a%20b.txt", "one")] {
        let blob = format!("/acc/box/{blob}");
        let there = ResponseTemplate::new(200)
            .insert_header("last-modified", "Thu, 01 Jul 2021 10:45:02 GMT")
            .insert_header("etag", "0x1")
            .set_body_string(text);
        for verb in ["GET", "HEAD"] {
            Mock::given(method(verb))
                .and(path(&blob))
                .respond_with(there.clone())
                .mount(&server)
                .await;
        }
    }
    Mock::given(method("PUT"))
        .and(path("/acc/box/copy.txt"))
        .respond_with(ResponseTemplate::new(202))
        .mount(&server)
        .await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wasb_hook_asks_its_own_account_and_no_other() {
    let server = azure().await;
    let extra = json!({"sas_token": "?sv=2024-11-04&sig=made%2Fup"});
    let ran = crate::native_hooks::go(
        "from airflow.providers.microsoft.azure.hooks.wasb import WasbHook",
        r#"
hook = WasbHook("azure")
result = {
    "all": hook.get_blobs_list_recursive("box", prefix="d"),
    "level": hook.get_blobs_list("box", prefix="d/"),
    "other delimiter": hook.get_blobs_list("box", prefix="d/", delimiter="--"),
    "there": [hook.check_for_blob("box", "d/a b.txt"), hook.check_for_blob("box", "nope")],
    "read": hook.read_file("box", "d/a b.txt"),
}
hook.copy_blobs("box", "d/a b.txt", "box", "copy.txt")
failed = []
for ask in (
    lambda: hook.read_file("box@127.0.0.1.evil.example", "d"),
    lambda: hook.read_file("box#", "d"),
    lambda: hook.read_file("other@box", "d"),
    lambda: hook.read_file("box/d", "d"),
    lambda: hook.delete_blobs("box", "d", "d/"),
    lambda: hook.delete_file("box", "d", is_prefix=True, delimiter="/"),
    lambda: hook.read_file("box", "nope"),
):
    try:
        ask()
    except Exception as error:
        failed.append(str(error))
return [result, failed]
"#,
        json!({"azure": {"conn_type": "wasb", "host": format!("{}/acc", server.uri()), "extra": extra}}),
        &[],
    );
    assert_eq!(
        ran.value()[0],
        json!({
            "all": ["d", "d/a b.txt", "d/b.txt"],
            "level": ["d/a b.txt", "d/sub/"],
            "other delimiter": ["d/x--"],
            "there": [true, false],
            "read": "one",
        })
    );
    let failed: Vec<_> = ran.value()[1]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    for (told, expected) in failed.iter().zip([
        "takes the bucket's or container's name alone",
        "\"box#\" is no name of a bucket or container",
        "takes the bucket's or container's name alone",
        "takes the bucket's or container's name alone",
        "\"d/\" can't be addressed: a key must not be empty, or begin or end with a slash",
        "\"d/sub/\" can't be addressed",
        "The specified blob does not exist: nope",
    ]) {
        assert!(told.contains(expected), "{told}\nshould have\n{expected}");
    }
    assert_eq!(failed.len(), 7);
    let requests = server.received_requests().await.unwrap();
    for request in &requests {
        let signed = |url: &reqwest::Url| {
            url.query_pairs()
                .any(|(name, value)| name == "sig" && value == "made/up")
        };
        assert!(signed(&request.url), "{}", request.url);
        assert!(
            request.url.path().starts_with("/acc/box"),
            "{}",
            request.url
        );
        assert_ne!(request.method.as_str(), "DELETE");
        if request.method.as_str() == "PUT" {
            let source = request.headers["x-ms-copy-source"].to_str().unwrap();
            let source: reqwest::Url = source.parse().unwrap();
            assert_eq!(source.path(), "/acc/box/d/a%20b.txt");
            assert!(signed(&source));
        }
    }
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
    let tags = "<Tagging xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><TagSet>\
        <Tag><Key>team</Key><Value>reports &amp; more</Value></Tag><Tag><Key>tier</Key><Value>x</Value></Tag>\
        </TagSet></Tagging>";
    let tagged = reqwest::Client::new()
        .put(format!("{}/hooked-too?tagging", s3()))
        .header("content-type", "application/xml")
        .body(tags)
        .send()
        .await;
    tagged.unwrap().error_for_status().unwrap();
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
    assert_eq!(
        call(&toolset, "get_file_info", json!({"path": "zz.txt"})).await,
        "failed: 'zz.txt' does not exist."
    );
    let listed = call(&toolset, "list_files", json!({})).await;
    assert!(
        listed.starts_with("failed: '/' cannot be read: "),
        "{listed}"
    );
}
