//! YAML as PyYAML's `safe_load` reads it: what Airflow and its providers read YAML files with.
//!
//! The parser knows YAML 1.2; plain scalars are read by the rules of YAML 1.1, as PyYAML reads them (`yes` is true,
//! `010` is eight), so that a file means the same here and there. Dates and times become their ISO 8601 text.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};

/// Nested deeper than any file that a person writes.
const MAX_DEPTH: usize = 100;
/// Values, aliases counted each time: a few lines of aliases can stand for billions.
const MAX_VALUES: usize = 100_000;

/// A text that is no YAML, or YAML that is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlError {
    /// Not YAML. The text may quote it.
    #[error("{text}")]
    Syntax { text: String, line: usize },
    /// An alias without its anchor, or within it.
    #[error("found an undefined alias in line {line}")]
    UndefinedAlias { line: usize },
    /// A tag that is not one of plain data: `safe_load` refuses it too.
    #[error("could not determine a constructor for the tag {tag:?} in line {line}")]
    Tag { tag: String, line: usize },
    /// A list or a mapping as a mapping's key.
    #[error("found unhashable key in line {line}")]
    Key { line: usize },
    /// More than one document where one was expected.
    #[error("expected a single document in the stream, but found another document in line {line}")]
    SecondDocument { line: usize },
    /// Too deep, or too much of it.
    #[error("there is too much in it: {0}")]
    TooMuch(&'static str),
}

impl YamlError {
    /// The line (from 1) that is wrong: what may be said of a text that holds secrets.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. }
            | Self::UndefinedAlias { line }
            | Self::Tag { line, .. }
            | Self::Key { line }
            | Self::SecondDocument { line } => Some(*line),
            Self::TooMuch(_) => None,
        }
    }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self::Syntax {
            line: error.marker().line(),
            text: error.to_string(),
        }
    }
}

/// Reads the one document of a text; an empty text is null.
///
/// # Errors
/// See [`YamlError`].
pub fn load(text: &str) -> Result<Value, YamlError> {
    let mut loader = Loader {
        open: Vec::new(),
        anchors: HashMap::new(),
        values: 0,
        document: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        loader.take(event, span.start.line())?;
    }
    Ok(loader.document.unwrap_or_default())
}

/// A list or mapping that is not complete yet, with the number of its anchor (0: none).
enum Open {
    List(Vec<Value>, usize),
    Mapping {
        entries: Map<String, Value>,
        /// From `<<` keys: they give way to the mapping's own entries.
        merged: Vec<Value>,
        key: Option<Key>,
        anchor: usize,
    },
}

enum Key {
    Named(String),
    Merge,
}

struct Loader {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    values: usize,
    document: Option<Value>,
}

impl Loader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
                let value = scalar(&text, style, tag.as_deref(), line)?;
                self.remember(anchor, &value);
                self.put(value, 1, merge, line)
            }
            Event::Alias(anchor) => {
                let value = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or(YamlError::UndefinedAlias { line })?;
                let size = count(&value);
                self.put(value, size, false, line)
            }
            Event::SequenceStart(anchor, tag) => {
                check_collection(tag.as_deref(), "seq", line)?;
                self.begin(Open::List(Vec::new(), anchor))
            }
            Event::MappingStart(anchor, tag) => {
                check_collection(tag.as_deref(), "map", line)?;
                self.begin(Open::Mapping {
                    entries: Map::new(),
                    merged: Vec::new(),
                    key: None,
                    anchor,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor) = match self.open.pop() {
                    Some(Open::List(items, anchor)) => (Value::Array(items), anchor),
                    Some(Open::Mapping {
                        entries,
                        merged,
                        anchor,
                        ..
                    }) => (Value::Object(merge(entries, merged)), anchor),
                    None => return Ok(()),
                };
                self.remember(anchor, &value);
                // Its parts were counted as they came.
                self.put(value, 1, false, line)
            }
            Event::DocumentStart(_) if self.document.is_some() => {
                Err(YamlError::SecondDocument { line })
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, collection: Open) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::TooMuch("it is nested too deeply"));
        }
        self.open.push(collection);
        Ok(())
    }

    fn remember(&mut self, anchor: usize, value: &Value) {
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
    }

    fn put(
        &mut self,
        value: Value,
        size: usize,
        is_merge: bool,
        line: usize,
    ) -> Result<(), YamlError> {
        self.values = self.values.saturating_add(size);
        if self.values > MAX_VALUES {
            return Err(YamlError::TooMuch("too many values"));
        }
        match self.open.last_mut() {
            None => self.document = Some(value),
            Some(Open::List(items, _)) => items.push(value),
            Some(Open::Mapping {
                entries,
                merged,
                key,
                ..
            }) => match key.take() {
                None if is_merge => *key = Some(Key::Merge),
                None => *key = Some(Key::Named(key_text(&value).ok_or(YamlError::Key { line })?)),
                Some(Key::Merge) => merged.push(value),
                Some(Key::Named(name)) => {
                    entries.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn merge(mut entries: Map<String, Value>, merged: Vec<Value>) -> Map<String, Value> {
    for source in merged {
        let sources = match source {
            Value::Array(sources) => sources,
            other => vec![other],
        };
        for source in sources {
            let Value::Object(source) = source else {
                continue;
            };
            for (key, value) in source {
                entries.entry(key).or_insert(value);
            }
        }
    }
    entries
}

/// A key as JSON writes it, which has text keys only.
fn key_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

fn core_tag(tag: &Tag) -> Option<&str> {
    tag.is_yaml_core_schema().then_some(tag.suffix.as_str())
}

fn unknown_tag(tag: &Tag, line: usize) -> YamlError {
    YamlError::Tag {
        tag: format!("{}{}", tag.handle, tag.suffix),
        line,
    }
}

fn check_collection(tag: Option<&Tag>, expected: &str, line: usize) -> Result<(), YamlError> {
    match tag {
        Some(tag) if core_tag(tag) != Some(expected) => Err(unknown_tag(tag, line)),
        _ => Ok(()),
    }
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    line: usize,
) -> Result<Value, YamlError> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            _ => text.into(),
        });
    };
    let refused = || unknown_tag(tag, line);
    match core_tag(tag) {
        Some("str") => Ok(text.into()),
        Some("null") => Ok(Value::Null),
        Some(kind @ ("bool" | "int" | "float" | "timestamp")) => {
            let value = plain(text);
            let fits = match kind {
                "bool" => value.is_boolean(),
                "timestamp" => value.is_string(),
                _ => value.is_number(),
            };
            if fits { Ok(value) } else { Err(refused()) }
        }
        // `!` alone: not resolved.
        None if tag.handle == "!" && tag.suffix.is_empty() => Ok(text.into()),
        _ => Err(refused()),
    }
}

#[expect(
    clippy::unwrap_used,
    reason = "the patterns are constants; a test compiles them"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static INTEGER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[-+]?(?:0b[0-1_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*(?::[0-5]?[0-9])*)$")
});
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)$",
    )
});
static NO_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"));
static TIMESTAMP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?[ \t]*(Z|[-+][0-9]{1,2}(?::?[0-9]{2})?)?$",
    )
});

/// A plain scalar by the rules of YAML 1.1.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return true.into();
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return false.into();
        }
        _ => {}
    }
    if INTEGER.is_match(text)
        && let Some(number) = integer(text)
    {
        return number;
    }
    if FLOAT.is_match(text)
        && let Some(number) = float(text)
    {
        return number;
    }
    // JSON has no word for it.
    if NO_NUMBER.is_match(text) {
        return Value::Null;
    }
    timestamp(text).unwrap_or_else(|| text.into())
}

fn sign_and_digits(text: &str) -> (bool, String) {
    let digits = text.replace('_', "");
    match digits.strip_prefix('-') {
        Some(rest) => (true, rest.to_owned()),
        None => (
            false,
            digits.strip_prefix('+').unwrap_or(&digits).to_owned(),
        ),
    }
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = sign_and_digits(text);
    let magnitude: i128 = if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()?
    } else if let Some(hex) = digits.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i128::from_str_radix(&digits, 8).ok()?
    } else {
        digits.split(':').try_fold(0_i128, |sum, part| {
            sum.checked_mul(60)?.checked_add(part.parse().ok()?)
        })?
    };
    let number = if negative { -magnitude } else { magnitude };
    number.to_string().parse::<Number>().ok().map(Value::Number)
}

fn float(text: &str) -> Option<Value> {
    let (negative, digits) = sign_and_digits(text);
    let magnitude = digits.split(':').try_fold(0.0, |sum, part| {
        Some(sum * 60.0 + part.parse::<f64>().ok()?)
    })?;
    Number::from_f64(if negative { -magnitude } else { magnitude }).map(Value::Number)
}

/// A date with a time in ISO 8601, as Python writes it. A date alone is that already.
fn timestamp(text: &str) -> Option<Value> {
    let parts = TIMESTAMP.captures(text)?;
    let number = |index: usize| parts.get(index)?.as_str().parse::<u32>().ok();
    let mut out = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        number(1)?,
        number(2)?,
        number(3)?,
        number(4)?,
        number(5)?,
        number(6)?
    );
    if let Some(fraction) = parts.get(7).map(|part| part.as_str())
        && !fraction.is_empty()
    {
        let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
        out.push('.');
        out.push_str(&micros);
    }
    match parts.get(8).map(|part| part.as_str()) {
        None => {}
        Some("Z") => out.push('Z'),
        Some(offset) => {
            let digits: String = offset.chars().filter(char::is_ascii_digit).collect();
            let (hours, minutes) = match digits.len() {
                1 | 2 => (digits.as_str(), "00"),
                3 => digits.split_at(1),
                _ => digits.split_at(2),
            };
            let sign = offset.get(..1)?;
            out.push_str(&format!("{sign}{hours:0>2}:{minutes}"));
        }
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_are_read_as_pyyaml_reads_them() {
        let text = "a: yes\nb: off\nc: ~\nd: 010\ne: 0x1F\nf: 1_000\ng: 1:30\nh: 1.5\ni: 1e3\nj: .5\nk: 2026-01-02\n\
                    l: 2026-01-02 3:04:05.6 +2\nm: 1.2.3\nn: 'yes'\no: \"1\"\np: y\nq: 0o10\nr:\ns: -12\nt: 1.0e+3\n";
        let expected = json!({
            "a": true, "b": false, "c": null, "d": 8, "e": 31, "f": 1000, "g": 90, "h": 1.5, "i": "1e3", "j": 0.5,
            "k": "2026-01-02", "l": "2026-01-02T03:04:05.600000+02:00", "m": "1.2.3", "n": "yes", "o": "1", "p": "y",
            "q": "0o10", "r": null, "s": -12, "t": 1000.0,
        });
        assert_eq!(load(text).unwrap(), expected);
    }

    #[test]
    fn collections_anchors_merges_and_blocks_are_composed() {
        let text = "base: &base {x: 1, y: [a, b]}\nown:\n  <<: *base\n  x: 2\nagain: *base\ntext: |\n  one\n  two\n\
                    folded: >-\n  one\n  two\n1: one\ntrue: t\nnull: n\n";
        let expected = json!({
            "base": {"x": 1, "y": ["a", "b"]},
            "own": {"x": 2, "y": ["a", "b"]},
            "again": {"x": 1, "y": ["a", "b"]},
            "text": "one\ntwo\n",
            "folded": "one two",
            "1": "one", "true": "t", "null": "n",
        });
        assert_eq!(load(text).unwrap(), expected);
    }

    #[test]
    fn an_empty_text_is_null_and_the_last_of_equal_keys_counts() {
        assert_eq!(load("").unwrap(), json!(null));
        assert_eq!(load("# nothing\n").unwrap(), json!(null));
        assert_eq!(load("a: 1\na: 2\n").unwrap(), json!({"a": 2}));
    }

    #[test]
    fn tags_of_plain_data_convert_and_others_are_refused() {
        assert_eq!(
            load("a: !!str 1\nb: !!int 2\nc: !!null x\n").unwrap(),
            json!({"a": "1", "b": 2, "c": null})
        );
        for text in [
            "a: !!python/object:os.system x",
            "a: !thing {b: 1}",
            "a: !!int no-number",
        ] {
            assert!(matches!(load(text), Err(YamlError::Tag { .. })), "{text}");
        }
    }

    #[test]
    fn broken_and_excessive_texts_are_errors() {
        assert!(matches!(load("a: [1, 2"), Err(YamlError::Syntax { .. })));
        assert!(load("a: *nobody").is_err());
        assert!(matches!(
            load("a: 1\n---\nb: 2\n"),
            Err(YamlError::SecondDocument { .. })
        ));
        assert!(matches!(load("? [a]\n: 1\n"), Err(YamlError::Key { .. })));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(
            load(&deep),
            Err(YamlError::TooMuch(_) | YamlError::Syntax { .. })
        ));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = level - 1;
            let items = vec![format!("*a{before}"); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(matches!(load(&bomb), Err(YamlError::TooMuch(_))));
    }
}
