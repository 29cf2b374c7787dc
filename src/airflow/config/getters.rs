//! Options as booleans, numbers, lists, JSON and paths, read as Airflow reads them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{Config, ConfigError, invalid};

impl Config {
    /// A yes or no: `t`, `true`, `1`, `f`, `false`, `0` in any case; text after a `#` does not count.
    ///
    /// # Errors
    /// Anything else, or unset.
    pub fn get_bool(&self, section: &str, key: &str) -> Result<bool, ConfigError> {
        self.parse(section, key, "True or False", |text| {
            let word = text
                .split('#')
                .next()
                .unwrap_or_default()
                .trim()
                .to_lowercase();
            match word.as_str() {
                "t" | "true" | "1" => Some(true),
                "f" | "false" | "0" => Some(false),
                _ => None,
            }
        })
    }

    /// A whole number; `5.0` is one.
    ///
    /// # Errors
    /// Anything else, or unset.
    pub fn get_int(&self, section: &str, key: &str) -> Result<i64, ConfigError> {
        self.parse(section, key, "a whole number", whole_number)
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// Anything else, or unset.
    pub fn get_uint(&self, section: &str, key: &str) -> Result<u64, ConfigError> {
        self.parse(section, key, "a whole number, 0 or more", |text| {
            u64::try_from(whole_number(text)?).ok()
        })
    }

    /// A finite number.
    ///
    /// # Errors
    /// Anything else, or unset.
    pub fn get_float(&self, section: &str, key: &str) -> Result<f64, ConfigError> {
        self.parse(section, key, "a number", |text| {
            text.trim().parse().ok().filter(|n: &f64| n.is_finite())
        })
    }

    /// A time in seconds, fractions allowed.
    ///
    /// # Errors
    /// Not a number, negative, or unset.
    pub fn get_seconds(&self, section: &str, key: &str) -> Result<Duration, ConfigError> {
        self.parse(section, key, "a number of seconds, 0 or more", |text| {
            Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
        })
    }

    /// A file mode: octal digits, with or without `0o`.
    ///
    /// # Errors
    /// Anything else, or unset.
    pub fn get_mode(&self, section: &str, key: &str) -> Result<u32, ConfigError> {
        self.parse(section, key, "an octal file mode such as 0o775", |text| {
            let text = text.trim();
            let digits = text
                .strip_prefix("0o")
                .or_else(|| text.strip_prefix("0O"))
                .unwrap_or(text);
            u32::from_str_radix(digits, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777)
        })
    }

    /// A comma-separated list, its items trimmed. Unset or empty is an empty list.
    ///
    /// # Errors
    /// See [`Config::setting`].
    pub fn get_list(&self, section: &str, key: &str) -> Result<Vec<String>, ConfigError> {
        let text = self.text(section, key)?.unwrap_or_default();
        Ok(if text.is_empty() {
            Vec::new()
        } else {
            text.split(',').map(|item| item.trim().to_owned()).collect()
        })
    }

    /// A JSON value; `None` when unset or empty.
    ///
    /// # Errors
    /// Not JSON.
    pub fn get_json(&self, section: &str, key: &str) -> Result<Option<Value>, ConfigError> {
        let Some(setting) = self
            .setting(section, key)?
            .filter(|s| !s.value.trim().is_empty())
        else {
            return Ok(None);
        };
        match serde_json::from_str(&setting.value) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(invalid(section, key, format!("JSON ({error})"), &setting)),
        }
    }

    /// A path, `$VAR` and `~` expanded; `None` when unset or empty.
    ///
    /// # Errors
    /// See [`Config::setting`].
    pub fn get_path(&self, section: &str, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.text(section, key)?.map(PathBuf::from))
    }

    fn parse<T>(
        &self,
        section: &str,
        key: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let setting = self
            .setting(section, key)?
            .ok_or_else(|| self.missing(section, key))?;
        read(&setting.value).ok_or_else(|| invalid(section, key, expected, &setting))
    }
}

fn whole_number(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    // 2^53: up to here a float names one whole number.
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|n| n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0)?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "whole and within range, just checked"
    )]
    Some(number as i64)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        Config::new(variables.iter().copied().collect())
    }

    #[test]
    fn booleans_are_read_as_airflow_reads_them() {
        for (text, expected) in [
            ("T", true),
            ("True", true),
            ("1", true),
            ("false # why", false),
            (" F ", false),
            ("0", false),
        ] {
            let config = config(&[("AIRFLOW__TRACES__OTEL_ON", text)]);
            assert_eq!(
                config.get_bool("traces", "otel_on").unwrap(),
                expected,
                "{text}"
            );
        }
        let error = config(&[("AIRFLOW__TRACES__OTEL_ON", "yes")])
            .get_bool("traces", "otel_on")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "[traces] otel_on must be True or False, but environment variable AIRFLOW__TRACES__OTEL_ON says \"yes\""
        );
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        let number = |text| {
            config(&[("AIRFLOW__EDGE__WORKER_CONCURRENCY", text)])
                .get_int("edge", "worker_concurrency")
        };
        assert_eq!(number("5.0").unwrap(), 5);
        assert_eq!(number(" 12 ").unwrap(), 12);
        assert!(number("5.5").is_err());
        assert!(number("").is_err());
    }

    #[test]
    fn lists_json_modes_and_seconds_have_their_own_getters() {
        let config = config(&[
            ("AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES", "alpha, beta ,"),
            (
                "AIRFLOW__SDK__QUEUE_TO_COORDINATOR",
                r#"{"agents": "updraft"}"#,
            ),
            (
                "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS",
                "640",
            ),
            ("AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT", "2.5"),
        ]);
        assert_eq!(
            config.get_list("core", "sensitive_var_conn_names").unwrap(),
            ["alpha", "beta", ""]
        );
        assert_eq!(
            config.get_json("sdk", "queue_to_coordinator").unwrap(),
            Some(serde_json::json!({"agents": "updraft"}))
        );
        assert_eq!(config.get_json("sdk", "coordinators").unwrap(), None);
        assert_eq!(
            config
                .get_mode("logging", "file_task_handler_new_file_permissions")
                .unwrap(),
            0o640
        );
        assert_eq!(
            config
                .get_mode("logging", "file_task_handler_new_folder_permissions")
                .unwrap(),
            0o775
        );
        assert_eq!(
            config
                .get_seconds("workers", "execution_api_timeout")
                .unwrap(),
            Duration::from_millis(2500)
        );
    }

    #[test]
    fn json_that_is_malformed_says_which_option_and_where() {
        let config = config(&[("AIRFLOW__SDK__COORDINATORS", "{")]);
        let text = config
            .get_json("sdk", "coordinators")
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("[sdk] coordinators must be JSON ("),
            "{text}"
        );
        assert!(text.contains("AIRFLOW__SDK__COORDINATORS"), "{text}");
    }
}
