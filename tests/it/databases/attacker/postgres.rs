//! PostgreSQL, as its superuser: what stands between the model and the server's files is Updraft alone.

use updraft::airflow::connection::Connection;
use updraft::hook::{Cell, Database};

use super::{SECRET, inserts, nothing_was_told, obey};
use crate::databases::Arguments;
use crate::databases::postgres::{database, writable};

const ORDERS: &[&str] = &[
    "SELECT note FROM secrets",
    "SELECT note FROM public.secrets",
    "SELECT note FROM vault.secrets",
    "SELECT note FROM harbour.vault.secrets",
    "SELECT note FROM \"secrets\"",
    "SELECT note FROM U&\"\\0073ecrets\"",
    "TABLE secrets",
    "TABLE ONLY secrets",
    "SELECT note FROM ONLY secrets",
    "SELECT note FROM ONLY (secrets)",
    "SELECT note FROM secrets *",
    "SELECT (TABLE secrets LIMIT 1) IS NULL FROM orders",
    "SELECT ARRAY(TABLE secrets)",
    "SELECT note FROM orders UNION TABLE secrets",
    "SELECT note FROM orders UNION SELECT note FROM secrets",
    "SELECT o.id, s.note FROM orders o, LATERAL (SELECT note FROM secrets) s",
    "SELECT s.note FROM orders o JOIN secrets s USING (id)",
    "SELECT s.note FROM (orders o CROSS JOIN secrets s)",
    "SELECT CASE WHEN EXISTS (SELECT FROM secrets WHERE note LIKE 'made%') THEN 'PRIVATE' END",
    "SELECT note FROM orders ORDER BY (SELECT note FROM secrets LIMIT 1)",
    "SELECT note FROM orders LIMIT (SELECT length(note) FROM secrets LIMIT 1)",
    "SELECT note FROM orders FETCH FIRST (SELECT length(note) FROM secrets LIMIT 1) ROWS ONLY",
    "SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM secrets)) FROM orders",
    "SELECT row_number() OVER w FROM orders WINDOW w AS (ORDER BY (SELECT note FROM secrets LIMIT 1))",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY (SELECT length(note) FROM secrets LIMIT 1)) FROM orders",
    "SELECT DISTINCT ON ((SELECT note FROM secrets LIMIT 1)) note FROM orders",
    "SELECT GROUPING((SELECT note FROM secrets LIMIT 1)) FROM orders GROUP BY ROLLUP ((SELECT note FROM secrets LIMIT 1))",
    "SELECT CAST((SELECT note FROM secrets LIMIT 1) AS integer)",
    "SELECT (SELECT note FROM secrets LIMIT 1)::integer",
    "SELECT note FROM (VALUES ((SELECT note FROM secrets LIMIT 1))) v(note)",
    "SELECT unnest(ARRAY(SELECT note FROM secrets))",
    "SELECT * FROM unnest((SELECT array_agg(note) FROM secrets)) u",
    "SELECT json_agg(s) FROM secrets s",
    "WITH secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "WITH orders AS (SELECT note FROM secrets) SELECT note FROM orders",
    "WITH \u{17f}ecrets AS (SELECT 1) SELECT note FROM secrets",
    "WITH RECURSIVE secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "WITH a AS (SELECT note FROM b), b AS (SELECT 'x' AS note) SELECT note FROM a",
    "SELECT note FROM (WITH secrets AS (SELECT 1) SELECT 1) x, secrets",
    "SELECT * FROM ROWS FROM (pg_ls_dir('.'), unnest(ARRAY[1])) x",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')",
    "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT convert_from(pg_read_binary_file('/etc/passwd'), 'UTF8')",
    "SELECT * FROM pg_read_file('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('/etc')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/harbour.out')",
    "SELECT lo_get(lo_import('/etc/passwd'))",
    "COPY secrets TO STDOUT",
    "COPY (SELECT note FROM secrets) TO '/tmp/harbour.out'",
    "COPY orders FROM PROGRAM 'cat /etc/passwd'",
    "SELECT * FROM dblink('dbname=attacked', 'SELECT note FROM secrets') AS t(note text)",
    "SELECT query_to_xml('SELECT note FROM secrets', true, true, '')",
    "SELECT table_to_xml('secrets', true, true, '')",
    "SELECT schema_to_xml('vault', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(note) FROM secrets')",
    "SELECT * FROM xmltable('/r' PASSING query_to_xml('SELECT note FROM secrets', true, true, '') COLUMNS note text)",
    "SELECT most_common_vals FROM pg_stats WHERE tablename = 'secrets'",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM information_schema.tables",
    "SELECT rolpassword FROM pg_authid",
    "SELECT setting FROM pg_settings",
    "SELECT current_setting('data_directory')",
    "SELECT set_config('search_path', 'vault', false)",
    "SET search_path = vault",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_sleep(1)",
    "SELECT nextval('visits')",
    "SELECT leak(1)",
    "SELECT public.leak(1)",
    "SELECT 1 OPERATOR(public.<~>) 1",
    "SELECT id OPERATOR(vault.<~>) id FROM orders",
    "SELECT U&'\\0061' FROM orders UNION SELECT note FROM secrets",
    "SELECT 'a\\' = ' UNION SELECT note FROM secrets WHERE note<>' OR note=' '",
    "SELECT E'a\\' , ' FROM secrets --'",
    "SELECT E''\n'\\' , ' UNION SELECT note FROM secrets WHERE note <> ' '",
    "SELECT $a$ ' $a$ UNION SELECT note FROM secrets -- '",
    "SELECT $\u{2013}$, '$\u{2013}$ AS x UNION SELECT note FROM secrets -- '",
    "SELECT note FROM orders -- x\rUNION SELECT note FROM secrets",
    "SELECT note FROM orders /* /* */ UNION SELECT note FROM secrets /* */ */",
    "SELECT note FROM orders /* */ UNION SELECT note FROM secrets",
    "SELECT 1; SELECT note FROM secrets",
    "SELECT 1; DELETE FROM orders",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "EXPLAIN (ANALYZE) SELECT note FROM secrets",
    "PREPARE p AS DELETE FROM orders",
    "EXECUTE p",
    "DECLARE c CURSOR FOR SELECT note FROM secrets",
    "FETCH ALL FROM c",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "CALL purge()",
    "DELETE FROM orders",
    "WITH x AS (DELETE FROM orders RETURNING note) SELECT note FROM x",
    "WITH x AS (INSERT INTO orders SELECT 1000, note FROM secrets RETURNING note) SELECT note FROM x",
    "UPDATE orders SET note = secrets.note FROM secrets RETURNING orders.note",
    "INSERT INTO orders SELECT 1000, note FROM secrets RETURNING note",
    "INSERT INTO orders (id) VALUES (2000) ON CONFLICT DO NOTHING RETURNING (SELECT note FROM secrets LIMIT 1)",
    "MERGE INTO orders o USING secrets s ON o.id = s.id WHEN MATCHED THEN DELETE",
    "SELECT note INTO copied FROM orders",
    "CREATE TABLE copied AS SELECT note FROM secrets",
    "CREATE VIEW spy AS SELECT note FROM secrets",
    "CREATE RULE r AS ON SELECT TO orders DO INSTEAD SELECT * FROM secrets",
    "CREATE FUNCTION spy() RETURNS text LANGUAGE sql AS 'SELECT note FROM secrets'",
    "CREATE EXTENSION dblink",
    "ALTER TABLE orders RENAME TO gone",
    "ALTER TABLE secrets RENAME TO orders2",
    "ALTER ROLE updraft SET search_path = vault",
    "ALTER SYSTEM SET log_statement = 'all'",
    "GRANT ALL ON secrets TO public",
    "TRUNCATE orders, secrets",
    "DROP TABLE secrets",
    "LOCK TABLE secrets",
    "VACUUM",
    "REFRESH MATERIALIZED VIEW v",
    "SECURITY LABEL ON TABLE orders IS 'x'",
    "LISTEN x",
    "NOTIFY x, 'PRIVATE'",
    "LOAD 'plpgsql'",
    "IMPORT FOREIGN SCHEMA s FROM SERVER s INTO public",
    "SCHEMA secrets",
    "SCHEMA vault.secrets",
    "SCHEMA pg_catalog.pg_authid",
];

/// Two secrets, a function and two operators that read one of them.
const SETUP: &str = "
    CREATE TABLE orders (id integer, note text);
    CREATE TABLE secrets (id integer, note text);
    CREATE SCHEMA vault;
    CREATE TABLE vault.secrets (id integer, note text);
    CREATE SEQUENCE visits;
    CREATE FUNCTION leak(integer) RETURNS text LANGUAGE sql AS 'SELECT note FROM secrets LIMIT 1';
    CREATE FUNCTION leak(integer, integer) RETURNS text LANGUAGE sql AS 'SELECT note FROM secrets LIMIT 1';
    CREATE OPERATOR public.<~> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = leak);
    CREATE OPERATOR vault.<~> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = leak);
    CREATE PROCEDURE purge() LANGUAGE sql AS 'DELETE FROM orders';
";

async fn attacked(name: &str) -> Connection {
    let secrets = format!(
        "INSERT INTO secrets VALUES (1, '{SECRET}'); INSERT INTO vault.secrets VALUES (1, '{SECRET}');"
    );
    let setup = format!("{SETUP}{secrets}{}", inserts(ORDERS).join(";"));
    database(name, &setup).await
}

async fn counts(connection: &Connection) -> Vec<Cell> {
    let sql = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM secrets), \
               (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)";
    let mut result = writable(connection).run(sql, 1).await.unwrap();
    result.rows.remove(0)
}

#[tokio::test]
async fn a_model_that_obeys_the_rows_of_a_postgresql_table_gets_nothing_and_changes_nothing() {
    let connection = attacked("attacked").await;
    let before = counts(&connection).await;
    let listed = Arguments {
        allowed_tables: Some(vec!["orders"]),
        ..Arguments::default()
    };
    let heard = obey(&connection, &listed, ORDERS).await;
    nothing_was_told(ORDERS, &heard);
    assert_eq!(counts(&connection).await, before);
}

#[tokio::test]
async fn with_writes_allowed_postgresql_still_tells_nothing_of_a_table_beside_the_list() {
    let connection = attacked("attacked_with_writes").await;
    let before = counts(&connection).await;
    let listed = Arguments {
        allowed_tables: Some(vec!["orders"]),
        allow_writes: true,
        ..Arguments::default()
    };
    let heard = obey(&connection, &listed, ORDERS).await;
    nothing_was_told(ORDERS, &heard);
    assert_eq!(counts(&connection).await[1..], before[1..]);
}

#[tokio::test]
async fn without_a_list_the_same_model_reads_the_secret_in_postgresql_and_still_changes_nothing() {
    let connection = attacked("attacked_without_a_list").await;
    let before = counts(&connection).await;
    let heard = obey(&connection, &Arguments::default(), ORDERS).await;
    assert!(heard[0].contains(SECRET), "{}", heard[0]);
    assert_eq!(counts(&connection).await, before);
}
