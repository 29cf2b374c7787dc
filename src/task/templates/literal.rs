//! Python literals: what `render_template_as_native_obj` makes of rendered text.

use serde_json::{Map, Value as Json};

use super::values::envelope;

/// The value of a text that is a Python literal, in XCom wire form; `None` when it is not one.
pub fn parse(text: &str) -> Option<Json> {
    let mut rest = text.trim();
    let value = value(&mut rest, 0)?;
    rest.trim().is_empty().then_some(value)
}

const MAX_DEPTH: usize = 64;

fn value(rest: &mut &str, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        '[' => items(rest, ']', depth).map(|(items, _)| items.into()),
        '(' => {
            let (mut items, comma) = items(rest, ')', depth)?;
            if items.len() == 1 && !comma {
                return items.pop();
            }
            Some(envelope("builtins.tuple", 1, items.into()))
        }
        '{' => braces(rest, depth),
        '\'' | '"' => string(rest).map(Json::from),
        _ => word(rest),
    }
}

fn items(rest: &mut &str, close: char, depth: usize) -> Option<(Vec<Json>, bool)> {
    *rest = rest.get(1..)?;
    let mut out = Vec::new();
    let mut comma = false;
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(close) {
            *rest = after;
            return Some((out, comma));
        }
        if !out.is_empty() && !comma {
            return None;
        }
        out.push(value(rest, depth + 1)?);
        *rest = rest.trim_start();
        comma = rest.starts_with(',');
        *rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn braces(rest: &mut &str, depth: usize) -> Option<Json> {
    *rest = rest.get(1..)?.trim_start();
    let mut map = Map::new();
    let mut set = Vec::new();
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Some(if set.is_empty() {
                map.into()
            } else {
                envelope("builtins.set", 1, set.into())
            });
        }
        let key = value(rest, depth + 1)?;
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(':') {
            *rest = after;
            let key = match key {
                Json::String(key) => key,
                other => other.to_string(),
            };
            map.insert(key, value(rest, depth + 1)?);
        } else {
            set.push(key);
        }
        *rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

fn string(rest: &mut &str) -> Option<String> {
    let mut out = String::new();
    let mut characters = rest.char_indices();
    let (_, quote) = characters.next()?;
    while let Some((at, c)) = characters.next() {
        match c {
            c if c == quote => {
                *rest = rest.get(at + 1..)?;
                return Some(out);
            }
            '\\' => match characters.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                c @ ('\\' | '\'' | '"') => out.push(c),
                // Rarer escapes are left to be text.
                _ => return None,
            },
            '\n' => return None,
            c => out.push(c),
        }
    }
    None
}

fn word(rest: &mut &str) -> Option<Json> {
    let end = rest
        .find(|c: char| ",:)]}".contains(c) || c.is_whitespace())
        .unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    Some(match word {
        "None" => Json::Null,
        "True" => true.into(),
        "False" => false.into(),
        number => {
            let number = number.replace('_', "");
            let digits = number.trim_start_matches(['-', '+']);
            // Python refuses 007.
            if !digits.starts_with(|c: char| c.is_ascii_digit())
                || (digits.len() > 1
                    && digits.starts_with('0')
                    && !digits.contains(['.', 'e', 'E']))
            {
                return None;
            }
            Json::Number(number.trim_start_matches('+').parse().ok()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn python_literals_become_values_and_anything_else_stays_text() {
        assert_eq!(
            parse("[1, 'a', None, True, {'k': 1.5},]"),
            Some(json!([1, "a", null, true, {"k": 1.5}]))
        );
        assert_eq!(parse("(1,)").unwrap()["__classname__"], "builtins.tuple");
        assert_eq!(parse("(1)"), Some(json!(1)));
        for text in ["007", "hello", "[1 2]", "", "{'a'", "1 + 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
