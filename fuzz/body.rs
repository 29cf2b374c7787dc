//! What must hold for any text. The fuzz target and the tests of `tests/it/sql_hostile.rs` share it.

use std::collections::HashSet;

use updraft::toolset::sql::AllowList;
use updraft::toolset::sql::guard::{Dialect, Guard, Report};

/// A dialect by the first byte, a text from the others.
pub fn from_bytes(data: &[u8]) -> Option<(Dialect, &str)> {
    let (first, rest) = data.split_first()?;
    let dialect = Dialect::ALL.get(usize::from(*first) % Dialect::ALL.len())?;
    Some((*dialect, std::str::from_utf8(rest).ok()?))
}

/// Asks the guard in every mode and compares its answers.
///
/// # Panics
/// When they contradict each other.
pub fn check(dialect: Dialect, sql: &str) {
    let ask = |allow_writes: bool, listed: bool| -> Option<Report> {
        let list = || AllowList::new(&["orders".to_owned(), "customers".to_owned()], None);
        let guard = Guard {
            dialect,
            allow_writes,
            allow_list: listed.then(list),
            allowed_functions: HashSet::new(),
        };
        guard.check(sql).ok()
    };
    let reading = ask(false, true);
    let writing = ask(true, true);
    for report in [&reading, &writing].into_iter().flatten() {
        for table in &report.tables {
            let name = table.to_lowercase();
            assert!(
                name == "orders" || name == "customers",
                "{dialect:?} accepted {table} in {sql:?}"
            );
        }
    }
    let anything = ask(true, false);
    if reading.is_some() {
        assert!(
            ask(false, false).is_some(),
            "{dialect:?}: refused only without a list: {sql:?}"
        );
        assert!(
            writing.is_some(),
            "{dialect:?}: refused only with writes: {sql:?}"
        );
        assert!(
            anything.is_some(),
            "{dialect:?}: refused only with everything allowed: {sql:?}"
        );
    }
}
