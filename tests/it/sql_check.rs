//! `updraft sql check`, as people run it in their own CI.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use pretty_assertions::assert_eq;

use crate::local_run::updraft;

fn text(output: &Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said)
}

#[test]
fn a_verdict_says_what_was_referenced_and_is_the_exit_status() {
    let check = |more: &[&str]| {
        let arguments = ["sql", "check", "--dialect", "postgres"];
        let list = ["--allowed-tables", "orders,customers"];
        text(&updraft(&[&arguments[..], &list[..], more].concat()))
    };
    let joined = "SELECT my_rank(o.id) FROM orders o JOIN customers c ON c.id = o.customer_id";
    assert_eq!(
        check(&["--allowed-functions", "my_rank", joined]),
        (
            Some(0),
            "accept\ntables: customers, orders\nfunctions not known: my_rank\n".to_owned()
        )
    );
    assert_eq!(
        check(&["SELECT * FROM secrets"]),
        (
            Some(1),
            "reject\nQuery references tables that are not in the allowed tables list: secrets. Use list_tables to see \
             the allowed tables.\n"
                .to_owned()
        )
    );
    let deletes = "DELETE FROM orders";
    assert_eq!(check(&[deletes]).0, Some(1));
    assert_eq!(check(&["--allow-writes", deletes]).0, Some(0));
    let qualified = "SELECT * FROM shop.orders";
    assert_eq!(check(&[qualified]).0, Some(1));
    assert_eq!(check(&["--schema", "shop", qualified]).0, Some(0));
}

#[test]
fn rows_of_the_corpus_are_read_from_standard_input_and_answered_one_by_one() {
    let rows = include_str!("../corpus/sql-policy-corpus.jsonl");
    let rows: Vec<&str> = rows.lines().take(40).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_updraft"))
        .args(["sql", "check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let given = format!("{}\n\nno row\n", rows.join("\n"));
    input.write_all(given.as_bytes()).unwrap();
    drop(input);
    let (status, said) = text(&child.wait_with_output().unwrap());
    let said: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((status, said.len()), (Some(1), 41));
    for (row, answer) in rows.iter().zip(&said) {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert_eq!(answer["verdict"], row["verdict"], "{row}");
        let same_text = answer["message"] == row["message"];
        let grammar = row["message"].as_str().unwrap().contains("rror");
        assert!(same_text || grammar, "{answer} for {row}");
    }
    let last = said[40]["message"].as_str().unwrap();
    assert!(last.starts_with("line 42: not a row of JSON"), "{last}");
}
