//! Values as the server writes them in text, and as `MySQLdb` would hand them to Python.

use mysql_async::Column;
use mysql_async::consts::ColumnType;

use crate::hook::{Cell, python_value};

/// The number of the character set that is no characters.
const BINARY: u16 = 63;

/// A value that is not in the form its type has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The value of a column.
pub(super) fn cell(column: &Column, bytes: &[u8]) -> Result<Cell, Unreadable> {
    use ColumnType::{
        MYSQL_TYPE_BIT, MYSQL_TYPE_DATE, MYSQL_TYPE_DATETIME, MYSQL_TYPE_DATETIME2,
        MYSQL_TYPE_DECIMAL, MYSQL_TYPE_DOUBLE, MYSQL_TYPE_FLOAT, MYSQL_TYPE_GEOMETRY,
        MYSQL_TYPE_INT24, MYSQL_TYPE_JSON, MYSQL_TYPE_LONG, MYSQL_TYPE_LONGLONG,
        MYSQL_TYPE_NEWDATE, MYSQL_TYPE_NEWDECIMAL, MYSQL_TYPE_NULL, MYSQL_TYPE_SHORT,
        MYSQL_TYPE_TIME, MYSQL_TYPE_TIME2, MYSQL_TYPE_TIMESTAMP, MYSQL_TYPE_TIMESTAMP2,
        MYSQL_TYPE_TINY, MYSQL_TYPE_YEAR,
    };
    let text = || std::str::from_utf8(bytes).map_err(|_| Unreadable);
    Ok(match column.column_type() {
        MYSQL_TYPE_NULL => Cell::Null,
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_INT24 | MYSQL_TYPE_LONG
        | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_YEAR => integer(text()?)?,
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => {
            Cell::Float(text()?.parse().map_err(|_| Unreadable)?)
        }
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => {
            Cell::Text(python_value::decimal(text()?).ok_or(Unreadable)?)
        }
        MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE => {
            let text = text()?;
            Cell::Text(python_value::date(text).map_or_else(|| incomplete(text), Ok)?)
        }
        MYSQL_TYPE_DATETIME
        | MYSQL_TYPE_DATETIME2
        | MYSQL_TYPE_TIMESTAMP
        | MYSQL_TYPE_TIMESTAMP2 => {
            let text = text()?;
            Cell::Text(python_value::datetime(text).map_or_else(|| incomplete(text), Ok)?)
        }
        MYSQL_TYPE_TIME | MYSQL_TYPE_TIME2 => Cell::Text(duration(text()?).ok_or(Unreadable)?),
        MYSQL_TYPE_BIT | MYSQL_TYPE_GEOMETRY => Cell::Bytes(bytes.to_vec()),
        MYSQL_TYPE_JSON => Cell::Text(text()?.to_owned()),
        // Strings of every kind, and what later versions may bring.
        _ if column.character_set() == BINARY => Cell::Bytes(bytes.to_vec()),
        _ => Cell::Text(text()?.to_owned()),
    })
}

/// BIGINT UNSIGNED goes beyond what fits a signed number.
fn integer(text: &str) -> Result<Cell, Unreadable> {
    if let Ok(value) = text.parse() {
        return Ok(Cell::Int(value));
    }
    let value: u64 = text.parse().map_err(|_| Unreadable)?;
    Ok(Cell::Json(value.into()))
}

/// A date with a zero in it, which MySQL allows. `MySQLdb` makes `None` of it; the server's text says what is there.
fn incomplete(text: &str) -> Result<String, Unreadable> {
    let is_moment = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b' ' | b':' | b'.'));
    if is_moment && text.len() >= 10 {
        Ok(text.to_owned())
    } else {
        Err(Unreadable)
    }
}

/// TIME is a length of time, a `timedelta` in Python.
fn duration(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':').map(str::parse::<i128>);
    let (hours, minutes, seconds) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    let microseconds: i128 = format!("{fraction:0<6}").parse().ok()?;
    python_value::timedelta(
        sign * ((hours * 3600 + minutes * 60 + seconds) * 1_000_000 + microseconds),
    )
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn of(ty: ColumnType, text: &str) -> Result<Cell, Unreadable> {
        cell(&Column::new(ty), text.as_bytes())
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_LONGLONG, "18446744073709551615"),
            Ok(Cell::Json(json!(u64::MAX)))
        );
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_NEWDECIMAL, "0.0000001"),
            Ok(Cell::Text("1E-7".to_owned()))
        );
        assert_eq!(of(ColumnType::MYSQL_TYPE_LONG, "x"), Err(Unreadable));
    }

    #[test]
    fn times_are_lengths_of_time() {
        for (text, expected) in [
            ("12:00:00.500000", "12:00:00.500000"),
            ("-01:00:00", "-1 day, 23:00:00"),
            ("838:59:59", "34 days, 22:59:59"),
        ] {
            assert_eq!(
                of(ColumnType::MYSQL_TYPE_TIME, text),
                Ok(Cell::Text(expected.to_owned()))
            );
        }
    }

    #[test]
    fn a_date_with_a_zero_in_it_is_not_null() {
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_DATE, "0000-00-00"),
            Ok(Cell::Text("0000-00-00".to_owned()))
        );
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_DATETIME, "2020-00-00 00:00:00"),
            Ok(Cell::Text("2020-00-00 00:00:00".to_owned()))
        );
    }

    #[test]
    fn text_and_bytes_are_told_apart_by_the_character_set() {
        let column = |charset| Column::new(ColumnType::MYSQL_TYPE_BLOB).with_character_set(charset);
        assert_eq!(cell(&column(BINARY), b"\xff"), Ok(Cell::Bytes(vec![0xff])));
        assert_eq!(cell(&column(45), b"a"), Ok(Cell::Text("a".to_owned())));
        assert_eq!(cell(&column(45), b"\xff"), Err(Unreadable));
    }
}
