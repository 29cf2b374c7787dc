//! Word to systemd, where it started this worker with `Type=notify`: ready, ending, and alive for its watchdog.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Where to send word; says nothing when nobody has asked.
#[derive(Debug, Default)]
pub struct Systemd {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Systemd {
    /// As this process was told: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`. Task processes don't see these.
    #[must_use]
    pub fn from_env() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self::new(
            variable("NOTIFY_SOCKET").as_deref(),
            variable("WATCHDOG_USEC").as_deref(),
            variable("WATCHDOG_PID").as_deref(),
        )
    }

    fn new(socket: Option<&str>, watchdog_usec: Option<&str>, watchdog_pid: Option<&str>) -> Self {
        let Some(path) = socket.filter(|path| !path.is_empty()) else {
            return Self::default();
        };
        let opened = || {
            let address = match path.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(path)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            Ok::<_, std::io::Error>((socket, address))
        };
        let to = match opened() {
            Ok(to) => to,
            Err(error) => {
                tracing::warn!("systemd hears nothing from this worker: {path}: {error}");
                return Self::default();
            }
        };
        let for_us = watchdog_pid.is_none_or(|pid| pid == std::process::id().to_string());
        let watchdog = watchdog_usec
            .filter(|_| for_us)
            .and_then(|usec| usec.parse().ok())
            .filter(|usec| *usec > 0)
            .map(Duration::from_micros);
        Self {
            to: Some(to),
            watchdog,
        }
    }

    /// How often [`Self::alive`] is due: twice within the time that systemd waits.
    #[must_use]
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    /// The server is waited for: systemd shall be patient for another `patience`.
    pub fn waits(&self, patience: Duration) {
        self.tell(&format!(
            "STATUS=waiting for the Airflow server\nEXTEND_TIMEOUT_USEC={}",
            patience.as_micros()
        ));
    }

    /// The worker is registered.
    pub fn ready(&self) {
        self.tell("READY=1\nSTATUS=registered");
    }

    /// The worker's loop turns.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// The worker ends once its tasks have ended.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining");
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.to
            && let Err(error) = socket.send_to_addr(text.as_bytes(), address)
        {
            tracing::debug!("systemd was not told {text:?}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_reaches_a_socket_in_the_file_system_and_an_abstract_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let systemd = Systemd::new(path.to_str(), Some("3000000"), None);
        assert_eq!(
            systemd.watchdog_interval(),
            Some(Duration::from_millis(1500))
        );
        let name = format!("updraft-test-{}", std::process::id());
        let abstract_listener =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let also = Systemd::new(Some(&format!("@{name}")), None, None);
        assert_eq!(also.watchdog_interval(), None);
        for (systemd, listener) in [(systemd, listener), (also, abstract_listener)] {
            systemd.ready();
            systemd.alive();
            systemd.waits(Duration::from_secs(60));
            systemd.stopping();
            let mut heard = Vec::new();
            for _ in 0..4 {
                let mut bytes = [0; 200];
                let length = listener.recv(&mut bytes).unwrap();
                let text = String::from_utf8_lossy(&bytes[..length]);
                heard.push(text.lines().next().unwrap().to_owned());
                if text.contains("EXTEND") {
                    assert!(text.ends_with("EXTEND_TIMEOUT_USEC=60000000"), "{text}");
                }
            }
            assert_eq!(
                heard,
                [
                    "READY=1",
                    "WATCHDOG=1",
                    "STATUS=waiting for the Airflow server",
                    "STOPPING=1"
                ]
            );
        }
    }

    #[test]
    fn nobody_is_told_when_nobody_asks_and_the_watchdog_of_another_process_is_no_affair_of_ours() {
        let silent = Systemd::new(None, Some("1000000"), None);
        silent.ready();
        assert_eq!(silent.watchdog_interval(), None);
        let other = Systemd::new(Some("/nonexistent/notify"), Some("1000000"), Some("1"));
        other.ready();
        assert_eq!(other.watchdog_interval(), None);
    }
}
