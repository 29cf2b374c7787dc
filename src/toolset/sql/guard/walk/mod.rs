//! The walk over the parser's tree: which tables, functions and writes a statement holds.
//!
//! Every struct is taken apart field by field and every enum variant by variant, without `..` and `_`. A part that no
//! rule covers ends the walk with a refusal that names it.

mod data_change;
mod data_type;
mod definition;
mod expr;
mod from;
mod node_name;
mod pipe;
mod query;
mod statement;
mod table;

use std::fmt::Display;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement};

use super::dialect::Dialect;
use super::functions;
use crate::airflow::python_text::casefold;

/// Nodes within nodes. The parser's own limit is on recursion, and chains such as `a::int::int` need none.
const MAX_DEPTH: usize = 1_000;
/// Stack that must be free before a node is entered, and how much is added when it is not.
const RED_ZONE: usize = 128 * 1024;
const MORE_STACK: usize = 2 * 1024 * 1024;

/// What a statement holds.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Something that writes, by sqlglot's node name.
    pub modifies: Option<&'static str>,
    /// Functions that the dialect's parser does not know, case-folded.
    pub unknown_functions: Vec<String>,
    /// `TABLE(...)` in a FROM clause.
    pub has_row_source: bool,
    /// A column named TABLE without quotes.
    pub has_table_column: bool,
    /// Tables and table functions in order of appearance, without references to WITH clauses.
    pub sources: Vec<Source>,
    /// The first node that no rule covers.
    pub not_understood: Option<String>,
}

/// Where rows come from or go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Table(TableRef),
    /// A function of a known name, as it is written.
    Function(String),
}

/// A table as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableRef {
    pub catalog: Option<String>,
    pub schema: Option<String>,
    pub name: String,
    /// Any part is quoted.
    pub quoted: bool,
    /// The name stands in a variable.
    pub named_at_run_time: bool,
}

impl TableRef {
    /// The parts that are there, joined with dots.
    pub(super) fn written(&self) -> String {
        let parts = [
            self.catalog.as_deref(),
            self.schema.as_deref(),
            Some(self.name.as_str()),
        ];
        parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".")
    }
}

pub(in crate::toolset::sql::guard) use node_name::node_name;

/// Walks a statement.
pub(super) fn walk(statement: &Statement, dialect: Dialect) -> Findings {
    let mut walk = Walk {
        dialect,
        findings: Findings::default(),
        scopes: Vec::new(),
        depth: 0,
    };
    walk.top(statement);
    walk.findings
}

/// Whether a name stands for a row that is read or for one that is written: no WITH clause hides a written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Written,
}

struct Walk {
    dialect: Dialect,
    findings: Findings,
    /// The names of the WITH clauses around the current node, innermost last.
    scopes: Vec<Vec<Ident>>,
    depth: usize,
}

impl Walk {
    /// Enters a node: bounded in depth, on as much stack as that needs.
    fn enter(&mut self, visit: impl FnOnce(&mut Self)) {
        if self.depth >= MAX_DEPTH {
            self.not_understood("a chain of more than 1000 operations; write a simpler query");
            return;
        }
        self.depth += 1;
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || visit(self));
        self.depth -= 1;
    }

    fn not_understood(&mut self, node: impl Display) {
        self.findings
            .not_understood
            .get_or_insert_with(|| node.to_string());
    }

    fn modifies(&mut self, node: &'static str) {
        self.findings.modifies.get_or_insert(node);
    }

    fn names_a_cte(&self, name: &Ident) -> bool {
        self.scopes
            .iter()
            .flatten()
            .any(|cte| self.same_name(cte, name))
    }

    /// Unquoted names fold, quoted names are exact, and one of each is never the same. Only ASCII folds: what a server
    /// does with other letters depends on it, and a name that it does not find among the clauses is a table's.
    fn same_name(&self, a: &Ident, b: &Ident) -> bool {
        match (a.quote_style, b.quote_style) {
            (None, None) if !self.dialect.table_names_keep_case() => {
                a.value.eq_ignore_ascii_case(&b.value)
            }
            (None, None) | (Some(_), Some(_)) => a.value == b.value,
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    fn call(&mut self, name: &ObjectName, arguments: usize) {
        let Some(last) = name.0.last() else {
            self.not_understood("a function without a name");
            return;
        };
        let (word, quoted) = match last {
            ObjectNamePart::Identifier(ident) => (&ident.value, ident.quote_style.is_some()),
            ObjectNamePart::Function(_) => {
                self.not_understood(format!("the function name {name}"));
                return;
            }
        };
        // A qualified call is of whatever stands under that name in that schema. BigQuery's NET and AI are part of the
        // function's name.
        let qualified = match name.0.as_slice() {
            [_] => false,
            [first, _] => {
                let prefix = first.as_ident().map(|ident| ident.value.to_uppercase());
                !(self.dialect == Dialect::BigQuery
                    && prefix.is_some_and(|prefix| ["NET", "AI"].contains(&prefix.as_str())))
            }
            _ => true,
        };
        if quoted || qualified || !functions::is_known(self.dialect, word, arguments) {
            self.findings.unknown_functions.push(casefold(word));
        }
    }

    fn unknown_function(&mut self, name: &str) {
        self.findings.unknown_functions.push(name.to_owned());
    }

    /// Whether the last part of a call's name is a function that the dialect's parser knows.
    fn knows(&self, name: &ObjectName, arguments: usize) -> bool {
        match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => {
                ident.quote_style.is_none()
                    && functions::is_known(self.dialect, &ident.value, arguments)
            }
            Some(ObjectNamePart::Function(_)) | None => false,
        }
    }
}
