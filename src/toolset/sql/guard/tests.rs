use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{Dialect, Guard, Refusal};
use crate::toolset::sql::AllowList;

fn guard(dialect: Dialect, allow_writes: bool) -> Guard {
    let tables = ["orders".to_owned(), "customers".to_owned()];
    Guard {
        dialect,
        allow_writes,
        allow_list: Some(AllowList::new(&tables, None)),
        allowed_functions: HashSet::new(),
    }
}

fn reading(dialect: Dialect) -> Guard {
    guard(dialect, false)
}

#[track_caller]
fn refused_everywhere(sql: &str) {
    for dialect in Dialect::ALL {
        for allow_writes in [false, true] {
            let verdict = guard(dialect, allow_writes).check(sql);
            assert!(verdict.is_err(), "{dialect:?} accepted {sql}: {verdict:?}");
        }
    }
}

#[test]
fn a_table_that_is_not_listed_is_found_wherever_a_query_can_stand() {
    for template in [
        "SELECT * FROM orders WHERE id IN (@)",
        "SELECT * FROM orders WHERE EXISTS (@)",
        "SELECT (@) FROM orders",
        "SELECT CASE WHEN a = (@) THEN 1 ELSE 2 END FROM orders",
        "SELECT CASE (@) WHEN 1 THEN 2 END",
        "SELECT CAST((@) AS INT)",
        "SELECT COALESCE(a, (@)) FROM orders",
        "SELECT SUM(a) OVER (PARTITION BY (@)) FROM orders",
        "SELECT SUM(a) OVER (ORDER BY (@)) FROM orders",
        "SELECT * FROM orders JOIN customers ON orders.id = (@)",
        "SELECT * FROM orders GROUP BY (@)",
        "SELECT a FROM orders GROUP BY a HAVING (@) > 1",
        "SELECT * FROM orders ORDER BY (@)",
        "SELECT * FROM orders LIMIT (@)",
        "SELECT * FROM (@) AS x",
        "SELECT * FROM orders, (@) x",
        "SELECT * FROM orders CROSS JOIN (@) x",
        "WITH x AS (@) SELECT * FROM x",
        "WITH x AS (SELECT 1), y AS (WITH z AS (@) SELECT * FROM z) SELECT * FROM y",
        "SELECT * FROM orders UNION ALL @",
        "SELECT * FROM orders UNION ALL (SELECT * FROM customers UNION ALL @)",
        "SELECT * FROM orders EXCEPT @",
        "SELECT 1 BETWEEN 0 AND (@)",
        "SELECT EXTRACT(YEAR FROM (@))",
        "SELECT TRIM((@))",
        "SELECT NOT ((@) = 1)",
        "SELECT * FROM (VALUES ((@))) AS v(a)",
        "INSERT INTO orders @",
        "INSERT INTO orders (a) VALUES ((@))",
        "UPDATE orders SET a = (@)",
        "UPDATE orders SET a = 1 WHERE id IN (@)",
        "DELETE FROM orders WHERE id IN (@)",
        "MERGE INTO orders USING (@) s ON 1 = 1 WHEN MATCHED THEN DELETE",
        "CREATE TABLE orders AS @",
        "CREATE VIEW orders AS @",
        "DESCRIBE @",
    ] {
        refused_everywhere(&template.replace('@', "SELECT a FROM secrets"));
    }
}

#[test]
fn writes_are_refused_while_reading_whatever_stands_around_them() {
    for sql in [
        "INSERT INTO orders VALUES (1)",
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "SELECT * INTO orders FROM customers",
        "SELECT INTO orders FROM customers",
        "SELECT INTO TEMP orders FROM customers",
        "DESCRIBE DELETE FROM orders",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "SELECT 1; DROP TABLE orders",
        "CREATE TABLE x AS SELECT 1",
        "CALL f()",
        "DO $$ BEGIN END $$",
        "SET x = 1",
        "VACUUM",
        "ATTACH 'x' AS y",
        "COPY orders TO 'x'",
    ] {
        for dialect in Dialect::ALL {
            let mut guard = reading(dialect);
            assert!(guard.check(sql).is_err(), "{dialect:?} accepted {sql}");
            guard.allow_list = None;
            assert!(
                guard.check(sql).is_err(),
                "{dialect:?} accepted {sql} without a list"
            );
        }
    }
}

#[test]
fn a_with_clause_hides_a_table_only_where_it_is_in_sight() {
    let postgres = reading(Dialect::Postgres);
    for sql in [
        "WITH secrets AS (SELECT 1) SELECT * FROM secrets",
        "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b",
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r",
        "WITH t AS (SELECT 1) SELECT (SELECT count(*) FROM t) FROM orders ORDER BY (SELECT 1 FROM t)",
    ] {
        assert_eq!(postgres.check(sql).err(), None, "{sql}");
    }
    for sql in [
        "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets",
        "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM (WITH secrets AS (SELECT 1) SELECT * FROM secrets) s, secrets",
        "WITH secrets AS (SELECT 1) SELECT * FROM public.secrets",
        "WITH \"secrets\" AS (SELECT 1) SELECT * FROM secrets",
    ] {
        assert!(postgres.check(sql).is_err(), "{sql}");
    }
    // A server whose table names keep their case would read the table, not the clause.
    let shadow = "WITH SECRETS AS (SELECT 1) SELECT * FROM secrets";
    assert!(postgres.check(shadow).is_ok());
    assert!(reading(Dialect::MySql).check(shadow).is_err());
    assert!(reading(Dialect::TSql).check(shadow).is_err());
    // The long s folds to s, but not on every server.
    let long_s = "WITH \u{17f}ecrets AS (SELECT 1) SELECT * FROM secrets";
    assert!(postgres.check(long_s).is_err());
}

#[test]
fn a_recursive_clause_sees_itself_behind_union_alone() {
    for dialect in [Dialect::Postgres, Dialect::DuckDb, Dialect::Sqlite] {
        let guard = reading(dialect);
        for sql in [
            "WITH RECURSIVE secrets AS (SELECT * FROM secrets) SELECT * FROM secrets",
            "WITH RECURSIVE secrets AS (SELECT * FROM secrets UNION ALL SELECT 1) SELECT * FROM secrets",
            "WITH RECURSIVE secrets AS (SELECT 1 EXCEPT SELECT * FROM secrets) SELECT * FROM secrets",
        ] {
            assert!(guard.check(sql).is_err(), "{dialect:?} accepted {sql}");
        }
        let sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t, orders";
        assert_eq!(guard.check(sql).err(), None, "{dialect:?}");
    }
}

#[test]
fn a_written_table_is_never_a_with_clause() {
    let writing = guard(Dialect::Postgres, true);
    assert!(
        writing
            .check("WITH secrets AS (SELECT 1) DELETE FROM secrets")
            .is_err()
    );
    assert!(
        writing
            .check("WITH orders AS (SELECT 1) INSERT INTO orders SELECT * FROM orders")
            .is_ok()
    );
}

#[test]
fn text_that_reads_in_two_ways_is_refused() {
    for (dialect, sql) in [
        (
            Dialect::MySql,
            "SELECT * FROM orders /*! UNION SELECT * FROM secrets */",
        ),
        (Dialect::Postgres, "SELECT * FROM U&\"\\0073ecrets\""),
        (
            Dialect::Postgres,
            "SELECT * FROM orders /* /* */ UNION SELECT * FROM secrets /* */ */",
        ),
        (Dialect::Sqlite, "SELECT $$ ' $$ FROM orders"),
        (Dialect::Trino, "SELECT E'\\'' FROM secrets --'"),
        (
            Dialect::Snowflake,
            "SELECT * FROM orders # x\nUNION SELECT * FROM secrets",
        ),
        (Dialect::Oracle, "SELECT q'[']' FROM orders"),
        (
            Dialect::Postgres,
            "SELECT * FROM orders -- x\rUNION SELECT * FROM secrets",
        ),
        (Dialect::Postgres, "SELECT 1\0FROM orders"),
    ] {
        let mut guard = reading(dialect);
        guard.allow_list = None;
        assert!(guard.check(sql).is_err(), "{dialect:?} accepted {sql}");
    }
    for sql in [
        "SELECT 1 SHUTDOWN",
        "SELECT * FROM orders EXEC ('DROP TABLE x')",
    ] {
        assert!(reading(Dialect::TSql).check(sql).is_err(), "accepted {sql}");
    }
    for dialect in Dialect::ALL {
        assert!(
            reading(dialect)
                .check("SELECT * FROM orders WHERE id IN secrets")
                .is_err()
        );
    }
    assert!(
        reading(Dialect::Trino)
            .check("SELECT * FROM orders ARRAY JOIN secrets")
            .is_err()
    );
}

#[test]
fn text_that_the_server_would_read_otherwise_is_refused_in_every_mode() {
    for (dialect, sql) in [
        // Whether the backslash takes the quote with it is a setting of the server.
        (
            Dialect::Postgres,
            r"SELECT 'a\' = ' UNION SELECT s FROM secrets WHERE b=' OR b=' '",
        ),
        (
            Dialect::Redshift,
            r"SELECT 'a\' = ' UNION SELECT s FROM secrets WHERE b=' OR b=' '",
        ),
        (
            Dialect::Generic,
            r"SELECT 'a\' = ' UNION SELECT s FROM secrets WHERE b=' OR b=' '",
        ),
        (
            Dialect::MySql,
            r"SELECT 'a\' , s FROM secrets -- ' FROM orders",
        ),
        (
            Dialect::MySql,
            r#"SELECT "a\" , s FROM secrets -- " FROM orders"#,
        ),
        (
            Dialect::Databricks,
            r#"SELECT "a\" , s FROM secrets -- " FROM orders"#,
        ),
        // A string that goes on in the next line is of the first one's kind.
        (
            Dialect::Postgres,
            "SELECT E''\n'\\' , ' UNION SELECT s FROM secrets WHERE ''<>' '",
        ),
        // Names with escapes.
        (
            Dialect::ClickHouse,
            r#"SELECT "a\" , " FROM secrets WHERE "b""#,
        ),
        (Dialect::BigQuery, r"SELECT `a\` , ` FROM secrets WHERE `b`"),
        // A raw string ends at its first quote.
        (Dialect::Spark, r"SELECT r'\' , s FROM secrets -- '"),
        (Dialect::Databricks, r"SELECT R'\' , s FROM secrets -- '"),
        // Read by the server before it reads the statement.
        (
            Dialect::Spark,
            "SELECT '${env:AWS_SECRET_ACCESS_KEY}' FROM orders",
        ),
        (Dialect::Hive, "SELECT '${system:user.home}' FROM orders"),
        // Another statement behind the arrow.
        (Dialect::Snowflake, "SHOW TABLES ->> DELETE FROM orders"),
        (Dialect::Snowflake, "SELECT 1 ->> DELETE FROM orders"),
        // A heredoc, and a tag beyond letters.
        (
            Dialect::ClickHouse,
            "SELECT $a$, '$a$ AS x FROM secrets -- '",
        ),
        (
            Dialect::Postgres,
            "SELECT $\u{2013}$, '$\u{2013}$ AS x FROM secrets -- '",
        ),
        (Dialect::Generic, "SELECT 1 /*! + 1 */ FROM orders"),
        (Dialect::MySql, "SELECT 1 /*M!100000 + 1 */ FROM orders"),
        (
            Dialect::Postgres,
            "SELECT 1 -- x\u{2028}FROM secrets\nFROM orders",
        ),
        // SQLite takes the bracket for part of the variable's name.
        (Dialect::Sqlite, "SELECT $a('), s FROM secrets -- ')"),
        (Dialect::TSql, "SELECT 1 SETUSER"),
        (Dialect::TSql, "SELECT 1 DELETE FROM orders"),
        (Dialect::TSql, "SELECT * FROM orders DELETE FROM orders"),
    ] {
        for listed in [true, false] {
            let mut guard = reading(dialect);
            if !listed {
                guard.allow_list = None;
            }
            assert!(guard.check(sql).is_err(), "{dialect:?} accepted {sql}");
        }
    }
}

#[test]
fn a_backslash_that_means_the_same_everywhere_is_read() {
    for (dialect, sql) in [
        (Dialect::Postgres, r"SELECT 'C:\temp' FROM orders"),
        (Dialect::Postgres, r"SELECT 'C:\\' FROM orders"),
        (Dialect::Postgres, r"SELECT E'it\'s' FROM orders"),
        (Dialect::MySql, r"SELECT 'a\\' FROM orders"),
        (Dialect::MySql, r"SELECT 'a\n' FROM orders"),
        (Dialect::BigQuery, r"SELECT 'it\'s' FROM orders"),
        (Dialect::TSql, r"SELECT 'C:\' FROM orders"),
        (Dialect::Sqlite, r"SELECT 'C:\' FROM orders"),
    ] {
        assert_eq!(
            reading(dialect).check(sql).err(),
            None,
            "{dialect:?}: {sql}"
        );
    }
}

#[test]
fn what_clickhouse_reads_behind_in_is_a_table() {
    let clickhouse = reading(Dialect::ClickHouse);
    for sql in [
        "SELECT * FROM orders WHERE id IN (secrets)",
        "SELECT * FROM orders WHERE id NOT IN ((secrets))",
        "SELECT * FROM orders WHERE id IN (db.secrets)",
        "SELECT * FROM orders SETTINGS additional_result_filter = 'id IN secrets'",
    ] {
        assert!(clickhouse.check(sql).is_err(), "{sql}");
    }
    for sql in [
        "SELECT * FROM orders WHERE id IN (customers)",
        "SELECT * FROM orders WHERE id IN (1)",
        "SELECT * FROM orders WHERE id IN (a, b)",
        "SELECT * FROM orders SETTINGS max_threads = 1",
    ] {
        assert_eq!(clickhouse.check(sql).err(), None, "{sql}");
    }
    let column = "SELECT * FROM orders WHERE id IN (a)";
    assert_eq!(reading(Dialect::Postgres).check(column).err(), None);
}

#[test]
fn an_operator_of_a_schema_is_a_function_of_it() {
    let error = reading(Dialect::Postgres)
        .check("SELECT 1 OPERATOR(evil.+) 2 FROM orders")
        .unwrap_err();
    assert!(error.to_string().contains("operator(evil.+)"), "{error}");
}

#[test]
fn a_qualified_function_is_not_the_known_one_of_that_name() {
    let error = reading(Dialect::Postgres)
        .check("SELECT evil.lower(a) FROM orders")
        .unwrap_err();
    assert!(error.to_string().contains("(lower)"), "{error}");
    assert!(
        reading(Dialect::BigQuery)
            .check("SELECT NET.HOST(a) FROM orders")
            .is_ok()
    );
}

#[test]
fn everyday_queries_are_accepted_in_their_dialects() {
    for (dialect, sql) in [
        (
            Dialect::MySql,
            "SELECT * FROM orders WHERE d >= DATE_SUB(CURDATE(), INTERVAL 30 DAY)",
        ),
        (
            Dialect::MySql,
            "SELECT a, SUM(b) FROM orders GROUP BY a WITH ROLLUP LOCK IN SHARE MODE",
        ),
        (
            Dialect::TSql,
            "SELECT a, SUM(b) FROM orders GROUP BY ROLLUP(a) OPTION (MAXDOP 1)",
        ),
        (
            Dialect::TSql,
            "SELECT a, SUM(b) FROM orders GROUP BY GROUPING SETS ((a), ())",
        ),
        (Dialect::Postgres, "TABLE orders"),
        (
            Dialect::Postgres,
            "WITH t AS (TABLE orders) SELECT * FROM ONLY customers, t",
        ),
        (
            Dialect::Postgres,
            "SELECT * FROM orders FOR NO KEY UPDATE SKIP LOCKED",
        ),
        (
            Dialect::Sqlite,
            "WITH t AS MATERIALIZED (SELECT 1) SELECT a GLOB 'x*' FROM t",
        ),
        (Dialect::DuckDb, "FROM orders USING SAMPLE 10"),
        (Dialect::BigQuery, "FROM orders |> WHERE id > 1"),
        (
            Dialect::BigQuery,
            "SELECT SAFE.SUBSTR(a, 1) FROM orders o, o.items",
        ),
        (Dialect::Databricks, "DESCRIBE HISTORY orders"),
        (Dialect::Snowflake, "DESCRIBE VIEW orders"),
    ] {
        assert_eq!(
            reading(dialect).check(sql).err(),
            None,
            "{dialect:?}: {sql}"
        );
    }
}

/// Every kind of hostile text is answered soon, on whatever stack the test has.
#[track_caller]
fn answered_soon(name: &str, sql: &str) {
    for dialect in [
        Dialect::Generic,
        Dialect::Postgres,
        Dialect::MySql,
        Dialect::Snowflake,
        Dialect::BigQuery,
    ] {
        let start = Instant::now();
        let _verdict = reading(dialect).check(sql);
        let taken = start.elapsed();
        assert!(
            taken < Duration::from_secs(30),
            "{dialect:?} took {taken:?} for {name}"
        );
    }
}

#[test]
fn hostile_text_is_answered_soon_and_without_a_crash() {
    let repeat = |text: &str, times: usize| text.repeat(times);
    answered_soon(
        "90 brackets",
        &format!("SELECT {}1{}", repeat("(", 90), repeat(")", 90)),
    );
    answered_soon(
        "open brackets",
        &format!("SELECT * FROM {}", repeat("(", 95)),
    );
    answered_soon(
        "brackets in FROM",
        &format!("SELECT * FROM {}orders{}", repeat("(", 40), repeat(")", 40)),
    );
    answered_soon(
        "queries in FROM",
        &format!(
            "SELECT * FROM {}orders{}",
            repeat("(SELECT * FROM ", 40),
            repeat(")", 40)
        ),
    );
    answered_soon(
        "calls",
        &format!("SELECT {}1{}", repeat("ABS(", 90), repeat(")", 90)),
    );
    answered_soon(
        "cases",
        &format!("SELECT {}1{}", repeat("CASE WHEN ", 90), repeat(" END", 90)),
    );
    answered_soon(
        "casts",
        &format!("SELECT 1{} FROM orders", repeat("::INT", 3900)),
    );
    answered_soon(
        "NOTs",
        &format!("SELECT {}1 FROM orders", repeat("NOT ", 7900)),
    );
    answered_soon(
        "minuses",
        &format!("SELECT {}1 FROM orders", repeat("- ", 7900)),
    );
    answered_soon(
        "IS NULLs",
        &format!("SELECT 1{} FROM orders", repeat(" IS NULL", 3900)),
    );
    answered_soon(
        "ANDs",
        &format!("SELECT 1 WHERE 1=1{}", repeat(" AND 1=1", 3900)),
    );
    answered_soon(
        "unions",
        &format!("SELECT 1{}", repeat(" UNION ALL SELECT 1", 2_600)),
    );
    answered_soon(
        "joins",
        &format!(
            "SELECT 1 FROM orders{}",
            repeat(" JOIN orders ON 1=1", 1_900)
        ),
    );
    answered_soon(
        "CTEs",
        &format!(
            "WITH a AS (SELECT 1){} SELECT 1",
            repeat(", a AS (SELECT 1)", 1_900)
        ),
    );
}

#[test]
fn long_chains_are_read_and_checked() {
    let sum = format!("SELECT 1{} FROM orders", "+1".repeat(7_000));
    assert_eq!(reading(Dialect::Sqlite).check(&sum).err(), None);
    let list = format!(
        "SELECT 1 FROM orders WHERE id IN (1{})",
        ", 'a'".repeat(40_000)
    );
    assert_eq!(reading(Dialect::Sqlite).check(&list).err(), None);
    let unlisted = format!("SELECT 1{} FROM secrets", "+1".repeat(7_000));
    assert_eq!(
        reading(Dialect::Sqlite).check(&unlisted).err(),
        Some(Refusal::Tables("secrets".to_owned()))
    );
}

#[test]
fn attempts_within_attempts_do_not_double_the_time() {
    for (open, close) in [
        ("ABS(", ")"),
        ("COALESCE(1, ", ")"),
        ("TABLE(f(", "))"),
        ("INTERVAL ", ""),
        ("INTERVAL (", ""),
        ("INTERVAL NOT ", ""),
        ("CAST(INTERVAL ", ""),
        ("CAST(INTERVAL ", " AS INT)"),
        ("INTERVAL ARRAY[", ""),
        ("INTERVAL EXISTS (SELECT ", ""),
        ("POSITION(", ""),
        ("CASE WHEN ", ""),
        ("(VALUES (", ""),
        ("{fn ABS(", ""),
    ] {
        let sql = format!("SELECT {}1{}", open.repeat(30), close.repeat(30));
        answered_soon(open, &sql);
        answered_soon(
            open,
            &format!("SELECT * FROM f({})", sql.trim_start_matches("SELECT ")),
        );
    }
}

#[test]
fn a_query_for_others_is_of_the_types_that_are_named() {
    let check = |sql: &str, dialect, allowed: Option<&[&str]>| {
        let guard = Guard {
            allow_list: None,
            ..reading(dialect)
        };
        let allowed: Option<Vec<String>> =
            allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let refusal = guard.check_types(sql, allowed.as_deref()).err();
        refusal.map(|refusal| refusal.to_string())
    };
    let four = "Allowed types: Select, Union, Intersect, Except";
    for (sql, name) in [
        ("DESCRIBE ships", "Describe"),
        ("SHOW TABLES", "Show"),
        ("DROP TABLE ships", "Drop"),
    ] {
        assert_eq!(
            check(sql, Dialect::MySql, None),
            Some(format!("Statement type '{name}' is not allowed. {four}"))
        );
    }
    for sql in [
        "SELECT 1",
        "SELECT 1 UNION SELECT 2",
        "SELECT 1 EXCEPT SELECT 2",
    ] {
        assert_eq!(check(sql, Dialect::Postgres, None), None, "{sql}");
    }
    // Types of one's own say all that is allowed, and nothing is looked for within.
    let own: Option<&[&str]> = Some(&["Query", "Insert"]);
    for sql in [
        "INSERT INTO a SELECT 1",
        "SELECT * INTO b FROM a",
        "(SELECT 1)",
    ] {
        assert_eq!(check(sql, Dialect::Postgres, own), None, "{sql}");
    }
    assert_eq!(
        check("DROP TABLE a", Dialect::Postgres, own).as_deref(),
        Some("Statement type 'Drop' is not allowed. Allowed types: Query, Insert")
    );
    assert!(check("SELECT 1; DROP TABLE a", Dialect::Postgres, own).is_some());
    assert!(check("SELECT (1", Dialect::Postgres, own).is_some());
}
