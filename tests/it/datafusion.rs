//! `DataFusionToolset` beside the Python provider's: the same calls on the same files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use updraft::agent::{ToolError, Toolset};
use updraft::airflow::config::Environment;
use updraft::airflow::connection::Connection;
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::toolset::datafusion::{
    DataFusionToolset, DataFusionToolsetConfig, DataSourceConfig, EngineSettings,
};

fn python() -> PathBuf {
    let venv = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv"),
        PathBuf::from,
    );
    venv.join("bin/python")
}

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/servers/python_datafusion.py")
}

/// The files, written once for all tests by pyarrow.
fn files() -> &'static Path {
    static FILES: OnceLock<TempDir> = OnceLock::new();
    let folder = FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new(python())
            .arg(script())
            .arg("make")
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(made.success(), "the files could not be written");
        folder
    });
    folder.path()
}

/// A source among the [`files`].
fn source(table_name: &str, path: &str, format: &str, options: Value) -> Value {
    json!({
        "conn_id": "none",
        "table_name": table_name,
        "uri": format!("file://{}/{path}", files().display()),
        "format": format,
        "options": options,
    })
}

struct Case {
    sources: Vec<Value>,
    toolset: Value,
    calls: Vec<(&'static str, Value)>,
}

fn query(sql: &str) -> (&'static str, Value) {
    ("query", json!({ "sql": sql }))
}

fn get_schema(table: &str) -> (&'static str, Value) {
    ("get_schema", json!({ "table_name": table }))
}

fn list_tables() -> (&'static str, Value) {
    ("list_tables", json!({}))
}

fn python_answers(cases: &[Case]) -> Vec<Vec<Value>> {
    let requests: Vec<Value> = cases
        .iter()
        .map(|case| json!({"sources": case.sources, "toolset": case.toolset, "calls": case.calls}))
        .collect();
    let mut asked = Command::new(python())
        .arg(script())
        .arg("ask")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(&requests).unwrap();
    asked.stdin.take().unwrap().write_all(&text).unwrap();
    let output = asked.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

struct NoConnections;

#[async_trait]
impl ConnectionSource for NoConnections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        Err(ConnectionError::NotDefined(conn_id.to_owned()))
    }
}

fn toolset(case: &Case) -> DataFusionToolset {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let sources = case.sources.iter().map(|source| DataSourceConfig {
        conn_id: text(source, "conn_id"),
        table_name: text(source, "table_name"),
        uri: text(source, "uri"),
        format: text(source, "format"),
        options: source["options"].as_object().cloned().unwrap_or_default(),
        ..DataSourceConfig::default()
    });
    let mut config = DataFusionToolsetConfig::new(sources.collect());
    let number = |key: &str, default| case.toolset[key].as_i64().unwrap_or(default);
    config.max_rows = number("max_rows", config.max_rows);
    config.max_columns = number("max_columns", config.max_columns);
    config.max_result_bytes = number("max_result_bytes", config.max_result_bytes);
    config.allow_writes = case.toolset["allow_writes"] == true;
    DataFusionToolset::new(
        config,
        EngineSettings::new(Environment::default()),
        Arc::new(NoConnections),
        Arc::new(str::to_owned),
    )
    .unwrap()
}

async fn our_answers(case: &Case) -> Vec<Value> {
    let toolset = toolset(case);
    let mut answers = Vec::new();
    for (tool, arguments) in &case.calls {
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap();
        answers.push(match toolset.call(tool, arguments).await {
            Ok(value) => json!({ "value": value }),
            Err(ToolError::Retry(text)) => json!({ "retry": text }),
            Err(ToolError::Fatal(text) | ToolError::Failed(text)) => json!({ "fatal": text }),
        });
    }
    toolset.close().await;
    answers
}

/// What must be the same of an answer: all of it, but for the text of the engine, which is another version's, and of
/// the parser.
fn comparable(answer: &Value) -> Value {
    const MARKS: [&str; 4] = [
        "Error while executing query: ",
        "error: SQL parse error: ",
        "data source: ",
        "Error tokenizing",
    ];
    let (kind, text) = answer.as_object().unwrap().iter().next().unwrap();
    let text = text.as_str().unwrap();
    for mark in MARKS {
        if let Some(at) = text.find(mark) {
            return json!({kind: text[..at + mark.len()]});
        }
    }
    answer.clone()
}

async fn compare(cases: &[Case]) {
    let mut differences = Vec::new();
    for (case, expected) in cases.iter().zip(python_answers(cases)) {
        let ours = our_answers(case).await;
        for ((call, expected), ours) in case.calls.iter().zip(&expected).zip(&ours) {
            if comparable(ours) != comparable(expected) {
                differences.push(format!(
                    "{call:?}\n  Python:  {expected}\n  Updraft: {ours}"
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Our answers, where there is nothing to compare them with.
async fn ask(sources: Vec<Value>, calls: Vec<(&'static str, Value)>) -> Vec<Value> {
    let case = Case {
        sources,
        toolset: json!({}),
        calls,
    };
    our_answers(&case).await
}

fn text<'a>(answer: &'a Value, kind: &str) -> &'a str {
    answer[kind]
        .as_str()
        .unwrap_or_else(|| panic!("{answer} should be a {kind}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_value_has_the_type_name_and_the_text_that_python_gives_it() {
    let case = Case {
        sources: vec![source("kinds", "kinds.parquet", "parquet", json!({}))],
        toolset: json!({}),
        calls: vec![get_schema("kinds"), query("SELECT * FROM kinds")],
    };
    compare(&[case]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_on_several_sources_have_the_answers_of_python() {
    let sources = || {
        vec![
            source("ships", "ships.parquet", "parquet", json!({})),
            source("Ports", "ports.csv", "CSV", json!({})),
            source("my-wide", "wide.parquet", "parquet", json!({})),
            source("notes", "notes/", "parquet", json!({})),
            source("gone", "gone.parquet", "parquet", json!({})),
            source(
                "semicolons",
                "semicolons.csv",
                "csv",
                json!({"delimiter": ";", "has_header": false}),
            ),
            source(
                "years",
                "by_year/",
                "parquet",
                json!({"table_partition_cols": [["year", "int"]]}),
            ),
        ]
    };
    let contains = |part: &str| {
        (
            "get_schema",
            json!({"table_name": "my-wide", "name_contains": part}),
        )
    };
    let case = Case {
        sources: sources(),
        toolset: json!({"max_rows": 5}),
        calls: vec![
            get_schema("ships"),
            get_schema("SHIPS"),
            get_schema("\"ships\""),
            get_schema("public.ships"),
            get_schema("ports"),
            get_schema("\"Ports\""),
            get_schema("my-wide"),
            contains("COL_14"),
            contains("zzz"),
            get_schema("nope"),
            get_schema("gone"),
            get_schema("semicolons"),
            get_schema("years"),
            query("SELECT * FROM ports ORDER BY id"),
            query("SELECT \"Name\" FROM ships ORDER BY id LIMIT 3"),
            query("SELECT id FROM ships ORDER BY id;"),
            query(
                "SELECT p.name, count(*) AS n FROM ships s JOIN ports p ON s.port = p.id GROUP BY p.name ORDER BY 1",
            ),
            query("SELECT * FROM semicolons ORDER BY column_1"),
            query("SELECT * FROM years ORDER BY v"),
            query("SELECT year, sum(v) FROM years GROUP BY year ORDER BY year"),
            query("SELECT * FROM gone"),
            query("SELECT v FROM notes ORDER BY v"),
            query("SELECT 1 WHERE false"),
            query("SELECT count(*), sum(id), avg(id) FROM ships"),
            query("SELECT CAST('1.10' AS DECIMAL(10, 2)), 1.10, NULL, 'a' || 'b'"),
            query("SELECT make_array(1, 2), struct(1, 'x'), INTERVAL '1 month 2 days'"),
            query("SELECT DATE '2020-01-31' + INTERVAL '1 month'"),
            query("SELECT to_timestamp('2020-01-01T10:00:00')"),
            query("SELECT DATE '9999-12-31' + INTERVAL '1 day'"),
            query(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            ),
            query("SELECT * FROM nope"),
            query("SELECT * FROM sch.nope"),
            query("SELECT nope FROM ships"),
            query("SELECT name FROM ships"),
            query("SELECT s.nope FROM ships s"),
            query("SELECT x.id FROM ships"),
            query("SELECT id FROM ships WHERE nope = 1"),
            query("SELECT (SELECT nope FROM ports) FROM ships"),
            query("SELECT nofunc(id) FROM ships"),
            query("SELECT id + \"Name\" FROM ships"),
            query("SELECT 1 / 0"),
            query("SELECT 1 AS a, 2 AS a"),
            query("SELECT union_extract(1)"),
            query("SELEC 1"),
            query(""),
            query("SELECT 1; SELECT 2"),
            query("DROP TABLE ships"),
            query("CREATE TABLE t AS SELECT 1"),
            query("COPY ships TO '/tmp/x.parquet'"),
            query("DESCRIBE ships"),
            query("SHOW TABLES"),
            query("EXPLAIN SELECT 1"),
            query("VALUES (1)"),
            query("(SELECT 1)"),
        ],
    };
    let bytes = Case {
        sources: sources(),
        toolset: json!({"max_result_bytes": 30, "max_columns": 2}),
        calls: vec![
            query("SELECT id FROM ships ORDER BY id"),
            query("SELECT \"Name\" FROM ships ORDER BY id"),
            query("SELECT id AS a_column_with_a_very_long_name FROM ships"),
            get_schema("ports"),
            get_schema("ships"),
        ],
    };
    compare(&[case, bytes]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_writes_allowed_tables_and_files_can_be_made() {
    let target = tempfile::tempdir().unwrap();
    let case = Case {
        sources: vec![source("ships", "ships.parquet", "parquet", json!({}))],
        toolset: json!({"allow_writes": true}),
        calls: vec![
            query("CREATE TABLE t AS SELECT 1 AS a"),
            get_schema("t"),
            query("INSERT INTO t VALUES (2)"),
            query("SELECT a FROM t ORDER BY a"),
            query("CREATE VIEW v AS SELECT a + 1 AS b FROM t"),
            get_schema("v"),
            query(&format!(
                "COPY (SELECT 1 AS x) TO '{}/one.parquet'",
                target.path().display()
            )),
            query("EXPLAIN SELECT 1"),
            query("SELECT 1; SELECT 2"),
            query("DROP TABLE t"),
            get_schema("t"),
        ],
    };
    compare(&[case]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_that_can_not_be_registered_end_as_in_python() {
    let calls = || vec![list_tables(), get_schema("t"), query("SELECT 1")];
    let case = |sources| Case {
        sources,
        toolset: json!({}),
        calls: calls(),
    };
    let plain = |name: &str| json!({"conn_id": "none", "table_name": name});
    compare(&[
        case(vec![plain("z")]),
        case(vec![source("t", "ships.parquet", "ORC", json!({}))]),
        case(vec![source("t", "ships.parquet", "csv", json!({}))]),
        case(vec![source("t", "ports.csv", "csv", json!({"delim": ";"}))]),
        case(vec![source("t", "notes/", "parquet", json!({"table_partition_cols": [["year", "float"]]}))]),
        case(vec![
            source("t", "ships.parquet", "parquet", json!({})),
            source("t", "wide.parquet", "parquet", json!({})),
        ]),
        case(vec![json!({"conn_id": "none", "table_name": "t", "uri": "s3://b/k.parquet", "format": "parquet"})]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_make_no_table_end_in_an_error_that_names_one() {
    let by_year = json!({"table_partition_cols": [["yeer", "int"]]});
    let cases = [
        (
            source("t", "stray/", "parquet", json!({})),
            "the file {}stray/b.parquet can't be read as Parquet",
        ),
        (
            source("t", "mixed/", "parquet", json!({})),
            "the column \"v\" of the file {}mixed/b.parquet is string_view, and int64 in {}mixed/a.parquet",
        ),
        (
            source("t", "swapped/", "csv", json!({})),
            "the file {}swapped/b.csv has other columns (v, id) than {}swapped/a.csv (id, v)",
        ),
        (
            source("t", "by_year/", "parquet", by_year),
            "the file {}by_year/year=2023/part.parquet is not where table_partition_cols says",
        ),
    ];
    for (source, expected) in cases {
        let answers = ask(
            vec![source],
            vec![list_tables(), get_schema("t"), query("SELECT 1")],
        )
        .await;
        let expected = expected.replace("{}", &format!("{}/", files().display()));
        for answer in &answers[1..] {
            let told = text(answer, "fatal");
            assert!(told.contains(&expected), "{told}");
        }
        let listed: Value = serde_json::from_str(text(&answers[0], "value")).unwrap();
        assert!(listed["error"].as_str().unwrap().contains(&expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_breaks_while_it_is_read_is_named() {
    let answers = ask(
        vec![source("t", "ragged/", "csv", json!({}))],
        vec![query("SELECT count(v) FROM t")],
    )
    .await;
    let told = text(&answers[0], "value");
    assert!(told.contains("ragged/b.csv"), "{told}");
    assert!(told.contains("expected 2 got 3"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_some_files_lack_is_null_there() {
    let answers = ask(
        vec![source("t", "grown/", "parquet", json!({}))],
        vec![query("SELECT v, w FROM t ORDER BY v NULLS LAST")],
    )
    .await;
    assert_eq!(
        text(&answers[0], "value"),
        r#"{"columns":["v","w"],"rows":[[1,null],[null,"x"]],"row_count":2}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_word_in_a_column_of_numbers_makes_it_text_with_a_note() {
    let note = "Column 'amount' of table 'late' is read as text from now on: its first rows look like int64, but the \
                value 'N/A' is none. Use TRY_CAST(... AS BIGINT) where you need one; it gives NULL for such values.";
    let answers = ask(
        vec![
            source("late", "late.csv", "csv", json!({})),
            source("other", "other_late.csv", "csv", json!({})),
        ],
        vec![
            get_schema("late"),
            query("SELECT l.amount FROM late l JOIN other o ON l.id = o.id WHERE l.id = 2000"),
            get_schema("late"),
            query("SELECT sum(TRY_CAST(amount AS BIGINT)) AS total FROM late"),
            query("SELECT sum(amount) FROM other"),
            get_schema("other"),
        ],
    )
    .await;
    assert!(text(&answers[0], "value").contains(r#"{"name":"amount","type":"int64"}"#));
    let expected = json!({"columns": ["amount"], "rows": [["N/A"]], "row_count": 1, "note": note});
    assert_eq!(text(&answers[1], "value"), expected.to_string());
    let described: Value = serde_json::from_str(text(&answers[2], "value")).unwrap();
    assert_eq!(described["columns"][1]["type"], "string");
    assert_eq!(described["note"], note);
    assert_eq!(
        text(&answers[3], "value"),
        r#"{"columns":["total"],"rows":[[1999000]],"row_count":1}"#
    );
    let failed: Value = serde_json::from_str(text(&answers[4], "value")).unwrap();
    assert!(
        failed["note"].as_str().unwrap().contains("table 'other'"),
        "{failed}"
    );
    assert!(text(&answers[5], "value").contains(r#"{"name":"amount","type":"string"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_csv_file_is_lost() {
    let answers = ask(
        vec![
            source("empty", "empty_at_first.csv", "csv", json!({})),
            source("guesses", "guesses/", "csv", json!({})),
            source("quoted", "quoted.csv", "csv", json!({})),
            source("odd", "odd #1 100%/", "csv", json!({})),
        ],
        vec![
            query("SELECT note FROM empty WHERE id = 2000"),
            query("SELECT v FROM guesses ORDER BY id"),
            query("SELECT v FROM quoted"),
            query("SELECT id FROM odd"),
        ],
    )
    .await;
    let expected = [
        r#"{"columns":["note"],"rows":[["here"]],"row_count":1}"#,
        r#"{"columns":["v"],"rows":[["2"],["x"]],"row_count":2}"#,
        r#"{"columns":["v"],"rows":[["two\nlines"]],"row_count":1}"#,
        r#"{"columns":["id"],"rows":[[1]],"row_count":1}"#,
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert_eq!(text(answer, "value"), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_join_with_one_another() {
    let answers = ask(
        vec![
            source("lines", "lines.jsonl", "json", json!({})),
            source("berths", "berths.avro", "avro", json!({})),
            source("ports", "ports.csv", "csv", json!({})),
        ],
        vec![
            get_schema("lines"),
            get_schema("berths"),
            query("SELECT * FROM lines ORDER BY id"),
            query("SELECT * FROM berths ORDER BY id"),
            query(
                "SELECT b.price, l.at['x'] AS x, p.name FROM berths b JOIN lines l ON b.id = l.id \
                 JOIN ports p ON p.id = l.id ORDER BY b.id",
            ),
        ],
    )
    .await;
    assert_eq!(
        text(&answers[2], "value"),
        r#"{"columns":["id","tags","at","late"],"rows":[[1,["a"],{"x":1.5},null],[2,null,null,true]],"row_count":2}"#
    );
    assert_eq!(
        text(&answers[3], "value"),
        r#"{"columns":["id","name","price","since","tags"],"rows":[[1,"A","12.50","2024-07-01 12:30:00+00:00",["deep"]],[2,null,"0.00","2024-07-01 12:30:00+00:00",[]]],"row_count":2}"#
    );
    assert_eq!(
        text(&answers[4], "value"),
        r#"{"columns":["price","x","name"],"rows":[["12.50",1.5,"Oslo"],["0.00",null,"Ålesund"]],"row_count":2}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sorting_more_than_the_memory_holds_goes_to_disk_and_joining_more_is_an_error() {
    let rows = "SELECT value AS n, repeat(CAST(value AS VARCHAR), 50) AS text FROM generate_series(1, 200000)";
    let sql = format!(
        "SELECT sum(n) AS total FROM (SELECT n, row_number() OVER (ORDER BY text) AS r FROM ({rows}))"
    );
    let join = format!("SELECT count(*) FROM ({rows}) a JOIN ({rows}) b ON a.text = b.text");
    let mut config = DataFusionToolsetConfig::new(Vec::new());
    config.datasource_configs.push(DataSourceConfig {
        table_name: "ports".to_owned(),
        uri: format!("file://{}/ports.csv", files().display()),
        format: "csv".to_owned(),
        ..DataSourceConfig::default()
    });
    let mut settings = EngineSettings::new(Environment::default());
    settings.memory_limit = 40 << 20;
    let toolset = DataFusionToolset::new(
        config,
        settings,
        Arc::new(NoConnections),
        Arc::new(str::to_owned),
    )
    .unwrap();
    let ask = async |sql: &str| {
        let arguments = json!({ "sql": sql });
        let answer = toolset
            .call("query", arguments.as_object().cloned().unwrap())
            .await;
        answer.unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(
        ask(&sql).await,
        r#"{"columns":["total"],"rows":[[20000100000]],"row_count":1}"#
    );
    let told = ask(&join).await;
    assert!(told.contains("Resources exhausted"), "{told}");
    assert!(told.contains("HashJoin"), "{told}");
    toolset.close().await;
}
