//! What is left of clones and scratch folders after a run that ended, was ended or was killed: nothing, sooner or later.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{Program, TOKEN, connection, https, text};

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// `updraft run` of an agent whose skill comes from a repository, and whose script says where it is and waits.
struct AgentRun {
    program: Program,
    child: Child,
}

impl AgentRun {
    fn start(arguments: &str) -> Self {
        let program = Program::new();
        let file = program.folder.path().join("dag.py");
        let source = format!(
            r#"
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.skills import GitSkills
from airflow.providers.common.ai.toolsets.skills import AgentSkillsToolset
from airflow.sdk import DAG
from datetime import timedelta

with DAG(dag_id="skills_from_git"):
    AgentOperator(
        task_id="ask",
        llm_conn_id="none",
        prompt="Wait.",
        toolsets=[
            AgentSkillsToolset(
                sources=[GitSkills(repo_url="{}", conn_id="skills", path="skills"), "waiting"],
            ),
        ],
        {arguments}
    )
"#,
            https("private/skills.git")
        );
        fs::write(&file, source).unwrap();
        let transcript = json!({"turns": [
            {"tool_calls": [{"name": "run_skill_script", "args": {"skill_name": "waiting", "script_name": "wait.sh"}}]},
            {"text": "Done."},
        ]});
        fs::write(
            file.with_file_name("dag.transcript.json"),
            transcript.to_string(),
        )
        .unwrap();
        let skill = program.folder.path().join("waiting/waiting");
        fs::create_dir_all(&skill).unwrap();
        fs::write(
            skill.join("SKILL.md"),
            "---\nname: waiting\ndescription: Waits.\n---\n",
        )
        .unwrap();
        fs::write(
            skill.join("wait.sh"),
            "echo $$ >\"$TMPDIR/pid\"; while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.05; done\n",
        )
        .unwrap();
        let mut command = program.command(Some(connection(Some(TOKEN), json!({}))));
        let child = command
            .arg("run")
            .arg(&file)
            .arg("--json")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let run = Self { program, child };
        wait_for("the script did not start", || run.scratch().is_some());
        run
    }

    /// The folder in which the script has noted its process id.
    fn scratch(&self) -> Option<PathBuf> {
        self.program.leftovers().into_iter().find(|folder| {
            fs::read_to_string(folder.join("pid")).is_ok_and(|pid| pid.ends_with('\n'))
        })
    }

    fn script(&self) -> Pid {
        let text = fs::read_to_string(self.scratch().unwrap().join("pid")).unwrap();
        Pid::from_raw(text.trim().parse().unwrap())
    }

    /// The task process: a child of `updraft run`, and the parent of the script.
    fn task_process(&self) -> Pid {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.script())).unwrap();
        let after = stat.rsplit_once(')').unwrap().1;
        Pid::from_raw(after.split_whitespace().nth(1).unwrap().parse().unwrap())
    }

    fn wait(self) -> (Program, String) {
        let output = self.child.wait_with_output().unwrap();
        (self.program, text(&output))
    }
}

fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn while_an_agent_runs_its_credential_is_in_no_file_and_afterwards_nothing_is_left() {
    let run = AgentRun::start("");
    let folders = run.program.leftovers();
    assert_eq!(
        folders.len(),
        2,
        "the clone and the scratch folder: {folders:?}"
    );
    let found = std::process::Command::new("grep")
        .args(["-r", "-l", TOKEN])
        .arg(run.program.folder.path())
        .output()
        .unwrap();
    assert!(found.stdout.is_empty(), "{}", text(&found));
    let script = run.script();
    for file in ["environ", "cmdline"] {
        let seen = fs::read(format!("/proc/{script}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&seen).contains(TOKEN), "{file}");
    }
    fs::write(run.scratch().unwrap().join("go"), "").unwrap();
    let (program, said) = run.wait();
    assert!(
        said.contains("\"success\"") && !said.contains(TOKEN),
        "{said}"
    );
    assert!(program.leftovers().is_empty());
}

#[test]
fn a_terminated_task_leaves_nothing() {
    let run = AgentRun::start("");
    let script = run.script();
    kill(run.task_process(), Signal::SIGTERM).unwrap();
    let (program, said) = run.wait();
    assert!(said.contains("The agent run was cancelled."), "{said}");
    assert!(program.leftovers().is_empty());
    wait_for("the script runs on", || is_gone(script));
}

#[test]
fn a_task_that_times_out_leaves_nothing() {
    let run = AgentRun::start("execution_timeout=timedelta(seconds=3),");
    let script = run.script();
    let (program, said) = run.wait();
    assert!(said.contains("AirflowTaskTimeout"), "{said}");
    assert!(program.leftovers().is_empty());
    wait_for("the script runs on", || is_gone(script));
}

#[test]
fn what_a_killed_task_leaves_is_swept_and_its_script_ends_with_it() {
    let run = AgentRun::start("");
    let script = run.script();
    kill(run.task_process(), Signal::SIGKILL).unwrap();
    wait_for("the script runs on", || is_gone(script));
    let (program, _) = run.wait();
    assert_eq!(program.leftovers().len(), 2);
    // The worker does so when it starts and when it takes a job; this command does, too.
    let listed = program
        .command(None)
        .args(["skills", "list", "."])
        .current_dir(program.folder.path())
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", text(&listed));
    assert!(program.leftovers().is_empty());
}

#[test]
fn a_task_that_is_terminated_while_its_code_clones_leaves_nothing() {
    let program = Program::new();
    let file = program.folder.path().join("dag.py");
    let source = format!(
        r#"
from airflow.providers.common.ai.skills import GitSkills, resolve_skills
from airflow.sdk import DAG, task

with DAG(dag_id="clones"):
    @task
    def go():
        with resolve_skills([GitSkills(repo_url="{}")]):
            pass
    go()
"#,
        https("slow/skills.git")
    );
    fs::write(&file, source).unwrap();
    let child = program
        .command(None)
        .arg("run")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("there is no clone", || !program.leftovers().is_empty());
    kill(child_of(child.id()), Signal::SIGTERM).unwrap();
    let said = text(&child.wait_with_output().unwrap());
    assert!(program.leftovers().is_empty(), "{said}");
    assert!(said.contains("SIGTERM"), "{said}");
}

/// The one process that another has started.
fn child_of(parent: u32) -> Pid {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let children: String = threads
        .map(|thread| fs::read_to_string(thread.unwrap().path().join("children")).unwrap())
        .collect();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn a_clone_that_is_interrupted_leaves_nothing() {
    let program = Program::new();
    let mut child = program
        .command(None)
        .args(["skills", "resolve", &https("slow/skills.git"), "--", "true"])
        .spawn()
        .unwrap();
    wait_for("there is no clone", || !program.leftovers().is_empty());
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(program.leftovers().is_empty());
}
