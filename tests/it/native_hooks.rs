//! The hooks that the worker brings, in Dag code and as tools, against real servers.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::databases;
use crate::local_run::{events, run_with, task};

/// What `go`, the one task of a Dag file, returns or fails with.
pub(crate) struct Ran {
    report: Value,
    _folder: tempfile::TempDir,
}

impl Ran {
    pub(crate) fn value(&self) -> &Value {
        let go = task(&self.report, "go", -1);
        assert_eq!(go["state"], "success", "{:#}", self.report);
        &go["xcoms"]["return_value"]
    }

    pub(crate) fn error(&self) -> &str {
        task(&self.report, "go", -1)["error"].as_str().unwrap()
    }
}

/// Runs a Dag file whose task `go` is a function with this body.
pub(crate) fn go(imports: &str, body: &str, connections: Value, env: &[(&str, &Path)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.py");
    let body = body.trim().replace('\n', "\n        ");
    let source = format!(
        "from airflow.sdk import DAG, task\n{imports}\nwith DAG(dag_id=\"made\"):\n    @task\n    def go():\n        \
         {body}\n    go()\n"
    );
    std::fs::write(&file, source).unwrap();
    std::fs::write(folder.path().join("tides.csv"), "high,noon\n").unwrap();
    std::fs::write(
        folder.path().join("made.connections.json"),
        connections.to_string(),
    )
    .unwrap();
    let (_, report) = run_with(&file, &[], env);
    Ran {
        report,
        _folder: folder,
    }
}

#[tokio::test]
async fn mysql_hook_reads_and_writes_and_says_what_it_does_not() {
    let connection = databases::mariadb::database(
        "hooked",
        "CREATE TABLE ports (name TEXT, depth DOUBLE, flag LONGBLOB); INSERT INTO ports VALUES ('Oslo', 12.5, x'ff')",
    )
    .await;
    // The hook's own schema goes over the connection's.
    let defined = json!({
        "conn_type": "mysql", "host": connection.host, "port": connection.port, "login": connection.login,
        "password": connection.password, "schema": "mysql",
    });
    let ran = go(
        "from datetime import date\nfrom decimal import Decimal\n\
         from airflow.providers.mysql.hooks.mysql import MySqlHook\nfrom airflow.sdk import BaseHook",
        r#"
hook = MySqlHook(mysql_conn_id="db", schema="hooked")
hook.run("INSERT INTO ports VALUES ('Bergen', 11, NULL)")
hook.run(["SET @x = 12", "UPDATE ports SET depth = @x WHERE name = 'Bergen'"])
refused = []
for ask in (
    lambda: hook.get_df("SELECT 1"),
    lambda: hook.insert_rows("ports", [(1,)]),
    lambda: MySqlHook("db", local_infile=True).run("SELECT 1"),
    lambda: hook.run(" "),
    lambda: hook.get_first("SELECT nonsense"),
    lambda: hook.run(["DELETE FROM ports", "SELECT nonsense"]),
    lambda: hook.run(["INSERT INTO ports VALUES ('Rom', 1, NULL)", "SELECT nonsense"], autocommit=True),
):
    try:
        ask()
    except Exception as error:
        refused.append(f"{type(error).__name__}: {error}")
return {
    "rows": [list(row) for row in hook.get_records("SELECT name, depth FROM ports ORDER BY name")],
    "first": repr(hook.get_first("SELECT flag FROM ports WHERE name = 'Oslo'")),
    "session": repr(hook.get_records(["SET @y = 7", "CREATE TEMPORARY TABLE mine (a INT)", "SELECT @y FROM DUAL"])),
    "each": repr(hook.get_records(["SELECT 1", "SELECT 2"])),
    "none": hook.get_first("SELECT 1 FROM ports WHERE depth > 99"),
    "bound": list(hook.get_first(
        "SELECT %s, %s, depth, %s = depth FROM ports WHERE name IN %s AND flag = %s",
        ["Gefa\\' hr ü; --", None, Decimal("12.5"), ["Oslo", "Rom"], b"\xff"],
    )),
    "named": list(hook.get_first("SELECT CAST(%(day)s AS DATE) + INTERVAL %(n)s DAY", {"day": date(2026, 11, 30), "n": 2})),
    "columns": hook.run("SELECT name AS port FROM ports", handler=lambda cursor: cursor.description[0][0]),
    "refused": refused,
    "of the connection": type(BaseHook.get_hook("db")).__name__,
    "reached": hook.test_connection()[0],
}
"#,
        json!({ "db": defined }),
        &[],
    );
    let value = ran.value();
    // What failed together with its list is undone, and what was committed by itself is not.
    assert_eq!(
        value["rows"],
        json!([["Bergen", 12.0], ["Oslo", 12.5], ["Rom", 1.0]])
    );
    assert_eq!(value["first"], "(b'\\xff',)");
    assert_eq!(value["each"], "[[(1,)], [(2,)]]");
    assert_eq!(value["session"], "[None, None, [(7,)]]");
    assert_eq!(value["none"], Value::Null);
    assert_eq!(value["bound"], json!(["Gefa\\' hr ü; --", null, 12.5, 1]));
    assert_eq!(value["named"], json!(["2026-12-02"]));
    assert_eq!(value["columns"], "port");
    assert_eq!(value["of the connection"], "MySqlHook");
    assert_eq!(value["reached"], true);
    let refused: Vec<&str> = value["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    assert!(refused[0].contains("pandas or polars"), "{refused:?}");
    assert!(refused[1].contains("Python worker"), "{refused:?}");
    assert!(refused[2].contains("local_infile"), "{refused:?}");
    assert_eq!(refused[3], "ValueError: List of SQL statements is empty");
    assert!(refused[4].contains("1054"), "{refused:?}");
}

#[tokio::test]
async fn parameters_come_back_from_postgresql_as_they_were_given() {
    let mut connection = databases::postgres::connection("harbour");
    connection.conn_id = "db".to_owned();
    let ran = go(
        "from datetime import date\nfrom airflow.providers.postgres.hooks.postgres import PostgresHook",
        r#"
hook = PostgresHook("db")
text = "it's \\ 100% ü"
given = [text, None, True, -7, 1.5, b"\x00\xff", ["a", "b'"], date(2026, 11, 30)]
sql = "SELECT %s::text, %s::text, %s, 1 - %s, %s::float8, %s, %s, %s::date + 1, '100%%'"
return [repr(value) for value in hook.get_first(sql, given)]
"#,
        json!({"db": {
            "conn_type": "postgres", "host": connection.host, "port": connection.port, "login": connection.login,
            "password": connection.password, "schema": connection.schema,
        }}),
        &[],
    );
    assert_eq!(
        *ran.value(),
        json!([
            "\"it's \\\\ 100% ü\"",
            "None",
            "True",
            "8",
            "1.5",
            "b'\\x00\\xff'",
            "['a', \"b'\"]",
            "'2026-12-01'",
            "'100%'",
        ])
    );
}

#[tokio::test]
async fn slack_webhook_hook_posts_and_raises_what_slack_refuses() {
    let slack = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/services/T0/B0/made-up"))
        .and(header("content-type", "application/json;charset=utf-8"))
        .and(body_json(
            json!({"text": "Flood at noon", "unfurl_links": false}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_string("ok"))
        .expect(2)
        .mount(&slack)
        .await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(400).set_body_string("invalid_payload"))
        .mount(&slack)
        .await;
    let ran = go(
        "from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook",
        r#"
hook = SlackWebhookHook(slack_webhook_conn_id="chat")
answers = [
    hook.send_text("Flood at noon", unfurl_links=False),
    hook.send_dict('{"text": "Flood at noon", "unfurl_links": false, "blocks": null}'),
]
refused = []
for ask in (
    lambda: hook.send(text="Ebb"),
    lambda: hook.send_dict("no JSON"),
    lambda: hook.send_dict(["text"]),
    lambda: hook.get_conn(),
    lambda: SlackWebhookHook(slack_webhook_conn_id="chat", retry_handlers=[1]).send(text="x"),
):
    try:
        ask()
    except Exception as error:
        refused.append(f"{type(error).__name__}: {error}")
return [[[answer.status_code, answer.body] for answer in answers], refused]
"#,
        json!({"chat": {
            "conn_type": "slackwebhook", "host": format!("{}/services", slack.uri()), "password": "T0/B0/made-up"
        }}),
        &[],
    );
    let value = ran.value();
    assert_eq!(value[0], json!([[200, "ok"], [200, "ok"]]));
    let refused = &value[1];
    assert_eq!(
        refused[0],
        "AirflowException: Slack did not take the message and answered 400 with 'invalid_payload', which \
         https://api.slack.com/messaging/webhooks#handling_errors explains"
    );
    assert!(
        refused[1]
            .as_str()
            .unwrap()
            .starts_with("AirflowException: the message 'no JSON' is not JSON: ")
    );
    assert_eq!(
        refused[2],
        "TypeError: a message must be a JSON object, and this is a list"
    );
    assert!(refused[3].as_str().unwrap().contains("client of slack_sdk"));
    assert!(refused[4].as_str().unwrap().contains("retry_handlers"));
}

/// The mail servers of `tests/servers/mail.py`; they end with this value.
struct MailServers {
    folder: tempfile::TempDir,
    process: Child,
    ports: Value,
}

impl MailServers {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let venv = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv"),
            PathBuf::from,
        );
        let mut process = Command::new(venv.join("bin/python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/mail.py"))
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the Python environment of tests/run.sh");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            ports: serde_json::from_str(&line).expect("the mail servers start"),
            folder,
            process,
        }
    }

    fn connection(&self, server: &str, extra: Value) -> Value {
        json!({
            "conn_type": "smtp", "host": "localhost", "port": self.ports[server], "login": "mate",
            "password": "made-up-mail-password", "extra": extra,
        })
    }

    fn mails(&self) -> Vec<Value> {
        std::fs::read_to_string(self.folder.path().join("mails"))
            .unwrap_or_default()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }
}

impl Drop for MailServers {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

const SMTP: &str = "from airflow.providers.smtp.hooks.smtp import SmtpHook";

#[test]
fn smtp_hook_sends_over_each_kind_of_connection() {
    let servers = MailServers::start();
    let sender = json!({"from_email": "port@example.com"});
    let with = |more: Value| {
        let mut extra = sender.clone();
        extra
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        extra
    };
    let mut plain = servers.connection(
        "plain",
        with(json!({"disable_ssl": true, "disable_tls": true})),
    );
    plain["login"] = Value::Null;
    let token = with(json!({"auth_type": "oauth2", "access_token": "made-up-token"}));
    let ran = go(
        SMTP,
        r#"
with SmtpHook("plain") as hook:
    hook.send_email_smtp(
        to="mate@example.com; crew@example.com", cc=["cook@example.com"], bcc="owner@example.com",
        subject="Flut", html_content="<b>High</b>", files=["tides.csv"], custom_headers={"X-Tide": "high"},
    )
    hook.send_email_smtp(to="mate@example.com", subject="Never", html_content="x", dryrun=True)
    hook.send_email_smtp(to="busy@example.com", subject="Patience", html_content="x")
for conn_id in ("starttls", "ssl", "token"):
    SmtpHook(smtp_conn_id=conn_id).send_email_smtp(to=["mate@example.com"], subject=conn_id, html_content="x")
return [SmtpHook(conn_id).test_connection()[0] for conn_id in ("plain", "starttls", "ssl", "token")]
"#,
        json!({
            "plain": plain,
            "starttls": servers.connection("starttls", with(json!({"disable_ssl": true}))),
            "ssl": servers.connection("ssl", sender.clone()),
            "token": servers.connection("ssl", token),
        }),
        &[("SSL_CERT_FILE", &servers.authority())],
    );
    assert_eq!(ran.value(), &json!([true, true, true, true]));
    let mails = servers.mails();
    let seen: Vec<_> = mails
        .iter()
        .map(|mail| json!([mail["server"], mail["to"], mail["encrypted"], mail["login"]]))
        .collect();
    assert_eq!(
        json!(seen),
        json!([
            [
                "plain",
                [
                    "mate@example.com",
                    "crew@example.com",
                    "cook@example.com",
                    "owner@example.com"
                ],
                false,
                null
            ],
            ["plain", ["busy@example.com"], false, null],
            ["starttls", ["mate@example.com"], true, "mate"],
            ["ssl", ["mate@example.com"], true, "mate"],
            ["ssl", ["mate@example.com"], true, "token of mate"],
        ])
    );
    let text = mails[0]["text"].as_str().unwrap();
    for line in [
        "From: port@example.com",
        "To: mate@example.com, crew@example.com",
        "Cc: cook@example.com",
        "Subject: Flut",
        "X-Tide: high",
        "Content-Disposition: attachment; filename=\"tides.csv\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("owner@example.com"), "{text}");
    assert!(text.contains("<b>High</b>"), "{text}");
}

#[test]
fn smtp_hook_fails_for_a_stranger_a_wrong_password_and_a_file_outside_the_dag_folder() {
    let servers = MailServers::start();
    let sender = json!({"from_email": "port@example.com", "retry_limit": 0});
    let mut wrong = servers.connection("ssl", sender.clone());
    wrong["password"] = json!("made-up-wrong-password");
    let send = |conn_id: &str, to: &str, more: &str, env: &[(&str, &Path)]| {
        let body = format!(
            "SmtpHook('{conn_id}').send_email_smtp(to='{to}', subject='s', html_content='x'{more})"
        );
        let connections = json!({
            "ssl": servers.connection("ssl", sender.clone()),
            "unchecked": servers.connection("ssl", json!({"from_email": "port@example.com", "ssl_context": "none"})),
            "wrong": wrong.clone(),
        });
        go(SMTP, &body, connections, env)
    };
    let authority = servers.authority();
    let trusted: &[(&str, &Path)] = &[("SSL_CERT_FILE", &authority)];
    let stranger = send("ssl", "mate@example.com", "", &[]);
    assert!(
        stranger.error().contains("did not take the mail"),
        "{}",
        stranger.error()
    );
    let refused = send("wrong", "mate@example.com", "", trusted);
    assert!(refused.error().contains("535"), "{}", refused.error());
    assert!(
        !refused
            .report
            .to_string()
            .contains("made-up-wrong-password")
    );
    let nobody = send("ssl", "nobody@example.com", "", trusted);
    assert!(
        nobody.error().contains("no such mailbox"),
        "{}",
        nobody.error()
    );
    let outside = send(
        "ssl",
        "mate@example.com",
        ", files=['/etc/passwd']",
        trusted,
    );
    assert!(
        outside.error().contains("/etc/passwd"),
        "{}",
        outside.error()
    );
    assert_eq!(servers.mails(), Vec::<Value>::new());
    // The certificate is not looked at where the connection says so.
    send("unchecked", "mate@example.com", "", &[]).value();
    assert_eq!(servers.mails().len(), 1);
}

#[test]
fn git_hook_reads_its_connection_when_something_of_it_is_asked_for() {
    let ran = go(
        "from airflow.providers.git.hooks.git import GitHook\nhook = GitHook('missing')\nown = GitHook('git_default')",
        r#"
failed = []
for conn_id in ("both", "half", "missing"):
    try:
        GitHook(conn_id).repo_url
    except Exception as error:
        failed.append(str(error))
try:
    own.configure_hook_env()
except Exception as error:
    failed.append(str(error))
return [own.repo_url, own.user_name, own.ssh_port, own.strict_host_key_checking, own.uses_github_app_auth, failed]
"#,
        json!({
            "git_default": {
                "conn_type": "git", "host": "https://reader:made-up-token@git.example.com/skills.git",
                "extra": {"ssh_port": "2222"},
            },
            "both": {"conn_type": "git", "extra": {"key_file": "a", "private_key": "made-up"}},
            "half": {"conn_type": "git", "extra": {"github_app_id": "1"}},
        }),
        &[],
    );
    let value = ran.value();
    assert_eq!(
        value.as_array().unwrap()[..5],
        json!([
            "https://git.example.com/skills.git",
            "reader",
            2222,
            "accept-new",
            false
        ])
        .as_array()
        .unwrap()[..]
    );
    let failed = value[5].as_array().unwrap();
    assert_eq!(
        failed[0],
        "the git connection has a private_key and a key_file: leave one of the two out"
    );
    assert!(
        failed[1]
            .as_str()
            .unwrap()
            .contains("github_installation_id")
    );
    assert!(failed[2].as_str().unwrap().contains("missing"));
    assert!(failed[3].as_str().unwrap().contains("Python worker"));
}

#[tokio::test]
async fn http_hook_as_a_tool_shows_the_model_what_the_python_worker_would() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/v1/tides"))
        .respond_with(ResponseTemplate::new(200).set_body_string("high"))
        .mount(&server)
        .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.py");
    let source = r#"
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.http.hooks.http import HttpHook
from airflow.sdk import DAG
with DAG(dag_id="made"):
    AgentOperator(task_id="go", llm_conn_id="none", prompt="Go.", toolsets=[
        HookToolset(HttpHook(method="GET", http_conn_id="web"), allowed_methods=["run"], tool_prefix="web"),
    ])
"#;
    std::fs::write(&file, source).unwrap();
    let turns = json!({"turns": [
        {"tool_calls": [{"name": "web_run", "args": {"endpoint": "v1/tides"}}]}, {"text": "Done."},
    ]});
    std::fs::write(
        folder.path().join("made.transcript.json"),
        turns.to_string(),
    )
    .unwrap();
    let web = json!({"web": {
        "conn_type": "http", "host": "127.0.0.1", "port": server.address().port(), "schema": "http",
    }});
    std::fs::write(folder.path().join("made.connections.json"), web.to_string()).unwrap();
    let recording = folder.path().join("run.jsonl");
    let (status, report) = run_with(&file, &["--record", &recording.display().to_string()], &[]);
    assert_eq!(status, 0, "{report:#}");
    let log = events(task(&report, "go", -1)).join("\n");
    assert!(log.contains("Tool web_run returned"), "{log}");
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
    let seen = std::fs::read_to_string(recording).unwrap();
    let second: Value = serde_json::from_str(seen.lines().nth(1).unwrap()).unwrap();
    let told = second["request"]["messages"].to_string();
    assert!(told.contains("<Response [200]>"), "{told}");
    assert!(!told.contains("high"), "{told}");
}

#[tokio::test]
async fn http_hook_sends_bytes_and_reads_headers_and_text_as_requests_does() {
    let server = MockServer::start().await;
    let answer = |kind: &str, body: &[u8]| {
        ResponseTemplate::new(200)
            .set_body_raw(body, kind)
            .append_header("X-Tide", "high")
            .append_header("X-Tide", "low")
    };
    for (at, kind, body) in [
        ("/named", "text/plain; charset=UTF-8", "Flöt".as_bytes()),
        ("/latin", "text/plain", b"Fl\xf6t"),
        ("/unknown", "text/plain; charset=made-up", "Flöt".as_bytes()),
        ("/json", "application/json", "\"Flöt\"".as_bytes()),
    ] {
        Mock::given(path(at))
            .respond_with(answer(kind, body))
            .mount(&server)
            .await;
    }
    let ran = go(
        "import io\nfrom airflow.providers.http.hooks.http import HttpHook",
        r#"
hook = HttpHook("POST", "web")
named = hook.run("named", b"\xff\x00")
texts = [hook.run(endpoint, io.BytesIO(b"file")).text for endpoint in ("named", "latin", "unknown", "json")]
try:
    hook.run("named", 7)
except TypeError as error:
    refused = str(error)
return [texts, named.headers["X-Tide"], named.headers.get("x-tide"), "X-TIDE" in named.headers, refused]
"#,
        json!({"web": {"conn_type": "http", "host": "127.0.0.1", "port": server.address().port()}}),
        &[],
    );
    let value = ran.value();
    assert_eq!(
        value.as_array().unwrap()[..4],
        [
            json!(["Flöt", "Flöt", "Flöt", "\"Flöt\""]),
            json!("high, low"),
            json!("high, low"),
            json!(true),
        ]
    );
    assert!(value[4].as_str().unwrap().contains("int"), "{value}");
    let sent = server.received_requests().await.unwrap();
    assert_eq!(sent[0].body, b"\xff\0");
    assert_eq!(sent[1].body, b"file");
    assert_eq!(sent.len(), 5);
}

#[tokio::test]
async fn parameters_of_statements_are_no_secret_s_way_into_the_log() {
    let secret = "pa'ss\\word made-up";
    let mut connections = json!({"keep": {"conn_type": "http", "password": secret}});
    let folder = tempfile::tempdir().unwrap();
    connections["lite"] = json!({"conn_type": "sqlite", "host": folder.path().join("some.db")});
    let (postgres, mysql) = (
        databases::postgres::connection("harbour"),
        databases::mariadb::connection("mysql"),
    );
    for (name, connection) in [("post", postgres), ("my", mysql)] {
        connections[name] = json!({
            "conn_type": connection.conn_type, "host": connection.host, "port": connection.port,
            "login": connection.login, "password": connection.password, "schema": connection.schema,
        });
    }
    let ran = go(
        "from airflow.sdk import BaseHook\n\
         from airflow.providers.mysql.hooks.mysql import MySqlHook\n\
         from airflow.providers.postgres.hooks.postgres import PostgresHook\n\
         from airflow.providers.sqlite.hooks.sqlite import SqliteHook",
        r#"
secret = BaseHook.get_connection("keep").password
told = []
for hook, place in ((PostgresHook("post"), "%s"), (MySqlHook("my"), "%s"), (SqliteHook("lite"), "?")):
    if hook.get_first(f"SELECT {place}, {place}", [secret, 7])[0] != secret:
        raise ValueError("it came back otherwise")
    for wrong in (f"SELECT 1 FRM {place} nowhere", f"SELECT {place}, length({place}) FRM nowhere", f"SELECT {place} 'x"):
        try:
            hook.get_first(wrong, [secret] * wrong.count(place))
        except Exception as error:
            told.append(str(error))
return told
"#,
        connections,
        &[],
    );
    let told = ran.value().as_array().unwrap();
    assert_eq!(told.len(), 9, "{told:?}");
    let log = events(task(&ran.report, "go", -1)).join("\n");
    assert!(
        log.contains("Running statement: SELECT %s, %s, parameters: ['***', 7]"),
        "{log}"
    );
    assert!(log.contains("parameters: ['***', '***']"), "{log}");
    let all = ran.report.to_string();
    // As it is, in quotes, in hexadecimal, and the beginning of each.
    for form in ["made-up", "pa'ss", "pa''ss", "706127", "5c776f7264"] {
        assert!(!all.contains(form), "{form}\n{all}");
    }
}

#[tokio::test]
async fn numbers_that_json_has_not_come_back_as_they_are() {
    let connection = databases::postgres::connection("harbour");
    let ran = go(
        "from airflow.providers.postgres.hooks.postgres import PostgresHook",
        r#"
sql = "SELECT 'NaN'::float8, '-Infinity'::float8, ARRAY['Infinity'::float8, 1.5]"
return [repr(value) for value in PostgresHook("db").get_first(sql)]
"#,
        json!({"db": {
            "conn_type": "postgres", "host": connection.host, "port": connection.port, "login": connection.login,
            "password": connection.password, "schema": connection.schema,
        }}),
        &[],
    );
    assert_eq!(*ran.value(), json!(["nan", "-inf", "[inf, 1.5]"]));
}

#[tokio::test]
async fn statements_of_a_list_are_one_transaction_in_postgresql_and_sqlite() {
    let connection = databases::postgres::connection("harbour");
    let folder = tempfile::tempdir().unwrap();
    let ran = go(
        "from airflow.providers.postgres.hooks.postgres import PostgresHook\n\
         from airflow.providers.sqlite.hooks.sqlite import SqliteHook",
        r#"
found = []
for hook in (PostgresHook("post"), SqliteHook("lite")):
    hook.run("DROP TABLE IF EXISTS hooked_list")
    hook.run(["CREATE TEMPORARY TABLE mine (a INT)", "INSERT INTO mine VALUES (3)", "CREATE TABLE hooked_list (a INT)",
              "INSERT INTO hooked_list SELECT a FROM mine"])
    for autocommit in (False, True):
        try:
            hook.run(["INSERT INTO hooked_list VALUES (4)", "SELECT nonsense"], autocommit)
        except Exception as error:
            found.append("nonsense" in str(error))
    found.append([list(row) for row in hook.get_records("SELECT a FROM hooked_list ORDER BY a")])
    hook.run("DROP TABLE hooked_list")
PostgresHook("post").run("VACUUM pg_class", autocommit=True)
return found
"#,
        json!({
            "post": {
                "conn_type": "postgres", "host": connection.host, "port": connection.port,
                "login": connection.login, "password": connection.password, "schema": connection.schema,
            },
            "lite": {"conn_type": "sqlite", "host": folder.path().join("some.db")},
        }),
        &[],
    );
    // SQLite's hook has no autocommit.
    assert_eq!(
        *ran.value(),
        json!([true, true, [[3], [4]], true, true, [[3]]])
    );
}
