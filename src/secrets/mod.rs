//! The masker, and the places that secrets come from.
