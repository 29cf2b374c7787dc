//! The stand-ins of pydantic, pendulum, PyYAML and dateutil do what the real packages do.
//!
//! Each script of `fixtures/packages` prints what a package does; the text beside it is what it printed with the real
//! one (made with `python SCRIPT.py > SCRIPT.txt` in the test environment).

use std::sync::Arc;

use pretty_assertions::assert_eq;

use crate::dag_host::{TestHost, fixture, load};

fn assert_prints_the_same(script: &str) {
    let host = Arc::new(TestHost::default());
    let file = fixture(&format!("packages/{script}.py"));
    load(&file, host.clone()).unwrap_or_else(|error| panic!("{error}"));
    let real =
        std::fs::read_to_string(file.with_extension("txt")).expect("what the real one prints");
    assert_eq!(
        host.messages("task.stdout").join("\n"),
        real.trim_end_matches('\n')
    );
}

#[test]
fn models_check_dump_and_describe_as_pydantic_does() {
    assert_prints_the_same("pydantic_models");
}

#[test]
fn moments_days_and_spans_are_those_of_pendulum() {
    assert_prints_the_same("pendulum_moments");
}

#[test]
fn documents_are_read_and_written_as_pyyaml_does() {
    assert_prints_the_same("yaml_documents");
}

#[test]
fn spans_and_loose_dates_are_those_of_dateutil() {
    assert_prints_the_same("dateutil_spans");
}

#[test]
fn times_of_zones_are_those_of_the_standard_library() {
    assert_prints_the_same("zoneinfo_zones");
}
