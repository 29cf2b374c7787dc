//! Native hooks and the database drivers behind them, shared with `toolset/sql`.
