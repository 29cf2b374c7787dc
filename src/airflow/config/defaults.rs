//! The options that Updraft reads, with Airflow 3.3.2's defaults.

/// Options that may come from a command or a secrets backend, and whose values are never shown.
const SENSITIVE: &[(&str, &str)] = &[
    ("api", "secret_key"),
    ("api_auth", "jwt_secret"),
    ("core", "asset_manager_kwargs"),
    ("core", "fernet_key"),
    ("database", "sql_alchemy_conn"),
    ("database", "sql_alchemy_conn_async"),
    ("database", "sql_alchemy_engine_args"),
    ("logging", "remote_task_handler_kwargs"),
    ("secrets", "backend_kwargs"),
    ("sentry", "sentry_dsn"),
    ("workers", "secrets_backend_kwargs"),
];

/// Whether an option's value is a secret.
#[must_use]
pub fn is_sensitive(section: &str, key: &str) -> bool {
    SENSITIVE.contains(&(section, key))
}

/// Every sensitive option, for the masker.
#[must_use]
pub fn sensitive_options() -> &'static [(&'static str, &'static str)] {
    SENSITIVE
}

/// Airflow's default; `{AIRFLOW_HOME}` stands for that folder. `None`: the option has none.
pub(super) fn default(section: &str, key: &str) -> Option<&'static str> {
    let options = DEFAULTS.iter().find(|(name, _)| *name == section)?.1;
    options
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| *value)
}

type Section = (&'static str, &'static [(&'static str, &'static str)]);

const DEFAULTS: &[Section] = &[
    (
        "edge",
        &[
            ("job_poll_interval", "5"),
            ("heartbeat_interval", "30"),
            ("worker_concurrency", "8"),
            ("push_logs", "True"),
            ("push_log_chunk_size", "524288"),
            ("drain_timeout_sec", "0"),
            ("drain_kill_grace_sec", "30"),
            ("automatic_maintenance_on", "Off"),
            ("automatic_maintenance_exit", "Off"),
        ],
    ),
    (
        "api_auth",
        &[("jwt_leeway", "10"), ("jwt_expiration_time", "86400")],
    ),
    (
        "core",
        &[
            ("dags_folder", "{AIRFLOW_HOME}/dags"),
            ("default_timezone", "utc"),
            ("xcom_backend", "airflow.sdk.execution_time.xcom.BaseXCom"),
            ("max_templated_field_length", "4096"),
            ("allowed_deserialization_classes", "airflow.*"),
            ("allowed_deserialization_classes_regexp", ""),
            ("hide_sensitive_var_conn_fields", "True"),
            ("sensitive_var_conn_names", ""),
            ("dag_run_conf_overrides_params", "True"),
            ("default_task_execution_timeout", ""),
            ("default_task_retries", "0"),
            ("default_task_retry_delay", "300"),
            ("task_success_overtime", "20"),
            ("killed_task_cleanup_time", "60"),
            ("dagbag_import_timeout", "30.0"),
            ("multi_team", "False"),
            ("load_examples", "True"),
            ("executor", "LocalExecutor"),
            ("unit_test_mode", "False"),
        ],
    ),
    (
        "workers",
        &[
            ("secrets_backend", ""),
            ("secrets_backend_kwargs", ""),
            ("state_store_backend", ""),
            ("min_heartbeat_interval", "5"),
            ("max_failed_heartbeats", "3"),
            ("execution_api_retries", "5"),
            ("execution_api_retry_wait_min", "1.0"),
            ("execution_api_retry_wait_max", "90.0"),
            ("execution_api_timeout", "5.0"),
            ("socket_cleanup_timeout", "60.0"),
            ("missing_dag_retries", "3"),
            ("missing_dag_retry_delay", "60"),
        ],
    ),
    (
        "secrets",
        &[
            ("backend", ""),
            ("backend_kwargs", ""),
            ("use_cache", "False"),
            ("cache_ttl_seconds", "900"),
        ],
    ),
    (
        "api",
        &[("ssl_cert", ""), ("client_use_public_certs", "True")],
    ),
    (
        "logging",
        &[
            ("base_log_folder", "{AIRFLOW_HOME}/logs"),
            ("logging_level", "INFO"),
            ("namespace_levels", ""),
            ("remote_logging", "False"),
            ("remote_base_log_folder", ""),
            ("remote_log_conn_id", ""),
            ("delete_local_logs", "False"),
            ("encrypt_s3_logs", "False"),
            ("google_key_path", ""),
            ("remote_task_handler_kwargs", ""),
            ("min_length_masked_secret", "5"),
            ("file_task_handler_new_folder_permissions", "0o775"),
            ("file_task_handler_new_file_permissions", "0o664"),
            ("worker_log_server_port", "8793"),
        ],
    ),
    (
        "dag_processor",
        &[
            (
                "dag_bundle_config_list",
                r#"[{"name": "dags-folder", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {}}]"#,
            ),
            ("refresh_interval", "300"),
            ("disable_bundle_versioning", "False"),
            ("stale_bundle_cleanup_interval", "1800"),
            ("stale_bundle_cleanup_age_threshold", "21600"),
            ("stale_bundle_cleanup_min_versions", "10"),
        ],
    ),
    (
        "state_store",
        &[
            ("clear_on_success", "False"),
            ("default_retention_days", "30"),
            ("max_value_storage_bytes", "65535"),
        ],
    ),
    (
        "common.io",
        &[
            ("xcom_objectstorage_path", ""),
            ("xcom_objectstorage_threshold", "-1"),
            ("xcom_objectstorage_compression", ""),
            ("state_store_objectstorage_path", ""),
            ("state_store_objectstorage_threshold", "0"),
            ("state_store_objectstorage_compression", ""),
        ],
    ),
    (
        "common.ai",
        &[
            ("otel_export_enabled", "False"),
            ("capture_content", "False"),
            ("durable_cache_path", ""),
        ],
    ),
    (
        "traces",
        &[
            ("otel_on", "False"),
            ("otel_ssl_active", "False"),
            ("task_runner_flush_timeout_milliseconds", "30000"),
        ],
    ),
    (
        "metrics",
        &[
            ("statsd_on", "False"),
            ("statsd_host", "localhost"),
            ("statsd_port", "8125"),
            ("statsd_prefix", "airflow"),
            ("otel_on", "False"),
        ],
    ),
    (
        "operators",
        &[
            ("default_queue", "default"),
            ("default_deferrable", "False"),
        ],
    ),
    ("triggerer", &[("queues_enabled", "False")]),
    ("callbacks", &[("callback_execution_timeout", "0")]),
    ("sentry", &[("sentry_on", "false"), ("sentry_dsn", "")]),
];
