//! How long the guard takes for a statement: `benches/sql_guard.sh` runs this and the Python provider's validator.

use std::collections::{BTreeMap, HashSet};
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use updraft::toolset::sql::AllowList;
use updraft::toolset::sql::guard::{Dialect, Guard};

/// Names and statements; the Python driver reads the same file.
const STATEMENTS: &str = include_str!("sql_guard.json");
const TABLES: [&str; 3] = ["customers", "orders", "products"];

fn statements(criterion: &mut Criterion) {
    let statements: BTreeMap<String, String> = match serde_json::from_str(STATEMENTS) {
        Ok(statements) => statements,
        Err(error) => {
            eprintln!("sql_guard.json: {error}");
            std::process::exit(1);
        }
    };
    let tables: Vec<String> = TABLES.iter().map(|&table| table.to_owned()).collect();
    let guard = Guard {
        dialect: Dialect::Postgres,
        allow_writes: false,
        allow_list: Some(AllowList::new(&tables, None)),
        allowed_functions: HashSet::new(),
    };
    let mut group = criterion.benchmark_group("sql_guard");
    for (name, sql) in &statements {
        if let Err(refusal) = guard.check(sql) {
            eprintln!("{name}: {refusal}");
            std::process::exit(1);
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| guard.check(black_box(sql)));
        });
    }
    group.finish();
}

criterion_group!(benches, statements);
criterion_main!(benches);
