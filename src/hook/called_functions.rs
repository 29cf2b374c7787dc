//! The names of functions that a statement calls, told by their parentheses.

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Token, Tokenizer};

/// Names in front of an opening parenthesis, in lower case unless they are quoted, with words of the language like `IN`
/// among them; `None` for a text that can't be read.
pub(super) fn called_functions(dialect: &dyn Dialect, sql: &str) -> Option<Vec<String>> {
    let tokens = Tokenizer::new(dialect, sql).tokenize().ok()?;
    let mut names = Vec::new();
    let mut last = None;
    for token in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => names.extend(last.take()),
            Token::Word(word) if word.quote_style.is_none() => {
                last = Some(word.value.to_lowercase());
            }
            Token::Word(word) => last = Some(word.value),
            _ => last = None,
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;

    use super::called_functions;

    #[test]
    fn a_name_in_front_of_a_parenthesis_is_called() {
        let called = |sql| called_functions(&PostgreSqlDialect {}, sql);
        assert_eq!(
            called("SELECT depot.Purge (1), \"Odd\"(2), 'f(x)' FROM t WHERE a IN (1) -- g()"),
            Some(vec!["purge".to_owned(), "Odd".to_owned(), "in".to_owned()])
        );
        assert_eq!(called("SELECT (1)"), Some(vec!["select".to_owned()]));
        assert_eq!(called("SELECT 'a"), None);
    }
}
