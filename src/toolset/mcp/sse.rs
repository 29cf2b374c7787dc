//! The client of MCP's older transport: one stream of server-sent events for what the server says, and a POST for each
//! message to it.

use std::sync::Arc;

use bytes::BytesMut;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use reqwest::header::ACCEPT;
use reqwest::{Client, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::http::{connect_text, shown};
use super::size_limit::{MAX_MESSAGE, TooLarge};

/// What goes wrong with the two ways.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    /// The server can't be reached.
    #[error("{}", connect_text(.0))]
    Http(#[from] reqwest::Error),
    #[error("{0} is no address of an HTTP server")]
    Address(&'static str),
    #[error("the server answered {status} to {what}")]
    Status {
        status: reqwest::StatusCode,
        what: &'static str,
    },
    #[error("the server closed the stream before it had said where to send messages")]
    NoEndpoint,
    #[error("Endpoint origin does not match connection origin: {}", shown(.0))]
    OtherOrigin(Url),
    #[error("a message could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl SseError {
    /// The server knows the session no more.
    pub(super) fn session_expired(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == reqwest::StatusCode::NOT_FOUND)
    }
}

/// A connection.
pub(super) struct SseTransport {
    client: Client,
    endpoint: Arc<Url>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    reader: JoinHandle<()>,
}

impl SseTransport {
    /// Opens the stream and waits for the address that messages go to, which must be on the same server: what goes
    /// there carries the connection's token.
    ///
    /// # Errors
    /// See [`SseError`].
    pub(super) async fn connect(
        client: Client,
        url: &str,
        too_large: TooLarge,
    ) -> Result<Self, SseError> {
        let url = Url::parse(url).map_err(|_| SseError::Address("the host of the connection"))?;
        let response = client
            .get(url.clone())
            .header(ACCEPT, "text/event-stream")
            .send()
            .await?;
        if !response.status().is_success() {
            return Err(SseError::Status {
                status: response.status(),
                what: "the request for its events",
            });
        }
        let mut events = Events::new(too_large).of(response.bytes_stream());
        let endpoint = loop {
            let event = events.next().await.ok_or(SseError::NoEndpoint)?;
            if event.name == "endpoint" {
                let address = event.data.trim();
                break url.join(address).map_err(|_| {
                    SseError::Address("what the server gives as the place for messages")
                })?;
            }
        };
        if endpoint.origin() != url.origin() {
            return Err(SseError::OtherOrigin(endpoint));
        }
        let (sender, messages) = mpsc::channel(16);
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if event.name != "message" || event.data.is_empty() {
                    continue;
                }
                match serde_json::from_str(&event.data) {
                    Ok(message) => {
                        if sender.send(message).await.is_err() {
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "an MCP server sent an event that is no message");
                    }
                }
            }
        });
        Ok(Self {
            client,
            endpoint: Arc::new(endpoint),
            messages,
            reader,
        })
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn post(
    client: Client,
    endpoint: Arc<Url>,
    message: ClientJsonRpcMessage,
) -> Result<(), SseError> {
    let response = client
        .post(endpoint.as_ref().clone())
        .json(&message)
        .send()
        .await?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(SseError::Status {
            status,
            what: "a message",
        }),
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        post(self.client.clone(), Arc::clone(&self.endpoint), item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), SseError> {
        self.reader.abort();
        Ok(())
    }
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
struct Event {
    name: String,
    data: String,
}

/// Reads events out of bytes, as the HTML standard has it.
struct Events {
    buffer: BytesMut,
    /// How many bytes of the buffer hold no end of a line.
    searched: usize,
    name: String,
    data: Option<String>,
    too_large: TooLarge,
}

impl Events {
    fn new(too_large: TooLarge) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            name: String::new(),
            data: None,
            too_large,
        }
    }

    /// Bytes of the event that is being read.
    fn size(&self) -> usize {
        self.buffer.len() + self.name.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// The events of a stream, up to its end or its first error.
    fn of<B, E>(
        self,
        bytes: impl Stream<Item = Result<B, E>> + Send + 'static,
    ) -> BoxStream<'static, Event>
    where
        B: AsRef<[u8]> + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let state = (self, bytes.boxed());
        futures::stream::unfold(state, |(mut events, mut bytes)| async move {
            loop {
                if let Some(event) = events.next_event() {
                    return Some((event, (events, bytes)));
                }
                if events.size() > MAX_MESSAGE {
                    events.too_large.note();
                    return None;
                }
                match bytes.next().await {
                    Some(Ok(more)) => {
                        events.buffer.extend_from_slice(more.as_ref());
                    }
                    Some(Err(error)) => {
                        tracing::debug!(%error, "an MCP server's stream of events broke off");
                        return None;
                    }
                    None => return None,
                }
            }
        })
        .boxed()
    }

    /// The next whole event of what is in the buffer.
    fn next_event(&mut self) -> Option<Event> {
        loop {
            let mut unsearched = self.buffer.iter().skip(self.searched);
            let Some(end) = unsearched.position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let line = self.buffer.split_to(self.searched + end + 1);
            self.searched = 0;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let name = std::mem::take(&mut self.name);
                if let Some(data) = self.data.take() {
                    let name = if name.is_empty() {
                        "message".to_owned()
                    } else {
                        name
                    };
                    return Some(Event { name, data });
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.name),
                "data" => match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.data = Some(value.to_owned()),
                },
                // A comment, or what only matters to one who comes back.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_the_bytes_are_cut() {
        let text = ": ping\r\n\r\nevent: endpoint\r\ndata: /messages?id=1\r\n\r\ndata: {\"a\":\ndata: 1}\n\nevent: x\n\ndata: cut off";
        let event = |name: &str, data: &str| Event {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        let expected = [
            event("endpoint", "/messages?id=1"),
            event("message", "{\"a\":\n1}"),
        ];
        for size in [1, 7, text.len()] {
            let chunks: Vec<_> = text
                .as_bytes()
                .chunks(size)
                .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
                .collect();
            let events: Vec<_> = Events::new(TooLarge::default())
                .of(futures::stream::iter(chunks))
                .collect()
                .await;
            assert_eq!(events, expected, "{size}");
        }
    }

    #[tokio::test]
    async fn an_event_that_is_too_large_ends_the_stream_whether_in_one_line_or_in_many() {
        let million = "x".repeat(1 << 20);
        for (line, lines, expected) in [
            (format!("data: {million}\n"), 15, 1),
            (format!("data: {million}\n"), 17, 0),
            (million.clone(), 17, 0),
            // Comments are no part of an event.
            (format!(": {million}\n"), 17, 1),
        ] {
            let end = std::iter::once("\ndata: x\n\n".to_owned());
            let chunks = std::iter::repeat_n(line, lines)
                .chain(end)
                .map(|chunk| Ok::<_, std::io::Error>(chunk.into_bytes()));
            let too_large = TooLarge::default();
            let events: Vec<_> = Events::new(too_large.clone())
                .of(futures::stream::iter(chunks.collect::<Vec<_>>()))
                .collect()
                .await;
            assert_eq!(too_large.is_noted(), expected == 0);
            assert!(events.len() >= expected);
        }
    }
}
