//! Everyday syntax that the parser lacks, rewritten to what it knows and means the same to the guard.
//!
//! A rewrite never takes away a name, a call or a query. What goes are words that lock rows, sample them or ask for
//! another form of the same table; what comes is a query over the same name.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::dialect::Dialect::{
    self, BigQuery, Databricks, DuckDb, Generic, MySql, Postgres, Redshift, Snowflake, Spark,
    Sqlite, TSql, Trino,
};

/// The tokens of one statement, as the parser can read them.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> Vec<TokenWithSpan> {
    let mut output: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        match rewrite_here(&output, rest, dialect) {
            Some(Rewrite { taken, put }) => {
                output.extend(put.into_iter().map(|token| TokenWithSpan {
                    token,
                    span: rest.first().map_or(Span::empty(), |first| first.span),
                }));
                at += taken;
            }
            None => {
                output.push(token.clone());
                at += 1;
            }
        }
    }
    output
}

/// `taken` tokens are replaced by `put`.
struct Rewrite {
    taken: usize,
    put: Vec<Token>,
}

fn drop_tokens(taken: usize) -> Option<Rewrite> {
    Some(Rewrite {
        taken,
        put: Vec::new(),
    })
}

fn replace(taken: usize, words: &[&str]) -> Option<Rewrite> {
    let put = words
        .iter()
        .map(|&word| {
            if word == "*" {
                Token::Mul
            } else {
                Token::make_keyword(word)
            }
        })
        .collect();
    Some(Rewrite { taken, put })
}

fn rewrite_here(
    before: &[TokenWithSpan],
    rest: &[TokenWithSpan],
    dialect: Dialect,
) -> Option<Rewrite> {
    let is = |dialects: &[Dialect]| dialects.contains(&dialect);
    let first = &rest.first()?.token;
    if let Token::Sharp = first {
        // DuckDB's #1 is the first column of the projection.
        let number = matches!(rest.get(1).map(|next| &next.token), Some(Token::Number(..)));
        return if dialect == DuckDb && number {
            drop_tokens(1)
        } else {
            None
        };
    }
    // The empty set of GROUPING SETS. A call has a name in front of its brackets.
    if *first == Token::LParen
        && is(&[TSql, Redshift])
        && is_token(rest.get(1), &Token::RParen)
        && before
            .last()
            .is_some_and(|last| matches!(last.token, Token::Comma | Token::LParen))
    {
        return Some(Rewrite {
            taken: 2,
            put: vec![Token::LParen, Token::make_keyword("NULL"), Token::RParen],
        });
    }
    let Token::Word(word) = first else {
        return None;
    };
    if word.quote_style.is_some() {
        return None;
    }
    let words = |expected: &[&str]| {
        expected
            .iter()
            .enumerate()
            .all(|(index, word)| is_word(rest.get(index), word))
    };
    match word.keyword {
        Keyword::TABLE
            if is(&[Generic, Postgres, MySql, DuckDb, Redshift, Trino])
                && may_start_query(before)
                && is_name(rest.get(1)) =>
        {
            replace(1, &["SELECT", "*", "FROM"])
        }
        // The statement alone: behind EXPLAIN it would be a word of the server's.
        _ if dialect == DuckDb
            && before.is_empty()
            && words(&["SUMMARIZE"])
            && is_name(rest.get(1))
            && !words(&["SUMMARIZE", "SELECT"]) =>
        {
            replace(1, &["SELECT", "*", "FROM"])
        }
        // `FROM t |> ...` is `SELECT * FROM t |> ...`.
        Keyword::FROM if dialect == BigQuery && (before.is_empty() || is_open_bracket(before)) => {
            replace(1, &["SELECT", "*", "FROM"])
        }
        Keyword::DESCRIBE
            if dialect == DuckDb && is_open_bracket(before) && is_name(rest.get(1)) =>
        {
            replace(1, &["SELECT", "*", "FROM"])
        }
        Keyword::DESCRIBE | Keyword::DESC if before.is_empty() => describe(rest, dialect),
        Keyword::LOCK if dialect == MySql && words(&["LOCK", "IN", "SHARE", "MODE"]) => {
            drop_tokens(4)
        }
        Keyword::FOR if is(&[Postgres, Redshift]) && words(&["FOR", "NO", "KEY", "UPDATE"]) => {
            replace(4, &["FOR", "UPDATE"])
        }
        Keyword::FOR if is(&[Postgres, Redshift]) && words(&["FOR", "KEY", "SHARE"]) => {
            replace(3, &["FOR", "SHARE"])
        }
        Keyword::FOR if dialect == TSql && words(&["FOR", "SYSTEM_TIME", "ALL"]) => drop_tokens(3),
        Keyword::FOR
            if dialect == Trino
                && (words(&["FOR", "VERSION", "AS", "OF"])
                    || words(&["FOR", "TIMESTAMP", "AS", "OF"]))
                && is_literal(rest.get(4)) =>
        {
            drop_tokens(5)
        }
        Keyword::ONLY
            if is(&[Postgres, Redshift])
                && before
                    .last()
                    .is_some_and(|last| starts_a_table(&last.token))
                && is_name(rest.get(1)) =>
        {
            drop_tokens(1)
        }
        Keyword::ASOF
            if dialect == DuckDb
                && ["JOIN", "LEFT", "INNER"]
                    .iter()
                    .any(|word| is_word(rest.get(1), word)) =>
        {
            drop_tokens(1)
        }
        Keyword::USING
            if dialect == DuckDb
                && words(&["USING", "SAMPLE"])
                && matches!(rest.get(2).map(|next| &next.token), Some(Token::Number(..))) =>
        {
            drop_tokens(3)
        }
        Keyword::MATERIALIZED
            if is(&[Sqlite, DuckDb])
                && is_word(before.last(), "AS")
                && is_token(rest.get(1), &Token::LParen) =>
        {
            drop_tokens(1)
        }
        Keyword::NOT
            if is(&[Sqlite, DuckDb])
                && is_word(before.last(), "AS")
                && words(&["NOT", "MATERIALIZED"])
                && is_token(rest.get(2), &Token::LParen) =>
        {
            drop_tokens(2)
        }
        Keyword::WITH
            if is(&[MySql, TSql])
                && !before.is_empty()
                && (words(&["WITH", "ROLLUP"]) || words(&["WITH", "CUBE"])) =>
        {
            drop_tokens(2)
        }
        // Read as ROLLUP is: both hold expressions and nothing else.
        Keyword::GROUPING
            if is(&[TSql, Redshift])
                && words(&["GROUPING", "SETS"])
                && is_token(rest.get(2), &Token::LParen) =>
        {
            replace(2, &["ROLLUP"])
        }
        Keyword::BY if dialect == DuckDb && words(&["BY", "NAME", "SELECT"]) => drop_tokens(2),
        Keyword::SAFE if dialect == BigQuery && is_call_behind_dot(rest) => drop_tokens(2),
        Keyword::OPTION if dialect == TSql => query_hints(rest),
        _ if dialect == Sqlite
            && is_word(rest.first(), "GLOB")
            && before.last().is_some()
            && !is_token(rest.get(1), &Token::LParen) =>
        {
            replace(1, &["LIKE"])
        }
        _ => None,
    }
}

/// `DESCRIBE <kind> name`: the kind is left out, the name is checked as a table's.
fn describe(rest: &[TokenWithSpan], dialect: Dialect) -> Option<Rewrite> {
    let kinds: &[&str] = match dialect {
        Snowflake => &["TABLE", "VIEW", "STAGE", "WAREHOUSE", "STREAM", "SEQUENCE"],
        Databricks | Spark => &["HISTORY"],
        _ => &[],
    };
    let has_kind = kinds.iter().any(|kind| is_word(rest.get(1), kind));
    if !has_kind || !is_name(rest.get(2)) {
        return None;
    }
    match dialect {
        // This parser wants the word TABLE there.
        Snowflake => replace(2, &["DESCRIBE", "TABLE"]),
        _ => replace(2, &["DESCRIBE"]),
    }
}

/// `OPTION (MAXDOP 1)` at the end: words and numbers, no calls.
fn query_hints(rest: &[TokenWithSpan]) -> Option<Rewrite> {
    let (_, rest_of) = rest.split_first()?;
    let (open, inner) = rest_of.split_first()?;
    let (close, inner) = inner.split_last()?;
    let plain = inner.iter().all(|token| {
        matches!(
            &token.token,
            Token::Word(_) | Token::Number(..) | Token::Comma | Token::Eq
        )
    });
    let bracketed = open.token == Token::LParen && close.token == Token::RParen;
    if bracketed && plain {
        drop_tokens(rest.len())
    } else {
        None
    }
}

fn is_word(token: Option<&TokenWithSpan>, expected: &str) -> bool {
    matches!(
        token.map(|token| &token.token),
        Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected)
    )
}

fn is_token(token: Option<&TokenWithSpan>, expected: &Token) -> bool {
    token.is_some_and(|token| token.token == *expected)
}

fn is_name(token: Option<&TokenWithSpan>) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(_)))
}

fn is_literal(token: Option<&TokenWithSpan>) -> bool {
    matches!(
        token.map(|token| &token.token),
        Some(Token::Number(..) | Token::SingleQuotedString(_))
    )
}

/// `SAFE.f(`
fn is_call_behind_dot(rest: &[TokenWithSpan]) -> bool {
    is_token(rest.get(1), &Token::Period)
        && is_name(rest.get(2))
        && is_token(rest.get(3), &Token::LParen)
}

fn is_open_bracket(before: &[TokenWithSpan]) -> bool {
    is_token(before.last(), &Token::LParen)
}

/// A query may begin at the start, in a bracket, behind a set operation and behind a closed WITH clause.
fn may_start_query(before: &[TokenWithSpan]) -> bool {
    let Some(last) = before.last() else {
        return true;
    };
    match &last.token {
        Token::LParen => true,
        Token::RParen => is_word(before.first(), "WITH"),
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::ALL
                | Keyword::DISTINCT
        ),
        _ => false,
    }
}

fn starts_a_table(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(word) if matches!(word.keyword, Keyword::FROM | Keyword::JOIN | Keyword::UPDATE)
    ) || *token == Token::Comma
}
