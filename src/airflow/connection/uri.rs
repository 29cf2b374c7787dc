//! Connection URIs: `type://[login[:password]@]host[:port][/schema][?query]`.
//!
//! Airflow leaves the splitting to Python's `urlsplit`, whose habits (lower-cased hosts, what counts as a scheme, where a
//! password ends) are therefore part of the format.

use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::super::python_text::{JsonStyle, dumps};
use super::{Connection, normalise};

/// When this parameter is there, it is the whole of `extra`.
const EXTRA_KEY: &str = "__extra__";

/// Reads a URI. The error never holds a part of it.
pub(super) fn parse(uri: &str) -> Result<Connection, String> {
    let schemes = uri.matches("://").count();
    if schemes > 2 {
        return Err("it has more than two ://".to_owned());
    }
    let conn_type = split(uri)?.scheme;
    if conn_type.is_empty() && !uri.starts_with("//") {
        return Err("it must start with a connection type and ://, for example my-type://host (letters, digits, \
                    + - . and no underscore: my-type:// is the type my_type)"
            .to_owned());
    }
    let host_has_scheme = schemes == 2;
    let rest = uri.replace(
        &format!("{conn_type}://"),
        if host_has_scheme { "" } else { "//" },
    );
    if host_has_scheme
        && let Some((before, _)) = rest.split_once("://")
        && before.contains(['@', ':'])
    {
        return Err(
            "the second scheme must come before the login: type://https://login:password@host"
                .to_owned(),
        );
    }
    let parts = split(&rest)?;
    let (userinfo, address) = match parts.netloc.rsplit_once('@') {
        Some((userinfo, address)) => (Some(userinfo), address),
        None => (None, parts.netloc.as_str()),
    };
    let (login, password) = match userinfo {
        None => (None, None),
        Some(text) => match text.split_once(':') {
            Some((login, password)) => (Some(unquote(login)), Some(unquote(password))),
            None => (Some(unquote(text)), None),
        },
    };
    let (host, port) = host_and_port(address)?;
    let host = match (host_has_scheme, host.is_empty()) {
        (true, false) if !parts.scheme.is_empty() => format!("{}://{host}", parts.scheme),
        _ => host,
    };
    let mut path = parts.path.chars();
    path.next();
    Ok(Connection {
        conn_id: String::new(),
        conn_type: normalise(&conn_type),
        host: Some(host),
        schema: Some(unquote(path.as_str())),
        login,
        password,
        port,
        extra: extra(&parts.query),
    })
}

#[derive(Debug, Default)]
struct Parts {
    scheme: String,
    netloc: String,
    path: String,
    query: String,
}

/// Python's `urlsplit`, without the fragment.
fn split(url: &str) -> Result<Parts, String> {
    let cleaned: String = url
        .trim_start_matches(|c: char| c <= ' ')
        .chars()
        .filter(|c| !matches!(c, '\t' | '\r' | '\n'))
        .collect();
    let mut parts = Parts::default();
    let mut rest = cleaned.as_str();
    if let Some((scheme, after)) = rest.split_once(':')
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    {
        parts.scheme = scheme.to_ascii_lowercase();
        rest = after;
    }
    if let Some(after) = rest.strip_prefix("//") {
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (netloc, tail) = after.split_at(end);
        if netloc.contains('[') != netloc.contains(']') {
            return Err("a [ or ] in the host has no counterpart".to_owned());
        }
        netloc.clone_into(&mut parts.netloc);
        rest = tail;
    }
    if let Some((before, _)) = rest.split_once('#') {
        rest = before;
    }
    if let Some((before, query)) = rest.split_once('?') {
        query.clone_into(&mut parts.query);
        rest = before;
    }
    rest.clone_into(&mut parts.path);
    Ok(parts)
}

fn host_and_port(address: &str) -> Result<(String, Option<u16>), String> {
    let (raw, port) = match address.split_once('[') {
        Some((before, bracketed)) => {
            let (host, tail) = bracketed.split_once(']').unwrap_or((bracketed, ""));
            let literal = host.split('%').next().unwrap_or_default();
            if !before.is_empty()
                || (literal.parse::<Ipv6Addr>().is_err() && !literal.starts_with('v'))
            {
                return Err("[ ] in the host must hold an IPv6 address".to_owned());
            }
            (host, tail.split_once(':').map(|(_, port)| port))
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        // The text after the colon may be the rest of a password that was not encoded: it must not be shown.
        Some(text) => {
            Some(text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten().ok_or(
                "the port must be a number from 0 to 65535 (a / ? # or @ in a login or password must be \
                 percent-encoded)",
            )?)
        }
    };
    // `hostname` of urlsplit lowers the letters up to the first percent sign, no further.
    let lowered = match raw.split_once('%') {
        Some((before, after)) => format!("{}%{after}", before.to_lowercase()),
        None => raw.to_lowercase(),
    };
    let host = unquote(&lowered);
    if !host.contains('/') {
        return Ok((host, port));
    }
    // A host with a path in it is taken as it was written.
    Ok((unquote(address.split(':').next().unwrap_or_default()), port))
}

fn extra(query: &str) -> Option<String> {
    if query.is_empty() {
        return None;
    }
    let mut parameters = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| unquote(&text.replace('+', " "));
        parameters.insert(decode(name), Value::String(decode(value)));
    }
    match parameters.get(EXTRA_KEY) {
        Some(Value::String(extra)) => Some(extra.clone()),
        _ => Some(dumps(&Value::Object(parameters), JsonStyle::LOOSE)),
    }
}

fn unquote(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// What Airflow 3.3.2 made of each URI: a URI, then type, host, schema, login, password, port, extra.
    const RECORDED: &str = include_str!("../../../tests/fixtures/connection_uris.json");

    #[test]
    fn uris_are_read_as_airflow_reads_them() {
        let Value::Array(cases) = serde_json::from_str(RECORDED).unwrap() else {
            panic!("a list")
        };
        assert!(cases.len() > 60);
        for case in cases {
            let uri = case["uri"].as_str().unwrap();
            match (parse(uri), case.get("connection")) {
                (Ok(connection), Some(expected)) => {
                    let mut found = serde_json::to_value(connection).unwrap();
                    found.as_object_mut().unwrap().remove("conn_id");
                    assert_eq!(&found, expected, "{uri}");
                }
                (Err(_), None) => {}
                (found, expected) => panic!("{uri}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_uri_without_a_type_is_refused_where_airflow_would_lose_the_host() {
        for uri in ["my_type://host", "host/db", "1a://h", ":", "é://h", ""] {
            assert!(parse(uri).unwrap_err().contains("connection type"), "{uri}");
        }
        assert_eq!(parse("//host/db").unwrap().conn_type, "");
    }
}
