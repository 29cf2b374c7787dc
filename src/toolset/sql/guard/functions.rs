//! Which function names the anchor's parser knows.
//!
//! `known_functions.json` was measured on sqlglot 30.30.0: a name it gives a node of its own never counts as unknown.
//! Any other function may reach a file, another table or another server through its arguments.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::dialect::Dialect;

#[derive(Deserialize)]
struct KnownFunctions {
    common: HashSet<String>,
    extra: HashMap<String, HashSet<String>>,
    conditional: HashMap<String, HashMap<String, Arities>>,
}

#[derive(Deserialize)]
struct Arities {
    typed_arity: HashSet<usize>,
}

/// `None` when the file in the binary can't be read, which a test rules out: then no function is known.
static KNOWN: LazyLock<Option<KnownFunctions>> =
    LazyLock::new(|| serde_json::from_str(include_str!("known_functions.json")).ok());

/// Names that the measurement missed, since its arguments were numbers and these want an interval, a unit or a text.
/// Tried one by one on the same version.
const MEASURED_WITH_OTHER_ARGUMENTS: &[(Dialect, &[&str])] = &[
    (Dialect::MySql, &["DATE_ADD", "DATE_SUB"]),
    (
        Dialect::BigQuery,
        &[
            "DATE_ADD",
            "DATE_SUB",
            "DATETIME_ADD",
            "DATETIME_SUB",
            "TIMESTAMP_ADD",
            "TIMESTAMP_SUB",
            "TIME_ADD",
            "TIME_SUB",
        ],
    ),
    (Dialect::TSql, &["HASHBYTES", "PARSENAME"]),
    (Dialect::Oracle, &["TRUNC"]),
    (Dialect::ClickHouse, &["SPLITBYCHAR"]),
];

/// Functions that the anchor's parser knows and that reach what no table holds: Databricks' secret scopes, the files of
/// Snowflake's stages.
const READS_BEYOND_TABLES: &[&str] = &["SECRET", "TRY_SECRET", "TO_FILE", "TRY_TO_FILE"];

/// Whether a call is of a function that the dialect's parser knows.
pub(super) fn is_known(dialect: Dialect, name: &str, arguments: usize) -> bool {
    let Some(known) = KNOWN.as_ref() else {
        return false;
    };
    let name = name.to_uppercase();
    if READS_BEYOND_TABLES.contains(&name.as_str()) {
        return false;
    }
    let measured_apart = MEASURED_WITH_OTHER_ARGUMENTS
        .iter()
        .any(|(of, names)| *of == dialect && names.contains(&name.as_str()));
    if measured_apart {
        return true;
    }
    let conditional = known
        .conditional
        .get(dialect.name())
        .and_then(|names| names.get(&name));
    match conditional {
        Some(arities) => arities.typed_arity.contains(&arguments),
        None => {
            known.common.contains(&name)
                || known
                    .extra
                    .get(dialect.name())
                    .is_some_and(|names| names.contains(&name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_readable_and_knows_every_dialect() {
        let known = KNOWN.as_ref().unwrap();
        for dialect in [
            Dialect::Generic,
            Dialect::Postgres,
            Dialect::TSql,
            Dialect::Hive,
        ] {
            assert!(known.extra.contains_key(dialect.name()), "{dialect:?}");
        }
    }

    #[test]
    fn functions_are_known_by_dialect_and_number_of_arguments() {
        assert!(is_known(Dialect::Postgres, "Count", 1));
        assert!(!is_known(Dialect::Postgres, "pg_read_file", 1));
        assert!(is_known(Dialect::Sqlite, "strftime", 2));
        assert!(!is_known(Dialect::Sqlite, "strftime", 3));
    }
}
