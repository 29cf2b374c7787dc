//! `SmtpHook`: mail through the server of a connection of type `smtp`.
//!
//! The connection's fields are read as the Python provider reads them: TLS from the first byte unless the extra says
//! `disable_ssl`, then STARTTLS unless it says `disable_tls`. (The provider asks for STARTTLS inside TLS as well where
//! neither is said, which servers refuse; here TLS from the first byte is enough.)

use std::fmt;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::message::header::{self, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::airflow::connection::{Connection, MalformedConnection};
use crate::airflow::error_chain::error_chain;

/// Seconds that a connection may take where the connection's extra does not say.
const TIMEOUT: u64 = 30;
/// How often a failed delivery is tried again where the extra does not say.
const RETRY_LIMIT: u64 = 5;
/// Bytes of a template file.
const MAX_TEMPLATE: u64 = 1 << 20;

/// A mail, as `SmtpHook.send_email_smtp` is given it.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Email {
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// Get it too, and stand in no header.
    pub bcc: Vec<String>,
    /// `None`: the file that `subject_template` in the connection's extra names.
    pub subject: Option<String>,
    /// `None`: the file that `html_content_template` in the connection's extra names.
    pub html_content: Option<String>,
    /// `None`: `from_email` of the connection's extra.
    pub from_email: Option<String>,
    /// `mixed`, `alternative` or `related`.
    pub mime_subtype: String,
    /// `utf-8`: others are refused.
    pub mime_charset: String,
    pub custom_headers: Map<String, Value>,
    pub files: Vec<Attachment>,
    /// Everything but the delivery.
    pub dryrun: bool,
    /// `basic` or `oauth2`, unless the connection's extra says.
    pub auth_type: String,
}

impl Default for Email {
    fn default() -> Self {
        Self {
            to: Vec::new(),
            cc: Vec::new(),
            bcc: Vec::new(),
            subject: None,
            html_content: None,
            from_email: None,
            mime_subtype: "mixed".to_owned(),
            mime_charset: "utf-8".to_owned(),
            custom_headers: Map::new(),
            files: Vec::new(),
            dryrun: false,
            auth_type: "basic".to_owned(),
        }
    }
}

/// A file that goes with a mail.
#[derive(Clone, Debug, Deserialize)]
pub struct Attachment {
    /// Without a folder.
    pub name: String,
    /// The bytes, in base64.
    pub base64: String,
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SmtpError {
    /// The connection's extra is not JSON.
    #[error(transparent)]
    Extra(#[from] MalformedConnection),
    /// The connection or the mail lacks something, or asks for what is not there.
    #[error("{0}")]
    Settings(String),
    /// An address that is none.
    #[error("{address:?} is no mail address: {reason}")]
    Address { address: String, reason: String },
    /// No access token could be had.
    #[error("the access token for the mail server could not be had: {0}")]
    Token(String),
    /// The server can't be reached, or refuses.
    #[error("the mail server {server} did not take the mail: {reason}")]
    Delivery { server: String, reason: String },
}

/// Sends a mail.
///
/// # Errors
/// See [`SmtpError`].
pub async fn send(connection: &Connection, email: &Email) -> Result<(), SmtpError> {
    let settings = Settings::of(connection)?;
    let message = message(&settings, email)?;
    if email.dryrun {
        return Ok(());
    }
    let transport = settings.transport(&email.auth_type).await?;
    let mut attempt = 0;
    loop {
        match transport.send(message.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) => {
                let lasting = error.is_permanent() || error.is_client() || error.is_tls();
                if lasting || attempt >= settings.retry_limit {
                    return Err(settings.failed(&error));
                }
                tracing::warn!("The mail is sent again: {}", settings.failed(&error));
                attempt += 1;
            }
        }
    }
}

/// Connects, logs in and says goodbye.
///
/// # Errors
/// See [`SmtpError`].
pub async fn test_connection(connection: &Connection, auth_type: &str) -> Result<(), SmtpError> {
    let settings = Settings::of(connection)?;
    let transport = settings.transport(auth_type).await?;
    match transport.test_connection().await {
        Ok(true) => Ok(()),
        Ok(false) => Err(SmtpError::Delivery {
            server: settings.server(),
            reason: "it does not answer".to_owned(),
        }),
        Err(error) => Err(settings.failed(&error)),
    }
}

/// What a connection says.
struct Settings {
    host: String,
    port: u16,
    login: String,
    password: String,
    extra: Map<String, Value>,
    encryption: Encryption,
    timeout: Duration,
    retry_limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    /// TLS from the first byte.
    Wrapped,
    StartTls,
    Off,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}

impl Settings {
    fn of(connection: &Connection) -> Result<Self, SmtpError> {
        let extra = connection.extra_json()?;
        let encryption = if !is_set(&extra, "disable_ssl") {
            Encryption::Wrapped
        } else if !is_set(&extra, "disable_tls") {
            Encryption::StartTls
        } else {
            Encryption::Off
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let host = text(&connection.host);
        if host.is_empty() {
            return Err(SmtpError::Settings(format!(
                "connection {} has no host: it is the mail server",
                connection.conn_id
            )));
        }
        let port = match encryption {
            Encryption::Wrapped => 465,
            Encryption::StartTls | Encryption::Off => 25,
        };
        Ok(Self {
            host,
            port: connection.port.filter(|port| *port != 0).unwrap_or(port),
            login: text(&connection.login),
            password: text(&connection.password),
            timeout: Duration::from_secs(whole(&extra, "timeout", TIMEOUT)?),
            retry_limit: whole(&extra, "retry_limit", RETRY_LIMIT)?,
            encryption,
            extra,
        })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.extra
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn failed(&self, error: &lettre::transport::smtp::Error) -> SmtpError {
        SmtpError::Delivery {
            server: self.server(),
            reason: error_chain(error),
        }
    }

    fn tls(&self) -> Result<Tls, SmtpError> {
        if self.encryption == Encryption::Off {
            return Ok(Tls::None);
        }
        let unchecked = match self.extra.get("ssl_context") {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) if text == "default" => false,
            Some(Value::String(text)) if text == "none" => true,
            Some(other) => {
                return Err(SmtpError::Settings(format!(
                    "The connection extra field `ssl_context` must be set to 'default' or 'none' but it is set to \
                     {other}."
                )));
            }
        };
        let parameters = TlsParameters::builder(self.host.clone())
            .dangerous_accept_invalid_certs(unchecked)
            .build_rustls()
            .map_err(|error| self.failed(&error))?;
        Ok(if self.encryption == Encryption::Wrapped {
            Tls::Wrapper(parameters)
        } else {
            Tls::Required(parameters)
        })
    }

    async fn transport(
        &self,
        auth_type: &str,
    ) -> Result<AsyncSmtpTransport<Tokio1Executor>, SmtpError> {
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&self.host)
            .port(self.port)
            .timeout(Some(self.timeout))
            .tls(self.tls()?);
        if self.text("auth_type").unwrap_or(auth_type) == "oauth2" {
            let user = Some(self.login.as_str()).filter(|login| !login.is_empty());
            let user = user.or_else(|| self.text("from_email")).ok_or_else(|| {
                SmtpError::Settings(
                    "smtp_user or from_email must be set for OAuth2 authentication".to_owned(),
                )
            })?;
            let token = self.access_token().await?;
            builder = builder
                .credentials(Credentials::new(user.to_owned(), token))
                .authentication(vec![Mechanism::Xoauth2]);
        } else if !self.login.is_empty() && !self.password.is_empty() {
            builder =
                builder.credentials(Credentials::new(self.login.clone(), self.password.clone()));
        }
        Ok(builder.build())
    }

    /// `access_token` of the extra, or one for the client that the extra names (Microsoft's client credentials flow).
    async fn access_token(&self) -> Result<String, SmtpError> {
        if let Some(token) = self.text("access_token") {
            return Ok(token.to_owned());
        }
        let (Some(id), Some(secret)) = (self.text("client_id"), self.text("client_secret")) else {
            return Err(SmtpError::Settings(
                "auth_type='oauth2' but neither 'access_token' nor client credentials supplied in connection extra."
                    .to_owned(),
            ));
        };
        let tenant = self.text("tenant_id").unwrap_or("common");
        if !tenant
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        {
            return Err(SmtpError::Settings(format!("{tenant:?} is no tenant_id")));
        }
        let url = format!("https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token");
        let scope = self
            .text("scope")
            .unwrap_or("https://outlook.office.com/.default");
        request_token(&url, id, secret, scope, self.timeout).await
    }
}

/// Asks for a token by client credentials (RFC 6749, section 4.4).
async fn request_token(
    url: &str,
    id: &str,
    secret: &str,
    scope: &str,
    timeout: Duration,
) -> Result<String, SmtpError> {
    let failed = |error: reqwest::Error| SmtpError::Token(error_chain(&error));
    let body = [
        ("grant_type", "client_credentials"),
        ("client_id", id),
        ("client_secret", secret),
        ("scope", scope),
    ]
    .iter()
    .map(|(name, value)| {
        let value =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        format!("{name}={value}")
    })
    .collect::<Vec<_>>()
    .join("&");
    let answer: Value = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .build()
        .map_err(failed)?
        .post(url)
        .header(
            reqwest::header::CONTENT_TYPE,
            "application/x-www-form-urlencoded",
        )
        .body(body)
        .send()
        .await
        .map_err(failed)?
        .json()
        .await
        .map_err(failed)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    match text("access_token") {
        Some(token) => Ok(token.to_owned()),
        None => Err(SmtpError::Token(
            text("error_description")
                .or_else(|| text("error"))
                .unwrap_or("the answer holds none")
                .to_owned(),
        )),
    }
}

/// As Python's `bool` sees a value of the extra.
fn is_set(extra: &Map<String, Value>, name: &str) -> bool {
    match extra.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(value)) => *value,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(entries)) => !entries.is_empty(),
    }
}

fn whole(extra: &Map<String, Value>, name: &str, default: u64) -> Result<u64, SmtpError> {
    let number = match extra.get(name) {
        None | Some(Value::Null) => Some(default),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    number.ok_or_else(|| {
        SmtpError::Settings(format!(
            "{name} in the extra of the mail server's connection must be a whole number"
        ))
    })
}

fn message(settings: &Settings, email: &Email) -> Result<Message, SmtpError> {
    let from = email
        .from_email
        .as_deref()
        .filter(|from| !from.is_empty())
        .or_else(|| settings.text("from_email"))
        .ok_or_else(|| {
            SmtpError::Settings(
                "You should provide `from_email` or define it in the connection.".to_owned(),
            )
        })?;
    let from = mailbox(from)?;
    let subject = given_or_template(settings, "subject", email.subject.as_deref())?;
    let html = given_or_template(settings, "html_content", email.html_content.as_deref())?;
    if !email.mime_charset.eq_ignore_ascii_case("utf-8")
        && !email.mime_charset.eq_ignore_ascii_case("utf8")
    {
        return Err(SmtpError::Settings(format!(
            "mime_charset is {:?}, and mails are sent in utf-8 only",
            email.mime_charset
        )));
    }
    let to = mailboxes(&email.to)?;
    let cc = mailboxes(&email.cc)?;
    let bcc = mailboxes(&email.bcc)?;
    let recipients: Vec<Address> = to
        .iter()
        .chain(&cc)
        .chain(&bcc)
        .map(|mailbox| mailbox.email.clone())
        .collect();
    let envelope = Envelope::new(Some(from.email.clone()), recipients)
        .map_err(|_| SmtpError::Settings("the mail has no recipient: give `to`".to_owned()))?;
    let mut builder = Message::builder()
        .envelope(envelope)
        .from(from)
        .subject(subject)
        .date_now();
    for mailbox in to {
        builder = builder.to(mailbox);
    }
    for mailbox in cc {
        builder = builder.cc(mailbox);
    }
    for (name, value) in &email.custom_headers {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        let name = HeaderName::new_from_ascii(name.clone())
            .ok()
            .filter(|_| is_word && !name.contains(':'))
            .ok_or_else(|| SmtpError::Settings(format!("{name:?} is no name of a header")))?;
        if value.contains(['\r', '\n']) {
            return Err(SmtpError::Settings(format!(
                "the header {name} has several lines"
            )));
        }
        builder = builder.raw_header(HeaderValue::new(name, value));
    }
    let parts = match email.mime_subtype.as_str() {
        "mixed" => MultiPart::mixed(),
        "alternative" => MultiPart::alternative(),
        "related" => MultiPart::related(),
        other => {
            return Err(SmtpError::Settings(format!(
                "mime_subtype is {other:?}, and must be mixed, alternative or related"
            )));
        }
    };
    let mut parts = parts.singlepart(SinglePart::html(html));
    for file in &email.files {
        parts = parts.singlepart(attachment(file)?);
    }
    builder
        .multipart(parts)
        .map_err(|error| SmtpError::Settings(format!("the mail can't be written: {error}")))
}

fn attachment(file: &Attachment) -> Result<SinglePart, SmtpError> {
    use base64::Engine as _;

    let bytes = base64::engine::general_purpose::STANDARD
        .decode(&file.base64)
        .map_err(|error| SmtpError::Settings(format!("{}: {error}", file.name)))?;
    // A quotation mark or a line's end would end the header that the name stands in.
    let name = file.name.replace(['"', '\\', '\r', '\n'], "_");
    let octets = ContentType::parse("application/octet-stream")
        .map_err(|error| SmtpError::Settings(error.to_string()))?;
    Ok(SinglePart::builder()
        .header(octets)
        .header(header::ContentDisposition::attachment(&name))
        .header(header::ContentId::from(format!("<{name}>")))
        .body(bytes))
}

/// What was given, or the text of the file that the connection's extra names.
fn given_or_template(
    settings: &Settings,
    field: &str,
    given: Option<&str>,
) -> Result<String, SmtpError> {
    if let Some(text) = given.filter(|text| !text.is_empty()) {
        return Ok(text.to_owned());
    }
    let key = format!("{field}_template");
    let Some(file) = settings.text(&key) else {
        return Err(SmtpError::Settings(format!(
            "You should provide `{field}` or define `{key}` in the connection."
        )));
    };
    let unreadable = |reason: String| SmtpError::Settings(format!("{key} ({file}): {reason}"));
    let size = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
    if !size.is_file() || size.len() > MAX_TEMPLATE {
        return Err(unreadable(format!(
            "it must be a file of at most {MAX_TEMPLATE} bytes"
        )));
    }
    std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))
}

fn mailboxes(addresses: &[String]) -> Result<Vec<Mailbox>, SmtpError> {
    addresses
        .iter()
        .map(|address| address.trim())
        .filter(|address| !address.is_empty())
        .map(mailbox)
        .collect()
}

fn mailbox(address: &str) -> Result<Mailbox, SmtpError> {
    address
        .parse()
        .map_err(|error: lettre::address::AddressError| SmtpError::Address {
            address: address.to_owned(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use wiremock::matchers::{body_string_contains, method};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn settings(extra: Value) -> Result<Settings, SmtpError> {
        Settings::of(&Connection {
            conn_id: "post".to_owned(),
            conn_type: "smtp".to_owned(),
            host: Some("mail.example.com".to_owned()),
            extra: Some(extra.to_string()),
            ..Connection::default()
        })
    }

    fn email() -> Email {
        Email {
            to: vec!["Mate <mate@example.com>".to_owned(), " ".to_owned()],
            cc: vec!["crew@example.com".to_owned()],
            bcc: vec!["owner@example.com".to_owned()],
            subject: Some("Flut um zwölf".to_owned()),
            html_content: Some("<b>High</b>".to_owned()),
            from_email: Some("port@example.com".to_owned()),
            ..Email::default()
        }
    }

    fn written(email: &Email) -> Result<String, String> {
        let settings = settings(json!({})).unwrap();
        message(&settings, email)
            .map(|message| String::from_utf8(message.formatted()).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_extra_says_how_the_connection_is_encrypted_and_so_which_port_it_has() {
        for (extra, encryption, port) in [
            (json!({}), Encryption::Wrapped, 465),
            (json!({"disable_tls": true}), Encryption::Wrapped, 465),
            (json!({"disable_ssl": true}), Encryption::StartTls, 25),
            (
                json!({"disable_ssl": 1, "disable_tls": "yes"}),
                Encryption::Off,
                25,
            ),
        ] {
            let settings = settings(extra.clone()).unwrap();
            assert_eq!(
                (settings.encryption, settings.port),
                (encryption, port),
                "{extra}"
            );
        }
        assert!(settings(json!({"timeout": "soon"})).is_err());
        let wrong = settings(json!({"ssl_context": "mine"})).unwrap();
        assert!(wrong.tls().is_err());
    }

    #[test]
    fn a_mail_has_its_headers_and_shows_nobody_the_blind_copies() {
        let mut email = email();
        email.custom_headers = Map::from_iter([("X-Priority".to_owned(), 1.into())]);
        email.files = vec![Attachment {
            name: "tides.csv".to_owned(),
            base64: "aGlnaA==".to_owned(),
        }];
        let text = written(&email).unwrap();
        for line in [
            "From: port@example.com",
            "To: Mate <mate@example.com>",
            "Cc: crew@example.com",
            "X-Priority: 1",
            "Content-Type: multipart/mixed;",
            "Content-Type: text/html; charset=utf-8",
            "Content-Disposition: attachment; filename=\"tides.csv\"",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("owner@example.com"), "{text}");
    }

    #[test]
    fn no_field_can_add_a_header() {
        let mut subject = email();
        subject.subject = Some("High\r\nBcc: thief@example.com".to_owned());
        let text = written(&subject).unwrap();
        assert!(!text.contains("\nBcc"), "{text}");
        let mut recipient = email();
        recipient.to = vec!["mate@example.com>\r\nRCPT TO:<thief@example.com".to_owned()];
        assert!(written(&recipient).is_err());
        let mut custom = email();
        custom.custom_headers =
            Map::from_iter([("X-A".to_owned(), "1\r\nBcc: thief@example.com".into())]);
        assert!(written(&custom).is_err());
        let mut name = email();
        name.custom_headers = Map::from_iter([("X-A: 1\r\nBcc".to_owned(), "thief".into())]);
        assert!(written(&name).is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut nobody = email();
        nobody.to = Vec::new();
        nobody.cc = Vec::new();
        nobody.bcc = Vec::new();
        assert!(written(&nobody).unwrap_err().contains("recipient"));
        let mut silent = email();
        silent.subject = None;
        assert_eq!(
            written(&silent).unwrap_err(),
            "You should provide `subject` or define `subject_template` in the connection."
        );
        let mut anonymous = email();
        anonymous.from_email = None;
        assert_eq!(
            written(&anonymous).unwrap_err(),
            "You should provide `from_email` or define it in the connection."
        );
    }

    #[tokio::test]
    async fn a_token_is_asked_for_with_the_clients_credentials() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(body_string_contains("client_secret=made%2Dup%26secret"))
            .respond_with(ResponseTemplate::new(200).set_body_json(json!({"access_token": "t"})))
            .mount(&server)
            .await;
        let ask = async |secret: &str| {
            request_token(&server.uri(), "id", secret, "s", Duration::from_secs(5)).await
        };
        assert_eq!(ask("made-up&secret").await.unwrap(), "t");
        assert!(matches!(ask("other").await, Err(SmtpError::Token(_))));
    }
}
