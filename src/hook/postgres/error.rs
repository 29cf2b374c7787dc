//! Errors in the words of psycopg 3, which are libpq's.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition};
use unicode_width::UnicodeWidthChar;

/// Columns of a statement that are shown around an error, and how many of them stand to the right at least.
const DISPLAY_SIZE: usize = 60;
const MIN_RIGHT_CUT: usize = 10;

/// The text of an error while a statement ran. `wrapped` is the number of characters that stand in front of `sql` in
/// what was sent.
pub(super) fn statement(error: &Error, sql: &str, wrapped: usize) -> String {
    match error.as_db_error() {
        Some(server) => server_text(server, sql, wrapped),
        None if error.is_closed() || io_error(error).is_some() => {
            "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore \
             or while processing the request."
                .to_owned()
        }
        None => with_causes(error),
    }
}

/// Message, place, detail, hint and context, one below the other.
fn server_text(error: &DbError, sql: &str, wrapped: usize) -> String {
    let mut text = error.message().to_owned();
    let mut add = |line: String| {
        text.push('\n');
        text.push_str(&line);
    };
    let mut internal_query = None;
    match error.position() {
        None => {}
        Some(ErrorPosition::Original(position)) => {
            let position = usize::try_from(*position).unwrap_or(0);
            if let Some(place) = position.checked_sub(wrapped).and_then(|at| place(sql, at)) {
                add(place);
            }
        }
        Some(ErrorPosition::Internal { position, query }) => {
            match place(query, usize::try_from(*position).unwrap_or(0)) {
                Some(place) => add(place),
                None => internal_query = Some(query),
            }
        }
    }
    if let Some(detail) = error.detail() {
        add(format!("DETAIL:  {detail}"));
    }
    if let Some(hint) = error.hint() {
        add(format!("HINT:  {hint}"));
    }
    if let Some(query) = internal_query {
        add(format!("QUERY:  {query}"));
    }
    if let Some(context) = error.where_() {
        add(format!("CONTEXT:  {context}"));
    }
    text.trim_end().to_owned()
}

/// The line of `sql` that holds the character at `position` (from 1), cut to a readable length, and a caret below it.
fn place(sql: &str, position: usize) -> Option<String> {
    let at = position.checked_sub(1)?;
    let chars: Vec<char> = sql
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .collect();
    if at > chars.len() {
        return None;
    }
    let before = chars.get(..at)?;
    let line = before.iter().filter(|&&c| c == '\n').count() + 1;
    let is_break = |c: &char| matches!(c, '\n' | '\r');
    let mut start = before.iter().rposition(is_break).map_or(0, |at| at + 1);
    let mut end = chars
        .get(at..)?
        .iter()
        .position(is_break)
        .map_or(chars.len(), |length| at + length);
    let width = |from: usize, to: usize| -> usize {
        chars
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .map(|c| c.width().unwrap_or(0))
            .sum()
    };
    let (mut cut_left, mut cut_right) = (false, false);
    if width(start, end) > DISPLAY_SIZE {
        if width(start, at) + MIN_RIGHT_CUT <= DISPLAY_SIZE {
            while width(start, end) > DISPLAY_SIZE {
                end -= 1;
            }
            cut_right = true;
        } else {
            while width(at, end) > MIN_RIGHT_CUT {
                end -= 1;
                cut_right = true;
            }
            while width(start, end) > DISPLAY_SIZE {
                start += 1;
                cut_left = true;
            }
        }
    }
    let label = format!("LINE {line}: {}", if cut_left { "..." } else { "" });
    let shown: String = chars.get(start..end)?.iter().collect();
    let tail = if cut_right { "..." } else { "" };
    let indent = " ".repeat(label.len() + width(start, at));
    Some(format!("{label}{shown}{tail}\n{indent}^"))
}

/// Why an attempt to connect failed, without where it went.
pub(super) fn connect(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        let mut text = format!("{}:  {}", server.severity(), server.message());
        if let Some(detail) = server.detail() {
            text.push_str(&format!("\nDETAIL:  {detail}"));
        }
        if let Some(hint) = server.hint() {
            text.push_str(&format!("\nHINT:  {hint}"));
        }
        return text;
    }
    if let Some(cause) = io_error(error) {
        if let Some(tls) = cause
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            return tls_text(tls);
        }
        // The text of the operating system, without Rust's `(os error 111)`.
        let text = cause.to_string();
        return match text.split_once(" (os error") {
            Some((reason, _)) => reason.to_owned(),
            None => text,
        };
    }
    match with_causes(error).as_str() {
        "error performing TLS handshake: server does not support TLS" => {
            "server does not support SSL, but SSL was required".to_owned()
        }
        "invalid configuration: password missing" => "fe_sendauth: no password supplied".to_owned(),
        other => other.to_owned(),
    }
}

fn tls_text(error: &rustls::Error) -> String {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    match error {
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            format!("server certificate does not match host name: {error}")
        }
        rustls::Error::InvalidCertificate(_) => "SSL error: certificate verify failed".to_owned(),
        other => format!("SSL error: {other}"),
    }
}

pub(super) fn io_error(error: &Error) -> Option<&io::Error> {
    error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>())
}

fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::place;

    #[test]
    fn an_error_is_shown_in_its_line_with_a_caret() {
        assert_eq!(
            place("SELECT * FROM nope", 15).unwrap(),
            "LINE 1: SELECT * FROM nope\n                      ^"
        );
        assert_eq!(
            place("SELECT id,\n\tnome FROM big", 13).unwrap(),
            "LINE 2:  nome FROM big\n         ^"
        );
        // At the end of the input.
        assert_eq!(
            place("SELECT (", 9).unwrap(),
            "LINE 1: SELECT (\n                ^"
        );
        assert_eq!(place("SELECT", 20), None);
    }

    #[test]
    fn a_long_line_is_cut_around_the_error() {
        let columns = (0..30)
            .map(|n| format!("{n} as aaaaaaa, "))
            .collect::<String>();
        let sql = format!("SELECT {columns}nope, {columns}1");
        let at = sql.find("nope").unwrap() + 1;
        assert_eq!(
            place(&sql, at).unwrap(),
            "LINE 1: ...aaa, 27 as aaaaaaa, 28 as aaaaaaa, 29 as aaaaaaa, nope, 0 as...\n                         \
             \u{20}                                   ^"
        );
    }

    #[test]
    fn wide_characters_move_the_caret_by_two() {
        assert_eq!(
            place("SELECT '日本', nope", 14).unwrap(),
            "LINE 1: SELECT '日本', nope\n                       ^"
        );
    }
}
