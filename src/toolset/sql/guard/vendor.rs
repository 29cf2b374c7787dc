//! Everyday syntax that the parser lacks, rewritten to what it knows and means the same to the guard.
//!
//! A rewrite never takes away a name, a bracket or a query: only words that lock rows or ask for an output format.

use sqlparser::tokenizer::TokenWithSpan;

use super::dialect::Dialect;
use super::leading::Words;

/// The tokens of one statement, as the parser can read them.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> Vec<TokenWithSpan> {
    let mut tokens = tokens;
    for (dialects, words, kept) in REWRITES {
        if !dialects.contains(&dialect) {
            continue;
        }
        let mut start = 0;
        while let Some(found) = find(&tokens, words, start) {
            tokens.drain(found + kept..found + words.len());
            start = found + kept;
        }
    }
    tokens
}

/// Dialects, the words, and how many of them stay.
const REWRITES: &[(&[Dialect], &[&str], usize)] = &[
    (&[Dialect::MySql], &["LOCK", "IN", "SHARE", "MODE"], 0),
    // FOR [NO KEY] UPDATE, FOR [KEY] SHARE: the words in between only weaken the lock.
    (
        &[Dialect::Postgres, Dialect::Redshift],
        &["NO", "KEY", "UPDATE"],
        0,
    ),
    (
        &[Dialect::Postgres, Dialect::Redshift],
        &["FOR", "KEY", "SHARE"],
        0,
    ),
];

fn find(tokens: &[TokenWithSpan], words: &[&str], start: usize) -> Option<usize> {
    let all = Words(tokens);
    (start..tokens.len()).find(|&at| {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| all.keyword(at + offset).as_deref() == Some(word))
    })
}
