//! What a request carries beside its headers, and what an answer brings.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::{HttpError, HttpRequest};

/// Bytes of an answer that are read.
pub(super) const MAX_BODY: usize = 64 << 20;

/// Adds to a query: text as it stands, or names and values.
pub(super) fn add_query(url: &mut Url, data: &Value) -> Result<(), HttpError> {
    match data {
        Value::Null => {}
        Value::String(text) => {
            let text = text.trim_start_matches('?');
            if !text.is_empty() {
                let query = match url.query() {
                    Some(before) if !before.is_empty() => format!("{before}&{text}"),
                    _ => text.to_owned(),
                };
                url.set_query(Some(&query));
            }
        }
        data => {
            let fields = fields(data)?;
            if !fields.is_empty() {
                url.query_pairs_mut().extend_pairs(fields);
            }
        }
    }
    Ok(())
}

/// What is sent beside the headers.
pub(super) struct Body {
    pub bytes: Vec<u8>,
    /// Its media type, where that is known.
    pub kind: Option<&'static str>,
}

pub(super) fn body(request: &HttpRequest, method: &Method) -> Result<Option<Body>, HttpError> {
    use base64::Engine as _;

    let unreadable = |error: &dyn std::fmt::Display| {
        HttpError::Settings(format!("the request's body can't be read: {error}"))
    };
    let some = |bytes: Vec<u8>, kind| Ok(Some(Body { bytes, kind }));
    if !request.json.is_null() {
        let text = serde_json::to_vec(&request.json).map_err(|error| unreadable(&error))?;
        return some(text, Some("application/json"));
    }
    if method == Method::GET || method == Method::HEAD {
        return Ok(None);
    }
    if let Some(encoded) = &request.body {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
        return some(bytes.map_err(|error| unreadable(&error))?, None);
    }
    match &request.data {
        Value::Null => Ok(None),
        Value::String(text) => some(text.clone().into_bytes(), None),
        fields => some(
            form(fields)?.into_bytes(),
            Some("application/x-www-form-urlencoded"),
        ),
    }
}

fn form(data: &Value) -> Result<String, HttpError> {
    let fields = fields(data)?;
    // A query and a form are written alike.
    let mut writer = Url::parse("http://form/")
        .map_err(|error| HttpError::Settings(format!("the form can't be written: {error}")))?;
    writer.query_pairs_mut().extend_pairs(fields);
    Ok(writer.query().unwrap_or_default().to_owned())
}

/// Names and values: an object, or a list of pairs.
fn fields(data: &Value) -> Result<Vec<(String, String)>, HttpError> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        // As Python's str() has them.
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    };
    let mut found = Vec::new();
    let mut add = |name: &str, value: &Value| match value {
        Value::Array(items) => {
            found.extend(items.iter().map(|item| (name.to_owned(), text(item))));
        }
        Value::Null => {}
        other => found.push((name.to_owned(), text(other))),
    };
    match data {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(pairs) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([name, value]) => add(&text(name), value),
                    _ => return Err(no_fields(data)),
                }
            }
        }
        other => return Err(no_fields(other)),
    }
    Ok(found)
}

fn no_fields(data: &Value) -> HttpError {
    HttpError::Settings(format!(
        "data is {data}, and must be text or names and values"
    ))
}

pub(super) enum BodyError {
    Broken(reqwest::Error),
    TooLarge,
}

pub(super) async fn read_body(mut answer: reqwest::Response) -> Result<Value, BodyError> {
    use base64::Engine as _;

    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(BodyError::Broken)? {
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => {
            json!({"base64": base64::engine::general_purpose::STANDARD.encode(error.as_bytes())})
        }
    })
}
