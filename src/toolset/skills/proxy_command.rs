//! OpenSSH's `ProxyCommand`: a program whose standard streams are the connection to a server.
//!
//! libgit2 connects to an address and to nothing else, so the program is put behind a port of loopback that takes one
//! connection.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// Bytes of the program's error output that are kept.
const MAX_SAID: u64 = 2_048;
/// What of the worker's environment the program gets.
const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "USER", "LANG", "SSH_AUTH_SOCK"];

/// A port of loopback behind which the program runs. Both end when this is dropped.
pub(super) struct Tunnel {
    pub port: u16,
    said: Arc<Mutex<String>>,
    task: JoinHandle<()>,
}

impl Tunnel {
    /// Opens the port; the program is started when somebody connects.
    ///
    /// # Errors
    /// A host or user that a shell could take for more than a name, or no free port.
    pub async fn open(command: &str, host: &str, port: u16, user: &str) -> Result<Self, String> {
        let command = expand(command, host, port, user)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(|error| format!("there is no port for host_proxy_cmd: {error}"))?;
        let port = listener
            .local_addr()
            .map_err(|error| format!("there is no port for host_proxy_cmd: {error}"))?
            .port();
        let said = Arc::new(Mutex::new(String::new()));
        let notes = Arc::clone(&said);
        let task = tokio::spawn(async move {
            if let Err(error) = serve(&listener, &command, &notes).await {
                note(&notes, &error.to_string());
            }
        });
        Ok(Self { port, said, task })
    }

    /// What the program said on its error output.
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.trim().to_owned()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A running program with all that it has started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

async fn serve(listener: &TcpListener, command: &str, said: &Mutex<String>) -> std::io::Result<()> {
    let (mut connection, _) = listener.accept().await?;
    let environment = ENVIRONMENT
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut group = Group(
        Command::new("/bin/sh")
            .args(["-c", &format!("exec {command}")])
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?,
    );
    let child = &mut group.0;
    let (Some(mut input), Some(mut output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Ok(());
    };
    let (mut from_client, mut to_client) = connection.split();
    let up = async move {
        // The program sees the end of its input when `input` is dropped here.
        tokio::io::copy(&mut from_client, &mut input)
            .await
            .map(drop)
    };
    let down = async {
        tokio::io::copy(&mut output, &mut to_client).await?;
        to_client.shutdown().await
    };
    let listen = async {
        let mut text = Vec::new();
        let mut beginning = errors.take(MAX_SAID);
        beginning.read_to_end(&mut text).await?;
        note(said, &String::from_utf8_lossy(&text));
        // A program whose output nobody reads any more waits or ends.
        let mut rest = beginning.into_inner();
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        Ok(())
    };
    let (up, down, listened): (std::io::Result<()>, _, _) = tokio::join!(up, down, listen);
    up.and(down).and(listened)
}

fn note(said: &Mutex<String>, text: &str) {
    said.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_str(text);
}

/// Puts host, port and user in for `%h`, `%n`, `%p` and `%r`.
fn expand(command: &str, host: &str, port: u16, user: &str) -> Result<String, String> {
    let plain = |text: &str| {
        !text.starts_with('-')
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'))
    };
    for text in [host, user] {
        if !plain(text) {
            return Err(format!(
                "{text:?} is no name that host_proxy_cmd can be given"
            ));
        }
    }
    let mut expanded = String::new();
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        match characters.next() {
            Some('%') => expanded.push('%'),
            Some('h' | 'n') => expanded.push_str(host),
            Some('p') => expanded.push_str(&port.to_string()),
            Some('r') => expanded.push_str(user),
            other => {
                return Err(format!(
                    "host_proxy_cmd has %{}, and only %h, %n, %p, %r and %% are known",
                    other.map(String::from).unwrap_or_default()
                ));
            }
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn names_and_nothing_else_are_put_into_the_command() {
        let expand = |command: &str, host: &str| expand(command, host, 22, "git");
        assert_eq!(
            expand("nc %h %p # %r %n 100%%", "git.example.com").unwrap(),
            "nc git.example.com 22 # git git.example.com 100%"
        );
        for host in ["a;reboot", "$(reboot)", "-oProxy", "a b"] {
            assert!(expand("nc %h %p", host).is_err(), "{host}");
        }
        assert!(expand("nc %h %x", "h").is_err());
        assert!(expand("nc %", "h").is_err());
    }

    #[tokio::test]
    async fn what_is_written_to_the_port_goes_through_the_program() {
        let tunnel = Tunnel::open("tr a-z A-Z", "h", 22, "git").await.unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", tunnel.port))
            .await
            .unwrap();
        stream.write_all(b"high tide").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "HIGH TIDE");
    }

    #[tokio::test]
    async fn a_program_may_complain_at_length() {
        let command = "sh -c 'head -c 200000 /dev/zero >&2; exec cat'";
        let tunnel = Tunnel::open(command, "h", 22, "git").await.unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", tunnel.port))
            .await
            .unwrap();
        stream.write_all(b"ebb").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        let patience = std::time::Duration::from_secs(20);
        tokio::time::timeout(patience, read).await.unwrap().unwrap();
        assert_eq!(answer, "ebb");
    }

    #[tokio::test]
    async fn what_the_program_complains_of_is_kept() {
        let tunnel = Tunnel::open("sh -c 'echo no way out >&2; echo $MADE_UP'", "h", 22, "git")
            .await
            .unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", tunnel.port))
            .await
            .unwrap();
        let mut answer = String::new();
        stream.shutdown().await.unwrap();
        stream.read_to_string(&mut answer).await.unwrap();
        for _ in 0..200 {
            if !tunnel.said().is_empty() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(tunnel.said(), "no way out");
    }
}
