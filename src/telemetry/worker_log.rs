//! The log of the worker itself: masked lines on standard error. A task's log is another thing (`task::log`).

use std::io::{self, Write};

use tracing_subscriber::filter::{Directive, EnvFilter, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;

use crate::airflow::config::{Config, ConfigError};
use crate::secrets::Masker;

/// Sends `tracing` events of this process to standard error, with every secret that `masker` knows replaced.
///
/// `RUST_LOG` says what is shown, else `[logging] logging_level`. Does nothing when a log is set up already.
///
/// # Errors
/// `[logging] logging_level` is no level.
pub fn start(config: &Config, masker: &Masker) -> Result<(), ConfigError> {
    let default = level(config)?;
    let filter = match config
        .environment()
        .get("RUST_LOG")
        .filter(|filter| !filter.is_empty())
    {
        Some(filter) => EnvFilter::builder()
            .with_default_directive(default.into())
            .parse_lossy(filter),
        None => EnvFilter::default()
            .add_directive(default.into())
            .add_directive(quiet("opentelemetry_sdk", default))
            .add_directive(quiet("rmcp", default)),
    };
    // Another log is there already: in tests, or when a library user has one. That one stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(MaskedStderr(masker.clone()))
        .try_init();
    Ok(())
}

/// Python's level names, as `[logging] logging_level` has them.
fn level(config: &Config) -> Result<LevelFilter, ConfigError> {
    let text = config.get("logging", "logging_level")?.unwrap_or_default();
    Ok(match text.trim().to_uppercase().as_str() {
        "DEBUG" | "NOTSET" => LevelFilter::DEBUG,
        "INFO" => LevelFilter::INFO,
        "WARNING" | "WARN" => LevelFilter::WARN,
        "ERROR" | "CRITICAL" | "FATAL" => LevelFilter::ERROR,
        _ => {
            return Err(config.invalid(
                "logging",
                "logging_level",
                "DEBUG, INFO, WARNING, ERROR or CRITICAL",
            ));
        }
    })
}

/// A library whose events at `info` and below are about each batch or message that it sends.
fn quiet(library: &str, default: LevelFilter) -> Directive {
    let level = default.min(LevelFilter::WARN);
    format!("{library}={level}")
        .parse()
        .unwrap_or_else(|_| Directive::from(level))
}

#[derive(Clone, Debug)]
struct MaskedStderr(Masker);

impl<'a> MakeWriter<'a> for MaskedStderr {
    type Writer = MaskedLine<io::StderrLock<'a>>;

    fn make_writer(&'a self) -> Self::Writer {
        MaskedLine {
            out: io::stderr().lock(),
            masker: self.0.clone(),
        }
    }
}

/// Masks what is written to it. The subscriber writes one whole event at a time.
struct MaskedLine<W> {
    out: W,
    masker: Masker,
}

impl<W: Write> Write for MaskedLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(
            self.masker
                .redact_line(&String::from_utf8_lossy(bytes))
                .as_bytes(),
        )?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn lines_are_masked_on_their_way_out() {
        let masker = Masker::new();
        masker.add_secret("made-up-secret");
        let mut line = MaskedLine {
            out: Vec::new(),
            masker,
        };
        line.write_all(b"password made-up-secret, token eyJhbGciOi.x\n")
            .unwrap();
        assert_eq!(
            String::from_utf8(line.out).unwrap(),
            "password ***, token eyJ***\n"
        );
    }

    #[test]
    fn the_level_is_pythons() {
        let of = |text| {
            level(&Config::new(
                [("AIRFLOW__LOGGING__LOGGING_LEVEL", text)]
                    .into_iter()
                    .collect(),
            ))
        };
        assert_eq!(of("warning").unwrap(), LevelFilter::WARN);
        assert_eq!(of("CRITICAL").unwrap(), LevelFilter::ERROR);
        assert!(
            of("loud")
                .unwrap_err()
                .to_string()
                .starts_with("[logging] logging_level must be DEBUG, INFO")
        );
    }
}
