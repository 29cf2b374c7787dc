//! A model server that answers from a list and notes what it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Map, Value, json};

use super::calls::check_calls_and_results;

/// Headers that are compared.
const HEADERS: [&str; 4] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "content-type",
];

/// A running server. It stops with the test process.
pub struct Server {
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    requests: Vec<Value>,
    faults: Vec<String>,
}

impl Server {
    /// Starts a server that gives `responses` in order.
    pub fn start(responses: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let mut responses = responses.into_iter();
            for stream in listener.incoming().flatten() {
                serve(stream, &shared, || responses.next());
            }
        });
        Self { url, state }
    }

    /// What was asked so far, as `{"method", "path", "headers", "body"}`.
    pub fn requests(&self) -> Vec<Value> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Requests that should not have been made: one too many, or with calls and results that don't match.
    pub fn faults(&self) -> Vec<String> {
        self.state.lock().unwrap().faults.clone()
    }
}

/// Answers the requests of one connection until it closes.
fn serve(stream: TcpStream, state: &Mutex<State>, mut next: impl FnMut() -> Option<Value>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader) {
        let response = next();
        {
            let mut state = state.lock().unwrap();
            if response.is_none() {
                state
                    .faults
                    .push("a request more than there are responses".to_owned());
            }
            if let Err(fault) = check_calls_and_results(&request["body"]) {
                state.faults.push(fault);
            }
            state.requests.push(request);
        }
        let response =
            response.unwrap_or_else(|| json!({"status": 500, "text": "no response left"}));
        if response["disconnect"] == json!(true) || !write_response(&mut writer, &response) {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Map::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == "content-length" {
            length = value.parse().ok()?;
        }
        if HEADERS.contains(&name.as_str()) {
            headers.insert(name, value.into());
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    Some(json!({"method": method, "path": path, "headers": headers, "body": body}))
}

fn write_response(writer: &mut TcpStream, response: &Value) -> bool {
    let status = response["status"].as_u64().unwrap_or(200);
    let (content_type, body) = match (response.get("text"), response["sse"].as_array()) {
        (Some(text), _) => ("text/plain", text.as_str().unwrap_or_default().to_owned()),
        (None, Some(events)) => ("text/event-stream", server_sent(events)),
        (None, None) => ("application/json", response["body"].to_string()),
    };
    let mut head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        head.push_str(&format!(
            "{name}: {}\r\n",
            value.as_str().unwrap_or_default()
        ));
    }
    writer
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .is_ok()
}

fn server_sent(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            let name = event["event"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {}\n\n", event["data"])
        })
        .collect()
}
