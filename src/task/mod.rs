//! The task process: one try of one task, from its start-up details to its terminal message.
