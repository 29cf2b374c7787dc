//! Refuses source so deeply nested that parsing it would overflow the native stack, which no exception can report.

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

#[cfg(test)]
mod tests {
    use super::excess;

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
