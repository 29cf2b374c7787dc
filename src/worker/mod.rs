//! The edge worker: registration, heartbeat, fetch, slots and drain.
