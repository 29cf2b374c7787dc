//! The one integration binary.

mod sql_corpus;
