//! `DbApiHook.run(sql, parameters=...)`: values in the places that a statement keeps free for them.
//!
//! The values are written into the text as literals, as MySQL's Python driver does. What stands in quotes or comments is
//! no place for a value: there a literal would be read as something else.

use serde_json::{Map, Value};

/// What a hook was given: by position, or by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// For `%s` or `?`.
    Positional(Vec<Value>),
    /// For `%(name)s` or `:name`.
    Named(Map<String, Value>),
}

/// How a database writes placeholders and literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `%s`, `%(name)s`; arrays are `ARRAY[...]`.
    Postgres,
    /// `%s`, `%(name)s`; a list is `(a, b)`.
    Mysql,
    /// `?`, `:name`.
    Sqlite,
}

/// Why a statement and its values don't fit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// Positions and values are not as many.
    #[error("the statement has {places} placeholders, and {given} parameters were given")]
    Count { places: usize, given: usize },
    /// A name without a value.
    #[error("the statement names the parameter {0:?}, which was not given")]
    Missing(String),
    /// A position where names were given, or the other way round.
    #[error(
        "the statement has the placeholder {0}: give a list for positions, and a dict for names"
    )]
    Mixed(String),
    /// A placeholder within quotes or a comment.
    #[error(
        "the placeholder {0} stands within quotes or a comment: leave the quotes out, values are quoted by themselves"
    )]
    Quoted(String),
    /// A percent sign that begins no placeholder.
    #[error("write %% for a percent sign where parameters are given")]
    Percent,
    /// A value that this database has no literal for.
    #[error("a parameter is {0}, which has no literal in this database")]
    Value(String),
}

/// Writes the values into the statement. A value is JSON; `{"base64"}` stands for bytes, `{"number"}` for a number of any
/// size.
///
/// # Errors
/// See [`ParameterError`].
pub fn bind(style: Style, sql: &str, parameters: &Parameters) -> Result<String, ParameterError> {
    let mut binder = Binder {
        style,
        parameters,
        next: 0,
        out: String::with_capacity(sql.len()),
    };
    let mut rest = sql;
    while !rest.is_empty() {
        let skipped = quoted(style, rest);
        if skipped > 0 {
            let (text, after) = rest.split_at(skipped);
            binder.verbatim(text)?;
            rest = after;
        } else {
            rest = binder.plain(rest)?;
        }
    }
    if let Parameters::Positional(values) = parameters
        && binder.next != values.len()
    {
        return Err(ParameterError::Count {
            places: binder.next,
            given: values.len(),
        });
    }
    Ok(binder.out)
}

struct Binder<'a> {
    style: Style,
    parameters: &'a Parameters,
    /// How many positions there were so far.
    next: usize,
    out: String,
}

impl Binder<'_> {
    /// Copies what is quoted.
    fn verbatim(&mut self, text: &str) -> Result<(), ParameterError> {
        if self.style == Style::Sqlite {
            self.out.push_str(text);
            return Ok(());
        }
        // The Python drivers look for percent signs everywhere.
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            let (before, after) = rest.split_at(at);
            self.out.push_str(before);
            match percent(after) {
                Some((Place::Percent, after)) => {
                    self.out.push('%');
                    rest = after;
                }
                Some((place, _)) => return Err(ParameterError::Quoted(place.text())),
                None => return Err(ParameterError::Percent),
            }
        }
        self.out.push_str(rest);
        Ok(())
    }

    /// Copies one character outside of quotes, or puts a value in; gives what follows.
    fn plain<'t>(&mut self, text: &'t str) -> Result<&'t str, ParameterError> {
        let mut characters = text.chars();
        let first = characters.next().unwrap_or_default();
        let found = match (self.style, first) {
            (Style::Sqlite, '?') => {
                if characters
                    .clone()
                    .next()
                    .is_some_and(|c| c.is_ascii_digit())
                {
                    return Err(ParameterError::Mixed("?NNN".to_owned()));
                }
                Some((Place::Next, characters.as_str()))
            }
            (Style::Sqlite, ':' | '@' | '$') => {
                let after = characters.as_str();
                let length = after
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(after.len());
                let (name, after) = after.split_at(length);
                (!name.is_empty()).then_some((Place::Name(name), after))
            }
            (Style::Postgres | Style::Mysql, '%') => {
                Some(percent(text).ok_or(ParameterError::Percent)?)
            }
            _ => None,
        };
        let Some((place, after)) = found else {
            self.out.push(first);
            return Ok(characters.as_str());
        };
        let value = match (&place, self.parameters) {
            (Place::Percent, _) => {
                self.out.push('%');
                return Ok(after);
            }
            (Place::Next, Parameters::Positional(values)) => {
                self.next += 1;
                // A missing one is counted at the end.
                values.get(self.next - 1).unwrap_or(&Value::Null)
            }
            (Place::Name(name), Parameters::Named(values)) => values
                .get(*name)
                .ok_or_else(|| ParameterError::Missing((*name).to_owned()))?,
            _ => return Err(ParameterError::Mixed(place.text())),
        };
        let literal = literal(self.style, value)?;
        self.out.push_str(&literal);
        Ok(after)
    }
}

/// What stands at a placeholder.
enum Place<'a> {
    Next,
    Name(&'a str),
    /// `%%`.
    Percent,
}

impl Place<'_> {
    fn text(&self) -> String {
        match self {
            Self::Next => "%s".to_owned(),
            Self::Name(name) => format!("of {name:?}"),
            Self::Percent => "%%".to_owned(),
        }
    }
}

/// The placeholder at a percent sign, and what follows it.
fn percent(text: &str) -> Option<(Place<'_>, &str)> {
    let after = text.strip_prefix('%')?;
    if let Some(after) = after.strip_prefix('%') {
        return Some((Place::Percent, after));
    }
    if let Some(after) = after.strip_prefix('s') {
        return Some((Place::Next, after));
    }
    let (name, after) = after.strip_prefix('(')?.split_once(")s")?;
    Some((Place::Name(name), after))
}

/// The length of the literal, quoted name or comment with which a text begins; 0 when it begins with none.
fn quoted(style: Style, text: &str) -> usize {
    let mysql = style == Style::Mysql;
    let first = text.chars().next().unwrap_or_default();
    match first {
        '\'' => within(text, 1, '\'', mysql),
        'E' | 'e' if style == Style::Postgres && text.get(1..2) == Some("'") => {
            within(text, 2, '\'', true)
        }
        '"' => within(text, 1, '"', mysql),
        '`' if style != Style::Postgres => within(text, 1, '`', false),
        '[' if style == Style::Sqlite => within(text, 1, ']', false),
        '-' if text.starts_with("--") => line(text),
        '#' if mysql => line(text),
        '/' if text.starts_with("/*") => comment(text, style == Style::Postgres),
        '$' if style == Style::Postgres => dollar(text),
        // A name such as `e'` must not be taken for a literal's beginning in its midst.
        c if c.is_alphanumeric() || c == '_' => text
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .unwrap_or(text.len()),
        _ => 0,
    }
}

/// Up to the closing mark; a doubled one is part of the text, and so is what follows a backslash.
fn within(text: &str, opening: usize, mark: char, backslash: bool) -> usize {
    let mut characters = text.char_indices().skip(opening).peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && backslash {
            characters.next();
        } else if character == mark && characters.next_if(|(_, next)| *next == mark).is_none() {
            return at + mark.len_utf8();
        }
    }
    text.len()
}

fn line(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

fn comment(text: &str, nests: bool) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..) {
        let step = if rest.starts_with("/*") && (nests || depth == 0) {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 2;
            }
            2
        } else {
            match rest.chars().next() {
                Some(character) => character.len_utf8(),
                None => break,
            }
        };
        at += step;
    }
    text.len()
}

/// `$tag$ ... $tag$`.
fn dollar(text: &str) -> usize {
    let Some(end) = text.get(1..).and_then(|rest| rest.find('$')) else {
        return 0;
    };
    let Some(tag) = text.get(..end + 2) else {
        return 0;
    };
    let inner = tag.trim_matches('$');
    if !inner.chars().all(|c| c.is_alphanumeric() || c == '_')
        || inner.starts_with(|c: char| c.is_ascii_digit())
    {
        return 0;
    }
    match text.get(tag.len()..).and_then(|rest| rest.find(tag)) {
        Some(at) => tag.len() + at + tag.len(),
        None => text.len(),
    }
}

fn literal(style: Style, value: &Value) -> Result<String, ParameterError> {
    use base64::Engine as _;

    let unfit = |what: &str| Err(ParameterError::Value(what.to_owned()));
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) if style == Style::Postgres => value.to_string(),
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Number(number) => signed(&number.to_string()),
        Value::String(text) => string(style, text)?,
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| literal(style, item))
                .collect::<Result<Vec<_>, _>>()?
                .join(", ");
            match style {
                Style::Postgres if items.is_empty() => "'{}'".to_owned(),
                Style::Postgres => format!("ARRAY[{items}]"),
                Style::Mysql if items.is_empty() => return unfit("an empty list"),
                Style::Mysql => format!("({items})"),
                Style::Sqlite => return unfit("a list"),
            }
        }
        Value::Object(entries) => {
            let text = |name: &str| entries.get(name).and_then(Value::as_str);
            if let Some(number) = text("number") {
                let digits =
                    |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'E' | 'e');
                if !number.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    || !number.chars().all(digits)
                {
                    return unfit("no finite number");
                }
                signed(number)
            } else if let Some(Ok(bytes)) =
                text("base64").map(|text| base64::engine::general_purpose::STANDARD.decode(text))
            {
                let hex = hex(&bytes);
                match style {
                    Style::Postgres => format!("'\\x{hex}'::bytea"),
                    Style::Mysql | Style::Sqlite => format!("x'{hex}'"),
                }
            } else {
                return unfit("an object");
            }
        }
    })
}

/// Parameters as Python shows them. They may have been masked before: what is no bytes any more is text.
#[must_use]
pub fn shown(parameters: &Value) -> String {
    use base64::Engine as _;

    let all =
        |open: &str, items: Vec<String>, close: &str| format!("{open}{}{close}", items.join(", "));
    match parameters {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(items) => all("[", items.iter().map(shown).collect(), "]"),
        Value::Object(entries) => match entries.iter().next() {
            Some((name, Value::String(number))) if name == "number" => number.clone(),
            Some((name, Value::String(text))) if name == "base64" => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text);
                bytes.map_or_else(
                    |_| quote(text),
                    |bytes| format!("b'{}'", bytes.escape_ascii()),
                )
            }
            _ => {
                let entry =
                    |(name, item): (&String, &Value)| format!("{}: {}", quote(name), shown(item));
                all("{", entries.iter().map(entry).collect(), "}")
            }
        },
    }
}

fn quote(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(mark);
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            character if character == mark || character == '\\' => quoted.extend(['\\', character]),
            character => quoted.push(character),
        }
    }
    quoted.push(mark);
    quoted
}

/// What a database says of a statement, without the values that [`bind`] wrote into it. It may show a part of the
/// statement, cut off in the midst of one.
#[must_use]
pub fn without_literals(style: Style, error: &str) -> String {
    match style {
        Style::Postgres => {
            let mut lines: Vec<&str> = error.split('\n').collect();
            if let Some(at) = lines
                .iter()
                .skip(1)
                .position(|line| line.starts_with("LINE "))
            {
                // The place, and the caret below it.
                lines.drain(at + 1..lines.len().min(at + 3));
            }
            lines.join("\n")
        }
        Style::Sqlite => error.to_owned(),
        Style::Mysql => {
            let mut pieces = error.split("x'");
            let mut kept = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                kept.push_str("x'...");
                kept.push_str(piece.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
            }
            kept
        }
    }
}

/// `a-%s` must not become a comment.
fn signed(number: &str) -> String {
    if number.starts_with('-') {
        format!("({number})")
    } else {
        number.to_owned()
    }
}

fn string(style: Style, text: &str) -> Result<String, ParameterError> {
    if text.contains('\0') {
        return Err(ParameterError::Value("text with a zero byte".to_owned()));
    }
    Ok(match style {
        // Neither quotes nor backslashes: what they mean depends on the session's sql_mode.
        Style::Mysql if text.is_empty() => "''".to_owned(),
        Style::Mysql => format!("_utf8mb4 x'{}'", hex(text.as_bytes())),
        // A backslash has a meaning that depends on a setting, and in E'' it always has the same.
        Style::Postgres if text.contains('\\') => {
            format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }
        Style::Postgres | Style::Sqlite => format!("'{}'", text.replace('\'', "''")),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn positional(style: Style, sql: &str, values: Value) -> Result<String, ParameterError> {
        let values = values.as_array().unwrap().clone();
        bind(style, sql, &Parameters::Positional(values))
    }

    fn named(style: Style, sql: &str, values: Value) -> Result<String, ParameterError> {
        let values = values.as_object().unwrap().clone();
        bind(style, sql, &Parameters::Named(values))
    }

    #[test]
    fn parameters_are_shown_as_python_shows_them() {
        let values = json!(["it's", "a\\\n", null, true, -2, {"base64": "/2E="}, {"base64": "***"}, {"number": "1E+3"}]);
        assert_eq!(
            shown(&values),
            r#"["it's", 'a\\\n', None, True, -2, b'\xffa', '***', 1E+3]"#
        );
        assert_eq!(
            shown(&json!({"a": [1], "b": {"base64": "YQ=="}})),
            "{'a': [1], 'b': b'a'}"
        );
        assert_eq!(shown(&Value::Null), "None");
    }

    #[test]
    fn errors_keep_no_piece_of_a_value() {
        assert_eq!(
            without_literals(
                Style::Mysql,
                "(1064, \"... near 'FRM t WHERE a = _utf8mb4 x'6d616465' AND b = x'6d61' at line 1\")"
            ),
            "(1064, \"... near 'FRM t WHERE a = _utf8mb4 x'...' AND b = x'...' at line 1\")"
        );
        assert_eq!(
            without_literals(
                Style::Postgres,
                "syntax error\nLINE 1: ...ade-up'\n   ^\nHINT:  Ask otherwise."
            ),
            "syntax error\nHINT:  Ask otherwise."
        );
    }

    #[test]
    fn each_database_has_its_own_placeholders_and_literals() {
        let values = json!(["it's", null, true, -2, 1.5, {"base64": "/wA="}, {"number": "1E+3"}]);
        assert_eq!(
            positional(
                Style::Postgres,
                "SELECT %s, %s, %s, 1-%s, %s, %s, %s, '100%%'",
                values.clone()
            )
            .unwrap(),
            "SELECT 'it''s', NULL, true, 1-(-2), 1.5, '\\xff00'::bytea, 1E+3, '100%'"
        );
        assert_eq!(
            positional(Style::Mysql, "SELECT %s,%s,%s,%s,%s,%s,%s", values.clone()).unwrap(),
            "SELECT _utf8mb4 x'69742773',NULL,1,(-2),1.5,x'ff00',1E+3"
        );
        assert_eq!(
            positional(Style::Sqlite, "SELECT ?, ?,?,?,?,?,? || '?%s'", values).unwrap(),
            "SELECT 'it''s', NULL,1,(-2),1.5,x'ff00',1E+3 || '?%s'"
        );
        assert_eq!(
            named(
                Style::Sqlite,
                "SELECT :a, @b, $a FROM t -- :none",
                json!({"a": 1, "b": "x"})
            )
            .unwrap(),
            "SELECT 1, 'x', 1 FROM t -- :none"
        );
        assert_eq!(
            named(
                Style::Postgres,
                "x = ANY(%(ids)s)",
                json!({"ids": [1, "a"]})
            )
            .unwrap(),
            "x = ANY(ARRAY[1, 'a'])"
        );
        assert_eq!(
            positional(Style::Mysql, "x IN %s", json!([[1, 2]])).unwrap(),
            "x IN (1, 2)"
        );
    }

    #[test]
    fn no_value_ends_its_literal() {
        assert_eq!(
            positional(
                Style::Postgres,
                "SELECT %s",
                json!(["\\'; DROP TABLE t; --"])
            )
            .unwrap(),
            "SELECT  E'\\\\''; DROP TABLE t; --'"
        );
        assert_eq!(
            positional(Style::Sqlite, "SELECT ?", json!(["'; DROP TABLE t; --"])).unwrap(),
            "SELECT '''; DROP TABLE t; --'"
        );
        assert_eq!(
            positional(Style::Mysql, "SELECT %s", json!(["\\'"])).unwrap(),
            "SELECT _utf8mb4 x'5c27'"
        );
        assert!(positional(Style::Postgres, "SELECT %s", json!(["a\0b"])).is_err());
        assert!(
            positional(
                Style::Postgres,
                "SELECT %s",
                json!([{"number": "1; DROP TABLE t"}])
            )
            .is_err()
        );
    }

    #[test]
    fn within_quotes_and_comments_there_is_no_place_for_a_value() {
        for sql in [
            "SELECT '%s'",
            "SELECT 'it''s %s'",
            "SELECT E'\\'%s'",
            "SELECT \"%s\"",
            "SELECT $$ %s $$",
            "SELECT $a$ $b$ %s $a$",
            "SELECT 1 -- %s\n",
            "SELECT /* /* */ %s */ 1",
        ] {
            assert_eq!(
                positional(Style::Postgres, sql, json!([1])),
                Err(ParameterError::Quoted("%s".to_owned())),
                "{sql}"
            );
        }
        for sql in [
            "SELECT '\\'%s'",
            "SELECT `%s`",
            "SELECT 1 # %s",
            "SELECT \"\\\"%s\"",
        ] {
            assert!(positional(Style::Mysql, sql, json!([1])).is_err(), "{sql}");
        }
        // After them there is.
        for (sql, bound) in [
            ("SELECT 'a''' || %s", "SELECT 'a''' || 1"),
            ("SELECT '\\' || %s", "SELECT '\\' || 1"),
            ("SELECT /* /* */ */ %s", "SELECT /* /* */ */ 1"),
            ("SELECT name', %s, '", "SELECT name', %s, '"),
            ("SELECT $1$2, %s", "SELECT $1$2, 1"),
        ] {
            let result = positional(Style::Postgres, sql, json!([1]));
            if sql == bound {
                assert!(result.is_err(), "{sql}");
            } else {
                assert_eq!(result.unwrap(), bound);
            }
        }
    }

    #[test]
    fn placeholders_and_values_must_fit() {
        let count = |places, given| Err(ParameterError::Count { places, given });
        assert_eq!(
            positional(Style::Postgres, "SELECT %s, %s", json!([1])),
            count(2, 1)
        );
        assert_eq!(
            positional(Style::Sqlite, "SELECT ?", json!([1, 2])),
            count(1, 2)
        );
        assert_eq!(
            named(Style::Postgres, "SELECT %(a)s", json!({"b": 1})),
            Err(ParameterError::Missing("a".to_owned()))
        );
        assert!(matches!(
            named(Style::Postgres, "SELECT %s", json!({"b": 1})),
            Err(ParameterError::Mixed(_))
        ));
        assert_eq!(
            positional(Style::Postgres, "SELECT 1 % 2, %s", json!([1])),
            Err(ParameterError::Percent)
        );
        assert!(matches!(
            positional(Style::Sqlite, "SELECT ?", json!([[1]])),
            Err(ParameterError::Value(_))
        ));
    }
}
