//! Values as PostgreSQL writes them in text, and as psycopg 3 would hand them to Python.
//!
//! Text is the one format that every type has, and what psycopg reads: the same digits, the same zone, the same scale.
//! What psycopg has no class for, enumerations and composite types among it, stays the server's text.

use serde_json::Value;
use tokio_postgres::types::{Kind, Type};

use crate::hook::{Cell, python_value};

/// A value that is not in the form its type has: a `DateStyle` or `IntervalStyle` other than the default, mostly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The value of a column of type `ty`.
pub(super) fn cell(ty: &Type, text: &str) -> Result<Cell, Unreadable> {
    // The types of a user, and of extensions, have no entry here: psycopg does not know them either.
    if Type::from_oid(ty.oid()).is_none() {
        return Ok(Cell::Text(text.to_owned()));
    }
    Ok(match *ty {
        Type::BOOL => match text {
            "t" => Cell::Bool(true),
            "f" => Cell::Bool(false),
            _ => return Err(Unreadable),
        },
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => {
            Cell::Int(text.parse().map_err(|_| Unreadable)?)
        }
        Type::FLOAT4 | Type::FLOAT8 => Cell::Float(text.parse().map_err(|_| Unreadable)?),
        Type::BYTEA => Cell::Bytes(bytes(text).ok_or(Unreadable)?),
        Type::JSON | Type::JSONB => {
            // More digits than a float has, or deeper than the parser goes: not to be shown as something else.
            let value: Value = serde_json::from_str(text).map_err(|_| Unreadable)?;
            Cell::Json(value)
        }
        Type::RECORD => record(text)?,
        Type::RECORD_ARRAY => array(&Type::RECORD, text)?,
        // Arrays inside, but not written as such.
        Type::INT2_VECTOR | Type::OID_VECTOR => Cell::Text(text.to_owned()),
        _ => match ty.kind() {
            Kind::Array(element) => array(element, text)?,
            _ => Cell::Text(scalar(ty, text)?),
        },
    })
}

/// `str()` of what psycopg makes of a value that is neither number, bytes nor structure.
fn scalar(ty: &Type, text: &str) -> Result<String, Unreadable> {
    let python = match *ty {
        Type::NUMERIC => match text {
            "NaN" | "Infinity" | "-Infinity" => Some(text.to_owned()),
            _ => python_value::decimal(text),
        },
        Type::DATE => python_value::date(text).or_else(|| beyond_python(text)),
        Type::TIME | Type::TIMETZ => {
            python_value::time(text).or_else(|| text.starts_with("24:").then(|| text.to_owned()))
        }
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            python_value::datetime(text).or_else(|| beyond_python(text))
        }
        Type::INTERVAL => interval(text)
            .map(|microseconds| python_value::timedelta(microseconds).unwrap_or(text.to_owned())),
        Type::INT4_RANGE => range(&Type::INT4, text),
        Type::INT8_RANGE => range(&Type::INT8, text),
        Type::NUM_RANGE => range(&Type::NUMERIC, text),
        Type::DATE_RANGE => range(&Type::DATE, text),
        Type::TS_RANGE => range(&Type::TIMESTAMP, text),
        Type::TSTZ_RANGE => range(&Type::TIMESTAMPTZ, text),
        Type::INT4MULTI_RANGE => multirange(&Type::INT4, text),
        Type::INT8MULTI_RANGE => multirange(&Type::INT8, text),
        Type::NUMMULTI_RANGE => multirange(&Type::NUMERIC, text),
        Type::DATEMULTI_RANGE => multirange(&Type::DATE, text),
        Type::TSMULTI_RANGE => multirange(&Type::TIMESTAMP, text),
        Type::TSTZMULTI_RANGE => multirange(&Type::TIMESTAMPTZ, text),
        _ => Some(text.to_owned()),
    };
    python.ok_or(Unreadable)
}

/// Infinity, years before 1 and after 9999: psycopg refuses them, and there is no need to. The server's text is exact.
fn beyond_python(text: &str) -> Option<String> {
    let year = text.split('-').next().unwrap_or_default();
    let exact = matches!(text, "infinity" | "-infinity")
        || text.ends_with(" BC")
        || (year.len() > 4 && year.bytes().all(|byte| byte.is_ascii_digit()));
    exact.then(|| text.to_owned())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Option<Vec<u8>> = hex
            .bytes()
            .map(|byte| {
                char::from(byte)
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            })
            .collect();
        let digits = digits?;
        return digits
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some(high * 16 + low),
                _ => None,
            })
            .collect();
    }
    // `bytea_output = escape`
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            out.push(b'\\');
            rest = after;
        } else {
            let octal = std::str::from_utf8(rest.get(..3)?).ok()?;
            out.push(u8::from_str_radix(octal, 8).ok()?);
            rest = rest.get(3..)?;
        }
    }
    Some(out)
}

/// Microseconds, with psycopg's 365 days a year and 30 a month.
fn interval(text: &str) -> Option<i128> {
    const SECOND: i128 = 1_000_000;
    const DAY: i128 = 86_400 * SECOND;
    let mut total = 0;
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if let Some(clock) = clock(word) {
            return words.next().is_none().then_some(total + clock);
        }
        let count: i128 = word.parse().ok()?;
        let days = match words.next()?.trim_end_matches('s') {
            "year" => 365,
            "mon" => 30,
            "day" => 1,
            _ => return None,
        };
        total += count * days * DAY;
    }
    Some(total)
}

fn clock(word: &str) -> Option<i128> {
    let (sign, clock) = match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    };
    let mut parts = clock.split(':');
    let hours: i128 = parts.next()?.parse().ok()?;
    let minutes: i128 = parts.next()?.parse().ok()?;
    let (seconds, fraction) = match parts.next()?.split_once('.') {
        Some((seconds, fraction)) if fraction.len() <= 6 => (seconds, fraction),
        Some(_) => return None,
        None => (clock.rsplit(':').next()?, ""),
    };
    let seconds: i128 = seconds.parse().ok()?;
    let microseconds: i128 = format!("{fraction:0<6}").parse().ok()?;
    Some(sign * ((hours * 3600 + minutes * 60 + seconds) * 1_000_000 + microseconds))
}

/// `str(Range)`: the bounds with a space between them, and `None` where there is none.
fn range(element: &Type, text: &str) -> Option<String> {
    if text == "empty" {
        return Some(text.to_owned());
    }
    let mut chars = text.chars();
    let (open, close) = (chars.next()?, chars.next_back()?);
    if !matches!(open, '[' | '(') || !matches!(close, ']' | ')') {
        return None;
    }
    let bounds = fields(chars.as_str())?;
    let [lower, upper] = bounds.as_slice() else {
        return None;
    };
    let bound = |bound: &Option<String>| match bound {
        None => Some("None".to_owned()),
        Some(text) => scalar(element, text).ok(),
    };
    Some(format!("{open}{}, {}{close}", bound(lower)?, bound(upper)?))
}

/// `str(Multirange)`: its ranges in braces.
fn multirange(element: &Type, text: &str) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut ranges = Vec::new();
    let mut rest = inner;
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest.char_indices().find_map(|(at, c)| {
            quoted ^= c == '"';
            (!quoted && matches!(c, ']' | ')')).then_some(at + 1)
        })?;
        let (one, after) = rest.split_at(end);
        ranges.push(range(element, one)?);
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Some(format!("{{{}}}", ranges.join(", ")))
}

/// A row value: psycopg reads its fields as text, because their types are not told.
fn record(text: &str) -> Result<Cell, Unreadable> {
    let inner = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or(Unreadable)?;
    if inner.is_empty() {
        return Ok(Cell::List(Vec::new()));
    }
    let fields = fields(inner).ok_or(Unreadable)?;
    Ok(Cell::List(
        fields
            .into_iter()
            .map(|field| field.map_or(Cell::Null, Cell::Text))
            .collect(),
    ))
}

/// The fields between the brackets of a row or a range: empty is NULL, quotes are doubled or escaped inside quotes.
fn fields(inner: &str) -> Option<Vec<Option<String>>> {
    let mut out = Vec::new();
    let mut chars = inner.chars().peekable();
    loop {
        let mut field = String::new();
        let mut present = false;
        let mut quoted = false;
        let more = loop {
            match chars.next() {
                None => break false,
                Some(',') if !quoted => break true,
                Some('"') if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    field.push('"');
                }
                Some('"') => {
                    quoted = !quoted;
                    present = true;
                }
                Some('\\') => field.push(chars.next()?),
                Some(c) => field.push(c),
            }
        };
        if quoted {
            return None;
        }
        out.push((present || !field.is_empty()).then_some(field));
        if !more {
            return Some(out);
        }
    }
}

/// An array, nested as deep as its dimensions; bounds (`[2:3]={...}`) are dropped as psycopg drops them.
fn array(element: &Type, text: &str) -> Result<Cell, Unreadable> {
    let body = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]={").map(|(_, body)| body),
        None => text.strip_prefix('{'),
    };
    // A box has commas of its own.
    let separator = if *element == Type::BOX { ';' } else { ',' };
    let mut chars = body.ok_or(Unreadable)?.chars().peekable();
    let mut open: Vec<Vec<Cell>> = vec![Vec::new()];
    loop {
        match chars.next().ok_or(Unreadable)? {
            '{' => open.push(Vec::new()),
            '}' => {
                let done = Cell::List(open.pop().ok_or(Unreadable)?);
                match open.last_mut() {
                    Some(outer) => outer.push(done),
                    None if chars.next().is_none() => return Ok(done),
                    None => return Err(Unreadable),
                }
            }
            c if c == separator => {}
            first => {
                let mut item = String::new();
                let quoted = first == '"';
                if !quoted {
                    if first == '\\' {
                        item.push(chars.next().ok_or(Unreadable)?);
                    } else {
                        item.push(first);
                    }
                }
                while let Some(&c) = chars.peek() {
                    if !quoted && (c == separator || c == '}') {
                        break;
                    }
                    chars.next();
                    match c {
                        '"' if quoted => break,
                        '\\' => item.push(chars.next().ok_or(Unreadable)?),
                        c => item.push(c),
                    }
                }
                let value = if !quoted && item == "NULL" {
                    Cell::Null
                } else {
                    cell(element, &item)?
                };
                open.last_mut().ok_or(Unreadable)?.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn text(ty: &Type, text: &str) -> String {
        match cell(ty, text).unwrap() {
            Cell::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn list(ty: &Type, text: &str) -> Vec<Cell> {
        match cell(ty, text).unwrap() {
            Cell::List(items) => items,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn intervals_are_timedeltas() {
        let cases = [
            ("1 day", "1 day, 0:00:00"),
            ("1 mon", "30 days, 0:00:00"),
            (
                "1 year 2 mons 3 days 04:05:06.789",
                "428 days, 4:05:06.789000",
            ),
            ("-00:00:01", "-1 day, 23:59:59"),
            ("100:00:00", "4 days, 4:00:00"),
            ("00:00:00", "0:00:00"),
            ("1 day -00:00:01", "23:59:59"),
            ("-1 mons +3 days -02:00:00", "-28 days, 22:00:00"),
            // Beyond what a timedelta holds.
            ("1000000000 days", "1000000000 days"),
        ];
        for (interval, expected) in cases {
            assert_eq!(text(&Type::INTERVAL, interval), expected);
        }
        assert_eq!(cell(&Type::INTERVAL, "P1DT2H"), Err(Unreadable));
    }

    #[test]
    fn ranges_print_as_psycopgs_range() {
        assert_eq!(text(&Type::INT4_RANGE, "[1,10)"), "[1, 10)");
        assert_eq!(text(&Type::INT4_RANGE, "(,10)"), "(None, 10)");
        assert_eq!(text(&Type::NUM_RANGE, "empty"), "empty");
        assert_eq!(
            text(
                &Type::TS_RANGE,
                "[\"2020-01-01 00:00:00\",\"2020-02-01 10:00:00.5\")"
            ),
            "[2020-01-01 00:00:00, 2020-02-01 10:00:00.500000)"
        );
        assert_eq!(
            text(&Type::INT4MULTI_RANGE, "{[1,3),[5,7)}"),
            "{[1, 3), [5, 7)}"
        );
        assert_eq!(text(&Type::INT4MULTI_RANGE, "{}"), "{}");
    }

    #[test]
    fn arrays_nest_quote_and_hold_nulls() {
        assert_eq!(
            list(&Type::TEXT_ARRAY, r#"{a,"b c","NULL",NULL,"q\"uo\\te",""}"#),
            [
                Cell::Text("a".to_owned()),
                Cell::Text("b c".to_owned()),
                Cell::Text("NULL".to_owned()),
                Cell::Null,
                Cell::Text("q\"uo\\te".to_owned()),
                Cell::Text(String::new()),
            ]
        );
        let row = |a, b| Cell::List(vec![Cell::Int(a), Cell::Int(b)]);
        assert_eq!(
            list(&Type::INT4_ARRAY, "{{1,2},{3,4}}"),
            [row(1, 2), row(3, 4)]
        );
        assert_eq!(
            list(&Type::INT4_ARRAY, "[2:3]={7,8}"),
            [Cell::Int(7), Cell::Int(8)]
        );
        assert_eq!(list(&Type::INT4_ARRAY, "{}"), []);
        assert_eq!(list(&Type::BOX_ARRAY, "{(1,1),(0,0);(2,2),(0,0)}").len(), 2);
        assert_eq!(
            list(&Type::JSONB_ARRAY, r#"{"{\"a\": 1}"}"#),
            [Cell::Json(json!({"a": 1}))]
        );
        assert_eq!(cell(&Type::INT4_ARRAY, "{1,2"), Err(Unreadable));
    }

    #[test]
    fn a_row_is_a_list_of_texts() {
        assert_eq!(
            list(&Type::RECORD, r#"(1,"a ""b""",,t)"#),
            [
                Cell::Text("1".to_owned()),
                Cell::Text("a \"b\"".to_owned()),
                Cell::Null,
                Cell::Text("t".to_owned()),
            ]
        );
        assert_eq!(list(&Type::RECORD, "()"), []);
    }

    #[test]
    fn moments_that_python_cannot_hold_are_shown_as_the_server_writes_them() {
        assert_eq!(text(&Type::DATE, "infinity"), "infinity");
        assert_eq!(
            text(&Type::TIMESTAMP, "0044-03-15 00:00:00 BC"),
            "0044-03-15 00:00:00 BC"
        );
        assert_eq!(text(&Type::TIME, "24:00:00"), "24:00:00");
        // Day or month first? DateStyle says; this does not guess.
        assert_eq!(cell(&Type::DATE, "01/02/2020"), Err(Unreadable));
    }

    #[test]
    fn bytes_are_read_in_both_output_formats() {
        let expected = Cell::Bytes(vec![0, 0xff, b'A', b'\\']);
        assert_eq!(cell(&Type::BYTEA, "\\x00ff415c").unwrap(), expected);
        assert_eq!(cell(&Type::BYTEA, "\\000\\377A\\\\").unwrap(), expected);
    }
}
