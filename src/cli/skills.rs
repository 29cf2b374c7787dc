//! `updraft skills`: resolves skill sources for other frameworks, as `resolve_skills` does in Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::airflow::config::Config;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::secrets::{Masker, SearchPath};
use crate::task::toolsets::Connections;
use crate::toolset::skills::{GitSkills, ResolvedSkills, SkillSource, list_skills, resolve_skills};
use crate::toolset::work_folder;

/// List and resolve Agent Skills: folders with a SKILL.md.
///
/// A SOURCE is a folder, or a git repository: https://..., ssh://... or git@host:path, where #BRANCH and #BRANCH:PATH
/// may follow. The connection for repositories stands in the environment, as AIRFLOW_CONN_<ID>.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
enum SkillsCommand {
    List(List),
    Resolve(Resolve),
}

/// Lists the skills of the sources, as an agent would find them.
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    sources: Sources,
    /// Print a JSON array: name, description, folder, resources, scripts.
    #[arg(long)]
    json: bool,
}

/// Runs a command with a folder for each source as its last arguments, and removes clones when it has ended.
///
/// The exit status is the command's.
#[derive(Debug, Args)]
struct Resolve {
    #[command(flatten)]
    sources: Sources,
    /// The command and its first arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Sources {
    /// A folder or a repository.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
    /// The connection for repositories, of type git: a token as its password, or an SSH key in its extra.
    #[arg(long, value_name = "ID")]
    conn_id: Option<String>,
}

impl Sources {
    async fn resolve(&self) -> anyhow::Result<ResolvedSkills> {
        let config = Config::from_env();
        let masker = Masker::from_config(&config)?;
        let plane = Arc::new(LocalControlPlane::new());
        let resolver = Resolver::new(SearchPath::from_config(&config)?, plane, masker);
        let sources: Vec<SkillSource> = self
            .sources
            .iter()
            .map(|text| source(text, self.conn_id.as_deref()))
            .collect();
        let here = std::env::current_dir().context("the working directory is gone")?;
        // What an earlier call that was killed has left.
        tokio::task::spawn_blocking(work_folder::sweep).await?;
        Ok(resolve_skills(&sources, &here, &Connections(resolver)).await?)
    }
}

/// `URL#BRANCH:PATH`, or a folder.
fn source(text: &str, conn_id: Option<&str>) -> SkillSource {
    let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
    let is_scp_form = address
        .split_once('@')
        .is_some_and(|(user, rest)| !user.contains('/') && rest.contains(':'));
    if Path::new(text).exists() || !(address.contains("://") || is_scp_form) {
        return SkillSource::Folder(PathBuf::from(text));
    }
    let (branch, path) = fragment.split_once(':').unwrap_or((fragment, ""));
    SkillSource::Git(GitSkills {
        repo_url: address.to_owned(),
        conn_id: conn_id.map(ToOwned::to_owned),
        path: path.to_owned(),
        branch: Some(branch.to_owned()).filter(|branch| !branch.is_empty()),
    })
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        match arguments.command {
            SkillsCommand::List(list) => tokio::select! {
                biased;
                number = signals.next() => Ok(exit_code(128 + number)),
                listed = print_list(&list) => listed,
            },
            SkillsCommand::Resolve(resolve) => {
                let resolved = tokio::select! {
                    biased;
                    number = signals.next() => return Ok(exit_code(128 + number)),
                    resolved = resolve.sources.resolve() => resolved?,
                };
                let status = run_command(&resolve.command, &resolved, &mut signals).await?;
                Ok(exit_code_of(status))
            }
        }
    });
    // A clone that was given up may still wait for its server.
    runtime.shutdown_background();
    outcome
}

async fn print_list(list: &List) -> anyhow::Result<ExitCode> {
    let resolved = list.sources.resolve().await?;
    let folders = resolved.folders().to_vec();
    let skills = tokio::task::spawn_blocking(move || list_skills(&folders)).await??;
    if list.json {
        println!("{}", serde_json::to_string(&skills)?);
        return Ok(ExitCode::SUCCESS);
    }
    if skills.is_empty() {
        println!("no skills");
    }
    for skill in skills {
        println!(
            "{}\n    {}\n    {}",
            skill.name,
            skill.description.trim(),
            skill.folder.display()
        );
        for (title, files) in [("resources", &skill.resources), ("scripts", &skill.scripts)] {
            if !files.is_empty() {
                println!("    {title}: {}", files.join(", "));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_command(
    command: &[OsString],
    resolved: &ResolvedSkills,
    signals: &mut Signals,
) -> anyhow::Result<ExitStatus> {
    let (program, arguments) = command.split_first().context("there is no command")?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .args(resolved.folders())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} can't be started", Path::new(program).display()))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            number = signals.next() => {
                // The terminal sends SIGINT to the command itself.
                if number == nix::libc::SIGTERM
                    && let Some(id) = child.id().and_then(|id| i32::try_from(id).ok())
                {
                    let pid = nix::unistd::Pid::from_raw(id);
                    // It may just have ended.
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
                }
            }
        }
    }
}

/// SIGTERM and SIGINT: clones must be removed before this program ends.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("signals can't be received")?,
            interrupt: signal(SignalKind::interrupt()).context("signals can't be received")?,
        })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => nix::libc::SIGTERM,
            _ = self.interrupt.recv() => nix::libc::SIGINT,
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// A command that a signal ended has 128 and the signal's number, as in a shell.
fn exit_code_of(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;

    exit_code(
        status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .unwrap_or(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(repo_url: &str, branch: Option<&str>, path: &str) -> SkillSource {
        SkillSource::Git(GitSkills {
            repo_url: repo_url.to_owned(),
            conn_id: Some("c".to_owned()),
            path: path.to_owned(),
            branch: branch.map(ToOwned::to_owned),
        })
    }

    #[test]
    fn sources_are_folders_or_repositories() {
        for (text, expected) in [
            ("./skills", SkillSource::Folder("./skills".into())),
            ("a#b", SkillSource::Folder("a#b".into())),
            ("https://h/r.git", git("https://h/r.git", None, "")),
            ("https://h/r#v1", git("https://h/r", Some("v1"), "")),
            (
                "git@h:r.git#main:skills/x",
                git("git@h:r.git", Some("main"), "skills/x"),
            ),
            ("ssh://h/r#:skills", git("ssh://h/r", None, "skills")),
        ] {
            assert_eq!(source(text, Some("c")), expected, "{text}");
        }
    }
}
