//! What the model is told when a statement may not run. The texts are the Python provider's.

/// Why a statement was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error("Empty SQL input.")]
    Empty,
    #[error("Multiple statements detected ({0}). Only single statements are allowed by default.")]
    Multiple(usize),
    /// The text can't be cut into tokens.
    #[error("Error tokenizing the statement: {0}")]
    Tokens(String),
    /// The text can't be read as a statement of this dialect, or could be read in more than one way.
    #[error("SQL parse error: {0}")]
    Parse(String),
    /// The statement is of a kind that a read-only toolset does not run.
    #[error(
        "Statement type '{0}' is not allowed. Allowed types: Select, Union, Intersect, Except, Describe, Show"
    )]
    StatementType(&'static str),
    /// The statement is of a kind that is not among those that were named.
    #[error("Statement type '{statement_type}' is not allowed. Allowed types: {allowed}")]
    NotOfTypes {
        statement_type: String,
        /// Joined with commas.
        allowed: String,
    },
    /// Something that writes stands inside a statement that reads.
    #[error(
        "Data-modifying operation '{0}' found inside statement. Only pure read operations are allowed in read-only \
         mode."
    )]
    Modifies(&'static str),
    /// The allow-list can't say what this would reach.
    #[error(
        "Query uses a data source that cannot be checked against allowed_tables: {0}. Query the allowed tables \
         directly: use list_tables to see them."
    )]
    Unverifiable(String),
    /// Tables that are not on the list, sorted, joined with commas.
    #[error(
        "Query references tables that are not in the allowed tables list: {0}. Use list_tables to see the allowed \
         tables."
    )]
    Tables(String),
}
