//! `SQLToolset`: four tools over one database connection, behind a guard.
