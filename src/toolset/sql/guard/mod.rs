//! The guard: whether a statement may run, from its text alone.
//!
//! It repeats the policy of the Python provider (sqlglot 30.30 under common-ai 1.0.0) on another parser, so it fails
//! closed: what is not understood is refused, and a part of the parser's tree that no rule knows is a refusal, too.
//! No match over the tree has a wildcard arm, so that a newer parser can't bring a node that slips through.
//!
//! The order of work: `lexical` cuts the text into tokens and statements and refuses text that an engine could read
//! in another way; `leading` says what kind of statement stands there; `walk` goes through the parser's tree and
//! notes what it names; `policy` decides.

mod bounded;
mod dialect;
mod functions;
mod leading;
mod lexical;
mod policy;
mod refusal;
mod vendor;
mod walk;

pub use dialect::Dialect;
pub use policy::{Guard, Report};
pub use refusal::Refusal;

#[cfg(test)]
mod tests;
