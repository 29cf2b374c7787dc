//! What a read-only session lets pass: one SELECT and nothing else.
//!
//! T-SQL needs no semicolon between two statements, so `SELECT 1 DELETE FROM orders` is two, and a parser may read
//! DELETE as the name of a column. SQL Server has no read-only transactions either. But every statement starts with a
//! word that is reserved, and a reserved word is never a name unless it is quoted.

use sqlparser::dialect::MsSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

/// Reserved words that start a statement or make a SELECT do more than read. None of them belongs in one that reads,
/// but for USE in front of a hint.
const RESERVED: [&str; 51] = [
    "ADD",
    "ALTER",
    "BACKUP",
    "BEGIN",
    "BREAK",
    "BULK",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "CONTINUE",
    "CREATE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DROP",
    "DUMP",
    "EXEC",
    "EXECUTE",
    "GOTO",
    "GRANT",
    "IF",
    "INSERT",
    "INTO",
    "KILL",
    "LOAD",
    "MERGE",
    "OPEN",
    "OPENDATASOURCE",
    "OPENQUERY",
    "OPENROWSET",
    "PRINT",
    "RAISERROR",
    "READTEXT",
    "RECONFIGURE",
    "RESTORE",
    "RETURN",
    "REVERT",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SET",
    "SETUSER",
    "SHUTDOWN",
    "TRUNCATE",
    "UPDATE",
    "UPDATETEXT",
    "USE",
    "WAITFOR",
    "WRITETEXT",
];

/// Why a text is not one SELECT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub String);

/// Refuses every text that is, or may be, more than one SELECT.
pub(super) fn check(sql: &str) -> Result<(), Refused> {
    let refuse = |word: &str| {
        Err(Refused(format!(
            "this session only reads: a statement with {word} in it is not sent. Quote it in brackets if it is a name"
        )))
    };
    let tokens = Tokenizer::new(&MsSqlDialect {}, sql)
        .tokenize()
        .map_err(|error| Refused(error.to_string()))?;
    let mut words = Vec::new();
    let mut ended = false;
    for token in &tokens {
        match token {
            // Comments nest in T-SQL. Where they do, who reads what is not worth finding out.
            Token::Whitespace(Whitespace::MultiLineComment(comment)) if comment.contains("/*") => {
                return refuse("a comment inside a comment");
            }
            Token::Whitespace(_) | Token::EOF => continue,
            _ if ended => return refuse("a second statement"),
            Token::SemiColon => ended = true,
            Token::Word(word) if word.quote_style.is_none() => {
                words.push(word.value.to_uppercase());
            }
            _ => {}
        }
    }
    match words.first().map(String::as_str) {
        Some("SELECT" | "WITH") => {}
        Some(other) => return refuse(other),
        None => return refuse("no SELECT"),
    }
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).map(String::as_str);
        let reads = match (word.as_str(), next) {
            ("USE", Some("HINT" | "PLAN")) => true,
            // Advances a sequence, which no rollback takes back.
            ("NEXT", Some("VALUE")) | ("END", Some("CONVERSATION")) => false,
            (word, _) => !RESERVED.contains(&word),
        };
        if !reads {
            return refuse(word);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn one_select_passes() {
        for sql in [
            "SELECT 1",
            " WITH a AS (SELECT 1 AS n) SELECT * FROM a ORDER BY n OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY;",
            "SELECT [delete], \"insert\", 'UPDATE x' FROM [set] -- DROP TABLE x",
            "SELECT CASE WHEN a = 1 THEN 2 END FROM t OPTION (USE HINT ('x'))",
            "SELECT enable, updated, reset FROM t /* EXEC x */",
        ] {
            assert_eq!(check(sql), Ok(()), "{sql}");
        }
    }

    #[test]
    fn a_second_statement_is_refused_with_and_without_a_semicolon() {
        for sql in [
            "SELECT 1 DELETE FROM orders",
            "SELECT 1 x EXEC('DROP TABLE orders')",
            "SELECT 1; SELECT 2",
            "SELECT 1;;",
            "SELECT 1\nCOMMIT",
            "WITH a AS (SELECT 1 AS n) DELETE FROM a",
            "SELECT * INTO copied FROM orders",
            "SELECT NEXT VALUE FOR numbers",
            "SELECT * FROM OPENROWSET('x', 'y', 'DELETE')",
            "SELECT 1 /* /* */ DELETE FROM orders /* */ */",
            "SELECT 1 if 1 = 1 shutdown",
            "sp_who",
            "EXEC sp_who",
            "DELETE FROM orders",
            "",
            "SELECT 'a",
        ] {
            assert!(check(sql).is_err(), "{sql}");
        }
    }
}
