//! What kind of statement stands there, from its first words, by the names of sqlglot's nodes.
//!
//! Most kinds are refused by name alone, whether or not the parser here could read them; that is also how the
//! original decides, which keeps what it can't model as `Command`.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::Dialect;

/// A statement's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leading {
    /// SELECT, WITH, a bracket, VALUES, TABLE, FROM: the tree says what it is.
    Query,
    /// DESCRIBE, DESC; EXPLAIN on MySQL.
    Describe,
    /// A SHOW that the dialect models.
    Show,
    /// What the original keeps as raw text.
    Command,
    /// Another statement, by its node's name.
    Statement(&'static str),
    /// An expression where a statement should stand, by its node's name.
    Expression(&'static str),
    /// Nothing that can be read.
    Unreadable,
}

/// The kind of a statement that has at least one token.
pub(super) fn classify(tokens: &[TokenWithSpan], dialect: Dialect) -> Leading {
    let words = Words(tokens);
    let Some(first) = words.keyword(0) else {
        return expression(tokens);
    };
    let second = words.keyword(1);
    let second = second.as_deref().unwrap_or_default();
    use Dialect::{
        BigQuery, ClickHouse, Databricks, DuckDb, Hive, MySql, Oracle, Postgres, Redshift,
        Snowflake, Spark, Sqlite, TSql, Trino,
    };
    let is = |dialects: &[Dialect]| dialects.contains(&dialect);
    match first.as_str() {
        "SELECT" | "WITH" | "FROM" => Leading::Query,
        "VALUES" => Leading::Query,
        "TABLE" if is(&[Dialect::Generic, Postgres, MySql, DuckDb, Redshift, Trino]) => {
            Leading::Query
        }
        "DESCRIBE" | "DESC" => Leading::Describe,
        "EXPLAIN" if dialect == MySql => Leading::Describe,
        "SHOW" if is_modelled_show(&words, dialect) => Leading::Show,
        "EXPLAIN" | "SHOW" | "CALL" | "VACUUM" | "OPTIMIZE" | "PREPARE" | "FETCH" | "RENAME" => {
            Leading::Command
        }
        "GRANT" | "REVOKE" if !words.any("ON") => Leading::Command,
        "CREATE" | "DROP" | "ALTER" if is_command_ddl(&first, &words, dialect) => Leading::Command,
        "INSERT" => Leading::Statement("Insert"),
        "UPDATE" => Leading::Statement("Update"),
        "DELETE" => Leading::Statement("Delete"),
        "MERGE" => Leading::Statement("Merge"),
        "CREATE" => Leading::Statement("Create"),
        "DROP" => Leading::Statement("Drop"),
        "ALTER" => Leading::Statement("Alter"),
        "TRUNCATE" => Leading::Statement("TruncateTable"),
        "COPY" => Leading::Statement("Copy"),
        "COMMENT" if second == "ON" => Leading::Statement("Comment"),
        "COMMENT" => Leading::Command,
        "GRANT" => Leading::Statement("Grant"),
        "REVOKE" => Leading::Statement("Revoke"),
        "ANALYZE" => Leading::Statement("Analyze"),
        "CACHE" => Leading::Statement("Cache"),
        "UNCACHE" => Leading::Statement("Uncache"),
        "KILL" => Leading::Statement("Kill"),
        "PRAGMA" => Leading::Statement("Pragma"),
        "SET" => Leading::Statement("Set"),
        "USE" => Leading::Statement("Use"),
        "COMMIT" => Leading::Statement("Commit"),
        "ROLLBACK" => Leading::Statement("Rollback"),
        "END" if is(&[Postgres, Redshift]) => Leading::Statement("Commit"),
        "BEGIN" if is(&[BigQuery, TSql]) && !second.starts_with("TRAN") => Leading::Command,
        "BEGIN" => Leading::Statement("Transaction"),
        "START" if is(&[MySql, Trino, Oracle]) => Leading::Statement("Transaction"),
        "LOAD" if second == "DATA" && dialect == BigQuery => Leading::Statement("LoadData"),
        "LOAD" if second == "DATA" => Leading::Unreadable,
        "LOAD" => Leading::Command,
        "DECLARE" if is(&[Postgres, Redshift]) => Leading::Command,
        "DECLARE" if is(&[BigQuery, TSql, Trino, Databricks, Spark]) => {
            Leading::Statement("Declare")
        }
        "EXEC" | "EXECUTE" if dialect == TSql && words.text(1).is_some_and(is_executesql) => {
            Leading::Statement("ExecuteSql")
        }
        "EXEC" | "EXECUTE" if dialect == TSql => Leading::Statement("Execute"),
        "EXECUTE" => Leading::Command,
        "EXEC" if is(&[Postgres, Redshift]) => Leading::Command,
        "IF" if dialect == TSql => Leading::Statement("IfBlock"),
        "IF" => Leading::Command,
        "WHILE" if dialect == BigQuery => Leading::Command,
        "WHILE" => Leading::Statement("WhileBlock"),
        "PIVOT" | "UNPIVOT" if dialect != Snowflake => Leading::Statement("Pivot"),
        "REPLACE" if is(&[MySql, Sqlite]) => Leading::Command,
        "LOCK" | "DO" | "REINDEX" | "REFRESH" | "RESET" if is(&[Postgres, Redshift]) => {
            Leading::Command
        }
        "REFRESH" if is(&[Trino, Databricks, Spark, Hive]) => Leading::Statement("Refresh"),
        "RESET" if dialect == DuckDb => Leading::Command,
        // The original calls it a mistake of grammar; on MySQL it locks tables.
        "LOCK" | "UNLOCK" if dialect == MySql => Leading::Command,
        "UNLOAD" if dialect == Redshift => Leading::Command,
        "ATTACH" if is(&[Sqlite, DuckDb]) => Leading::Statement("Attach"),
        "DETACH" if is(&[Sqlite, DuckDb, ClickHouse]) => Leading::Statement("Detach"),
        "ATTACH" | "EXCHANGE" | "SYSTEM" if dialect == ClickHouse => Leading::Command,
        "INSTALL" if dialect == DuckDb => Leading::Statement("Install"),
        "SUMMARIZE" if dialect == DuckDb => Leading::Statement("Summarize"),
        "EXPORT" if dialect == BigQuery && second == "DATA" => Leading::Statement("Export"),
        "PUT" if dialect == Snowflake => Leading::Statement("Put"),
        "LIST" | "LS" if dialect == Snowflake => Leading::Statement("ListStage"),
        "GET" | "REMOVE" | "RM" if dialect == Snowflake => Leading::Command,
        "UNDROP" if dialect == Snowflake => Leading::Statement("Undrop"),
        "PRINT" if dialect == TSql => Leading::Command,
        "END" | "LOOP" | "REPEAT" if is(&[BigQuery, TSql]) => Leading::Command,
        "ADD" | "MSCK" if is(&[Databricks, Spark, Hive]) => Leading::Command,
        _ => expression(tokens),
    }
}

fn is_executesql(name: &str) -> bool {
    name.eq_ignore_ascii_case("sp_executesql")
}

/// DDL of objects that the original does not model.
fn is_command_ddl(first: &str, words: &Words<'_>, dialect: Dialect) -> bool {
    let object = (1..6)
        .filter_map(|index| words.keyword(index))
        .find(|word| {
            !matches!(
                word.as_str(),
                "OR" | "REPLACE" | "TEMP" | "TEMPORARY" | "IF" | "NOT" | "EXISTS"
            )
        });
    let Some(object) = object else {
        return false;
    };
    match (first, object.as_str()) {
        ("ALTER", "SESSION") => dialect != Dialect::Snowflake,
        ("DROP", "ROLE") => dialect != Dialect::Snowflake,
        ("CREATE", "ROLE" | "USER" | "EXTENSION" | "SERVER") | ("DROP", "USER") => true,
        ("ALTER", "USER" | "SYSTEM" | "DATABASE" | "ROLE") => true,
        _ => false,
    }
}

/// Words alone give a column, an alias or a literal; more than that is a mistake of grammar.
fn expression(tokens: &[TokenWithSpan]) -> Leading {
    let kinds: Vec<&Token> = tokens.iter().map(|token| &token.token).collect();
    match kinds.as_slice() {
        [Token::LParen, ..] => Leading::Query,
        [Token::Word(_)] => Leading::Expression("Column"),
        [Token::Number(..) | Token::SingleQuotedString(_)] => Leading::Expression("Literal"),
        [Token::Word(_), Token::Word(_)] => Leading::Expression("Alias"),
        // Two tokens in other dialects' eyes, one parameter in the original's: LIST @stage.
        [Token::Word(_), Token::AtSign, Token::Word(_)] => Leading::Expression("Alias"),
        _ => Leading::Unreadable,
    }
}

fn is_modelled_show(words: &Words<'_>, dialect: Dialect) -> bool {
    const MYSQL: &[&str] = &[
        "TABLES",
        "DATABASES",
        "SCHEMAS",
        "COLUMNS",
        "CREATE",
        "VARIABLES",
        "GRANTS",
        "FULL",
        "INDEX",
        "STATUS",
        "GLOBAL",
        "SESSION",
        "ENGINES",
        "ENGINE",
        "PROCESSLIST",
        "WARNINGS",
        "ERRORS",
        "COUNT",
        "EVENTS",
        "TRIGGERS",
        "TABLE",
        "BINARY",
        "BINLOG",
        "MASTER",
        "SLAVE",
        "REPLICA",
        "REPLICAS",
        "RELAYLOG",
        "COLLATION",
        "CHARACTER",
        "CHARSET",
        "PLUGINS",
        "PRIVILEGES",
        "PROFILE",
        "PROFILES",
        "OPEN",
        "FUNCTION",
        "PROCEDURE",
    ];
    const SNOWFLAKE: &[&str] = &[
        "TABLES",
        "DATABASES",
        "SCHEMAS",
        "COLUMNS",
        "VIEWS",
        "FUNCTIONS",
        "PROCEDURES",
        "WAREHOUSES",
        "USERS",
        "STAGES",
        "OBJECTS",
        "PRIMARY",
        "IMPORTED",
        "UNIQUE",
        "SEQUENCES",
        "TERSE",
        "FILE",
    ];
    let Some(second) = words.keyword(1) else {
        return false;
    };
    match dialect {
        Dialect::MySql => MYSQL.contains(&second.as_str()),
        Dialect::Snowflake => SNOWFLAKE.contains(&second.as_str()),
        Dialect::DuckDb => {
            second == "TABLES" || (second == "ALL" && words.keyword(2).as_deref() == Some("TABLES"))
        }
        Dialect::Generic
        | Dialect::Postgres
        | Dialect::Sqlite
        | Dialect::BigQuery
        | Dialect::TSql
        | Dialect::Redshift
        | Dialect::Trino
        | Dialect::Oracle
        | Dialect::ClickHouse
        | Dialect::Databricks
        | Dialect::Spark
        | Dialect::Hive => false,
    }
}

/// A word behind the first that T-SQL takes for the start of a second statement and parsers take for an alias:
/// `SELECT 1 SHUTDOWN` needs no semicolon there. Statements of more words leave something that can't be read.
pub(super) fn second_statement(tokens: &[TokenWithSpan], dialect: Dialect) -> Option<String> {
    const ONE_WORD: &[&str] = &[
        "BREAK",
        "CHECKPOINT",
        "COMMIT",
        "CONTINUE",
        "EXEC",
        "EXECUTE",
        "RECONFIGURE",
        "RETURN",
        "REVERT",
        "ROLLBACK",
        "SEND",
        "SETUSER",
        "SHUTDOWN",
        "THROW",
        "WAITFOR",
    ];
    if dialect != Dialect::TSql {
        return None;
    }
    let words = Words(tokens);
    (1..tokens.len()).find_map(|index| {
        let word = words.keyword(index)?;
        let before = tokens.get(index - 1).map(|token| &token.token);
        let is_name =
            before == Some(&Token::Period) || words.keyword(index - 1).as_deref() == Some("AS");
        (!is_name && ONE_WORD.contains(&word.as_str())).then_some(word)
    })
}

/// Tokens as unquoted words.
pub(super) struct Words<'a>(pub(super) &'a [TokenWithSpan]);

impl Words<'_> {
    /// The upper-cased word at `index`, if one stands there without quotes.
    pub(super) fn keyword(&self, index: usize) -> Option<String> {
        match &self.0.get(index)?.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        }
    }

    fn text(&self, index: usize) -> Option<&str> {
        match &self.0.get(index)?.token {
            Token::Word(word) => Some(&word.value),
            _ => None,
        }
    }

    fn any(&self, keyword: &str) -> bool {
        (0..self.0.len()).any(|index| self.keyword(index).as_deref() == Some(keyword))
    }
}
