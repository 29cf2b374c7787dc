//! A slow server's answer to a question that was given up.

use std::borrow::Cow;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// The handshake asks for the newest protocol first, and for an older one when no answer comes for ten seconds. A server
/// that only took long to start then answers both, and `rmcp` takes the first answer for one to the second question:
/// this drops it.
pub(super) struct WithoutLateAnswers<T> {
    inner: T,
    discover: Option<RequestId>,
    given_up: bool,
}

impl<T> WithoutLateAnswers<T> {
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            discover: None,
            given_up: false,
        }
    }

    fn sent(&mut self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Request(request) = message {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.given_up = true,
                _ => {}
            }
        }
    }

    fn is_late(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        self.given_up && id.is_some() && id == self.discover.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WithoutLateAnswers<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.sent(&item);
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_answer_to_what_was_given_up_is_late() {
        let client = |method: &str, id: u32| -> ClientJsonRpcMessage {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "t", "version": "1"}});
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            serde_json::from_value(message).unwrap()
        };
        let answer = |id: u32| -> ServerJsonRpcMessage {
            serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": {}})).unwrap()
        };
        let mut transport = WithoutLateAnswers::new(());
        transport.sent(&client("server/discover", 0));
        assert!(!transport.is_late(&answer(0)));
        transport.sent(&client("initialize", 1));
        assert!(transport.is_late(&answer(0)));
        assert!(!transport.is_late(&answer(1)));
    }
}
