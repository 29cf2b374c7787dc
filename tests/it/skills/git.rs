//! Cloning: what is fetched, what is refused, and that a credential goes nowhere else.

use serde_json::json;

use super::{Program, TOKEN, connection, https, server_file, text};
use crate::servers;

/// Fails with what was said when the command failed.
fn resolved(
    program: &Program,
    connection: Option<(String, String)>,
    source: &str,
    script: &str,
) -> String {
    let output = program.resolve(connection, source, script);
    assert!(output.status.success(), "{source}: {}", text(&output));
    assert_eq!(program.leftovers(), Vec::<std::path::PathBuf>::new());
    String::from_utf8(output.stdout).unwrap()
}

fn refused(program: &Program, connection: Option<(String, String)>, source: &str) -> String {
    let output = program.resolve(connection, source, "echo it must not run");
    assert!(!output.status.success(), "{source}: {}", text(&output));
    assert_eq!(program.leftovers(), Vec::<std::path::PathBuf>::new());
    let said = text(&output);
    assert!(
        !said.contains(TOKEN) && !said.contains("it must not run"),
        "{said}"
    );
    said
}

fn token() -> Option<(String, String)> {
    Some(connection(Some(TOKEN), json!({})))
}

/// The requests whose paths begin so: port, path and `Authorization` header.
fn requests(prefix: &str) -> Vec<serde_json::Value> {
    let noted = std::fs::read_to_string(server_file("requests")).unwrap_or_default();
    noted
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|request| request["path"].as_str().unwrap().starts_with(prefix))
        .collect()
}

fn ssh(path: &str) -> String {
    format!(
        "git@127.0.0.1:{}/{path}",
        server_file("repositories").display()
    )
}

/// A connection with a key, for the user that runs these tests.
fn key(extra: serde_json::Value) -> Option<(String, String)> {
    let mut extra = extra;
    extra["ssh_port"] = servers::git()["UPDRAFT_TEST_GIT_SSH_PORT"].as_str().into();
    Some(connection(None, extra))
}

/// scp-like, with the tests' own user, since sshd lets in nobody else.
fn own_ssh() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid())
        .unwrap()
        .unwrap()
        .name;
    ssh("skills.git").replacen("git@", &format!("{user}@"), 1)
}

#[test]
fn a_public_repository_is_cloned_without_a_connection() {
    let program = Program::new();
    let said = resolved(
        &program,
        None,
        &https("open/skills.git#main:skills"),
        "cat \"$1/tides/SKILL.md\"; cd \"$1/..\"; git log --oneline | wc -l; cat .git/config; find .git/hooks -type f ! -name '*.sample'; ls -A sub",
    );
    assert!(said.contains("When the tide is high."), "{said}");
    // Depth one, the URL as it was given, no hooks, and the submodule's folder is empty.
    assert!(said.contains("\n1\n"), "{said}");
    assert!(said.contains(&https("open/skills.git")), "{said}");
    assert!(!said.contains(".git/hooks"), "{said}");
}

#[test]
fn a_branch_a_tag_and_a_path_are_chosen() {
    let program = Program::new();
    let script = "cat \"$1/tides/SKILL.md\"";
    assert!(
        resolved(&program, None, &https("open/skills.git#v1:skills"), script)
            .contains("First edition.")
    );
    assert!(
        resolved(&program, None, &https("open/skills.git#:skills"), script)
            .contains("When the tide")
    );
    let said = refused(&program, None, &https("open/skills.git#nowhere:skills"));
    assert!(
        said.contains("Remote branch nowhere not found in upstream origin"),
        "{said}"
    );
    let said = refused(&program, None, &https("open/skills.git#main:outside"));
    assert!(said.contains("leads out of the repository"), "{said}");
}

#[test]
fn a_repository_that_would_fill_the_disk_is_refused() {
    let program = Program::new();
    for (branch, reason) in [
        ("unpacks", "at most 20000 files and 268435456 bytes"),
        ("files", "at most 20000 files and 268435456 bytes"),
        ("sends", "it is larger than 104857600 bytes"),
    ] {
        let said = refused(&program, None, &https(&format!("open/skills.git#{branch}")));
        assert!(said.contains(reason), "{branch}: {said}");
    }
}

#[test]
fn a_token_is_used_and_stands_nowhere_while_the_command_runs() {
    let program = Program::new();
    // The clone, this process's own and its parent's arguments and environment, all temporary files.
    let script = format!(
        "cat \"$1/tides/SKILL.md\"; stat -c %a \"$1/..\"; \
         grep -r -l '{TOKEN}' \"$TMPDIR\" \"$HOME\" && echo found in a file; \
         tr '\\0' '\\n' </proc/$$/cmdline | grep -v grep | grep -c '{TOKEN}.*{TOKEN}' ; \
         tr '\\0' '\\n' </proc/$PPID/cmdline | grep '{TOKEN}' | grep -v '^set' | grep -v 'grep -r' && echo found in arguments; \
         grep -c '{}' \"$1/../.git/config\"; true",
        https("private/skills.git")
    );
    let said = resolved(
        &program,
        token(),
        &https("private/skills.git#main:skills"),
        &script,
    );
    assert!(said.contains("When the tide is high."), "{said}");
    assert!(said.contains("\n700\n"), "{said}");
    assert!(!said.contains("found in"), "{said}");
}

#[test]
fn credentials_in_a_url_or_over_plain_http_are_refused_before_anything_is_asked() {
    let program = Program::new();
    let before = requests("/private/refused").len();
    let address = https("private/refused.git");
    for source in [
        address.replacen("https://", "https://user:pass@", 1),
        address.replacen("https://", "https://user@", 1),
        "ssh://git@localhost/x.git".to_owned(),
        "user:pass@localhost:x.git".to_owned(),
    ] {
        let said = refused(&program, token(), &source);
        assert!(
            said.contains("must not embed a username or password"),
            "{source}: {said}"
        );
    }
    let said = refused(
        &program,
        token(),
        &address.replacen("https://", "http://", 1),
    );
    assert!(
        said.contains("refuses to send credentials from conn_id 'skills' over plain http://"),
        "{said}"
    );
    for path in ["..", "/etc", "a/../../b"] {
        let said = refused(&program, token(), &format!("{address}#main:{path}"));
        assert!(
            said.contains("must be a relative sub-path inside the repository"),
            "{said}"
        );
    }
    assert_eq!(requests("/private/refused").len(), before);
}

#[test]
fn a_refused_token_is_offered_once() {
    let program = Program::new();
    let said = refused(&program, token(), &https("denied/once.git"));
    assert!(
        said.contains("Failed to clone") && said.contains("refused the credential"),
        "{said}"
    );
    let offers = requests("/denied/once.git")
        .into_iter()
        .filter(|request| !request["authorization"].is_null())
        .count();
    assert_eq!(offers, 1);
    let wrong = Some(connection(Some("made-up-wrong-token"), json!({})));
    let said = refused(&program, wrong, &https("private/skills.git"));
    assert!(
        said.contains("refused the credential") && !said.contains("made-up-wrong"),
        "{said}"
    );
    let said = refused(&program, None, &https("private/skills.git"));
    assert!(
        said.contains("name a git connection with conn_id"),
        "{said}"
    );
}

#[test]
fn a_token_never_goes_to_another_host() {
    let program = Program::new();
    let said = refused(&program, token(), &https("away/skills.git"));
    assert!(
        said.contains("the credential is not sent to another host"),
        "{said}"
    );
    let said = refused(&program, token(), &https("late/skills.git"));
    assert!(said.contains("Failed to clone"), "{said}");
    let port = servers::git()["UPDRAFT_TEST_GIT_HTTPS_PORT"]
        .parse::<u64>()
        .unwrap();
    let stray = requests("/")
        .into_iter()
        .filter(|request| request["port"].as_u64() != Some(port))
        .filter(|request| !request["authorization"].is_null())
        .count();
    assert_eq!(stray, 0);
}

#[test]
fn a_redirect_within_the_host_is_followed() {
    let program = Program::new();
    let said = resolved(
        &program,
        token(),
        &https("moved/skills.git#:skills"),
        "cat \"$1/tides/SKILL.md\"",
    );
    assert!(said.contains("When the tide is high."), "{said}");
}

#[test]
fn a_server_whose_authority_is_unknown_is_refused() {
    let program = Program::new();
    let other = server_file("other_ca.crt");
    for (connection, path) in [(token(), "private"), (None, "open")] {
        let mut command = program.command(connection.clone());
        command.env("SSL_CERT_FILE", &other).args([
            "skills",
            "resolve",
            &https(&format!("{path}/skills.git")),
        ]);
        if connection.is_some() {
            command.args(["--conn-id", "skills"]);
        }
        let output = command.args(["--", "true"]).output().unwrap();
        assert!(!output.status.success());
        let said = text(&output);
        assert!(
            said.contains("name its authority's certificate in SSL_CERT_FILE"),
            "{said}"
        );
    }
}

#[test]
fn a_key_opens_a_repository_over_ssh() {
    let program = Program::new();
    let private_key = std::fs::read_to_string(server_file("client_key")).unwrap();
    let known = server_file("known_hosts").display().to_string();
    let script =
        "cat \"$1/skills/tides/SKILL.md\"; grep -r 'PRIVATE KEY' \"$TMPDIR\" && echo found; true";
    for extra in [
        json!({"private_key": private_key, "strict_host_key_checking": "yes", "known_hosts_file": known}),
        json!({"key_file": server_file("client_key").display().to_string()}),
        json!({
            "key_file": server_file("locked_key").display().to_string(),
            "private_key_passphrase": "made-up-passphrase",
            "strict_host_key_checking": "no",
        }),
    ] {
        let said = resolved(&program, key(extra), &own_ssh(), script);
        assert!(
            said.contains("When the tide is high.") && !said.contains("found"),
            "{said}"
        );
    }
    // The second one took the server's key and remembered it.
    let remembered =
        std::fs::read_to_string(program.folder.path().join(".ssh/known_hosts")).unwrap();
    assert!(remembered.contains("ssh-ed25519"), "{remembered}");
}

#[test]
fn a_server_that_is_not_known_or_another_than_known_is_refused() {
    let program = Program::new();
    let extra = |checking: &str, known_hosts: &std::path::Path| {
        key(json!({
            "key_file": server_file("client_key").display().to_string(),
            "strict_host_key_checking": checking,
            "known_hosts_file": known_hosts.display().to_string(),
        }))
    };
    let empty = program.folder.path().join("empty");
    let said = refused(&program, extra("yes", &empty), &own_ssh());
    assert!(
        said.contains("ssh-ed25519 host key") && said.contains("is not in"),
        "{said}"
    );
    let other = program.folder.path().join("other");
    let known = std::fs::read_to_string(server_file("known_hosts")).unwrap();
    let stranger = std::fs::read_to_string(server_file("stranger_key.pub")).unwrap();
    let host = known.split_whitespace().next().unwrap();
    let mut stranger = stranger.split_whitespace();
    let line = format!(
        "{host} {} {}\n",
        stranger.next().unwrap(),
        stranger.next().unwrap()
    );
    std::fs::write(&other, line).unwrap();
    for checking in ["yes", "accept-new"] {
        let said = refused(&program, extra(checking, &other), &own_ssh());
        assert!(said.contains("is not the one in"), "{said}");
    }
}

#[test]
fn a_key_that_is_missing_wrong_or_not_let_in_is_an_error_that_says_so() {
    let program = Program::new();
    let said = refused(&program, key(json!({})), &own_ssh());
    assert!(
        said.contains("set private_key or key_file in the extra of connection 'skills'"),
        "{said}"
    );
    let said = refused(&program, None, &own_ssh());
    assert!(said.contains("needs an SSH key"), "{said}");
    let stranger = json!({"key_file": server_file("stranger_key").display().to_string()});
    let said = refused(&program, key(stranger), &own_ssh());
    assert!(
        said.contains("refused the credential") || said.contains("uthenticat"),
        "{said}"
    );
    let locked = json!({
        "key_file": server_file("locked_key").display().to_string(),
        "private_key_passphrase": "made-up-wrong-passphrase",
    });
    let said = refused(&program, key(locked), &own_ssh());
    assert!(!said.contains("made-up-wrong-passphrase"), "{said}");
}

#[test]
fn the_exit_status_of_the_command_is_passed_on() {
    let program = Program::new();
    let output = program.resolve(None, &https("open/skills.git"), "exit 7");
    assert_eq!(output.status.code(), Some(7));
    assert!(program.leftovers().is_empty());
}

#[test]
fn skills_of_folders_and_repositories_are_listed() {
    let program = Program::new();
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let output = program
        .command(None)
        .args(["skills", "list", "--json", own, &https("open/skills.git")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed[0]["name"], "shop-reporting");
    assert_eq!(listed[1]["name"], "tides");
    // The link to /etc/passwd is not among them.
    assert_eq!(listed[1]["resources"], json!([]));
    assert_eq!(listed[1]["scripts"], json!(["scripts/high.sh"]));
}

#[test]
fn dag_code_resolves_skills_for_another_framework_and_they_are_gone_afterwards() {
    let program = Program::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.py");
    std::fs::create_dir_all(folder.path().join("local/ebb")).unwrap();
    std::fs::write(folder.path().join("local/ebb/SKILL.md"), "ebb").unwrap();
    repository_of("ebb/SKILL.md", &folder.path().join("kept"));
    let outside = program.folder.path().join("outside");
    repository_of("ebb/SKILL.md", &outside);
    let source = format!(
        r#"
from pathlib import Path
from airflow.providers.common.ai.skills import GitSkills, resolve_skills
from airflow.sdk import DAG, task

here = Path(__file__).parent

def read(folders):
    return [sorted(path.read_text().splitlines()[-1] for path in Path(folder).rglob("SKILL.md")) for folder in folders]

with DAG(dag_id="made"):
    @task
    def go():
        private = GitSkills(repo_url="{private}", conn_id="skills", path="skills")
        kept = GitSkills(repo_url=str(here / "kept"))
        with resolve_skills([here / "local", private, GitSkills(repo_url="{open}"), kept]) as folders:
            found = read(folders)
            clone = folders[1]
        failed = []
        for ask in (
            lambda: (Path(clone) / "tides/SKILL.md").read_text(),
            lambda: resolve_skills([3]).__enter__(),
            lambda: resolve_skills([GitSkills(repo_url="{private}")]).__enter__(),
            lambda: resolve_skills([GitSkills(repo_url="{outside}")]).__enter__(),
            lambda: resolve_skills([GitSkills(repo_url="FILE://{outside}")]).__enter__(),
            lambda: resolve_skills([GitSkills(repo_url="{outside}/../outside")]).__enter__(),
        ):
            try:
                failed.append(ask())
            except Exception as error:
                failed.append(f"{{type(error).__name__}}: {{error}}")
        with resolve_skills([private]):
            raise KeyError([found, failed])
    go()
"#,
        private = https("private/skills.git"),
        open = https("open/skills.git"),
        outside = outside.display(),
    );
    std::fs::write(&file, source).unwrap();
    let output = program
        .command(token())
        .args(["run", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(program.leftovers(), Vec::<std::path::PathBuf>::new());
    let said = text(&output);
    assert!(!said.contains(TOKEN), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = report["tasks"][0]["error"].as_str().unwrap();
    for part in [
        "[['ebb'], ['Run scripts/high.sh.'], ['Run scripts/high.sh.'], ['high']]",
        "may read only files of its bundle",
        "TypeError: Unsupported skill source 'int'; expected a path or GitSkills.",
        "RuntimeError: Failed to clone https://localhost",
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }
    let refused = format!("OSError: the repository {}", outside.display());
    assert_eq!(error.matches(&refused).count(), 3, "{error}");
}

/// Makes a repository of one file, which says `high`.
fn repository_of(file: &str, folder: &std::path::Path) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "high").unwrap();
    let repository = git2::Repository::init(folder).unwrap();
    let mut index = repository.index().unwrap();
    index.add_path(std::path::Path::new(file)).unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let mate = git2::Signature::now("mate", "mate@example.com").unwrap();
    repository
        .commit(Some("HEAD"), &mate, &mate, "High tide", &tree, &[])
        .unwrap();
}

#[test]
fn a_github_app_gets_a_token_for_its_installation() {
    let program = Program::new();
    let app = |installation: &str, key: &str| {
        let mut connection = connection(
            None,
            json!({
                "github_app_id": "7",
                "github_installation_id": installation,
                "key_file": server_file(key).display().to_string(),
            }),
        );
        connection.1 = connection.1.replace("reader", "ignored");
        Some(connection)
    };
    let said = resolved(
        &program,
        app("42", "app.key"),
        &https("private/skills.git#main:skills"),
        "cat \"$1/tides/SKILL.md\"; grep -rl made-up-installation-token \"$1/..\" $HOME $TMPDIR; true",
    );
    assert!(said.contains("When the tide is high."), "{said}");
    assert!(!said.contains("\n/"), "{said}");
    let said = refused(&program, app("43", "app.key"), &https("private/skills.git"));
    assert!(
        said.contains("no token for the installation 43: 404 Not Found Not Found"),
        "{said}"
    );
    // Another app's key signs, and is not believed.
    let said = refused(
        &program,
        app("42", "other_ca.key"),
        &https("private/skills.git"),
    );
    assert!(said.contains("401 Unauthorized"), "{said}");
}

/// A program that connects its standard streams to a server, as `nc` does.
const RELAY: &str = r#"
import os, socket, sys, threading
server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536):
        server.sendall(data)
    server.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
"#;

#[test]
fn a_server_is_reached_through_a_proxy_command_and_still_known_by_its_own_name() {
    let program = Program::new();
    let relay = program.folder.path().join("relay.py");
    std::fs::write(&relay, RELAY).unwrap();
    let command = format!("python3 {} %h %p", relay.display());
    let own_key = server_file("client_key").display().to_string();
    let known = server_file("known_hosts").display().to_string();
    let extra = |command: &str| {
        key(json!({
            "key_file": own_key, "known_hosts_file": known, "strict_host_key_checking": "yes",
            "host_proxy_cmd": command,
        }))
    };
    let script = "cat \"$1/skills/tides/SKILL.md\"";
    let said = resolved(&program, extra(&command), &own_ssh(), script);
    assert!(said.contains("When the tide is high."), "{said}");
    let said = refused(
        &program,
        extra("sh -c 'echo no way through >&2; exit 1'"),
        &own_ssh(),
    );
    assert!(said.contains("no way through"), "{said}");
    // The same by a configuration file, with a name of its own for the server.
    let config = program.folder.path().join("ssh_config");
    let user = own_ssh();
    let (user, path) = user.split_once("@127.0.0.1:").unwrap();
    std::fs::write(
        &config,
        format!(
            "Host harbour\n  HostName 127.0.0.1\n  Port {}\n  User {user}\n  IdentityFile {own_key}\n  \
             UserKnownHostsFile {known}\n  ProxyCommand {command}\n",
            servers::git()["UPDRAFT_TEST_GIT_SSH_PORT"]
        ),
    )
    .unwrap();
    let by_file = |file: &std::path::Path| {
        Some(connection(
            None,
            json!({"ssh_config_file": file.display().to_string(), "strict_host_key_checking": "yes"}),
        ))
    };
    let mut source = format!("{user}@harbour:{path}");
    let said = resolved(&program, by_file(&config), &source, script);
    assert!(said.contains("When the tide is high."), "{said}");
    source = source.replace("harbour", "elsewhere");
    std::fs::write(&config, "Match all\n").unwrap();
    let said = refused(&program, by_file(&config), &source);
    assert!(said.contains("line 1: match is not supported"), "{said}");
}
