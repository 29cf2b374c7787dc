//! Finds source and JSON so deeply nested that parsing it would overflow the native stack, which no exception can report.

use rustpython_vm::compiler::ast::token::TokenKind;
use rustpython_vm::compiler::parser::{Mode, lexer};

/// CPython's limits on brackets and on indentation.
const MAX_BRACKETS: usize = 200;
const MAX_INDENTATION: usize = 100;

/// Tokens of one expression. Each operator can be a level of the syntax tree, and the compiler descends into all.
/// CPython gives up at a few thousand levels with RecursionError.
const MAX_EXPRESSION: usize = 10_000;

/// What is nested too deeply in `source`, if anything is.
pub(super) fn excess(source: &str) -> Option<&'static str> {
    let mut lexer = lexer::lex(source, Mode::Module);
    // Tokens since the last comma or line end, for each open bracket.
    let mut lengths = vec![0_usize];
    let mut indentation = 0_usize;
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return None,
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => lengths.push(0),
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace if lengths.len() > 1 => {
                lengths.pop();
            }
            TokenKind::Comma | TokenKind::Semi => lengths
                .last_mut()
                .into_iter()
                .for_each(|length| *length = 0),
            TokenKind::Newline => lengths = vec![0],
            TokenKind::Indent => indentation += 1,
            TokenKind::Dedent => indentation = indentation.saturating_sub(1),
            TokenKind::Comment | TokenKind::NonLogicalNewline => continue,
            _ => {}
        }
        if let Some(length) = lengths.last_mut() {
            *length += 1;
            if *length > MAX_EXPRESSION {
                return Some("an expression of more than 10000 tokens");
            }
        }
        if lengths.len() > MAX_BRACKETS {
            return Some("more than 200 nested brackets");
        }
        if indentation > MAX_INDENTATION {
            return Some("more than 100 levels of indentation");
        }
    }
}

/// Do lists and objects nest more than `limit` levels in the JSON value that begins `start` characters into `text`?
///
/// Only says so of a value that begins with a bracket; reads to the value's end, or until the answer is known.
pub(super) fn json_is_deeper(text: &[u8], start: usize, limit: usize) -> bool {
    let is_first_of_character = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let mut characters = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| is_first_of_character(byte));
    let Some((begin, b'[' | b'{')) = characters.nth(start) else {
        return false;
    };
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut bytes = text.get(begin..).unwrap_or_default().iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{excess, json_is_deeper};

    #[test]
    fn the_depth_of_json_counts_brackets_outside_of_strings_up_to_the_end_of_the_value() {
        let deeper = |text: &str, start| json_is_deeper(text.as_bytes(), start, 3);
        assert!(deeper("[[{\"a\": [1", 0));
        assert!(!deeper("[[{\"a\": 1}]]", 0));
        assert!(!deeper(r#"["[[[[", "\"[[[[", {}]"#, 0));
        assert!(!deeper("[1], [[[[", 0));
        assert!(deeper("äöü [[[[", 4));
        assert!(!deeper("äöü [[[[", 5));
        assert!(!deeper("\"[[[[\"", 0));
        assert!(!deeper("[[[[", 40));
    }

    #[test]
    fn endless_nesting_is_found_and_long_lists_are_not_mistaken_for_it() {
        assert!(excess(&format!("x = {}", "(".repeat(100_000))).is_some());
        assert!(excess(&format!("x = 1{}", " + 1".repeat(10_000))).is_some());
        assert!(excess(&format!("x = {}1", "-".repeat(20_000))).is_some());
        let blocks: String = (0..200)
            .map(|n| format!("{}if x:\n", " ".repeat(n)))
            .collect();
        assert!(excess(&format!("{blocks}{}pass\n", " ".repeat(200))).is_some());
        assert_eq!(
            excess(&format!("x = [{}]", "'a' + 'b', ".repeat(50_000))),
            None
        );
        assert_eq!(excess(&"x = f'{a[0]:{width}} (((('\n".repeat(20_000)), None);
        assert_eq!(excess(&"f(a)(b)[c].d\n".repeat(20_000)), None);
    }
}
