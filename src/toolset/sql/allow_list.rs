//! `allowed_tables`, in the form that references are compared with.

use std::collections::{BTreeSet, HashSet};

use crate::airflow::python_text::casefold;

/// The tables a toolset may reach.
///
/// Names are compared case-folded: databases report identifiers in their own case. An entry has no catalog, so a
/// reference with one never matches.
#[derive(Clone, Debug)]
pub struct AllowList {
    keys: HashSet<TableKey>,
    qualified_schemas: BTreeSet<String>,
    includes_default_schema: bool,
    default_schema: Option<String>,
}

/// Case-folded schema and table.
pub type TableKey = (Option<String>, String);

impl AllowList {
    /// Each entry is split on its last dot; one without a dot stands in `default_schema`.
    #[must_use]
    pub fn new(entries: &[String], default_schema: Option<&str>) -> Self {
        let mut list = Self {
            keys: HashSet::new(),
            qualified_schemas: BTreeSet::new(),
            includes_default_schema: false,
            default_schema: default_schema.map(str::to_owned),
        };
        for entry in entries {
            let key = match entry.rsplit_once('.') {
                Some((schema, table)) => {
                    list.qualified_schemas.insert(schema.to_owned());
                    Self::key(Some(schema), table)
                }
                None => {
                    list.includes_default_schema = true;
                    Self::key(default_schema, entry)
                }
            };
            list.keys.insert(key);
        }
        list
    }

    /// The form in which a reference is compared.
    #[must_use]
    pub fn key(schema: Option<&str>, table: &str) -> TableKey {
        (
            schema.filter(|schema| !schema.is_empty()).map(casefold),
            casefold(table),
        )
    }

    /// Whether a reference may be followed; one without a schema is looked up in the default schema.
    #[must_use]
    pub fn allows(&self, catalog: Option<&str>, schema: Option<&str>, table: &str) -> bool {
        let schema = schema
            .filter(|schema| !schema.is_empty())
            .or(self.default_schema.as_deref());
        catalog.is_none_or(str::is_empty) && self.keys.contains(&Self::key(schema, table))
    }

    /// The schemas that entries name, as they are written, sorted.
    pub fn qualified_schemas(&self) -> impl Iterator<Item = &str> {
        self.qualified_schemas.iter().map(String::as_str)
    }

    /// Whether an entry stands without a schema.
    #[must_use]
    pub fn includes_default_schema(&self) -> bool {
        self.includes_default_schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str], schema: Option<&str>) -> AllowList {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        AllowList::new(&entries, schema)
    }

    #[test]
    fn a_default_schema_makes_the_bare_and_the_qualified_name_one_table() {
        let allowed = list(&["orders"], Some("public"));
        assert!(allowed.allows(None, None, "Orders"));
        assert!(allowed.allows(None, Some("PUBLIC"), "orders"));
        assert!(!allowed.allows(None, Some("other"), "orders"));
        assert!(!list(&["orders"], None).allows(None, Some("public"), "orders"));
        assert!(!list(&["public.orders"], None).allows(None, None, "orders"));
    }

    #[test]
    fn a_catalog_never_matches() {
        assert!(!list(&["orders"], None).allows(Some("db"), None, "orders"));
        assert!(!list(&["db.public.orders"], None).allows(Some("db"), Some("public"), "orders"));
    }

    #[test]
    fn names_fold_as_unicode_says() {
        let allowed = list(&["STRASSE"], None);
        assert!(allowed.allows(None, None, "straße"));
        assert!(!allowed.allows(None, None, "strase"));
    }
}
