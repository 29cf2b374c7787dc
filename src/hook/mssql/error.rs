//! Errors in the words of pymssql: a tuple of number and bytes, in which FreeTDS has its say as well.

use std::fmt::Write as _;
use std::io;

use tiberius::error::{Error, TokenError};

/// `(208, b"Invalid object name 'nope'.DB-Lib error message 20018, severity 16:\nGeneral ...")`
pub(super) fn statement(error: &Error) -> String {
    match error {
        Error::Server(server) => tuple(server.code(), &server_text(server)),
        Error::Io { .. } => lost(),
        other => tuple(20020, &dblib(20020, 9, &other.to_string())),
    }
}

/// The session has ended while a statement ran.
pub(super) fn lost() -> String {
    tuple(20047, &dblib(20047, 9, "DBPROCESS is dead or not enabled"))
}

/// The limit that the connection's `timeout` sets is over.
pub(super) fn timed_out(host: &str) -> String {
    tuple(
        20003,
        &dblib(
            20003,
            6,
            &format!("TDS server connection timed out ({host})"),
        ),
    )
}

/// The text of a failure to log in.
pub(super) fn login(error: &Error, host: &str) -> String {
    let failed = dblib(20002, 9, &format!("TDS server connection failed ({host})"));
    match error {
        Error::Server(server) => tuple(server.code(), &format!("{}{failed}", server_text(server))),
        Error::Io { .. } => tuple(20002, &failed),
        other => tuple(20002, &format!("{failed}{other}\n")),
    }
}

/// The text of a failure to reach the server at all; `None` is a name that nobody knows.
pub(super) fn unreachable(host: &str, cause: Option<&io::Error>) -> String {
    let mut text = dblib(
        20009,
        9,
        &format!("Unable to connect: TDS server is unavailable or does not exist ({host})"),
    );
    let Some(cause) = cause else {
        return tuple(20009, &text);
    };
    let reason = cause.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let number = cause.raw_os_error().unwrap_or_default();
    // Writing to a String can't fail.
    let _ = writeln!(text, "Net-Lib error during {reason} ({number})");
    // FreeTDS tries twice.
    tuple(20009, &text.repeat(2))
}

fn server_text(server: &TokenError) -> String {
    let general = "General SQL Server error: Check messages from the SQL Server";
    format!(
        "{}{}",
        server.message(),
        dblib(20018, server.class(), general)
    )
}

fn dblib(number: u32, severity: u8, text: &str) -> String {
    format!("DB-Lib error message {number}, severity {severity}:\n{text}\n")
}

fn tuple(number: u32, text: &str) -> String {
    format!("({number}, {})", repr_bytes(text.as_bytes()))
}

/// `repr()` of Python's bytes.
fn repr_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut out = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'\'' if quote == '\'' => out.push_str("\\'"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn bytes_print_as_in_python() {
        assert_eq!(repr_bytes(b"it's"), "b\"it's\"");
        assert_eq!(
            repr_bytes("é'\"\\\n".as_bytes()),
            "b'\\xc3\\xa9\\'\"\\\\\\n'"
        );
    }

    #[test]
    fn a_server_that_does_not_listen_reads_as_in_pymssql() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(
            unreachable("127.0.0.1", Some(&refused)),
            "(20009, b'DB-Lib error message 20009, severity 9:\\nUnable to connect: TDS server is unavailable or does \
             not exist (127.0.0.1)\\nNet-Lib error during Connection refused (111)\\nDB-Lib error message 20009, \
             severity 9:\\nUnable to connect: TDS server is unavailable or does not exist (127.0.0.1)\\nNet-Lib error \
             during Connection refused (111)\\n')"
        );
        assert_eq!(
            unreachable("no.such.host.invalid", None),
            "(20009, b'DB-Lib error message 20009, severity 9:\\nUnable to connect: TDS server is unavailable or does \
             not exist (no.such.host.invalid)\\n')"
        );
    }
}
