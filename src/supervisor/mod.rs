//! The supervisor: one job, from `PATCH run` to its final state.
