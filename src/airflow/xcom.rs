//! XCom values on the wire (`airflow.sdk.serde`, Airflow 3.3).
//!
//! The API server stores the JSON it is given. What JSON can't say travels in an envelope,
//! `{"__classname__": .., "__version__": .., "__data__": ..}`, whose data may hold further envelopes.

use chrono::{DateTime, FixedOffset, NaiveDate, Offset, TimeZone, Utc};
use serde_json::{Map, Number, Value, json};

use super::config::{Config, ConfigError};

const CLASSNAME: &str = "__classname__";
const VERSION: &str = "__version__";
const DATA: &str = "__data__";
const SCHEMA_ID: &str = "__id__";
const OLD_TYPE: &str = "__type";
const OLD_DATA: &str = "__var";

/// A value that must not be sent as an XCom. `at` says where in the value, as in `$.rows[3]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsendableValue {
    /// Airflow reads these keys as its own.
    #[error("the XCom value holds the key {key:?} at {at}, which Airflow reserves: rename it")]
    ReservedKey { key: &'static str, at: String },
    /// NaN, an infinity, or a number that Python would read as one.
    #[error(
        "the XCom value holds a number at {at} that is not finite, which JSON can't carry: replace it by None"
    )]
    NotFinite { at: String },
}

/// `{"__classname__": class, "__version__": version, "__data__": data}`.
#[must_use]
pub fn envelope(class: &str, version: u32, data: Value) -> Value {
    json!({ CLASSNAME: class, VERSION: version, DATA: data })
}

/// Checks plain JSON, as a model or a tool makes it: no envelope may hide in it, since Airflow would read it as one.
///
/// # Errors
/// See [`UnsendableValue`].
pub fn check_plain(value: &Value) -> Result<(), UnsendableValue> {
    check(value, false, &mut "$".to_owned())
}

/// Checks a value in wire form, as the Dag interpreter makes it: envelopes are what they say, plain objects are plain.
///
/// # Errors
/// See [`UnsendableValue`].
pub fn check_wire(value: &Value) -> Result<(), UnsendableValue> {
    check(value, true, &mut "$".to_owned())
}

fn check(value: &Value, envelopes: bool, at: &mut String) -> Result<(), UnsendableValue> {
    let here = at.len();
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => {}
        Value::Number(number) => {
            if number.as_f64().is_none_or(|n| !n.is_finite()) && !is_integer(number) {
                return Err(UnsendableValue::NotFinite { at: at.clone() });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.push_str(&format!("[{index}]"));
                check(item, envelopes, at)?;
                at.truncate(here);
            }
        }
        Value::Object(map) => {
            let is_envelope = envelopes && Envelope::of(map).is_some();
            for key in [CLASSNAME, SCHEMA_ID] {
                if map.contains_key(key) && !(is_envelope && key == CLASSNAME) {
                    return Err(UnsendableValue::ReservedKey {
                        key,
                        at: at.clone(),
                    });
                }
            }
            for (key, item) in map {
                at.push('.');
                at.push_str(key);
                check(item, envelopes, at)?;
                at.truncate(here);
            }
        }
    }
    Ok(())
}

fn is_integer(number: &Number) -> bool {
    let text = number.as_str();
    text.strip_prefix('-')
        .unwrap_or(text)
        .bytes()
        .all(|b| b.is_ascii_digit())
}

/// An XCom value as Rust sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Decoded>),
    Tuple(Vec<Decoded>),
    Set(Vec<Decoded>),
    FrozenSet(Vec<Decoded>),
    Dict(Vec<(String, Decoded)>),
    DateTime(Moment),
    Date(NaiveDate),
    /// Seconds.
    TimeDelta(f64),
    /// A time zone: a name, or seconds east of UTC.
    TimeZone(Zone),
    Decimal(Number),
    Uuid(String),
    /// Any other class: its qualified name and what its envelope holds. A pydantic model or a dataclass has its fields
    /// there.
    Object {
        class: String,
        version: i64,
        data: Box<Decoded>,
    },
}

/// A datetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// `datetime.datetime` or `pendulum.datetime.DateTime`.
    pub class: String,
    pub utc: DateTime<Utc>,
    /// `None`: the datetime has no time zone; `utc` then took it for UTC.
    pub zone: Option<Zone>,
}

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// `UTC`, `Europe/Stockholm` ...
    Named(String),
    /// Seconds east of UTC.
    Fixed(i32),
}

impl Zone {
    /// The offset that holds in this zone at a point in time. Unknown names count as UTC.
    #[must_use]
    pub fn offset_at(&self, utc: DateTime<Utc>) -> FixedOffset {
        let offset = match self {
            Self::Fixed(seconds) => FixedOffset::east_opt(*seconds),
            Self::Named(name) => name
                .parse::<chrono_tz::Tz>()
                .ok()
                .map(|zone| zone.offset_from_utc_datetime(&utc.naive_utc()).fix()),
        };
        offset.unwrap_or_else(|| Utc.fix())
    }
}

impl Moment {
    /// The datetime on the clocks of its own zone.
    #[must_use]
    pub fn local(&self) -> DateTime<FixedOffset> {
        let offset = self
            .zone
            .as_ref()
            .map_or_else(|| Utc.fix(), |zone| zone.offset_at(self.utc));
        self.utc.with_timezone(&offset)
    }
}

struct Envelope<'a> {
    class: &'a str,
    version: i64,
    data: &'a Value,
}

impl<'a> Envelope<'a> {
    fn of(map: &'a Map<String, Value>) -> Option<Self> {
        Some(Self {
            class: map
                .get(CLASSNAME)?
                .as_str()
                .filter(|name| !name.is_empty())?,
            version: map.get(VERSION)?.as_i64()?,
            data: map.get(DATA).unwrap_or(&Value::Null),
        })
    }

    /// The form that Airflow 2 wrote: `{"__type": .., "__var": ..}`.
    fn legacy(map: &'a Map<String, Value>) -> Option<Self> {
        let data = map.get(OLD_DATA)?;
        let class = match map.get(OLD_TYPE)?.as_str()? {
            "tuple" => "builtins.tuple",
            "set" => "builtins.set",
            "frozenset" => "builtins.frozenset",
            "timedelta" => "datetime.timedelta",
            "datetime" => "datetime.datetime",
            other => other,
        };
        Some(Self {
            class,
            version: 0,
            data,
        })
    }
}

/// Reads a value from the wire. Never fails: what is not understood stays what it is.
#[must_use]
pub fn decode(value: &Value) -> Decoded {
    match value {
        Value::Null => Decoded::Null,
        Value::Bool(b) => Decoded::Bool(*b),
        Value::Number(number) => Decoded::Number(number.clone()),
        Value::String(text) => Decoded::String(text.clone()),
        Value::Array(items) => Decoded::List(items.iter().map(decode).collect()),
        Value::Object(map) => match Envelope::legacy(map).or_else(|| Envelope::of(map)) {
            Some(Envelope {
                class: "dict",
                data: Value::Object(inner),
                ..
            }) => decode_dict(inner),
            Some(envelope) => decode_envelope(&envelope),
            None => decode_dict(map),
        },
    }
}

fn decode_dict(map: &Map<String, Value>) -> Decoded {
    Decoded::Dict(
        map.iter()
            .map(|(key, item)| (key.clone(), decode(item)))
            .collect(),
    )
}

fn decode_envelope(envelope: &Envelope<'_>) -> Decoded {
    decode_known(envelope).unwrap_or_else(|| Decoded::Object {
        class: envelope.class.to_owned(),
        version: envelope.version,
        data: Box::new(decode(envelope.data)),
    })
}

/// The classes that Rust has a use for; `None` for others and for data that does not fit its class.
fn decode_known(envelope: &Envelope<'_>) -> Option<Decoded> {
    let data = envelope.data;
    let items = || {
        data.as_array()
            .map(|items| items.iter().map(decode).collect())
    };
    Some(match envelope.class {
        "builtins.tuple" => Decoded::Tuple(items()?),
        "builtins.set" => Decoded::Set(items()?),
        "builtins.frozenset" => Decoded::FrozenSet(items()?),
        class @ ("datetime.datetime" | "pendulum.datetime.DateTime") => {
            let (timestamp, zone) = match data {
                // Airflow 2 wrote a bare timestamp.
                Value::Number(timestamp) => {
                    (timestamp.as_f64()?, Some(Zone::Named("UTC".to_owned())))
                }
                Value::Object(fields) => (
                    fields.get("timestamp")?.as_f64()?,
                    zone_of(fields.get("tz")),
                ),
                _ => return None,
            };
            Decoded::DateTime(Moment {
                class: class.to_owned(),
                utc: from_timestamp(timestamp)?,
                zone,
            })
        }
        "datetime.date" | "pendulum.date.Date" => Decoded::Date(data.as_str()?.parse().ok()?),
        "datetime.timedelta" => Decoded::TimeDelta(match data {
            Value::String(text) => text.parse().ok()?,
            other => other.as_f64()?,
        }),
        "zoneinfo.ZoneInfo"
        | "pendulum.tz.timezone.Timezone"
        | "pendulum.tz.timezone.FixedTimezone" => Decoded::TimeZone(zone_name(data)?),
        "decimal.Decimal" => Decoded::Decimal(match data {
            Value::Number(number) => number.clone(),
            Value::String(text) => serde_json::from_str(text).ok()?,
            _ => return None,
        }),
        "uuid.UUID" => Decoded::Uuid(data.as_str()?.to_owned()),
        _ => return None,
    })
}

/// A datetime's `tz`: null, a name (version 1), or a tuple of name or offset, class, version, flag.
fn zone_of(tz: Option<&Value>) -> Option<Zone> {
    let utc = || Some(Zone::Named("UTC".to_owned()));
    match tz? {
        Value::Null => None,
        Value::Object(tuple) => {
            let first = Envelope::of(tuple).and_then(|tuple| tuple.data.get(0));
            first.and_then(zone_name).or_else(utc)
        }
        Value::Array(tuple) => tuple.first().and_then(zone_name).or_else(utc),
        other => zone_name(other).or_else(utc),
    }
}

fn zone_name(value: &Value) -> Option<Zone> {
    match value {
        Value::String(name) if !name.is_empty() => Some(Zone::Named(name.clone())),
        Value::Number(seconds) => Some(Zone::Fixed(i32::try_from(seconds.as_i64()?).ok()?)),
        _ => None,
    }
}

fn from_timestamp(seconds: f64) -> Option<DateTime<Utc>> {
    let micros = (seconds * 1e6).round();
    // 2^63 microseconds is beyond every date that Python has.
    #[allow(clippy::cast_possible_truncation, reason = "range checked")]
    (micros.abs() < 9e18)
        .then(|| DateTime::from_timestamp_micros(micros as i64))
        .flatten()
}

fn timestamp_of(utc: DateTime<Utc>) -> f64 {
    #[allow(
        clippy::cast_precision_loss,
        reason = "Python's timestamps are floats with the same loss"
    )]
    let micros = utc.timestamp_micros() as f64;
    micros / 1e6
}

/// Writes a value for the wire, with envelopes where JSON can't say it.
///
/// # Errors
/// Reserved keys and numbers that are not finite; see [`UnsendableValue`].
pub fn encode(value: &Decoded) -> Result<Value, UnsendableValue> {
    let wire = encode_at(value, "$")?;
    check_wire(&wire)?;
    Ok(wire)
}

fn encode_at(value: &Decoded, at: &str) -> Result<Value, UnsendableValue> {
    let items = |items: &[Decoded]| {
        let encoded = items
            .iter()
            .enumerate()
            .map(|(index, item)| encode_at(item, &format!("{at}[{index}]")));
        encoded.collect::<Result<Vec<_>, _>>().map(Value::from)
    };
    Ok(match value {
        Decoded::Null => Value::Null,
        Decoded::Bool(b) => Value::Bool(*b),
        Decoded::Number(number) => Value::Number(number.clone()),
        Decoded::String(text) => Value::String(text.clone()),
        Decoded::List(list) => items(list)?,
        Decoded::Tuple(list) => envelope("builtins.tuple", 1, items(list)?),
        Decoded::Set(list) => envelope("builtins.set", 1, items(list)?),
        Decoded::FrozenSet(list) => envelope("builtins.frozenset", 1, items(list)?),
        Decoded::Dict(pairs) => {
            let mut map = Map::new();
            for (key, item) in pairs {
                if let Some(key) = [CLASSNAME, SCHEMA_ID]
                    .into_iter()
                    .find(|reserved| key == reserved)
                {
                    return Err(UnsendableValue::ReservedKey {
                        key,
                        at: at.to_owned(),
                    });
                }
                map.insert(key.clone(), encode_at(item, &format!("{at}.{key}"))?);
            }
            Value::Object(map)
        }
        Decoded::DateTime(moment) => envelope(
            &moment.class,
            2,
            json!({ "timestamp": timestamp_of(moment.utc), "tz": moment.zone.as_ref().map(encode_zone) }),
        ),
        Decoded::Date(date) => envelope("datetime.date", 2, date.to_string().into()),
        Decoded::TimeDelta(seconds) => match Number::from_f64(*seconds) {
            Some(seconds) => envelope("datetime.timedelta", 2, Value::Number(seconds)),
            None => return Err(UnsendableValue::NotFinite { at: at.to_owned() }),
        },
        Decoded::TimeZone(Zone::Named(name)) => {
            envelope("pendulum.tz.timezone.Timezone", 1, name.as_str().into())
        }
        Decoded::TimeZone(Zone::Fixed(seconds)) => {
            envelope("pendulum.tz.timezone.FixedTimezone", 1, (*seconds).into())
        }
        Decoded::Decimal(number) => envelope("decimal.Decimal", 1, Value::Number(number.clone())),
        Decoded::Uuid(text) => envelope("uuid.UUID", 1, text.as_str().into()),
        Decoded::Object {
            class,
            version,
            data,
        } => {
            json!({ CLASSNAME: class, VERSION: version, DATA: encode_at(data, &format!("{at}.{DATA}"))? })
        }
    })
}

/// The `tz` tuple of a datetime. Python can't read back a plain `datetime.timezone`, so offsets go as pendulum's class.
fn encode_zone(zone: &Zone) -> Value {
    let (name, class) = match zone {
        Zone::Named(name) if name == "UTC" => {
            (Value::from("UTC"), "pendulum.tz.timezone.FixedTimezone")
        }
        Zone::Named(name) => (Value::from(name.as_str()), "pendulum.tz.timezone.Timezone"),
        Zone::Fixed(0) => (Value::from("UTC"), "pendulum.tz.timezone.FixedTimezone"),
        Zone::Fixed(seconds) => (Value::from(*seconds), "pendulum.tz.timezone.FixedTimezone"),
    };
    envelope("builtins.tuple", 1, json!([name, class, 1, true]))
}

/// Which classes the Python readers of an XCom accept: `[core] allowed_deserialization_classes` (globs, separated by
/// white space) and `allowed_deserialization_classes_regexp` (whole-name regular expressions).
#[derive(Clone, Debug)]
pub struct AllowedClasses(Vec<regex::Regex>);

impl AllowedClasses {
    /// # Errors
    /// A pattern is not a regular expression.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let globs = "allowed_deserialization_classes";
        let expressions = "allowed_deserialization_classes_regexp";
        let mut patterns = Vec::new();
        for glob in config
            .text("core", globs)?
            .unwrap_or_default()
            .split_whitespace()
        {
            patterns.push((globs, glob_expression(glob)));
        }
        for expression in config
            .text("core", expressions)?
            .unwrap_or_default()
            .split_whitespace()
        {
            patterns.push((expressions, format!("^(?:{expression})$")));
        }
        let compile = |(key, pattern): (&str, String)| {
            regex::Regex::new(&pattern).map_err(|error| {
                config.invalid("core", key, format!("class name patterns ({error})"))
            })
        };
        Ok(Self(
            patterns
                .into_iter()
                .map(compile)
                .collect::<Result<_, _>>()?,
        ))
    }

    /// Whether a Python task may read an envelope of this class.
    #[must_use]
    pub fn allows(&self, class: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(class))
    }
}

/// The regular expression of an `fnmatch` pattern.
fn glob_expression(glob: &str) -> String {
    let mut out = "(?s)^".to_owned();
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => match rest.split_once(']').filter(|(set, _)| !set.is_empty()) {
                Some((set, tail)) => {
                    let (negated, set) = set.strip_prefix('!').map_or(("", set), |set| ("^", set));
                    out.push_str(&format!(
                        "[{negated}{}]",
                        set.replace('\\', r"\\").replace('[', r"\[")
                    ));
                    rest = tail;
                }
                None => out.push_str(r"\["),
            },
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn moment(text: &str, zone: Option<Zone>, class: &str) -> Decoded {
        Decoded::DateTime(Moment {
            class: class.to_owned(),
            utc: text.parse().unwrap(),
            zone,
        })
    }

    fn named(name: &str) -> Option<Zone> {
        Some(Zone::Named(name.to_owned()))
    }

    #[test]
    fn plain_json_stays_plain_both_ways() {
        let value = parse(
            r#"{"a": [1, 2.5, "x", null, true, 123456789012345678901234567890], "b": {"c": {}}}"#,
        );
        assert_eq!(encode(&decode(&value)).unwrap(), value);
    }

    #[test]
    fn values_that_airflow_wrote_are_read_and_written_back_the_same() {
        // Texts as Airflow 3.3.2 wrote them.
        for text in [
            r#"{"__classname__":"builtins.tuple","__version__":1,"__data__":[1,2]}"#,
            r#"{"__classname__":"builtins.set","__version__":1,"__data__":["x"]}"#,
            r#"{"__classname__":"builtins.frozenset","__version__":1,"__data__":[]}"#,
            r#"{"__classname__":"datetime.datetime","__version__":2,"__data__":{"timestamp":1767323045.0,"tz":{"__classname__":"builtins.tuple","__version__":1,"__data__":["UTC","pendulum.tz.timezone.FixedTimezone",1,true]}}}"#,
            r#"{"__classname__":"datetime.datetime","__version__":2,"__data__":{"timestamp":1767323045.678901,"tz":null}}"#,
            r#"{"__classname__":"pendulum.datetime.DateTime","__version__":2,"__data__":{"timestamp":1767323045.0,"tz":{"__classname__":"builtins.tuple","__version__":1,"__data__":[3600,"pendulum.tz.timezone.FixedTimezone",1,true]}}}"#,
            r#"{"__classname__":"datetime.date","__version__":2,"__data__":"2026-01-02"}"#,
            r#"{"__classname__":"datetime.timedelta","__version__":2,"__data__":86401.5}"#,
            r#"{"__classname__":"datetime.timedelta","__version__":2,"__data__":3.0}"#,
            r#"{"__classname__":"decimal.Decimal","__version__":1,"__data__":1.1}"#,
            r#"{"__classname__":"decimal.Decimal","__version__":1,"__data__":10}"#,
            r#"{"__classname__":"uuid.UUID","__version__":1,"__data__":"b4f9d1f0-7b1e-4b69-8f4b-2a4f4a3b1c11"}"#,
            r#"{"__classname__":"my.mod.Model","__version__":1,"__data__":{"when":{"__classname__":"datetime.date","__version__":2,"__data__":"2026-01-02"}}}"#,
        ] {
            let value = parse(text);
            assert_eq!(encode(&decode(&value)).unwrap().to_string(), text);
        }
    }

    #[test]
    fn datetimes_know_their_zone_and_their_local_clock() {
        let at = |tz: Value| {
            decode(&envelope(
                "datetime.datetime",
                2,
                json!({"timestamp": 1_767_323_045.25, "tz": tz}),
            ))
        };
        let class = "datetime.datetime";
        let utc = "2026-01-02T03:04:05.250Z";
        let stockholm = at(
            json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": ["Europe/Stockholm", "zoneinfo.ZoneInfo", 1, true]}),
        );
        assert_eq!(stockholm, moment(utc, named("Europe/Stockholm"), class));
        let Decoded::DateTime(stockholm) = stockholm else {
            panic!("a datetime")
        };
        assert_eq!(
            stockholm.local().to_rfc3339(),
            "2026-01-02T04:04:05.250+01:00"
        );
        assert_eq!(at(Value::Null), moment(utc, None, class));
        assert_eq!(at(json!("UTC")), moment(utc, named("UTC"), class));
        // What Python writes for a plain datetime.timezone names no zone.
        assert_eq!(
            at(envelope("builtins.tuple", 1, json!(["", "", 0, false]))),
            moment(utc, named("UTC"), class)
        );
    }

    #[test]
    fn the_form_of_airflow_2_is_read() {
        assert_eq!(
            decode(&json!({"__type": "dict", "__var": {"a": {"__type": "set", "__var": [1]}}})),
            {
                Decoded::Dict(vec![(
                    "a".to_owned(),
                    Decoded::Set(vec![Decoded::Number(1.into())]),
                )])
            }
        );
        assert_eq!(
            decode(&json!({"__type": "datetime", "__var": 1_767_323_045.0})),
            moment("2026-01-02T03:04:05Z", named("UTC"), "datetime.datetime")
        );
        assert_eq!(
            decode(&json!({"__type": "timedelta", "__var": 3})),
            Decoded::TimeDelta(3.0)
        );
    }

    #[test]
    fn an_object_with_only_one_marker_is_plain() {
        for value in [
            json!({"__classname__": "x"}),
            json!({"__version__": 1}),
            json!({"__type": "set"}),
        ] {
            assert!(matches!(decode(&value), Decoded::Dict(_)), "{value}");
        }
    }

    #[test]
    fn reserved_keys_are_refused_with_their_place() {
        let value =
            json!({"rows": [{"__classname__": "os.system", "__version__": 1, "__data__": 1}]});
        assert_eq!(
            check_plain(&value).unwrap_err().to_string(),
            "the XCom value holds the key \"__classname__\" at $.rows[0], which Airflow reserves: rename it"
        );
        assert_eq!(check_wire(&value), Ok(()));
        assert!(check_wire(&json!({"a": {"__id__": 1}})).is_err());
        assert!(check_wire(&json!({"__classname__": "x"})).is_err());
        assert!(encode(&Decoded::Dict(vec![("__id__".to_owned(), Decoded::Null)])).is_err());
    }

    #[test]
    fn numbers_that_python_would_read_as_infinite_are_refused() {
        assert_eq!(
            check_plain(&parse("[1, 1e999]")).unwrap_err(),
            UnsendableValue::NotFinite {
                at: "$[1]".to_owned()
            }
        );
        assert_eq!(
            check_plain(&parse(&format!("[{}]", "9".repeat(400)))),
            Ok(())
        );
        assert!(encode(&Decoded::TimeDelta(f64::NAN)).is_err());
    }

    #[test]
    fn classes_are_allowed_by_glob_and_by_whole_name_expressions() {
        let config = |globs, expressions| {
            Config::new(
                [
                    ("AIRFLOW_HOME", "/nonexistent"),
                    ("AIRFLOW__CORE__ALLOWED_DESERIALIZATION_CLASSES", globs),
                    (
                        "AIRFLOW__CORE__ALLOWED_DESERIALIZATION_CLASSES_REGEXP",
                        expressions,
                    ),
                ]
                .into_iter()
                .collect(),
            )
        };
        let allowed =
            AllowedClasses::from_config(&config("airflow.* my.mod.[!A]?", r"shop\.models\.\w+"))
                .unwrap();
        for (class, expected) in [
            ("airflow.sdk.Asset", true),
            ("airflowx", false),
            ("my.mod.Bc", true),
            ("my.mod.Ac", false),
            ("shop.models.Order", true),
            ("shop.models.Order.x", false),
        ] {
            assert_eq!(allowed.allows(class), expected, "{class}");
        }
        let text = AllowedClasses::from_config(&config("", "("))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("[core] allowed_deserialization_classes_regexp"),
            "{text}"
        );
    }
}
