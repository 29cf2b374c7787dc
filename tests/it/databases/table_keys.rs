//! Keys and indexes of tables, as SQLAlchemy's inspector gives them for the same statements.

use pretty_assertions::assert_eq;
use updraft::hook::Database;
use updraft::hook::table_keys::TableKeys;

use super::{mariadb, postgres};

/// Everything of a table in one text.
async fn described(database: &dyn Database, table: &str) -> String {
    let keys = TableKeys::of(database, table).unwrap();
    let mut parts = vec![keys.primary_key().await.unwrap().join(",")];
    for key in keys.foreign_keys().await.unwrap() {
        parts.push(format!(
            "({}) -> {}({})",
            key.columns.join(","),
            key.table,
            key.referred_columns.join(",")
        ));
    }
    for index in keys.indexes().await.unwrap() {
        let unique = if index.unique { "UNIQUE " } else { "" };
        parts.push(format!(
            "{unique}{} ({})",
            index.name,
            index.columns.join(",")
        ));
    }
    parts.join("; ")
}

#[tokio::test]
async fn postgres_tells_its_keys_in_their_own_order() {
    let connection = postgres::database(
        "keys",
        "CREATE TABLE quays (harbour int, number int, PRIMARY KEY (number, harbour));
         CREATE TABLE \"Odd 'Ships\" (b int, a int, name text UNIQUE, PRIMARY KEY (a, b),
             CONSTRAINT lies_at FOREIGN KEY (a, b) REFERENCES quays (number, harbour));
         CREATE INDEX by_b ON \"Odd 'Ships\" (b, lower(name)) INCLUDE (a)",
    )
    .await;
    let database = postgres::read_only(&connection);
    assert_eq!(
        described(&database, "Odd 'Ships").await,
        "a,b; (a,b) -> quays(number,harbour); UNIQUE Odd 'Ships_name_key (name); by_b (b)"
    );
    assert_eq!(described(&database, "quays").await, "number,harbour");
    assert_eq!(described(&database, "nothing").await, "");
}

#[tokio::test]
async fn mariadb_tells_its_keys_in_their_own_order() {
    let connection = mariadb::database(
        "key_order",
        "CREATE TABLE quays (harbour int, number int, PRIMARY KEY (number, harbour));
         CREATE TABLE `odd'ships` (b int, a int, name varchar(20), PRIMARY KEY (a, b), UNIQUE KEY by_name (name),
             KEY by_b (b, name), CONSTRAINT lies_at FOREIGN KEY (a, b) REFERENCES quays (number, harbour))",
    )
    .await;
    let database = mariadb::read_only(&connection);
    assert_eq!(
        described(&database, "odd'ships").await,
        "a,b; (a,b) -> quays(number,harbour); UNIQUE by_name (name); by_b (b,name)"
    );
    assert_eq!(described(&database, "quays").await, "number,harbour");
}
