//! The part of OpenSSH's client configuration (`ssh_config(5)`) that decides how a git server is reached.

use std::path::PathBuf;

use super::catalogue::matches_glob;

/// What a file says of one host; of every option the first value found stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SshConfig {
    pub host_name: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub identity_files: Vec<PathBuf>,
    pub known_hosts: Option<PathBuf>,
    pub proxy_command: Option<String>,
}

impl SshConfig {
    /// Reads what a file's text says of `host`, as the Dag names it. `home` is what `~` stands for.
    ///
    /// # Errors
    /// An option that changes how a host is reached and that is not known here, or a value that is none.
    pub fn of(text: &str, host: &str, home: Option<&str>) -> Result<Self, String> {
        let mut found = Self::default();
        let mut applies = true;
        for (index, line) in text.lines().enumerate() {
            let Some((keyword, value)) = option(line) else {
                continue;
            };
            let wrong = |what: &str| format!("line {}: {what}", index + 1);
            match keyword.as_str() {
                "host" => applies = names(&value, host),
                "match" | "include" => {
                    return Err(wrong(&format!("{keyword} is not supported natively")));
                }
                _ if !applies => {}
                "proxyjump" if !value.eq_ignore_ascii_case("none") => {
                    return Err(wrong(
                        "ProxyJump is not supported natively: write it as ProxyCommand ssh -W %h:%p HOST",
                    ));
                }
                "hostname" => {
                    let name = value.replace("%h", host);
                    found.host_name.get_or_insert(name);
                }
                "port" => {
                    let port = value.parse().map_err(|_| wrong("Port is no port"))?;
                    found.port.get_or_insert(port);
                }
                "user" => {
                    found.user.get_or_insert(value);
                }
                "identityfile" => found.identity_files.push(path(&value, home)),
                "userknownhostsfile" => {
                    let first = value.split_whitespace().next().unwrap_or_default();
                    let first = path(first, home);
                    found.known_hosts.get_or_insert(first);
                }
                "proxycommand" => {
                    found.proxy_command.get_or_insert(value);
                }
                _ => {}
            }
        }
        found.proxy_command = found
            .proxy_command
            .filter(|command| !command.eq_ignore_ascii_case("none"));
        Ok(found)
    }
}

/// `Keyword value` or `Keyword=value`, the keyword in lower case; nothing for an empty line or a comment.
fn option(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let (keyword, rest) = line.split_at(end);
    let value = rest.trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim();
    let value = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'))
        .unwrap_or(value);
    Some((keyword.to_ascii_lowercase(), value.to_owned()))
}

fn names(patterns: &str, host: &str) -> bool {
    let mut named = false;
    for pattern in patterns.split_whitespace() {
        let (negated, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, pattern),
        };
        if matches_glob(&pattern.replace('[', "[[]"), host) {
            if negated {
                return false;
            }
            named = true;
        }
    }
    named
}

fn path(text: &str, home: Option<&str>) -> PathBuf {
    let text = text.trim_matches('"');
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => match (text.strip_prefix("%d/"), home) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => PathBuf::from(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_first_value_for_the_host_stands() {
        let text = "\
# for the tests
Host other !git
  Port 1
Host git *.example.com
  HostName = %h.example.net
  port 2222
  User \"mate\"
  IdentityFile ~/.ssh/id_first
Host *
  Port 3
  IdentityFile /keys/second
  UserKnownHostsFile ~/known /etc/more
  ProxyCommand nc -X 5 %h %p
  Compression yes
";
        let found = SshConfig::of(text, "git", Some("/home/mate")).unwrap();
        assert_eq!(
            found,
            SshConfig {
                host_name: Some("git.example.net".to_owned()),
                port: Some(2222),
                user: Some("mate".to_owned()),
                identity_files: vec!["/home/mate/.ssh/id_first".into(), "/keys/second".into()],
                known_hosts: Some("/home/mate/known".into()),
                proxy_command: Some("nc -X 5 %h %p".to_owned()),
            }
        );
        let other = SshConfig::of(text, "other", None).unwrap();
        assert_eq!((other.port, other.host_name), (Some(1), None));
    }

    #[test]
    fn what_would_change_the_way_and_is_not_known_is_refused() {
        for (text, line) in [
            ("Host x\nMatch all\n", "line 2"),
            ("Include more\n", "line 1"),
            ("ProxyJump bastion\n", "line 1"),
            ("Port many\n", "line 1"),
        ] {
            let error = SshConfig::of(text, "git", None).unwrap_err();
            assert!(error.starts_with(line), "{error}");
        }
        // For another host it changes nothing.
        assert!(SshConfig::of("Host x\nProxyJump bastion\n", "git", None).is_ok());
        let none = "ProxyCommand none\nHost *\nProxyCommand nc %h %p\nProxyJump none\n";
        assert_eq!(
            SshConfig::of(none, "git", None).unwrap(),
            SshConfig::default()
        );
    }
}
