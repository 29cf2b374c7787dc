//! Names of tables.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, ObjectNamePartFunction};

use super::{Role, Source, TableRef, Walk};
use crate::toolset::sql::guard::dialect::Dialect;

impl Walk {
    /// Notes a table, unless the name stands for a WITH clause.
    pub(super) fn table(&mut self, name: &ObjectName, role: Role) {
        let mut parts = Vec::with_capacity(name.0.len());
        for part in &name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => parts.push(ident),
                ObjectNamePart::Function(function) => {
                    self.named_by_function(function);
                    return;
                }
            }
        }
        if let [only] = parts.as_slice()
            && role == Role::Read
            && self.names_a_cte(only)
        {
            return;
        }
        let reference = self.reference(&parts);
        self.findings.sources.push(Source::Table(reference));
    }

    /// Snowflake's `IDENTIFIER('x')` and `IDENTIFIER($x)`: what a text names is read when it runs.
    fn named_by_function(&mut self, function: &ObjectNamePartFunction) {
        let ObjectNamePartFunction { name: _, args } = function;
        let written: Vec<String> = args.iter().map(ToString::to_string).collect();
        let name = written.join(", ");
        self.findings.sources.push(Source::Table(TableRef {
            name: name.trim_matches('\'').trim_start_matches('$').to_owned(),
            named_at_run_time: true,
            ..TableRef::default()
        }));
    }

    fn reference(&self, parts: &[&Ident]) -> TableRef {
        let value = |part: &&Ident| {
            let value = part.value.as_str();
            // A temporary table or a table variable: the original drops the sign.
            if matches!(self.dialect, Dialect::TSql | Dialect::MySql) {
                value.trim_start_matches(['#', '@']).to_owned()
            } else {
                value.to_owned()
            }
        };
        let quoted = parts.iter().any(|part| part.quote_style.is_some())
            || self.is_information_schema_of_bigquery(parts);
        let mut reversed = parts.iter().rev();
        let name = reversed.next().map(value).unwrap_or_default();
        let schema = reversed.next().map(value);
        let mut rest: Vec<String> = reversed.map(value).collect();
        rest.reverse();
        // Of four parts the original's text loses the third, which belongs to the schema.
        let (catalog, schema) = match (rest.as_slice(), schema) {
            ([], schema) => (None, schema),
            ([catalog], schema) => (Some(catalog.clone()), schema),
            ([server, database, ..], _) => (Some(server.clone()), Some(database.clone())),
        };
        TableRef {
            catalog,
            schema,
            name,
            quoted,
            named_at_run_time: false,
        }
    }

    /// The original joins `x.INFORMATION_SCHEMA.TABLES` into one quoted name.
    fn is_information_schema_of_bigquery(&self, parts: &[&Ident]) -> bool {
        self.dialect == Dialect::BigQuery
            && parts.len() > 2
            && parts
                .iter()
                .any(|part| part.value.eq_ignore_ascii_case("information_schema"))
    }
}
