//! Python's `+`, `-` and `~` on objects, and `%` on text.
//!
//! minijinja has no operators on objects, so `logical_date - macros.timedelta(days=1)` would fail, and no `%` on text.
//! Before a template is compiled, chains of these operators inside its expressions become calls: `a - b` becomes
//! `__minus__(a, b)`. A tuple after `%` is spread out, because minijinja has lists only: `"%s" % (a, b)` becomes
//! `__percent__("%s", true, a, b)`.

/// Names of the functions that stand for the operators.
pub const PLUS: &str = "__plus__";
/// See [`PLUS`].
pub const MINUS: &str = "__minus__";
/// See [`PLUS`].
pub const CONCAT: &str = "__concat__";
/// See [`PLUS`]. Its second argument says whether the rest are the items of a tuple.
pub const PERCENT: &str = "__percent__";

/// Rewrites a template's operators; text outside expressions, strings, comments and raw blocks stays as it is.
#[must_use]
pub fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    loop {
        let Some(start) = ["{{", "{%", "{#"]
            .iter()
            .filter_map(|open| rest.find(open))
            .min()
        else {
            out.push_str(rest);
            return out;
        };
        let (text, tagged) = rest.split_at(start);
        out.push_str(text);
        if tagged.starts_with("{#") {
            let end = tagged.find("#}").map_or(tagged.len(), |at| at + 2);
            let (comment, after) = tagged.split_at(end);
            out.push_str(comment);
            rest = after;
            continue;
        }
        let close = if tagged.starts_with("{{") { "}}" } else { "%}" };
        let (open, body) = tagged.split_at(2);
        let Some(end) = end_of_tag(body, close) else {
            out.push_str(tagged);
            return out;
        };
        let (expression, after) = body.split_at(end);
        out.push_str(open);
        if close == "%}" && expression.trim_matches(['-', '+', ' ']) == "raw" {
            let raw_end = after.find("endraw").unwrap_or(after.len());
            let (raw, after) = after.split_at(raw_end);
            out.push_str(expression);
            out.push_str(raw);
            rest = after;
            continue;
        }
        out.push_str(&rewrite_tag(expression));
        rest = after;
    }
}

fn end_of_tag(body: &str, close: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    let mut depth = 0_i32;
    for (at, c) in body.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if depth <= 0 && body.get(at..).is_some_and(|rest| rest.starts_with(close)) => {
                return Some(at);
            }
            None if "([{".contains(c) => depth += 1,
            None if ")]}".contains(c) => depth -= 1,
            None => {}
        }
    }
    None
}

/// Keeps the whitespace-control marks at both ends, which are not operators.
fn rewrite_tag(body: &str) -> String {
    let head = usize::from(body.starts_with(['-', '+']));
    let tail = usize::from(body.len() > head && body.ends_with(['-', '+']));
    let inner = body.get(head..body.len() - tail).unwrap_or_default();
    if !inner.contains(['+', '-', '~', '%']) {
        return body.to_owned();
    }
    let tokens = tokens(inner);
    format!(
        "{}{}{}",
        body.get(..head).unwrap_or_default(),
        sequence(&tokens),
        body.get(body.len() - tail..).unwrap_or_default()
    )
}

#[derive(Debug)]
enum Token<'a> {
    Space(&'a str),
    /// A name, a number or a string: the start or the end of an operand.
    Atom(&'a str),
    /// A bracketed group with its two brackets.
    Group(&'a str, Vec<Token<'a>>, &'a str),
    /// Punctuation and operators.
    Mark(&'a str),
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut rest = source;
    let (tokens, _) = group(&mut rest, None);
    tokens
}

fn group<'a>(rest: &mut &'a str, close: Option<char>) -> (Vec<Token<'a>>, &'a str) {
    let mut out = Vec::new();
    while let Some(c) = rest.chars().next() {
        let take = |rest: &mut &'a str, len: usize| {
            let (token, after) = rest.split_at(len);
            *rest = after;
            token
        };
        let run =
            |wanted: fn(char) -> bool, text: &str| text.find(|c| !wanted(c)).unwrap_or(text.len());
        if Some(c) == close {
            return (out, take(rest, c.len_utf8()));
        }
        if c.is_whitespace() {
            let len = run(char::is_whitespace, rest);
            out.push(Token::Space(take(rest, len)));
        } else if c == '\'' || c == '"' {
            let mut escaped = false;
            let len = rest
                .char_indices()
                .skip(1)
                .find(|(_, d)| {
                    let ends = !escaped && *d == c;
                    escaped = !escaped && *d == '\\';
                    ends
                })
                .map_or(rest.len(), |(at, d)| at + d.len_utf8());
            out.push(Token::Atom(take(rest, len)));
        } else if c.is_alphanumeric() || c == '_' {
            let len =
                number_len(rest).unwrap_or_else(|| run(|c| c.is_alphanumeric() || c == '_', rest));
            out.push(Token::Atom(take(rest, len)));
        } else if let Some(end) = match c {
            '(' => Some(')'),
            '[' => Some(']'),
            '{' => Some('}'),
            _ => None,
        } {
            let open = take(rest, 1);
            let (inner, closed) = group(rest, Some(end));
            out.push(Token::Group(open, inner, closed));
        } else {
            let double = ["**", "//", "==", "!=", "<=", ">="]
                .iter()
                .any(|mark| rest.starts_with(mark));
            out.push(Token::Mark(take(
                rest,
                if double { 2 } else { c.len_utf8() },
            )));
        }
    }
    (out, "")
}

/// `1e-5` is one atom.
fn number_len(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
    if digits == 0 || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let exponent = text
        .get(digits..)?
        .strip_prefix(['e', 'E'])?
        .strip_prefix(['+', '-'])?;
    let end = exponent
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(exponent.len());
    (end > 0).then_some(text.len() - exponent.len() + end)
}

/// Words that end an operand.
const WORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "elif",
    "else",
    "for",
    "set",
    "do",
    "recursive",
    "with",
    "include",
    "filter",
    "call",
    "block",
    "macro",
    "extends",
    "import",
    "from",
    "as",
];

/// Splits at everything that binds looser than `+`, and folds what is between.
fn sequence(tokens: &[Token<'_>]) -> String {
    let mut out = String::new();
    let mut segment: Vec<&Token<'_>> = Vec::new();
    for token in tokens {
        let breaks = match token {
            Token::Atom(word) => WORDS.contains(word),
            Token::Mark(mark) => matches!(
                *mark,
                "," | ":" | "=" | "==" | "!=" | "<" | ">" | "<=" | ">="
            ),
            _ => false,
        };
        if breaks {
            out.push_str(&fold(&segment, LEVELS));
            segment.clear();
            out.push_str(&text(token));
        } else {
            segment.push(token);
        }
    }
    out.push_str(&fold(&segment, LEVELS));
    out
}

/// The operators, from those that bind loosest.
const LEVELS: &[&[&str]] = &[&["+", "-"], &["~"], &["*", "/", "//", "%"]];

fn text(token: &Token<'_>) -> String {
    match token {
        Token::Space(text) | Token::Atom(text) | Token::Mark(text) => (*text).to_owned(),
        Token::Group(open, inner, close) => format!("{open}{}{close}", sequence(inner)),
    }
}

fn fold(segment: &[&Token<'_>], levels: &[&[&str]]) -> String {
    let Some((operators, tighter)) = levels.split_first() else {
        return segment.iter().map(|token| text(token)).collect();
    };
    let mut operands: Vec<(Option<&str>, Vec<&Token<'_>>)> = vec![(None, Vec::new())];
    let mut after_operand = false;
    for token in segment {
        match token {
            Token::Mark(mark) if operators.contains(mark) && after_operand => {
                operands.push((Some(mark), Vec::new()));
                after_operand = false;
                continue;
            }
            Token::Space(_) => {}
            Token::Mark(_) => after_operand = false,
            Token::Atom(_) | Token::Group(..) => after_operand = true,
        }
        if let Some((_, operand)) = operands.last_mut() {
            operand.push(token);
        }
    }
    let mut folded = String::new();
    for (operator, tokens) in operands {
        let operand = fold(&tokens, tighter);
        folded = match operator {
            None => operand,
            Some(mark @ ("*" | "/" | "//")) => folded + mark + &operand,
            Some(mark) => {
                let arguments = match mark {
                    "%" => match tuple(&tokens) {
                        Some(items) => {
                            format!("true, {}", sequence(items).trim().trim_end_matches(','))
                        }
                        None => format!("false, {}", operand.trim()),
                    },
                    _ => operand.trim().to_owned(),
                };
                let function = match mark {
                    "+" => PLUS,
                    "-" => MINUS,
                    "%" => PERCENT,
                    _ => CONCAT,
                };
                let lead: String = folded.chars().take_while(|c| c.is_whitespace()).collect();
                format!("{lead}{function}({}, {})", folded.trim(), arguments.trim())
                    + if operand.ends_with(char::is_whitespace) {
                        " "
                    } else {
                        ""
                    }
            }
        };
    }
    folded
}

/// The inside of an operand that is a tuple in brackets and nothing else.
fn tuple<'t, 'a>(operand: &[&'t Token<'a>]) -> Option<&'t [Token<'a>]> {
    let mut tokens = operand
        .iter()
        .filter(|token| !matches!(token, Token::Space(_)));
    match (tokens.next(), tokens.next()) {
        (Some(Token::Group("(", inner, _)), None) => inner
            .iter()
            .any(|token| matches!(token, Token::Mark(",")))
            .then_some(inner.as_slice()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn operators_become_calls_from_left_to_right() {
        assert_eq!(
            rewrite("{{ a - b.c(1) + d[0] | f }}"),
            "{{ __plus__(__minus__(a, b.c(1)), d[0] | f) }}"
        );
        assert_eq!(
            rewrite("{{ (a + b).days * 2 }}"),
            "{{ (__plus__(a, b)).days * 2 }}"
        );
        assert_eq!(
            rewrite("{% if a + 1 > b ~ 'x' %}"),
            "{% if __plus__(a, 1) > __concat__(b, 'x') %}"
        );
        assert_eq!(
            rewrite("{{ f(x=-1, y=a-1) }}"),
            "{{ f(x=-1, y=__minus__(a, 1)) }}"
        );
        assert_eq!(
            rewrite(
                "{{ '%s-%d' % (a.b, c + 1) ~ 'x' }} {{ n % 2 == 0 }} {{ 2 * n % 3 }} {{ '%s' % x | f }}"
            ),
            "{{ __concat__(__percent__('%s-%d', true, a.b, __plus__(c, 1)), 'x') }} {{ __percent__(n, false, 2) == 0 }} \
             {{ __percent__(2 * n, false, 3) }} {{ __percent__('%s', false, x | f) }}"
        );
    }

    #[test]
    fn whitespace_control_text_strings_comments_and_raw_blocks_stay() {
        for same in [
            "a - b {{- x -}} c + d",
            "{{ 'a - b' }}",
            "{# a - b #}{{ x }}",
            "{% raw %}{{ a - b }}{% endraw %}",
            "{{ -x }}",
            "{{ 1e-5 }}",
            "{{ unclosed - ",
        ] {
            assert_eq!(rewrite(same), same);
        }
    }
}
