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

#[test]
fn a_model_that_is_not_sure_enough_fails_the_task_when_the_policy_says_so() {
    let report = play(
        "    from airflow.providers.common.ai.operators.llm_branch import DecisionPolicy\n    \
         policy = DecisionPolicy(min_confidence=0.7, on_uncertain=\"fail\")\n    \
         ask = LLMBranchOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", decision_policy=policy)\n    \
         ask >> EmptyOperator(task_id=\"load\")\n",
        &["load".into()],
    );
    let ask = task(&report, "ask", -1);
    let error = ask["error"].as_str().unwrap_or_default();
    assert!(
        error.starts_with("LowConfidenceError: min_confidence=0.70 is set for branch task 'ask' but the model reported no"),
        "{report:#}"
    );
    let decision = &ask["xcoms"]["decision"];
    assert_eq!(decision["proposed"], "load");
    assert_eq!(decision["action"], Value::Null);
    assert_eq!(decision["review"], "missing_confidence");
    assert_eq!(decision["decided_by"], "policy");
    assert_eq!(
        decision["policy"],
        json!({"min_confidence": 0.7, "on_uncertain": "fail", "branches": null})
    );
}

#[test]
fn queries_are_asked_for_over_map_indexes_each_in_its_own_dialect() {
    let source = "from airflow.providers.common.ai.operators.llm_sql import LLMSQLQueryOperator\n\
        from airflow.sdk import DAG\n\nwith DAG(dag_id=\"played\"):\n    \
        LLMSQLQueryOperator.partial(task_id=\"ask\", llm_conn_id=\"none\").expand_kwargs(\n        \
        [{\"prompt\": \"Go.\", \"dialect\": \"mysql\"}, {\"prompt\": \"Go.\", \"dialect\": \"postgres\"}]\n    )\n";
    let turns = json!({ "turns": [{ "text": "SELECT `name` FROM `ships`" }] });
    let (_folder, file) = dag_file(source, &[("made.transcript.json", turns)]);
    let report = run(&file, &["--logical-date", "2026-01-01"]).1;
    let in_mysql = task(&report, "ask", 0);
    assert_eq!(
        in_mysql["xcoms"]["return_value"], "SELECT `name` FROM `ships`",
        "{report:#}"
    );
    let error = task(&report, "ask", 1)["error"]
        .as_str()
        .unwrap_or_default();
    assert!(error.starts_with("SQLSafetyError: "), "{report:#}");
}

#[test]
fn an_answer_that_waits_for_a_person_ends_a_local_run_with_its_decision_pending() {
    let report = play(
        "    LLMOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", output_type=int, require_approval=True)\n",
        &[7.into()],
    );
    let ask = task(&report, "ask", -1);
    assert_eq!(
        ask["error"],
        "the answer waits for a person, and a local run asks nobody: run the Dag in Airflow to approve it"
    );
    let decision = &ask["xcoms"]["decision"];
    assert_eq!(decision["review"], "require_approval");
    assert_eq!(decision["decided_by"], Value::Null);
    assert_eq!(ask["xcoms"]["return_value"], Value::Null);
    assert!(events(ask).contains(&"Pausing task as AWAITING_INPUT."));
}
