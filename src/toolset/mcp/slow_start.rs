//! The handshake with a server that takes long to start.

use std::borrow::Cow;
use std::future::ready;

use futures::future::Either;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, DiscoverResult, Implementation,
    InitializeResult, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerPeerInfo,
    ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// `rmcp` asks for the newest protocol first, gives the question up after ten seconds, and begins with an older one. A
/// server that only took long to start then has heard the first question and may refuse the second. So this holds the
/// second back until the first is answered: with yes, which is told as an answer to the second; or with no, and then
/// the second is sent.
pub(super) struct SlowStart<T: Transport<RoleClient>> {
    inner: T,
    /// The first question, while it has no answer.
    discover: Option<RequestId>,
    /// The second, while it waits.
    held: Option<(RequestId, ClientJsonRpcMessage)>,
    /// The newest protocol knows no word for the end of the handshake.
    without_initialized: bool,
}

impl<T: Transport<RoleClient>> SlowStart<T> {
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            discover: None,
            held: None,
            without_initialized: false,
        }
    }

    /// Looks at a message on its way to the server; `None` when it does not go there now.
    fn outgoing(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        match &message {
            ClientJsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) if self.discover.is_some() => {
                    self.held = Some((request.id.clone(), message));
                    return None;
                }
                _ => {}
            },
            ClientJsonRpcMessage::Notification(notification)
                if self.without_initialized
                    && matches!(
                        notification.notification,
                        ClientNotification::InitializedNotification(_)
                    ) =>
            {
                return None;
            }
            _ => {}
        }
        Some(message)
    }

    /// Looks at a message of the server: what goes on to `rmcp`, or what goes to the server instead.
    fn incoming(&mut self, message: ServerJsonRpcMessage) -> Incoming {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if id.is_none() || id != self.discover.as_ref() {
            return Incoming::Message(message);
        }
        self.discover = None;
        let Some((initialize, held)) = self.held.take() else {
            return Incoming::Message(message);
        };
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let ServerResult::DiscoverResult(found) = response.result else {
                    return Incoming::Send(held);
                };
                if !found.supported_versions.contains(&ProtocolVersion::LATEST) {
                    return Incoming::Send(held);
                }
                self.without_initialized = true;
                let result = ServerResult::InitializeResult(initialized(found));
                Incoming::Message(ServerJsonRpcMessage::response(result, initialize))
            }
            _ => Incoming::Send(held),
        }
    }
}

#[allow(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, one for each message of a handshake"
)]
enum Incoming {
    Message(ServerJsonRpcMessage),
    Send(ClientJsonRpcMessage),
}

/// What a server said of itself, as the older handshake puts it.
fn initialized(found: DiscoverResult) -> InitializeResult {
    let info = ServerPeerInfo::from_discover_result(ProtocolVersion::LATEST, found);
    let mut result = InitializeResult::new(info.capabilities);
    result.protocol_version = info.protocol_version;
    result.server_info = info
        .server_info
        .unwrap_or_else(|| Implementation::new("", ""));
    result.instructions = info.instructions;
    result
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for SlowStart<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        match self.outgoing(item) {
            Some(message) => Either::Left(self.inner.send(message)),
            None => Either::Right(ready(Ok(()))),
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match self.incoming(message) {
                Incoming::Message(message) => return Some(message),
                Incoming::Send(held) => self.inner.send(held).await.ok()?,
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    /// A way to nowhere.
    struct Nowhere;

    impl Transport<RoleClient> for Nowhere {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
            ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            None
        }

        async fn close(&mut self) -> Result<(), std::io::Error> {
            Ok(())
        }
    }

    fn client(method: &str, id: u32) -> ClientJsonRpcMessage {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        serde_json::from_value(message).unwrap()
    }

    fn server(message: Value) -> ServerJsonRpcMessage {
        serde_json::from_value(message).unwrap()
    }

    /// A handshake in which the first question was given up.
    fn given_up() -> SlowStart<Nowhere> {
        let mut transport = SlowStart::new(Nowhere);
        assert!(transport.outgoing(client("server/discover", 0)).is_some());
        assert!(transport.outgoing(client("initialize", 1)).is_none());
        transport
    }

    #[test]
    fn a_late_yes_is_told_as_an_answer_to_the_second_question() {
        let mut transport = given_up();
        let yes = json!({"jsonrpc": "2.0", "id": 0, "result": {
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
            "instructions": "Ask.", "ttlMs": 0, "cacheScope": "private",
        }});
        let Incoming::Message(told) = transport.incoming(server(yes)) else {
            panic!("nothing is told")
        };
        let told = serde_json::to_value(told).unwrap();
        assert_eq!(told["id"], 1);
        assert_eq!(told["result"]["protocolVersion"], "2026-07-28");
        assert_eq!(told["result"]["instructions"], "Ask.");
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let done = serde_json::from_value(done).unwrap();
        assert!(transport.outgoing(done).is_none());
    }

    #[test]
    fn after_a_late_no_the_second_question_is_sent() {
        let mut transport = given_up();
        let no = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no such method"}});
        let Incoming::Send(sent) = transport.incoming(server(no)) else {
            panic!("nothing is sent")
        };
        assert_eq!(serde_json::to_value(sent).unwrap()["id"], 1);
    }

    #[test]
    fn answers_in_time_pass() {
        let mut transport = SlowStart::new(Nowhere);
        assert!(transport.outgoing(client("server/discover", 0)).is_some());
        let no = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no such method"}});
        assert!(matches!(
            transport.incoming(server(no)),
            Incoming::Message(_)
        ));
        assert!(transport.outgoing(client("initialize", 1)).is_some());
    }
}
