//! Tracing set-up, OTLP export, and the GenAI span names and attributes.
