//! `SlackWebhookHook`: messages to an incoming webhook, by a connection of type `slackwebhook`.

use serde_json::{Map, Value, json};

use super::http::{self, HttpError, HttpRequest};
use crate::airflow::connection::Connection;

/// Where webhooks are when a connection names no host.
const HOST: &str = "hooks.slack.com/services";
/// Seconds that a request may take where neither the hook nor the connection says (slack_sdk's own default).
const TIMEOUT: u64 = 30;

/// A message as `SlackWebhookHook` is given it, and what the hook was made with.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct SlackMessage {
    /// The JSON body: `text`, `blocks` ...; members that are null are left out.
    pub body: Map<String, Value>,
    pub headers: Map<String, Value>,
    /// Seconds.
    pub timeout: Option<u64>,
    pub proxy: Option<String>,
}

/// Posts a message: `{"status", "headers", "body"}`. Slack's refusals are answers too.
///
/// # Errors
/// A connection without a webhook's token, or a server that can't be reached. No error shows the webhook's path: it is
/// the secret.
pub async fn send(connection: &Connection, message: &SlackMessage) -> Result<Value, HttpError> {
    let extra = connection
        .extra_json()
        .map_err(|error| HttpError::Settings(error.to_string()))?;
    // Connections made in the UI of Airflow 2.2 carry the long names.
    let option = |name: &str| {
        [name.to_owned(), format!("extra__slackwebhook__{name}")]
            .iter()
            .find_map(|name| extra.get(name))
            .filter(|value| !value.is_null() && value.as_str() != Some(""))
            .cloned()
    };
    let timeout = message.timeout.filter(|seconds| *seconds > 0);
    let timeout = timeout.map(Value::from).or_else(|| option("timeout"));
    let proxy = message.proxy.clone().map(Value::from);
    let mut options = Map::new();
    options.insert(
        "timeout".to_owned(),
        timeout.unwrap_or_else(|| TIMEOUT.into()),
    );
    options.insert("allow_redirects".to_owned(), false.into());
    if let Some(proxy) = proxy.or_else(|| option("proxy")) {
        options.insert("proxies".to_owned(), json!({"all": proxy}));
    }
    let mut headers = message.headers.clone();
    headers.insert(
        "Content-Type".to_owned(),
        "application/json;charset=utf-8".into(),
    );
    let body: Map<String, Value> = message
        .body
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let webhook = Connection {
        conn_id: connection.conn_id.clone(),
        host: Some(address(connection)?),
        ..Connection::default()
    };
    let request = HttpRequest {
        method: "POST".to_owned(),
        data: Value::Object(body).to_string().into(),
        headers,
        extra_options: options,
        ..HttpRequest::default()
    };
    let mut answer = http::run(&webhook, &request).await?;
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("url");
    }
    Ok(answer)
}

/// The webhook's address: the password is it, or is what goes after the connection's host.
fn address(connection: &Connection) -> Result<String, HttpError> {
    let token = connection.password.as_deref().unwrap_or_default().trim();
    if token.is_empty() {
        return Err(HttpError::Settings(format!(
            "Connection ID '{}' does not contain password (Slack Webhook Token).",
            connection.conn_id
        )));
    }
    if token.contains("://") {
        return Ok(token.to_owned());
    }
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let host = given(&connection.host).unwrap_or_else(|| HOST.to_owned());
    let base = if host.contains("://") {
        host
    } else {
        let schema = given(&connection.schema).unwrap_or_else(|| "https".to_owned());
        format!("{schema}://{host}")
    };
    Ok(format!(
        "{}/{}",
        base.trim_end_matches('/'),
        token.trim_start_matches('/')
    ))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use wiremock::matchers::{body_string, header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn connection(host: Option<&str>, password: Option<&str>) -> Connection {
        Connection {
            conn_id: "chat".to_owned(),
            conn_type: "slackwebhook".to_owned(),
            host: host.map(ToOwned::to_owned),
            password: password.map(ToOwned::to_owned),
            ..Connection::default()
        }
    }

    #[test]
    fn the_address_is_the_password_or_stands_after_the_host() {
        let address = |host, password| address(&connection(host, Some(password))).unwrap();
        assert_eq!(
            address(None, "T0/B0/made-up"),
            "https://hooks.slack.com/services/T0/B0/made-up"
        );
        assert_eq!(
            address(Some("http://chat.example.com/hooks/"), "/T0/made-up"),
            "http://chat.example.com/hooks/T0/made-up"
        );
        assert_eq!(
            address(Some("ignored"), " https://chat.example.com/T0/made-up "),
            "https://chat.example.com/T0/made-up"
        );
    }

    #[tokio::test]
    async fn a_message_is_posted_without_its_nulls() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/services/T0/B0/made-up"))
            .and(header("content-type", "application/json;charset=utf-8"))
            .and(header("x-trace", "1"))
            .and(body_string(r#"{"text":"Flood at noon"}"#))
            .respond_with(ResponseTemplate::new(200).set_body_string("ok"))
            .expect(1)
            .mount(&server)
            .await;
        let message: SlackMessage = serde_json::from_value(json!({
            "body": {"text": "Flood at noon", "blocks": null},
            "headers": {"x-trace": "1"},
        }))
        .unwrap();
        let host = format!("{}/services", server.uri());
        let answer = send(&connection(Some(&host), Some("T0/B0/made-up")), &message)
            .await
            .unwrap();
        assert_eq!(answer["status"], 200);
        assert_eq!(answer["body"], "ok");
        assert_eq!(answer.get("url"), None);
    }

    #[tokio::test]
    async fn no_error_shows_the_webhook() {
        let message = SlackMessage::default();
        let missing = send(&connection(None, Some("  ")), &message).await;
        assert_eq!(
            missing.unwrap_err().to_string(),
            "Connection ID 'chat' does not contain password (Slack Webhook Token)."
        );
        // Nobody listens on the discard port of loopback.
        let unreachable = connection(Some("http://127.0.0.1:9"), Some("T0/made-up-path"));
        let error = send(&unreachable, &message).await.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:9"), "{error}");
        assert!(!error.contains("made-up-path"), "{error}");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed_anywhere() {
        let (server, other) = (MockServer::start().await, MockServer::start().await);
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(302).insert_header("location", other.uri()))
            .mount(&server)
            .await;
        let connection = connection(Some(&server.uri()), Some("T0/made-up"));
        let answer = send(&connection, &SlackMessage::default()).await.unwrap();
        assert_eq!(answer["status"], 302);
        assert!(other.received_requests().await.unwrap().is_empty());
    }
}
