//! `LLMOperator`, `LLMBranchOperator` and their decorators, beyond what the recordings show.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{dag_file, events, run, task};

/// Runs a Dag whose body is `body`, with a model that gives these answers by the output tool.
fn play(body: &str, answers: &[Value]) -> Value {
    let source = format!(
        "from airflow.providers.common.ai.operators.llm import LLMOperator\n\
         from airflow.providers.common.ai.operators.llm_branch import BranchOption, LLMBranchOperator\n\
         from airflow.providers.standard.operators.empty import EmptyOperator\n\
         from airflow.sdk import DAG, task\n\nwith DAG(dag_id=\"played\"):\n{body}"
    );
    let turns: Vec<Value> = answers
        .iter()
        .map(|answer| json!({"tool_calls": [{"name": "final_result", "args": {"response": answer}}]}))
        .collect();
    let (_folder, file) = dag_file(
        &source,
        &[("made.transcript.json", json!({ "turns": turns }))],
    );
    run(&file, &["--logical-date", "2026-01-01"]).1
}

#[test]
fn a_decorated_choice_is_asked_again_after_a_task_that_is_not_there_and_skips_the_others() {
    let report = play(
        "    @task.llm_branch(llm_conn_id=\"none\", branches={\"load\": BranchOption(\"Put {{ ds }} on.\")})\n    \
         def ask():\n        return \"What next?\"\n\n    \
         ask() >> [EmptyOperator(task_id=\"load\"), EmptyOperator(task_id=\"wait\")]\n",
        &["sail".into(), "load".into()],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["state"], "success", "{report:#}");
    assert_eq!(task(&report, "load", -1)["state"], "success");
    assert_eq!(task(&report, "wait", -1)["state"], "skipped");
    let decision = &ask["xcoms"]["decision"];
    assert_eq!(decision["action"], "load");
    assert_eq!(
        decision["descriptions"],
        json!({"load": "Put 2026-01-01 on."})
    );
    assert_eq!(ask["xcoms"]["skipmixin_key"], json!({"followed": ["load"]}));
}

#[test]
fn a_choice_that_skips_nothing_is_the_result_of_the_task() {
    let report = play(
        "    ask = LLMBranchOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\")\n    \
         ask >> EmptyOperator(task_id=\"load\")\n",
        &["load".into()],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["xcoms"]["return_value"], "load", "{report:#}");
    assert_eq!(task(&report, "load", -1)["state"], "success");
}

#[test]
fn a_model_that_chooses_no_branch_fails_the_task_and_leaves_no_decision() {
    let report = play(
        "    ask = LLMBranchOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", allow_multiple_branches=True)\n    \
         ask >> [EmptyOperator(task_id=\"load\"), EmptyOperator(task_id=\"wait\")]\n",
        &[json!([])],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(
        ask["error"],
        "ValueError: the model chose none of the tasks after ask: all of them would be skipped"
    );
    assert_eq!(ask["xcoms"], json!({}));
    assert_eq!(task(&report, "load", -1)["state"], "upstream_failed");
}

#[test]
fn branches_that_do_not_come_after_the_task_fail_it_before_the_model_is_asked() {
    let report = play(
        "    ask = LLMBranchOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", branches={\"lode\": \"?\"})\n    \
         ask >> EmptyOperator(task_id=\"load\")\n",
        &["load".into()],
    );
    assert_eq!(
        task(&report, "ask", -1)["error"],
        "ValueError: branches names ['lode'], which don't come directly after 'ask': ['load'] do"
    );
}

#[test]
fn a_question_that_fails_leaves_no_xcoms_and_no_line_about_the_run() {
    let report = play(
        "    LLMOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", output_type=int, output_retries=0)\n",
        &["many".into()],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["state"], "failed", "{report:#}");
    assert_eq!(ask["xcoms"], json!({}));
    let said = events(ask);
    assert!(
        !said.iter().any(|line| line.contains("LLM run")),
        "{said:?}"
    );
}

#[test]
fn a_map_index_that_wants_a_review_of_its_own_fails_and_does_not_go_without() {
    let report = play(
        "    LLMOperator.partial(task_id=\"ask\", llm_conn_id=\"none\").expand_kwargs(\n        \
         [{\"prompt\": \"Go.\", \"require_approval\": True}]\n    )\n",
        &[],
    );
    let error = task(&report, "ask", 0)["error"]
        .as_str()
        .unwrap_or_default();
    assert!(
        error.contains("require_approval can't differ between map indexes natively"),
        "{report:#}"
    );
}
