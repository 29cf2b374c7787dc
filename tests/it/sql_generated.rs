//! Statements made at random from known tables, in every dialect.
//!
//! The test knows which tables a statement names, since it resolves names while it writes the text. One that names a
//! table beside the list is never accepted, and most of the others are.

use std::cell::Cell;
use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use updraft::toolset::sql::AllowList;
use updraft::toolset::sql::guard::{Dialect, Guard};

const LISTED: &[&str] = &["orders", "customers", "sales.items"];
const UNLISTED: &[&str] = &[
    "secrets",
    "payroll",
    "recent",
    "public.orders",
    "sales.orders",
    "items",
    "information_schema.tables",
    "db.sales.items",
];
/// Names of WITH clauses, those of tables among them.
const CLAUSES: &[&str] = &["secrets", "orders", "recent", "items"];
const TEXTS: &[&str] = &[
    "paid",
    "it''s",
    "-- no comment",
    "/* nor this",
    "a FROM secrets",
    "\"; SELECT",
    "",
];

#[derive(Clone, Debug)]
pub enum Statement {
    Read(Query),
    InsertInto(&'static str, Query),
    Update(&'static str, Expr),
    Delete(&'static str, Expr),
    CreateTable(&'static str, Query),
}

#[derive(Clone, Debug)]
pub struct Query {
    with: Vec<Clause>,
    recursive: bool,
    body: Body,
    order_by: Option<Expr>,
    limit: Option<Expr>,
}

#[derive(Clone, Debug)]
struct Clause {
    name: &'static str,
    quoted: bool,
    query: Query,
}

#[derive(Clone, Debug)]
enum Body {
    Select(Box<Select>),
    Set(&'static str, Box<Body>, Box<Select>),
    Bracketed(Box<Query>),
}

#[derive(Clone, Debug)]
struct Select {
    items: Vec<Expr>,
    from: Vec<Source>,
    filter: Option<Expr>,
    group_by: Option<Expr>,
    having: Option<Expr>,
}

#[derive(Clone, Debug)]
enum Source {
    Table(&'static str, Look),
    Derived(Box<Query>),
    Lateral(Box<Query>),
    Join(&'static str, Box<Source>, Box<Source>, Expr),
    Bracketed(Box<Source>),
}

/// How a table's name is spelt.
#[derive(Clone, Copy, Debug)]
enum Look {
    Lower,
    Upper,
    Spaced,
    Quoted,
}

#[derive(Clone, Debug)]
pub enum Expr {
    Column,
    Number,
    Text(&'static str),
    Call(&'static str, Vec<Expr>),
    Case(Box<Expr>, Box<Expr>),
    Cast(Box<Expr>),
    Sum(Box<Expr>, Box<Expr>),
    Between(Box<Expr>, Box<Expr>),
    Window(Box<Expr>, Box<Expr>),
    Scalar(Box<Query>),
    Exists(Box<Query>),
    In(Box<Expr>, Box<Query>),
}

fn table_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => select(LISTED), 1 => select(UNLISTED)]
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        12 => Just(Look::Lower),
        3 => Just(Look::Upper),
        2 => Just(Look::Spaced),
        1 => Just(Look::Quoted),
    ]
}

fn flat_expr() -> BoxedStrategy<Expr> {
    prop_oneof![
        4 => Just(Expr::Column),
        2 => Just(Expr::Number),
        1 => select(TEXTS).prop_map(Expr::Text),
    ]
    .boxed()
}

fn expr(query: Option<&BoxedStrategy<Query>>) -> BoxedStrategy<Expr> {
    let flat = flat_expr();
    let call = (
        select(&["COALESCE", "UPPER", "ABS", "COUNT"][..]),
        prop::collection::vec(flat.clone(), 1..3),
    )
        .prop_map(|(name, args)| Expr::Call(name, args));
    let two = || (flat.clone(), flat.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
    let plain = prop_oneof![
        8 => flat.clone(),
        1 => call,
        1 => two().prop_map(|(a, b)| Expr::Case(a, b)),
        1 => flat.clone().prop_map(|inner| Expr::Cast(Box::new(inner))),
        1 => two().prop_map(|(a, b)| Expr::Sum(a, b)),
    ]
    .boxed();
    let Some(query) = query else {
        return plain;
    };
    let boxed = query.clone().prop_map(Box::new);
    let with_query = prop_oneof![
        boxed.clone().prop_map(Expr::Scalar),
        boxed.clone().prop_map(Expr::Exists),
        (flat, boxed).prop_map(|(left, query)| Expr::In(Box::new(left), query)),
    ]
    .boxed();
    let around = (plain.clone(), with_query.clone())
        .prop_map(|(plain, inner)| (Box::new(plain), Box::new(inner)));
    prop_oneof![
        8 => plain,
        3 => with_query,
        1 => around.clone().prop_map(|(a, b)| Expr::Case(a, b)),
        1 => around.clone().prop_map(|(a, b)| Expr::Sum(a, b)),
        1 => around.clone().prop_map(|(a, b)| Expr::Between(a, b)),
        1 => around.clone().prop_map(|(a, b)| Expr::Window(a, b)),
        1 => around.prop_map(|(a, b)| Expr::Call("COALESCE", vec![*a, *b])),
    ]
    .boxed()
}

fn source(
    query: Option<&BoxedStrategy<Query>>,
    expr: &BoxedStrategy<Expr>,
) -> BoxedStrategy<Source> {
    let table = prop_oneof![
        6 => table_name(),
        // The name of a WITH clause, where there is one.
        1 => select(CLAUSES),
    ]
    .prop_flat_map(|name| look().prop_map(move |look| Source::Table(name, look)))
    .boxed();
    let item = match query {
        None => table,
        Some(query) => prop_oneof![
            6 => table,
            1 => query.clone().prop_map(|query| Source::Derived(Box::new(query))),
            1 => query.clone().prop_map(|query| Source::Lateral(Box::new(query))),
        ]
        .boxed(),
    };
    let kinds = select(
        &[
            "JOIN",
            "LEFT JOIN",
            "FULL OUTER JOIN",
            "CROSS JOIN",
            "NATURAL JOIN",
        ][..],
    );
    let join =
        (kinds, item.clone(), item.clone(), expr.clone()).prop_map(|(kind, left, right, on)| {
            Source::Join(kind, Box::new(left), Box::new(right), on)
        });
    prop_oneof![
        6 => item,
        2 => join.clone(),
        1 => join.prop_map(|join| Source::Bracketed(Box::new(join))),
    ]
    .boxed()
}

fn query(depth: u32) -> BoxedStrategy<Query> {
    let inner = depth.checked_sub(1).map(query);
    let expr = expr(inner.as_ref());
    let source = source(inner.as_ref(), &expr);
    let maybe = |often: f64| prop::option::weighted(often, expr.clone());
    let select_strategy = (
        prop::collection::vec(expr.clone(), 1..3),
        prop::collection::vec(source, 0..3),
        maybe(0.5),
        maybe(0.2),
        maybe(0.1),
    )
        .prop_map(|(items, from, filter, group_by, having)| {
            Box::new(Select {
                items,
                from,
                filter,
                group_by,
                having,
            })
        })
        .boxed();
    let body = select_strategy.clone().prop_map(Body::Select).boxed();
    let set = (
        select(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"][..]),
        body.clone(),
        select_strategy,
    )
        .prop_map(|(operator, left, right)| Body::Set(operator, Box::new(left), right));
    let body = match &inner {
        None => prop_oneof![4 => body, 1 => set].boxed(),
        Some(inner) => prop_oneof![
            6 => body,
            2 => set,
            1 => inner.clone().prop_map(|query| Body::Bracketed(Box::new(query))),
        ]
        .boxed(),
    };
    let with = match inner {
        None => Just(Vec::new()).boxed(),
        Some(inner) => {
            let clause = (select(CLAUSES), prop::bool::weighted(0.1), inner).prop_map(
                |(name, quoted, query)| Clause {
                    name,
                    quoted,
                    query,
                },
            );
            prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(clause, 1..3)].boxed()
        }
    };
    (
        with,
        prop::bool::weighted(0.3),
        body,
        maybe(0.2),
        maybe(0.1),
    )
        .prop_map(|(with, recursive, body, order_by, limit)| Query {
            with,
            recursive,
            body,
            order_by,
            limit,
        })
        .boxed()
}

pub fn statement() -> BoxedStrategy<Statement> {
    let inner = query(1);
    let value = expr(Some(&inner));
    prop_oneof![
        10 => query(2).prop_map(Statement::Read),
        1 => (table_name(), query(1)).prop_map(|(table, query)| Statement::InsertInto(table, query)),
        1 => (table_name(), value.clone()).prop_map(|(table, value)| Statement::Update(table, value)),
        1 => (table_name(), value).prop_map(|(table, value)| Statement::Delete(table, value)),
        1 => (table_name(), query(1)).prop_map(|(table, query)| Statement::CreateTable(table, query)),
    ]
    .boxed()
}

/// A statement as text, and what it refers to.
pub struct Written {
    pub text: String,
    dialect: Dialect,
    /// The WITH clauses in sight, innermost last.
    scopes: Vec<Vec<(&'static str, bool)>>,
    tables: HashSet<&'static str>,
    quotes_a_table: bool,
    aliases: usize,
}

impl Written {
    pub fn new(statement: &Statement, dialect: Dialect) -> Self {
        let mut written = Self {
            text: String::new(),
            dialect,
            scopes: Vec::new(),
            tables: HashSet::new(),
            quotes_a_table: false,
            aliases: 0,
        };
        match statement {
            Statement::Read(query) => written.query(query),
            Statement::InsertInto(table, query) => {
                written.target("INSERT INTO", table);
                written.query(query);
            }
            Statement::Update(table, value) => {
                written.target("UPDATE", table);
                written.put("SET a =");
                written.expr(value);
            }
            Statement::Delete(table, value) => {
                written.target("DELETE FROM", table);
                written.put("WHERE a =");
                written.expr(value);
            }
            Statement::CreateTable(table, query) => {
                written.target("CREATE TABLE", table);
                written.put("AS");
                written.query(query);
            }
        }
        written
    }

    pub fn names_an_unlisted_table(&self) -> bool {
        self.tables.iter().any(|table| !LISTED.contains(table))
    }

    fn put(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    fn target(&mut self, verb: &str, table: &'static str) {
        self.put(verb);
        self.tables.insert(table);
        self.put(table);
    }

    fn quote(&self) -> [char; 2] {
        match self.dialect {
            Dialect::MySql
            | Dialect::BigQuery
            | Dialect::Databricks
            | Dialect::Spark
            | Dialect::Hive => ['`', '`'],
            Dialect::TSql => ['[', ']'],
            _ => ['"', '"'],
        }
    }

    fn query(&mut self, query: &Query) {
        let outer = self.scopes.len();
        if !query.with.is_empty() {
            self.put(if query.recursive {
                "WITH RECURSIVE"
            } else {
                "WITH"
            });
            self.scopes.push(Vec::new());
            for (index, clause) in query.with.iter().enumerate() {
                if index > 0 {
                    self.put(",");
                }
                self.clause_name(clause.name, clause.quoted);
                self.put("AS (");
                if query.recursive {
                    self.recursive(clause);
                } else {
                    self.query(&clause.query);
                }
                self.put(")");
                if let Some(scope) = self.scopes.last_mut() {
                    scope.push((clause.name, clause.quoted));
                }
            }
        }
        self.body(&query.body);
        self.tail(query);
        self.scopes.truncate(outer);
    }

    fn tail(&mut self, query: &Query) {
        if let Some(order_by) = &query.order_by {
            self.put("ORDER BY");
            self.expr(order_by);
        }
        if let Some(limit) = &query.limit
            && self.dialect != Dialect::TSql
        {
            self.put("LIMIT");
            self.expr(limit);
        }
    }

    /// Its own name stands for a recursive clause in the half behind UNION alone.
    fn recursive(&mut self, clause: &Clause) {
        match &clause.query.body {
            Body::Set(operator, left, right)
                if clause.query.with.is_empty() && operator.starts_with("UNION") =>
            {
                self.body(left);
                self.put(operator);
                self.scopes.push(vec![(clause.name, clause.quoted)]);
                self.select(right);
                self.tail(&clause.query);
                self.scopes.pop();
            }
            _ => self.query(&clause.query),
        }
    }

    fn clause_name(&mut self, name: &str, quoted: bool) {
        let [open, close] = self.quote();
        if quoted {
            self.put(&format!("{open}{name}{close}"));
        } else {
            self.put(name);
        }
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::Select(select) => self.select(select),
            Body::Set(operator, left, right) => {
                self.body(left);
                self.put(operator);
                // Without the word, BigQuery and ClickHouse read no UNION.
                if *operator == "UNION" {
                    self.put("DISTINCT");
                }
                self.select(right);
            }
            // At the top a bracket is no SELECT.
            Body::Bracketed(query) => {
                self.put("SELECT a FROM (");
                self.query(query);
                self.put(")");
                self.alias();
            }
        }
    }

    fn select(&mut self, select: &Select) {
        self.put("SELECT");
        for (index, item) in select.items.iter().enumerate() {
            if index > 0 {
                self.put(",");
            }
            self.expr(item);
        }
        for (index, source) in select.from.iter().enumerate() {
            self.put(if index > 0 { "," } else { "FROM" });
            self.source(source);
        }
        for (word, expr) in [
            ("WHERE", &select.filter),
            ("GROUP BY", &select.group_by),
            ("HAVING", &select.having),
        ] {
            if let Some(expr) = expr {
                self.put(word);
                self.expr(expr);
            }
        }
    }

    fn alias(&mut self) {
        self.aliases += 1;
        let alias = format!("t{}", self.aliases);
        self.put(&alias);
    }

    fn source(&mut self, source: &Source) {
        match source {
            Source::Table(name, look) => self.table(name, *look),
            Source::Derived(query) => {
                self.put("(");
                self.query(query);
                self.put(")");
                self.alias();
            }
            Source::Lateral(query) => {
                match self.dialect {
                    Dialect::Sqlite
                    | Dialect::TSql
                    | Dialect::ClickHouse
                    | Dialect::BigQuery
                    | Dialect::Hive => {}
                    _ => self.put("LATERAL"),
                }
                self.put("(");
                self.query(query);
                self.put(")");
                self.alias();
            }
            Source::Join(kind, left, right, on) => {
                self.source(left);
                self.put(kind);
                self.source(right);
                if !kind.starts_with("CROSS") && !kind.starts_with("NATURAL") {
                    self.put("ON");
                    self.expr(on);
                }
            }
            Source::Bracketed(join) => {
                self.put("(");
                self.source(join);
                self.put(")");
            }
        }
    }

    fn table(&mut self, name: &'static str, look: Look) {
        let clause = self
            .scopes
            .iter()
            .rev()
            .flatten()
            .find(|(clause, _)| *clause == name);
        if let Some(&(clause, quoted)) = clause {
            self.clause_name(clause, quoted);
            return;
        }
        self.tables.insert(name);
        match look {
            Look::Lower => self.put(name),
            Look::Upper => self.put(&name.to_uppercase()),
            Look::Spaced => self.put(&format!("\n\t{name}\r\n")),
            Look::Quoted => {
                self.quotes_a_table = true;
                let [open, close] = self.quote();
                let parts: Vec<String> = name
                    .split('.')
                    .map(|part| format!("{open}{part}{close}"))
                    .collect();
                self.put(&parts.join("."));
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Column => self.put("a"),
            Expr::Number => self.put("1"),
            Expr::Text(text) => self.put(&format!("'{text}'")),
            Expr::Call(name, args) => {
                self.put(name);
                self.text.push('(');
                for (index, arg) in args.iter().enumerate() {
                    if index > 0 {
                        self.put(",");
                    }
                    self.expr(arg);
                }
                self.put(")");
            }
            Expr::Case(when, otherwise) => {
                self.put("CASE WHEN");
                self.expr(when);
                self.put("= 1 THEN 2 ELSE");
                self.expr(otherwise);
                self.put("END");
            }
            Expr::Cast(inner) => {
                self.put("CAST(");
                self.expr(inner);
                self.put("AS INT)");
            }
            Expr::Sum(left, right) => {
                self.put("(");
                self.expr(left);
                self.put("+");
                self.expr(right);
                self.put(")");
            }
            Expr::Between(low, high) => {
                self.put("( a BETWEEN");
                self.expr(low);
                self.put("AND");
                self.expr(high);
                self.put(")");
            }
            Expr::Window(partition, order) => {
                self.put("SUM(a) OVER (PARTITION BY");
                self.expr(partition);
                self.put("ORDER BY");
                self.expr(order);
                self.put(")");
            }
            Expr::Scalar(query) => {
                self.put("(");
                self.query(query);
                self.put(")");
            }
            Expr::Exists(query) => {
                self.put("EXISTS (");
                self.query(query);
                self.put(")");
            }
            Expr::In(left, query) => {
                self.put("(");
                self.expr(left);
                self.put("IN (");
                self.query(query);
                self.put(") )");
            }
        }
    }
}

pub fn guard(dialect: Dialect, allow_writes: bool) -> Guard {
    let tables: Vec<String> = LISTED.iter().map(|&table| table.to_owned()).collect();
    Guard {
        dialect,
        allow_writes,
        allow_list: Some(AllowList::new(&tables, None)),
        allowed_functions: HashSet::new(),
    }
}

#[test]
fn a_statement_that_names_an_unlisted_table_is_never_accepted_and_most_others_are() {
    let (harmless, accepted) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::new(Config {
        cases: 1_500,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = (statement(), select(&Dialect::ALL[..]));
    let outcome = runner.run(&strategy, |(statement, dialect)| {
        let written = Written::new(&statement, dialect);
        let sql = &written.text;
        let reads = matches!(statement, Statement::Read(_));
        let verdict = guard(dialect, !reads).check(sql);
        let must_refuse = written.names_an_unlisted_table() || written.quotes_a_table;
        if must_refuse {
            prop_assert!(verdict.is_err(), "{dialect:?} accepted {sql}");
        } else {
            harmless.set(harmless.get() + 1);
            accepted.set(accepted.get() + u32::from(verdict.is_ok()));
        }
        if !reads && guard(dialect, false).check(sql).is_ok() {
            return Err(TestCaseError::fail(format!("{dialect:?} let write {sql}")));
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let share = f64::from(accepted.get()) / f64::from(harmless.get());
    println!(
        "{} of {} harmless statements accepted",
        accepted.get(),
        harmless.get()
    );
    assert!(
        harmless.get() > 250,
        "only {} harmless statements",
        harmless.get()
    );
    assert!(
        share > 0.9,
        "only {share:.2} of the harmless statements are accepted"
    );
}
