//! Replaces known secrets with `***`.
//!
//! Everything that leaves a task as text passes through a [`Masker`]: its log, tool results, rendered fields, span
//! attributes, error texts. Which names and values count as secrets is Airflow's rule (`SecretsMasker`, 3.3.2).

mod forms;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::airflow::config::{Config, ConfigError, Source, sensitive_options};
use crate::airflow::connection::Connection;

/// What stands where a secret stood.
pub const MASK: &str = "***";

/// What stands where masking failed: nothing may pass unmasked.
const FAILED: &str = "<redaction-failed>";

/// A value under a sensitive name is replaced whole from this depth on.
const MAX_DEPTH: usize = 5;

/// A name that holds one of these is sensitive.
const SENSITIVE_NAMES: [&str; 21] = [
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "auth_header",
    "authorization",
    "bearer",
    "connection_string",
    "dsn",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "proxy",
    "secret",
    "service_account",
    "service_key",
    "token",
    "keyfile_dict",
    "webhook_url",
    "proxies",
];

/// The secrets of one task, or of the whole worker. Clones share them.
#[derive(Clone)]
pub struct Masker {
    rules: Arc<Rules>,
    state: Arc<RwLock<State>>,
}

struct Rules {
    /// `[core] hide_sensitive_var_conn_fields`: whether names say anything at all.
    names_count: bool,
    /// `[core] sensitive_var_conn_names`.
    more_names: Vec<String>,
    /// `[logging] min_length_masked_secret`, in characters.
    min_length: usize,
}

#[derive(Default)]
struct State {
    secrets: BTreeSet<String>,
    /// Built when it is first needed after a change. `None` inside: it could not be built.
    searcher: OnceLock<Option<AhoCorasick>>,
}

impl Default for Masker {
    fn default() -> Self {
        Self::with_rules(Rules {
            names_count: true,
            more_names: Vec::new(),
            min_length: 5,
        })
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Masker({} secrets)",
            self.read(|state| state.secrets.len())
        )
    }
}

impl Masker {
    /// A masker that knows no secret yet and follows Airflow's default rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A masker with the rules of a configuration, which knows the configuration's own secrets.
    ///
    /// # Errors
    /// One of the three options that govern masking can't be read.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let masker = Self::with_rules(Rules {
            names_count: config.get_bool("core", "hide_sensitive_var_conn_fields")?,
            more_names: config
                .get_list("core", "sensitive_var_conn_names")?
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect(),
            min_length: usize::try_from(config.get_uint("logging", "min_length_masked_secret")?)
                .unwrap_or(usize::MAX),
        });
        for (section, key) in sensitive_options() {
            // An option that can't be read is reported by whoever needs it.
            if let Ok(Some(setting)) = config.setting(section, key)
                && setting.source != Source::Default
            {
                masker.add_secret(setting.value.trim_end());
                if let Ok(value @ Value::Object(_)) = serde_json::from_str(&setting.value) {
                    masker.add_value(&value, None);
                }
            }
        }
        // Single arguments of a secrets backend, and what its client finds by itself.
        let environment = config.environment();
        for prefix in [
            "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARG__",
            "AIRFLOW__SECRETS__BACKEND_KWARG__",
        ] {
            for (name, value) in environment.with_prefix(prefix) {
                masker.add_value(&value.into(), name.strip_prefix(prefix));
            }
        }
        if let Some(token) = environment.get("VAULT_TOKEN") {
            masker.add_secret(token.trim());
        }
        Ok(masker)
    }

    fn with_rules(rules: Rules) -> Self {
        Self {
            rules: Arc::new(rules),
            state: Arc::default(),
        }
    }

    /// A masker with the same rules and the same secrets, which learns on its own from now on.
    #[must_use]
    pub fn fork(&self) -> Self {
        let secrets = self.read(|state| state.secrets.clone());
        let state = State {
            secrets,
            searcher: OnceLock::new(),
        };
        Self {
            rules: Arc::clone(&self.rules),
            state: Arc::new(RwLock::new(state)),
        }
    }

    /// Registers a secret, with its JSON-escaped (also twice: JSON within JSON), URL-quoted, base64 and SQL forms.
    ///
    /// A text shorter than `[logging] min_length_masked_secret` is not registered, nor is the word `airflow`.
    pub fn add_secret(&self, secret: &str) {
        if !self.is_long_enough(secret) {
            return;
        }
        let mut forms = forms::of(secret);
        forms.retain(|form| self.is_long_enough(form));
        self.insert(forms);
    }

    /// Registers a value as Airflow's `mask_secret(value, name)` does.
    ///
    /// Text is registered when there is no name or the name is sensitive; an object's members go by their own keys; the
    /// items of a list by the list's name.
    pub fn add_value(&self, value: &Value, name: Option<&str>) {
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, item)| self.add_value(item, Some(key))),
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item, name)),
            Value::String(text) if name.is_none_or(|name| self.is_sensitive_name(name)) => {
                self.add_secret(text)
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Registers a connection's password, its whole extra, every text in its extra under a sensitive key, and the parts
    /// of such texts that clients use alone.
    pub fn add_connection(&self, connection: &Connection) {
        if let Some(password) = connection
            .password
            .as_deref()
            .filter(|p| self.is_long_enough(p))
        {
            self.add_secret(password);
            // What an `Authorization: Basic` header holds.
            let login = connection.login.as_deref().unwrap_or_default();
            self.insert(vec![STANDARD.encode(format!("{login}:{password}"))]);
        }
        if let Some(extra) = &connection.extra {
            self.add_secret(extra);
            if let Ok(extra) = connection.extra_json() {
                self.add_parts(&extra);
                self.add_value(&Value::Object(extra), None);
            }
        }
    }

    /// Azure's account keys, which Airflow does not know for secrets, and what is taken out of a longer text before it
    /// is used: the key in a connection string, the signature in a SAS, the members of an object that is written as text.
    fn add_parts(&self, extra: &Map<String, Value>) {
        if !self.rules.names_count {
            return;
        }
        for (name, value) in extra {
            let Some(text) = value.as_str() else {
                continue;
            };
            if name.ends_with("account_key") {
                self.add_secret(text);
            } else if name.ends_with("sas_token") {
                self.add_sas(text);
            } else if name.ends_with("connection_string") {
                for (setting, value) in text.split(';').filter_map(|part| part.split_once('=')) {
                    match setting.trim().to_ascii_lowercase().as_str() {
                        "accountkey" | "sharedaccesskey" => self.add_secret(value.trim()),
                        "sharedaccesssignature" => self.add_sas(value.trim()),
                        _ => {}
                    }
                }
            }
            if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
                self.add_value(&object, None);
            }
        }
    }

    /// A shared access signature, alone or as the query of a URL. Clients write its parts into their own URLs.
    fn add_sas(&self, token: &str) {
        let query = token.split_once('?').map_or(token, |(_, query)| query);
        self.add_secret(query);
        let mut parts = query.split('&');
        if let Some(signature) = parts.find_map(|part| part.strip_prefix("sig=")) {
            self.add_secret(signature);
            let plain = percent_encoding::percent_decode_str(signature).decode_utf8_lossy();
            self.add_secret(&plain);
        }
    }

    /// Registers a variable's value if its key is sensitive; the members of a JSON object by their own keys.
    pub fn add_variable(&self, key: &str, value: &str) {
        self.add_value(&Value::from(value), Some(key));
        if let Ok(value) = serde_json::from_str::<Value>(value) {
            self.add_value(&value, Some(key));
        }
    }

    /// Forgets every secret.
    pub fn clear(&self) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// Whether a value of this name is a secret: the name, in lower case and with runs of other characters read as `_`,
    /// holds one of Airflow's sensitive names or of `[core] sensitive_var_conn_names`.
    #[must_use]
    pub fn is_sensitive_name(&self, name: &str) -> bool {
        if !self.rules.names_count {
            return false;
        }
        let mut plain = String::with_capacity(name.len());
        for c in name.trim().to_lowercase().chars() {
            if c.is_alphanumeric() || c == '_' {
                plain.push(c);
            } else if !plain.ends_with('\u{0}') {
                plain.push('\u{0}');
            }
        }
        let plain = plain.replace('\u{0}', "_");
        SENSITIVE_NAMES.iter().any(|known| plain.contains(known))
            || self
                .rules
                .more_names
                .iter()
                .any(|known| plain.contains(known.as_str()))
    }

    /// The text with every known secret replaced.
    #[must_use]
    pub fn mask_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.read(|state| {
            if state.secrets.is_empty() {
                return Cow::Borrowed(text);
            }
            let searcher = state.searcher.get_or_init(|| {
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(&state.secrets)
                    .ok()
            });
            match searcher {
                None => Cow::Borrowed(FAILED),
                Some(searcher) => {
                    let mut out = String::new();
                    let mut end = 0;
                    for found in searcher.find_iter(text) {
                        out.push_str(text.get(end..found.start()).unwrap_or_default());
                        out.push_str(MASK);
                        end = found.end();
                    }
                    if end == 0 {
                        return Cow::Borrowed(text);
                    }
                    out.push_str(text.get(end..).unwrap_or_default());
                    Cow::Owned(out)
                }
            }
        })
    }

    /// The value with every known secret replaced, in keys and texts at any depth: for tool results.
    ///
    /// Names say nothing here. Two keys that become the same one leave the last value.
    #[must_use]
    pub fn mask_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mask_string(text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.mask_value(item))
                .collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| (self.mask_string(key), self.mask_value(item)))
                .collect(),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }

    /// The value as Airflow redacts logs and rendered fields: every text under a sensitive name is replaced, and known
    /// secrets everywhere else. `name` is the value's own name, such as a field's.
    ///
    /// Airflow looks for known secrets down to depth 5 only; here they are replaced at any depth, and in keys too.
    #[must_use]
    pub fn redact_value(&self, value: Value, name: Option<&str>) -> Value {
        self.redact(value, name, 0)
    }

    fn redact(&self, value: Value, name: Option<&str>, depth: usize) -> Value {
        if name.is_some_and(|name| self.is_sensitive_name(name)) {
            return redact_all(value, depth);
        }
        match value {
            Value::String(text) => Value::String(self.mask_string(text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.redact(item, None, depth + 1))
                .collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| {
                    let item = self.redact(item, Some(&key), depth + 1);
                    (self.mask_string(key), item)
                })
                .collect(),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }

    /// A whole log record: redacted, and every text at its top level freed of JSON web tokens (`eyJ...`).
    #[must_use]
    pub fn redact_log(&self, record: Map<String, Value>) -> Map<String, Value> {
        record
            .into_iter()
            .map(|(key, item)| {
                let item = match self.redact(item, Some(&key), 1) {
                    Value::String(text) => Value::String(without_tokens(text)),
                    other => other,
                };
                (key, item)
            })
            .collect()
    }

    /// One log text: known secrets replaced, and JSON web tokens.
    #[must_use]
    pub fn redact_line(&self, text: &str) -> String {
        without_tokens(self.mask_str(text).into_owned())
    }

    fn mask_string(&self, text: String) -> String {
        match self.mask_str(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(FAILED) => FAILED.to_owned(),
            Cow::Borrowed(_) => text,
        }
    }

    fn is_long_enough(&self, secret: &str) -> bool {
        secret.chars().count() >= self.rules.min_length.max(1) && secret.to_lowercase() != "airflow"
    }

    fn insert(&self, secrets: Vec<String>) {
        if self.read(|state| secrets.iter().all(|secret| state.secrets.contains(secret))) {
            return;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.secrets.extend(secrets);
        state.searcher = OnceLock::new();
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Everything below a sensitive name: texts go, numbers, booleans and nulls stay.
fn redact_all(value: Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return MASK.into();
    }
    match value {
        Value::String(_) => MASK.into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| redact_all(item, depth + 1))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, item)| (key, redact_all(item, depth + 1)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// The text with every `eyJ...` (the start of each JSON web token) cut short.
fn without_tokens(text: String) -> String {
    const START: &str = "eyJ";
    if !text.contains(START) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(START) {
        out.push_str(before);
        out.push_str(START);
        out.push_str(MASK);
        rest = after.trim_start_matches(|c: char| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
        });
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn knowing(secrets: &[&str]) -> Masker {
        let masker = Masker::new();
        secrets.iter().for_each(|secret| masker.add_secret(secret));
        masker
    }

    fn configured(options: &[(&str, &str)]) -> Masker {
        let home = ("AIRFLOW_HOME", "/nonexistent");
        Masker::from_config(&Config::new(
            options.iter().copied().chain([home]).collect(),
        ))
        .unwrap()
    }

    #[test]
    fn the_longest_secret_is_replaced_first() {
        let masker = knowing(&["made-up", "made-up-and-longer"]);
        assert_eq!(
            masker.mask_str("made-up-and-longer, made-up, MADE-UP"),
            "***, ***, MADE-UP"
        );
    }

    #[test]
    fn clones_share_what_they_learn_and_forks_do_not() {
        let masker = Masker::new();
        let (clone, fork) = (masker.clone(), masker.fork());
        clone.add_secret("made-up-1");
        assert_eq!(masker.mask_str("made-up-1"), "***");
        clone.add_secret("made-up-2");
        assert_eq!(masker.mask_str("made-up-1 made-up-2"), "*** ***");
        assert_eq!(fork.mask_str("made-up-1"), "made-up-1");
        masker.clear();
        assert_eq!(clone.mask_str("made-up-1"), "made-up-1");
    }

    #[test]
    fn short_secrets_and_the_word_airflow_are_never_masked() {
        let masker = knowing(&["four", "Airflow", "", "fünf!"]);
        assert_eq!(
            masker.mask_str("four Airflow airflow fünf!"),
            "four Airflow airflow ***"
        );
        let masker = configured(&[("AIRFLOW__LOGGING__MIN_LENGTH_MASKED_SECRET", "3")]);
        masker.add_secret("abc");
        masker.add_secret("ab");
        assert_eq!(masker.mask_str("abc ab"), "*** ab");
    }

    #[test]
    fn a_connection_hides_its_password_its_extra_and_the_sensitive_keys_in_it() {
        let masker = Masker::new();
        masker.add_connection(&Connection {
            login: Some("ada".to_owned()),
            password: Some("made-up-pw".to_owned()),
            extra: Some(
                r#"{"model": "openai:gpt-5", "api_key": "made-up-key", "deep": {"tokens": ["made-up-t1"]}}"#.to_owned(),
            ),
            ..Connection::default()
        });
        let basic = STANDARD.encode("ada:made-up-pw");
        assert_eq!(
            masker.mask_str(&format!(
                "ada made-up-pw made-up-key made-up-t1 openai:gpt-5 {basic}"
            )),
            "ada *** *** *** openai:gpt-5 ***"
        );
        assert_eq!(
            masker.mask_str(
                r#"<{"model": "openai:gpt-5", "api_key": "made-up-key", "deep": {"tokens": ["made-up-t1"]}}>"#
            ),
            "<***>"
        );
    }

    #[test]
    fn what_clients_use_of_a_connections_extra_is_hidden_alone_too() {
        let hidden = |extra: Value, texts: &[&str]| {
            let masker = Masker::new();
            masker.add_connection(&Connection {
                extra: Some(extra.to_string()),
                ..Connection::default()
            });
            for text in texts {
                assert_eq!(masker.mask_str(text), "***", "{text}");
            }
            assert_eq!(masker.mask_str("harbour"), "harbour");
        };
        let key = "bWFkZS11cCBrZXk=";
        for name in ["account_key", "extra__wasb__account_key"] {
            hidden(json!({name: key, "account_name": "harbour"}), &[key]);
        }
        let sas = "sv=2024&se=2030-01-01&sig=made%2Fup%3D";
        for token in [format!("?{sas}"), format!("https://harbour/?{sas}")] {
            hidden(
                json!({"extra__wasb__sas_token": token}),
                &[sas, &token, "made%2Fup%3D", "made/up="],
            );
        }
        hidden(
            json!({"connection_string": format!("AccountName=harbour;accountkey={key};X=1")}),
            &[key],
        );
        hidden(
            json!({"extra__wasb__connection_string": format!("BlobEndpoint=https://harbour;SharedAccessSignature={sas}")}),
            &[sas, "made/up="],
        );
        let keyfile = json!({"private_key": "-----made-up\n-----", "project_id": "harbour"});
        hidden(
            json!({"keyfile_dict": keyfile.to_string()}),
            &["-----made-up\n-----", "-----made-up\\n-----"],
        );
    }

    #[test]
    fn a_variable_is_hidden_by_its_key_or_by_the_keys_inside() {
        let masker = Masker::new();
        masker.add_variable("my_api_key", "made-up-1");
        masker.add_variable(
            "settings",
            r#"{"password": "made-up-2", "region": "europe"}"#,
        );
        masker.add_variable("secret_list", r#"["made-up-3"]"#);
        masker.add_variable("plain", "nothing");
        assert_eq!(
            masker.mask_str("made-up-1 made-up-2 made-up-3 europe nothing"),
            "*** *** *** europe nothing"
        );
    }

    #[test]
    fn names_are_sensitive_as_in_airflow() {
        let masker = Masker::new();
        for name in [
            " API-Key ",
            "monkey_token_id",
            "max_tokens",
            "x.access  key",
            "DSN",
            "http_proxy",
            "Webhook URL",
        ] {
            assert!(masker.is_sensitive_name(name), "{name}");
        }
        for name in ["key", "api__key", "apik ey", "login", "pass"] {
            assert!(!masker.is_sensitive_name(name), "{name}");
        }
        let masker = configured(&[("AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES", "login, ")]);
        assert!(masker.is_sensitive_name("my_login") && !masker.is_sensitive_name("host"));
        let masker = configured(&[("AIRFLOW__CORE__HIDE_SENSITIVE_VAR_CONN_FIELDS", "False")]);
        assert!(!masker.is_sensitive_name("password"));
    }

    #[test]
    fn tool_results_are_masked_by_value_alone_at_any_depth_and_in_keys() {
        let masker = knowing(&["made-up-1", "made-up-2"]);
        let mut value =
            json!({"made-up-1": 1, "made-up-2": 2, "password": "kept", "n": "made-up-1"});
        for _ in 0..50 {
            value = json!([value]);
        }
        let mut masked = &masker.mask_value(value);
        while let Value::Array(items) = masked {
            masked = &items[0];
        }
        assert_eq!(*masked, json!({"***": 2, "password": "kept", "n": "***"}));
    }

    #[test]
    fn redaction_hides_texts_under_sensitive_names_and_keeps_numbers() {
        let masker = knowing(&["made-up"]);
        let value = json!({
            "password": {"a": "x", "n": 5, "list": ["y", null, true]},
            "note": "say made-up",
            "list": [{"token": "z"}],
            "n": 1.5,
        });
        assert_eq!(
            masker.redact_value(value, None),
            json!({
                "password": {"a": "***", "n": 5, "list": ["***", null, true]},
                "note": "say ***",
                "list": [{"token": "***"}],
                "n": 1.5,
            })
        );
        assert_eq!(
            masker.redact_value(json!("anything"), Some("api_key")),
            json!("***")
        );
        assert_eq!(
            masker.redact_value(json!({"token": [[[[[[7]]]]]]}), None),
            json!({"token": [[[[["***"]]]]]})
        );
    }

    #[test]
    fn log_records_lose_web_tokens_at_the_top_level_only() {
        let masker = Masker::new();
        let Value::Object(record) =
            json!({"event": "got eyJhbGciOi.x-y_z! twice eyJ", "inner": {"t": "eyJabc"}})
        else {
            panic!("an object")
        };
        assert_eq!(
            Value::Object(masker.redact_log(record)),
            json!({"event": "got eyJ***! twice eyJ***", "inner": {"t": "eyJabc"}})
        );
    }

    #[test]
    fn the_configurations_own_secrets_are_known() {
        let masker = configured(&[
            ("AIRFLOW__API_AUTH__JWT_SECRET", "made-up-jwt-secret\n"),
            (
                "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS",
                r#"{"token": "made-up-vault", "url": "http://v"}"#,
            ),
            (
                "AIRFLOW__SECRETS__BACKEND_KWARG__SECRET_ID",
                "made-up-secret-id",
            ),
            ("AIRFLOW__SECRETS__BACKEND_KWARG__MOUNT_POINT", "airflow-kv"),
            ("VAULT_TOKEN", "made-up-vault-token"),
        ]);
        assert_eq!(
            masker.mask_str(
                "made-up-jwt-secret made-up-vault http://v made-up-secret-id airflow-kv made-up-vault-token"
            ),
            "*** *** http://v *** airflow-kv ***"
        );
        assert_eq!(format!("{masker:?}").matches("made-up").count(), 0);
    }
}
