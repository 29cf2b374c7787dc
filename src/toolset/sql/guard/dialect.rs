//! The dialects, by the names sqlglot gives them, and how each cuts text into tokens.

use std::str::FromStr;

use sqlparser::dialect as parser;

/// A SQL dialect. `Generic` stands for a database nobody knows: its text is read by the common rules only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    #[default]
    Generic,
    Postgres,
    MySql,
    Sqlite,
    Snowflake,
    BigQuery,
    DuckDb,
    TSql,
    Redshift,
    Trino,
    Oracle,
    ClickHouse,
    Databricks,
    Spark,
    Hive,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 15] = [
        Self::Generic,
        Self::Postgres,
        Self::MySql,
        Self::Sqlite,
        Self::Snowflake,
        Self::BigQuery,
        Self::DuckDb,
        Self::TSql,
        Self::Redshift,
        Self::Trino,
        Self::Oracle,
        Self::ClickHouse,
        Self::Databricks,
        Self::Spark,
        Self::Hive,
    ];
}

/// Where `$...$` quotes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DollarQuotes {
    Never,
    /// `$$...$$` only.
    Plain,
    /// `$tag$...$tag$` as well.
    Tagged,
}

/// Where a setting of the server says whether a backslash escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackslashSetting {
    No,
    /// MySQL's `NO_BACKSLASH_ESCAPES`, PostgreSQL's `standard_conforming_strings`.
    InPlainStrings,
    /// Spark's `doubleQuotedIdentifiers`: names have no escapes.
    InDoubleQuotes,
}

/// How an engine cuts text: quotes, escapes and comments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexicon {
    /// A backslash in a string takes the next character with it.
    pub backslash: bool,
    pub backslash_is_a_setting: BackslashSetting,
    /// `r'...'` has no escapes, where other strings have them.
    pub raw_strings: bool,
    /// The server puts values in place of `${...}` before it reads the text.
    pub substitutes_variables: bool,
    /// `E'...'` is a string with backslash escapes.
    pub escape_strings: bool,
    /// `"..."` is a string, not an identifier.
    pub double_quoted_strings: bool,
    pub backtick_identifiers: bool,
    pub bracket_identifiers: bool,
    /// `'''...'''` and `"""..."""`.
    pub triple_quotes: bool,
    pub dollar_quotes: DollarQuotes,
    /// `--` needs white space behind it to be a comment.
    pub dashes_need_space: bool,
    pub hash_comments: bool,
    pub slash_comments: bool,
    /// `/*! ... */` is run by the engine.
    pub executable_comments: bool,
    /// A `#` outside quotes is an operator or part of a name.
    pub hash_symbol: bool,
}

impl Dialect {
    /// The dialect of a database, by SQLAlchemy's name for it; a name nobody knows is [`Dialect::Generic`].
    #[must_use]
    pub fn of_database(name: &str) -> Self {
        match name {
            "postgresql" => Self::Postgres,
            "mssql" => Self::TSql,
            "mariadb" => Self::MySql,
            other => other.parse().unwrap_or_default(),
        }
    }

    /// The name in `known_functions.json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Generic => "default",
            Self::Postgres => "postgres",
            Self::MySql => "mysql",
            Self::Sqlite => "sqlite",
            Self::Snowflake => "snowflake",
            Self::BigQuery => "bigquery",
            Self::DuckDb => "duckdb",
            Self::TSql => "tsql",
            Self::Redshift => "redshift",
            Self::Trino => "trino",
            Self::Oracle => "oracle",
            Self::ClickHouse => "clickhouse",
            Self::Databricks => "databricks",
            Self::Spark => "spark",
            Self::Hive => "hive",
        }
    }

    pub(super) fn parser(self) -> &'static dyn parser::Dialect {
        match self {
            Self::Generic | Self::Trino => &parser::GenericDialect {},
            Self::Postgres => &parser::PostgreSqlDialect {},
            Self::MySql => &parser::MySqlDialect {},
            Self::Sqlite => &parser::SQLiteDialect {},
            Self::Snowflake => &parser::SnowflakeDialect {},
            Self::BigQuery => &parser::BigQueryDialect {},
            Self::DuckDb => &parser::DuckDbDialect {},
            Self::TSql => &parser::MsSqlDialect {},
            Self::Redshift => &parser::RedshiftSqlDialect {},
            Self::Oracle => &parser::OracleDialect {},
            Self::ClickHouse => &parser::ClickHouseDialect {},
            Self::Databricks => &parser::DatabricksDialect {},
            Self::Spark => &parser::SparkSqlDialect {},
            Self::Hive => &parser::HiveDialect {},
        }
    }

    pub(super) fn lexicon(self) -> Lexicon {
        let plain = Lexicon {
            backslash: false,
            backslash_is_a_setting: BackslashSetting::No,
            raw_strings: false,
            substitutes_variables: false,
            escape_strings: false,
            double_quoted_strings: false,
            backtick_identifiers: false,
            bracket_identifiers: false,
            triple_quotes: false,
            dollar_quotes: DollarQuotes::Never,
            dashes_need_space: false,
            hash_comments: false,
            slash_comments: false,
            executable_comments: false,
            hash_symbol: false,
        };
        match self {
            Self::Trino | Self::Oracle => plain,
            // What any of the engines behind it might do is not read.
            Self::Generic => Lexicon {
                backslash_is_a_setting: BackslashSetting::InPlainStrings,
                executable_comments: true,
                ..plain
            },
            Self::Postgres | Self::Redshift => Lexicon {
                backslash_is_a_setting: BackslashSetting::InPlainStrings,
                escape_strings: true,
                dollar_quotes: DollarQuotes::Tagged,
                hash_symbol: true,
                ..plain
            },
            Self::MySql => Lexicon {
                backslash: true,
                backslash_is_a_setting: BackslashSetting::InPlainStrings,
                double_quoted_strings: true,
                backtick_identifiers: true,
                dashes_need_space: true,
                hash_comments: true,
                executable_comments: true,
                ..plain
            },
            Self::Sqlite => Lexicon {
                backtick_identifiers: true,
                bracket_identifiers: true,
                ..plain
            },
            Self::Snowflake => Lexicon {
                backslash: true,
                dollar_quotes: DollarQuotes::Plain,
                slash_comments: true,
                ..plain
            },
            Self::BigQuery => Lexicon {
                backslash: true,
                double_quoted_strings: true,
                backtick_identifiers: true,
                triple_quotes: true,
                hash_comments: true,
                ..plain
            },
            Self::DuckDb => Lexicon {
                escape_strings: true,
                dollar_quotes: DollarQuotes::Tagged,
                hash_symbol: true,
                ..plain
            },
            Self::TSql => Lexicon {
                bracket_identifiers: true,
                hash_symbol: true,
                ..plain
            },
            Self::ClickHouse => Lexicon {
                backslash: true,
                backtick_identifiers: true,
                ..plain
            },
            Self::Databricks | Self::Spark | Self::Hive => Lexicon {
                backslash: true,
                backslash_is_a_setting: BackslashSetting::InDoubleQuotes,
                raw_strings: true,
                substitutes_variables: true,
                double_quoted_strings: true,
                backtick_identifiers: true,
                ..plain
            },
        }
    }

    /// Whether two spellings of a table's name that differ in case can be two tables, so that a name must match a
    /// WITH clause's to the letter before it is taken for it.
    pub(super) fn table_names_keep_case(self) -> bool {
        match self {
            Self::MySql | Self::ClickHouse | Self::TSql | Self::Generic => true,
            Self::Postgres
            | Self::Sqlite
            | Self::Snowflake
            | Self::BigQuery
            | Self::DuckDb
            | Self::Redshift
            | Self::Trino
            | Self::Oracle
            | Self::Databricks
            | Self::Spark
            | Self::Hive => false,
        }
    }
}

/// The name is not a dialect's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dialect {0:?}: use one of postgres, mysql, sqlite, snowflake, bigquery, duckdb, tsql, redshift, trino, \
     oracle, clickhouse, databricks, spark, hive"
)]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Ok(match name {
            "" | "default" => Self::Generic,
            "postgres" => Self::Postgres,
            "mysql" => Self::MySql,
            "sqlite" => Self::Sqlite,
            "snowflake" => Self::Snowflake,
            "bigquery" => Self::BigQuery,
            "duckdb" => Self::DuckDb,
            "tsql" => Self::TSql,
            "redshift" => Self::Redshift,
            "trino" | "presto" | "athena" => Self::Trino,
            "oracle" => Self::Oracle,
            "clickhouse" => Self::ClickHouse,
            "databricks" => Self::Databricks,
            "spark" => Self::Spark,
            "hive" => Self::Hive,
            other => return Err(UnknownDialect(other.to_owned())),
        })
    }
}
