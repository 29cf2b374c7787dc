//! Text that no person would send: the fuzz target's own checks on the corpus, on the corpus with pieces exchanged, and
//! on texts made to take time or stack.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use updraft::toolset::sql::guard::Dialect;

#[path = "../../fuzz/body.rs"]
mod body;

/// Less than any thread of Updraft has. What needs more must ask for it.
const SMALL_STACK: usize = 256 << 10;
/// Far above what a debug build takes on a busy machine, far below what a text that doubles the time with every level
/// would take.
const SOON: Duration = Duration::from_secs(60);

fn corpus() -> Vec<(Dialect, String)> {
    let rows: BTreeSet<(String, String)> = include_str!("../corpus/sql-policy-corpus.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            (text("dialect"), text("sql"))
        })
        .collect();
    rows.into_iter()
        .map(|(dialect, sql)| (dialect.parse().unwrap(), sql))
        .collect()
}

#[test]
fn the_modes_agree_on_every_statement_of_the_corpus_in_its_own_dialect_and_in_another() {
    for (index, (dialect, sql)) in corpus().into_iter().enumerate() {
        body::check(dialect, &sql);
        body::check(Dialect::ALL[index % Dialect::ALL.len()], &sql);
    }
}

#[test]
fn the_modes_agree_on_the_corpus_with_pieces_exchanged() {
    let corpus = corpus();
    for _ in 0..2_000 {
        let (dialect, sql) = &corpus[fastrand::usize(..corpus.len())];
        let (_, other) = &corpus[fastrand::usize(..corpus.len())];
        body::check(*dialect, &exchanged(sql, other));
    }
}

#[test]
fn bytes_that_are_no_text_are_passed_over() {
    assert_eq!(body::from_bytes(&[]), None);
    assert_eq!(body::from_bytes(&[1, 0xff]), None);
    assert_eq!(
        body::from_bytes(b"\x01SELECT"),
        Some((Dialect::Postgres, "SELECT"))
    );
}

/// One to three pieces of a text replaced by pieces of another, by signs and by words that open something.
fn exchanged(sql: &str, other: &str) -> String {
    const SIGNS: &[&str] = &[
        "'", "\"", "`", "[", "]", "(", ")", "--", "/*", "*/", ";", ",", ".", "\\", "$$", "$a$",
        "#", "@", "?", ":", " IN ", " AS ", " FROM ", " UNION ", " TABLE ", " WITH ", " SELECT ",
        "\n", "\u{a0}", "\0", "é",
    ];
    let mut sql: Vec<char> = sql.chars().collect();
    let other: Vec<char> = other.chars().collect();
    for _ in 0..fastrand::usize(1..4) {
        let at = fastrand::usize(..=sql.len());
        let until = (at + fastrand::usize(..8)).min(sql.len());
        let piece: Vec<char> = if fastrand::bool() {
            SIGNS[fastrand::usize(..SIGNS.len())].chars().collect()
        } else {
            let from = fastrand::usize(..=other.len());
            other[from..(from + fastrand::usize(..24)).min(other.len())].to_vec()
        };
        sql.splice(at..until, piece);
    }
    sql.into_iter().collect()
}

/// Answers on a thread with a small stack, soon.
#[track_caller]
fn answers_soon(sql: String) {
    for dialect in [
        Dialect::Generic,
        Dialect::Postgres,
        Dialect::MySql,
        Dialect::Sqlite,
        Dialect::Snowflake,
        Dialect::BigQuery,
        Dialect::TSql,
    ] {
        let sql = sql.clone();
        let start = Instant::now();
        let thread = std::thread::Builder::new()
            .stack_size(SMALL_STACK)
            .spawn(move || body::check(dialect, &sql))
            .unwrap();
        thread.join().unwrap();
        let taken = start.elapsed();
        assert!(taken < SOON, "{dialect:?} took {taken:?}");
    }
}

#[test]
fn three_thousand_brackets_within_each_other() {
    let (open, close) = ("(".repeat(3_000), ")".repeat(3_000));
    answers_soon(format!("SELECT {open}1{close} FROM orders"));
    answers_soon(format!("SELECT * FROM {open}orders{close}"));
    answers_soon(format!("SELECT {}", "(".repeat(3_000)));
}

#[test]
fn three_thousand_queries_within_each_other() {
    let (open, close) = ("(SELECT * FROM ".repeat(3_000), ") x".repeat(3_000));
    answers_soon(format!("SELECT * FROM {open}orders{close}"));
}

#[test]
fn twenty_thousand_additions() {
    answers_soon(format!("SELECT 1{} FROM orders", "+1".repeat(20_000)));
}

#[test]
fn a_list_of_twenty_thousand_values() {
    answers_soon(format!(
        "SELECT * FROM orders WHERE a IN (0{})",
        ",1".repeat(20_000)
    ));
}

#[test]
fn sixty_four_kibibytes_of_one_query() {
    let mut sql = "SELECT a FROM orders WHERE b = 0".to_owned();
    while sql.len() < 64 << 10 {
        sql.push_str(" OR b = 'some text of a certain length, as a person might look for'");
    }
    answers_soon(sql);
}

#[test]
fn sixty_four_kibibytes_of_one_name_of_one_string_and_of_nothing() {
    answers_soon(format!("SELECT {} FROM orders", "a".repeat(64 << 10)));
    answers_soon(format!("SELECT '{}' FROM orders", "a".repeat(64 << 10)));
    answers_soon(" ".repeat(64 << 10));
}

#[test]
fn ten_megabytes() {
    answers_soon("SELECT 1 ".repeat(1_200_000));
    answers_soon(format!("SELECT '{}'", "a".repeat(10_000_000)));
}

#[test]
fn sixty_thousand_quotes_comments_semicolons_and_dollars() {
    for piece in ["'", "\"", "`", "/**/", "--\n", ";", "$a$", "\\", "'\\'"] {
        answers_soon(piece.repeat(60_001));
    }
}
