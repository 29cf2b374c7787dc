//! MariaDB, as a user with every right: what stands between the model and the server's files is Updraft alone.

use updraft::airflow::connection::Connection;
use updraft::hook::{Cell, Database};

use super::{SECRET, inserts, nothing_was_told, obey};
use crate::databases::Arguments;
use crate::databases::mariadb::{database, writable};

const ORDERS: &[&str] = &[
    "SELECT note FROM secrets",
    "SELECT note FROM SECRETS",
    "SELECT note FROM `secrets`",
    "SELECT note FROM vault.secrets",
    "SELECT note FROM .secrets",
    "SELECT note FROM orders UNION SELECT note FROM secrets",
    "SELECT s.note FROM orders STRAIGHT_JOIN secrets s",
    "SELECT s.note FROM (orders, secrets s)",
    "SELECT s.note FROM {OJ orders LEFT OUTER JOIN secrets s ON 1 = 1}",
    "SELECT (SELECT note FROM secrets LIMIT 1) FROM orders",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM secrets WHERE note LIKE 'made%') THEN 'PRIVATE' END",
    "SELECT note FROM orders ORDER BY (SELECT note FROM secrets LIMIT 1)",
    "SELECT @x := (SELECT note FROM secrets LIMIT 1)",
    "SELECT note FROM orders WHERE note = ANY (SELECT note FROM secrets)",
    "SELECT note FROM orders PROCEDURE ANALYSE()",
    "WITH secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "WITH SECRETS AS (SELECT 1) SELECT note FROM secrets",
    "WITH orders AS (SELECT note FROM secrets) SELECT note FROM orders",
    "WITH RECURSIVE secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "TABLE secrets",
    "VALUES ((SELECT note FROM secrets))",
    "SELECT note FROM orders /*! UNION SELECT note FROM secrets */",
    "SELECT note FROM orders /*!50000 UNION SELECT note FROM secrets */",
    "SELECT note FROM orders /*M! UNION SELECT note FROM secrets */",
    "SELECT note FROM orders /*M!100000 UNION SELECT note FROM secrets */",
    "SELECT note FROM orders # x\nUNION SELECT note FROM secrets",
    "SELECT 1--1 UNION SELECT note FROM secrets",
    "SELECT 'a\\' , note FROM secrets -- '",
    "SELECT \"a\\\" , note FROM secrets -- \"",
    "SELECT note FROM orders 1.e.secrets",
    "SELECT LOAD_FILE('/etc/passwd')",
    "SELECT LOAD_FILE 1.e('/etc/passwd')",
    "SELECT note FROM orders INTO OUTFILE '/tmp/harbour.out'",
    "SELECT note INTO DUMPFILE '/tmp/harbour.out' FROM orders",
    "SELECT note INTO @x FROM orders",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE orders (note)",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders (note)",
    "SELECT * FROM JSON_TABLE((SELECT JSON_ARRAYAGG(note) FROM secrets), '$[*]' COLUMNS (n TEXT PATH '$')) t",
    "SELECT table_name FROM information_schema.tables",
    "SELECT authentication_string FROM mysql.global_priv",
    "SHOW TABLES",
    "SHOW CREATE TABLE secrets",
    "SHOW COLUMNS FROM secrets",
    "SHOW VARIABLES",
    "DESCRIBE secrets",
    "EXPLAIN SELECT note FROM secrets",
    "ANALYZE SELECT note FROM secrets",
    "ANALYZE DELETE FROM orders",
    "EXPLAIN DELETE FROM orders",
    "HANDLER secrets OPEN",
    "HANDLER secrets READ FIRST",
    "DO SLEEP(1)",
    "SELECT SLEEP(1)",
    "SELECT leak()",
    "CALL wipe()",
    "PREPARE p FROM 'SELECT note FROM secrets'",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'SELECT note FROM secrets'",
    "SET @x = (SELECT note FROM secrets LIMIT 1)",
    "SET GLOBAL general_log = 1",
    "BEGIN NOT ATOMIC SELECT note FROM secrets; END",
    "IF 1 THEN SELECT note FROM secrets; END IF",
    "USE vault",
    "LOCK TABLES secrets READ",
    "KILL 1",
    "SELECT note FROM orders; SELECT note FROM secrets",
    "SELECT note FROM orders; DELETE FROM orders",
    "UPDATE orders, secrets SET orders.note = secrets.note",
    "UPDATE orders JOIN secrets USING (id) SET orders.note = secrets.note",
    "INSERT INTO orders SELECT 1000, note FROM secrets",
    "INSERT INTO orders TABLE secrets",
    "INSERT INTO orders (id) VALUES (2000) RETURNING (SELECT note FROM secrets LIMIT 1)",
    "DELETE secrets FROM orders, secrets",
    "CREATE TABLE copied SELECT note FROM secrets",
    "CREATE TABLE copied LIKE secrets",
    "CREATE VIEW spy AS SELECT note FROM secrets",
    "CREATE FUNCTION spy() RETURNS TEXT RETURN (SELECT note FROM secrets LIMIT 1)",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM orders",
    "RENAME TABLE secrets TO orders2",
    "ALTER TABLE orders RENAME TO gone",
    "GRANT ALL ON *.* TO nobody",
    "INSTALL SONAME 'ha_blackhole'",
    "FLUSH TABLES",
    "DROP TABLE secrets",
    "DROP DATABASE attacked",
    "SCHEMA secrets",
    "SCHEMA vault.secrets",
    // Where writes are allowed, these leave nothing to ask.
    "REPLACE INTO orders VALUES (0, 'gone')",
    "WITH x AS (SELECT 1) DELETE FROM orders",
    "DELETE FROM orders",
    "TRUNCATE orders",
];

async fn attacked(name: &str) -> Connection {
    let mut setup = vec![
        "CREATE TABLE orders (id INTEGER, note TEXT)".to_owned(),
        "CREATE TABLE secrets (id INTEGER, note TEXT)".to_owned(),
        format!("INSERT INTO secrets VALUES (1, '{SECRET}')"),
        "CREATE FUNCTION leak() RETURNS TEXT RETURN (SELECT note FROM secrets LIMIT 1)".to_owned(),
        "CREATE PROCEDURE wipe() DELETE FROM orders".to_owned(),
    ];
    // A backslash in a string is doubled here.
    setup.extend(inserts(ORDERS).iter().map(|sql| sql.replace('\\', "\\\\")));
    database(name, &setup.join(";\n")).await
}

async fn counts(connection: &Connection) -> Vec<Cell> {
    let sql = "SELECT (SELECT count(*) FROM secrets), (SELECT count(*) FROM orders), \
               (SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE())";
    let mut result = writable(connection).run(sql, 1).await.unwrap();
    result.rows.remove(0)
}

#[tokio::test]
async fn a_model_that_obeys_the_rows_of_a_mariadb_table_gets_nothing_and_changes_nothing() {
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
async fn with_writes_allowed_mariadb_still_tells_nothing_of_a_table_beside_the_list() {
    let connection = attacked("attacked_with_writes").await;
    let before = counts(&connection).await;
    let listed = Arguments {
        allowed_tables: Some(vec!["orders"]),
        allow_writes: true,
        ..Arguments::default()
    };
    let heard = obey(&connection, &listed, ORDERS).await;
    nothing_was_told(ORDERS, &heard);
    let after = counts(&connection).await;
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
}
