//! SQL Server: no real one could be had. A server of our own plays what `tests/servers/tds_exchange.py` recorded, which
//! pymssql has read as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use updraft::airflow::connection::Connection;
use updraft::hook::mssql::MssqlDatabase;
use updraft::hook::{Access, Cell, Database};

use super::{Arguments, ask, get_schema, list_tables, query};

/// Never answered.
const SLOW: &str = "SELECT slow FROM orders";
/// Answered by hanging up.
const LOST: &str = "SELECT lost FROM orders";

const PRELOGIN: u8 = 0x12;
const LOGIN: u8 = 0x10;
const BATCH: u8 = 0x01;
const ATTENTION: u8 = 0x06;
const ANSWER: u8 = 0x04;

/// DONE, with the bit that answers an attention.
const STOPPED: [u8; 13] = [0xFD, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn exchange() -> Value {
    serde_json::from_str(include_str!("exchange_mssql.json")).unwrap()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let digits: Vec<u32> = hex
        .as_str()
        .unwrap()
        .chars()
        .map(|c| c.to_digit(16).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    batches: Mutex<Vec<String>>,
    read_intents: Mutex<Vec<bool>>,
    /// A statement that is never answered has come.
    slow: Notify,
    /// The client has asked for such a statement to be stopped.
    told_to_stop: Notify,
}

impl Seen {
    fn batches(&self) -> Vec<String> {
        self.batches.lock().unwrap().clone()
    }
}

struct Server {
    port: u16,
    seen: Arc<Seen>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let served = Arc::clone(&seen);
        tokio::spawn(async move {
            let exchange = Arc::new(exchange());
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&exchange), Arc::clone(&served)));
            }
        });
        Self { port, seen }
    }

    fn connection(&self, extra: &Value) -> Connection {
        let mut all = json!({"encryption": "off"});
        all.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        Connection {
            conn_id: "db".to_owned(),
            conn_type: "mssql".to_owned(),
            host: Some("127.0.0.1".to_owned()),
            port: Some(self.port),
            schema: Some("ships".to_owned()),
            login: Some("updraft".to_owned()),
            password: Some("made-up".to_owned()),
            extra: Some(all.to_string()),
        }
    }

    fn database(&self, allow_writes: bool) -> MssqlDatabase {
        let access = Access {
            allow_writes,
            tables: None,
        };
        MssqlDatabase::new(&self.connection(&json!({})), access)
    }
}

async fn serve(mut stream: TcpStream, exchange: Arc<Value>, seen: Arc<Seen>) {
    let answers: HashMap<&str, &Value> = exchange["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (answer["sql"].as_str().unwrap(), &answer["answer"]))
        .collect();
    let reflection = &exchange["reflection"];
    let fixed = &exchange["fixed"];
    while let Some((kind, body)) = message(&mut stream).await {
        let answer = match kind {
            PRELOGIN => &fixed["prelogin"],
            LOGIN => {
                // MS-TDS 2.2.6.4: the byte of type flags, and the bit for an intent to read.
                seen.read_intents.lock().unwrap().push(body[26] & 0x20 != 0);
                &fixed["login"]
            }
            BATCH => {
                let headers = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
                let text: Vec<u16> = body[headers..]
                    .chunks(2)
                    .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                    .collect();
                let sql = String::from_utf16(&text).unwrap();
                seen.batches.lock().unwrap().push(sql.clone());
                match sql.as_str() {
                    SLOW => {
                        seen.slow.notify_one();
                        continue;
                    }
                    LOST => return,
                    sql if sql.starts_with("SELECT TABLE_NAME ") => &reflection["tables"],
                    sql if sql.contains("N'nope'") => &reflection["no_columns"],
                    sql if sql.starts_with("SELECT c.name, ") => &reflection["columns"],
                    sql => answers.get(sql).copied().unwrap_or(&fixed["done"]),
                }
            }
            ATTENTION => {
                seen.told_to_stop.notify_one();
                send(&mut stream, &STOPPED).await;
                continue;
            }
            other => panic!("a message of type {other} is not expected"),
        };
        send(&mut stream, &bytes(answer)).await;
    }
}

/// `None` when the client has hung up.
async fn message(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut body = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).await.ok()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let mut part = vec![0; length - header.len()];
        stream.read_exact(&mut part).await.ok()?;
        body.extend(part);
        if header[1] & 1 == 1 {
            return Some((header[0], body));
        }
    }
}

async fn send(stream: &mut TcpStream, body: &[u8]) {
    let parts: Vec<&[u8]> = body.chunks(4088).collect();
    for (index, part) in parts.iter().enumerate() {
        let length = u16::try_from(part.len() + 8).unwrap().to_be_bytes();
        let last = u8::from(index + 1 == parts.len());
        let number = u8::try_from((index + 1) % 256).unwrap();
        let mut packet = vec![ANSWER, last, length[0], length[1], 0, 0, number, 0];
        packet.extend_from_slice(part);
        stream.write_all(&packet).await.unwrap();
    }
}

#[tokio::test]
async fn recorded_answers_read_as_pymssql_reads_them() {
    let server = Server::start().await;
    let arguments = Arguments {
        max_rows: Some(100),
        ..Arguments::default()
    };
    let toolset = arguments.toolset(&server.connection(&json!({})));
    let mut differences = Vec::new();
    for recorded in exchange()["answers"].as_array().unwrap() {
        let sql = recorded["sql"].as_str().unwrap();
        let answer = ask(&toolset, &query(sql)).await;
        let expected = match recorded.get("error") {
            Some(error) => json!({"retry": format!(
                "The query tool failed: {}\nUse the list_tables and get_schema tools to inspect the database, then fix \
                 the query and try again.",
                error.as_str().unwrap()
            )}),
            None => {
                let rows = recorded["rows"].as_array().unwrap();
                json!({"value": json!({
                    "columns": recorded["columns"],
                    "rows": rows,
                    "row_count": rows.len(),
                }).to_string()})
            }
        };
        if answer != expected {
            differences.push(format!("{sql}\n  pymssql: {expected}\n  Updraft: {answer}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn tables_and_columns_read_as_sqlalchemy_prints_them() {
    let server = Server::start().await;
    let toolset = Arguments::default().toolset(&server.connection(&json!({})));
    assert_eq!(
        ask(&toolset, &list_tables()).await,
        json!({"value": "[\"customers\", \"orders\"]"})
    );
    let expected = exchange()["reflection"]["expected"].clone();
    let count = expected.as_array().unwrap().len();
    assert_eq!(
        ask(&toolset, &get_schema("dbo.kinds")).await,
        json!({"value": json!({"columns": expected, "column_count": count}).to_string()})
    );
    let missing = ask(&toolset, &get_schema("nope")).await;
    assert!(
        missing["retry"]
            .as_str()
            .unwrap()
            .starts_with("The get_schema tool failed: nope\n")
    );
}

#[tokio::test]
async fn a_statement_is_rolled_back_unless_writes_are_allowed() {
    let server = Server::start().await;
    let reader = server.database(false);
    reader.run("SELECT id FROM orders", 5).await.unwrap();
    reader.close().await;
    assert_eq!(
        server.seen.batches()[1..],
        ["SET ROWCOUNT 5; BEGIN TRANSACTION", "SELECT id FROM orders",]
    );
    let reader = server.database(false);
    reader.run("SELECT c_bit FROM kinds", 5).await.unwrap();
    assert_eq!(
        server.seen.batches().last().unwrap(),
        "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET ROWCOUNT 0"
    );
    let writer = server.database(true);
    writer.run("DELETE FROM orders", 5).await.unwrap();
    assert_eq!(
        server.seen.batches()[server.seen.batches().len() - 3..],
        [
            "SET ROWCOUNT 0; BEGIN TRANSACTION",
            "DELETE FROM orders",
            "IF @@TRANCOUNT > 0 COMMIT TRANSACTION; SET ROWCOUNT 0",
        ]
    );
    assert_eq!(
        *server.seen.read_intents.lock().unwrap(),
        [true, true, false]
    );
}

#[tokio::test]
async fn a_read_only_session_sends_nothing_that_may_be_more_than_one_select() {
    let server = Server::start().await;
    let reader = server.database(false);
    for sql in [
        "SELECT 1 DELETE FROM orders",
        "EXEC sp_who",
        "SELECT 1; DROP TABLE orders",
        "SELECT * INTO copied FROM orders",
    ] {
        assert!(reader.run(sql, 5).await.is_err(), "{sql}");
    }
    let batches = server.seen.batches();
    assert!(
        batches.iter().all(|batch| batch.starts_with("SET ")),
        "{batches:?}"
    );
}

#[tokio::test]
async fn no_more_rows_are_read_than_are_shown() {
    let server = Server::start().await;
    let reader = server.database(false);
    let result = reader.run("SELECT id FROM orders", 51).await.unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (51, None));
    assert_eq!(result.rows[50], [Cell::Int(51)]);
}

#[tokio::test]
async fn dropping_the_call_tells_the_server_to_stop_and_the_next_call_connects_again() {
    let server = Server::start().await;
    let reader = server.database(false);
    {
        let call = reader.run(SLOW, 5);
        tokio::pin!(call);
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = server.seen.slow.notified() => {}
        }
    }
    tokio::time::timeout(Duration::from_secs(5), server.seen.told_to_stop.notified())
        .await
        .unwrap();
    assert!(reader.run("SELECT c_bit FROM kinds", 5).await.is_ok());
}

#[tokio::test]
async fn the_connections_timeout_stops_a_statement() {
    let server = Server::start().await;
    let connection = server.connection(&json!({"timeout": 1}));
    let reader = MssqlDatabase::new(&connection, Access::default());
    let error = reader.run(SLOW, 5).await.unwrap_err().to_string();
    assert!(
        error.starts_with("(20003, b'DB-Lib error message 20003"),
        "{error}"
    );
    tokio::time::timeout(Duration::from_secs(5), server.seen.told_to_stop.notified())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_lost_connection_is_told_and_the_next_call_connects_again() {
    let server = Server::start().await;
    let reader = server.database(false);
    let error = reader.run(LOST, 5).await.unwrap_err().to_string();
    assert!(
        error.contains("DBPROCESS is dead or not enabled"),
        "{error}"
    );
    assert!(reader.run("SELECT c_bit FROM kinds", 5).await.is_ok());
}
