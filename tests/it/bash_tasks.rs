//! `BashOperator` and `@task.bash`.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{dag_file, events, run_with, task};

const ON: (&str, &str) = ("AIRFLOW__UPDRAFT__ALLOW_BASH", "True");

/// Runs a Dag whose body is `body`, with this in the worker's environment.
fn play(body: &str, env: &[(&str, &str)]) -> Value {
    let source = format!(
        "from airflow.providers.standard.operators.bash import BashOperator\n\
         from airflow.sdk import DAG, task\n\nwith DAG(dag_id=\"played\"):\n{body}"
    );
    let (_folder, file) = dag_file(&source, &[]);
    let env: Vec<(&str, &Path)> = env
        .iter()
        .map(|(name, value)| (*name, Path::new(*value)))
        .collect();
    run_with(&file, &["--logical-date", "2026-01-01"], &env).1
}

#[test]
fn a_command_is_rendered_and_its_last_line_is_the_result() {
    let report = play(
        "    BashOperator(\n        task_id=\"ask\", bash_command=\"echo one; echo $DAY {{ ds }} $AIRFLOW_CTX_TASK_ID\",\n        \
         env={\"DAY\": \"{{ ds_nodash }}\"}, append_env=True, output_processor=lambda line: line.split()\n    )\n",
        &[ON],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(
        ask["xcoms"]["return_value"],
        json!(["20260101", "2026-01-01", "ask"]),
        "{report:#}"
    );
    let said = events(ask);
    for line in ["Output:", "one", "Command exited with return code 0"] {
        assert!(said.contains(&line), "{said:?}");
    }
}

#[test]
fn the_shell_inherits_no_secrets_and_with_an_environment_of_its_own_nothing() {
    let report = play(
        "    BashOperator(task_id=\"all\", bash_command=\"env | sort | tr '\\\\n' ' '\")\n    \
         BashOperator(task_id=\"own\", bash_command=\"echo $HARBOUR $SHIP\", env={\"SHIP\": \"Aurora\"})\n",
        &[
            ON,
            ("HARBOUR", "open"),
            ("HARBOUR_PASSWORD", "made-up-one"),
            ("AIRFLOW_CONN_SHOP", "generic://:made-up-two@/"),
            ("AIRFLOW__API_AUTH__JWT_SECRET", "made-up-three"),
        ],
    );
    let all = task(&report, "all", -1)["xcoms"]["return_value"].to_string();
    assert!(all.contains("HARBOUR=open"), "{report:#}");
    assert!(
        !all.contains("made-up") && !all.contains("AIRFLOW_CONN") && !all.contains("JWT"),
        "{all}"
    );
    assert_eq!(task(&report, "own", -1)["xcoms"]["return_value"], "Aurora");
}

#[test]
fn exit_codes_are_success_skip_and_failure() {
    let report = play(
        "    BashOperator(task_id=\"skips\", bash_command=\"exit 99\")\n    \
         BashOperator(task_id=\"fails\", bash_command=\"exit 99\", skip_on_exit_code=None)\n    \
         BashOperator(task_id=\"lost\", bash_command=\"true\", cwd=\"/nowhere/at/all\")\n\n    \
         @task.bash(skip_on_exit_code=[3, 4])\n    \
         def made(code):\n        return f\"exit {code}\"\n\n    \
         made(4)\n",
        &[ON],
    );
    let state = |id: &str| task(&report, id, -1)["state"].clone();
    assert_eq!(state("skips"), "skipped", "{report:#}");
    assert_eq!(state("fails"), "failed");
    assert_eq!(state("made"), "skipped");
    assert_eq!(
        task(&report, "fails", -1)["error"],
        "AirflowException: Bash command failed. The command returned a non-zero exit code 99."
    );
    assert_eq!(
        task(&report, "lost", -1)["error"],
        "AirflowException: Can not find the cwd: /nowhere/at/all"
    );
}

#[test]
fn without_leave_no_shell_is_started_by_whatever_way() {
    let report = play(
        "    BashOperator(task_id=\"ask\", bash_command=\"true\")\n\n    \
         @task\n    \
         def sly():\n        \
         from updraft_native_hook import ask\n        \
         return ask(\"shell\", None, command={\"bash_command\": \"true\", \"env\": {}}, inherited={})\n\n    \
         sly()\n",
        &[],
    );
    for id in ["ask", "sly"] {
        let error = task(&report, id, -1)["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("shell commands are off on this worker")
                && error.contains("[updraft] allow_bash"),
            "{report:#}"
        );
    }
}
