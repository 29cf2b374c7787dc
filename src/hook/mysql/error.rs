//! Errors in the words of `MySQLdb`: a tuple of number and message.

use std::io;

use mysql_async::{DriverError, Error, IoError, ServerError};

use super::settings::Place;
use crate::airflow::python_text::repr_str;
use crate::hook::DatabaseError;

/// `(1146, "Table 'm1.nope' doesn't exist")`
fn tuple(code: u16, message: &str) -> String {
    format!("({code}, {})", repr_str(message))
}

/// The text of a failure while a statement ran.
pub(super) fn statement(error: &Error) -> String {
    match error {
        Error::Server(ServerError { code, message, .. }) => tuple(*code, message),
        Error::Io(_)
        | Error::Driver(DriverError::ConnectionClosed | DriverError::PacketOutOfOrder) => {
            tuple(2013, "Lost connection to server during query")
        }
        // LOAD DATA LOCAL: this client gives no files of its machine away.
        Error::Driver(DriverError::LocalInfile(_)) => tuple(
            4166,
            "The used command is not allowed because the MariaDB server or client has disabled the local infile \
             capability",
        ),
        other => tuple(2000, &other.to_string()),
    }
}

/// The text of a failure to connect.
pub(super) fn connect(error: &Error, place: &Place) -> String {
    match error {
        Error::Server(ServerError { code, message, .. }) => tuple(*code, message),
        Error::Io(IoError::Io(cause)) if tls_error(cause).is_some() => {
            let reason = tls_error(cause).map(ToString::to_string);
            tuple(
                2026,
                &format!("TLS/SSL error: {}", reason.unwrap_or_default()),
            )
        }
        Error::Io(IoError::Io(cause)) => match place {
            Place::Socket(socket) => tuple(
                2002,
                &format!(
                    "Can't connect to local server through socket '{socket}' ({})",
                    cause.raw_os_error().unwrap_or_default()
                ),
            ),
            Place::Host(host) if is_unknown_host(cause) => {
                tuple(2005, &format!("Unknown server host '{host}' (-2)"))
            }
            Place::Host(host) => unreachable_host(host),
        },
        Error::Io(IoError::Tls(cause)) => tuple(2026, &format!("TLS/SSL error: {cause}")),
        Error::Driver(DriverError::NoClientSslFlagFromServer) => tuple(
            2026,
            "TLS/SSL error: SSL is required, but the server does not support it",
        ),
        other => tuple(2000, &other.to_string()),
    }
}

/// What the client library says of a host that refuses or does not answer. It waits for the socket to become writable,
/// so the number is that of "operation in progress" whatever the reason.
pub(super) fn unreachable_host(host: &str) -> String {
    tuple(2002, &format!("Can't connect to server on '{host}' (115)"))
}

fn tls_error(cause: &io::Error) -> Option<&rustls::Error> {
    cause.get_ref()?.downcast_ref()
}

fn is_unknown_host(cause: &io::Error) -> bool {
    cause.raw_os_error().is_none() && cause.to_string().contains("lookup address")
}

/// A failed reflection, in SQLAlchemy's wrapping.
pub(super) fn reflection(error: &Error, sql: &str) -> DatabaseError {
    let (class, code) = match error {
        Error::Server(ServerError {
            code: 1064 | 1102 | 1103 | 1146,
            ..
        }) => ("MySQLdb.ProgrammingError", "f405"),
        _ => ("MySQLdb.OperationalError", "e3q8"),
    };
    DatabaseError::Reflection {
        class,
        message: statement(error),
        sql: sql.to_owned(),
        code,
    }
}
