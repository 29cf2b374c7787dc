//! How structured answers end a run.

use pretty_assertions::assert_eq;

use super::*;

/// Takes `{"n": <a number>}`, by the tool `final_result` or as text.
struct Numbers;

#[async_trait]
impl OutputValidator for Numbers {
    async fn validate(&self, _: Option<&str>, raw: &str) -> Result<ValidOutput, OutputError> {
        let text = crate::agent::output::json_in(raw)?;
        let value: Value = serde_json::from_str(&text).unwrap();
        if !value["n"].is_number() {
            return Err(OutputError::Invalid(vec![
                json!({"type": "int_type", "loc": ["n"], "msg": "Input should be a valid integer", "input": value["n"]}),
            ]));
        }
        Ok(ValidOutput {
            value,
            ..ValidOutput::default()
        })
    }
}

fn numbers(model: &Arc<Playback>, end_strategy: EndStrategy) -> Agent {
    let tool = OutputTool {
        definition: ToolDefinition {
            name: "final_result".to_owned(),
            description: None,
            parameters: json!({"type": "object"}),
            sequential: false,
            max_retries: None,
        },
        strict: None,
    };
    Agent {
        output: OutputSpec {
            text: TextOutput::Structured,
            tools: vec![tool],
            validator: Some(Arc::new(Numbers)),
            ..OutputSpec::default()
        },
        end_strategy,
        ..agent(model, vec![Arc::new(Workshop::default())])
    }
}

fn number(n: u64) -> Output {
    Output::Validated(ValidOutput {
        value: json!({ "n": n }),
        ..ValidOutput::default()
    })
}

/// The answer and the results of one turn of calls, under each strategy.
async fn ends(turn: &[(&str, &str)]) -> Vec<(Output, Vec<String>)> {
    let mut ends = Vec::new();
    for strategy in [
        EndStrategy::Early,
        EndStrategy::Graceful,
        EndStrategy::Exhaustive,
    ] {
        let model = Playback::new(vec![
            calls("a", turn),
            calls("b", &[("final_result", "{\"n\": 9}")]),
        ]);
        let outcome = numbers(&model, strategy).run(input()).await;
        let first = results(&outcome).into_iter();
        let first = first.filter(|result| result.tool_call_id.starts_with('a'));
        let contents = first.map(|result| format!("{}: {}", result.tool_call_id, result.content));
        ends.push((outcome.output.unwrap(), contents.collect()));
    }
    ends
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[tokio::test]
async fn the_end_strategy_says_what_happens_to_the_calls_beside_an_answer() {
    const INVALID: &str = "[{\"type\":\"int_type\",\"loc\":[\"n\"],\"msg\":\"Input should be a valid integer\",\"input\":\"x\"}]";
    let well = how("well");
    let turn = [
        ("final_result", "{\"n\": \"x\"}"),
        ("work", well.as_str()),
        ("final_result", "{\"n\": 1}"),
        ("final_result", "{\"n\": 2}"),
    ];
    let invalid = format!("a0: {INVALID}");
    assert_eq!(
        ends(&turn).await,
        vec![
            (
                number(1),
                lines(&[
                    &invalid,
                    "a2: \"Final result processed.\"",
                    "a3: \"Output tool not used - a final result was already processed.\"",
                    "a1: \"Tool not executed - a final result was already processed.\"",
                ])
            ),
            (
                number(1),
                lines(&[
                    &invalid,
                    "a1: \"done\"",
                    "a2: \"Final result processed.\"",
                    "a3: \"Output tool not used - a final result was already processed.\"",
                ])
            ),
            (
                number(1),
                lines(&[
                    &invalid,
                    "a1: \"done\"",
                    "a2: \"Final result processed.\"",
                    "a3: \"Output tool processed, but its value will not be the final result of the agent run.\"",
                ])
            ),
        ]
    );
}

#[tokio::test]
async fn a_tool_that_wants_to_be_called_again_comes_before_the_answer() {
    let badly = how("badly");
    let turn = [("final_result", "{\"n\": 1}"), ("work", badly.as_str())];
    let again = lines(&[
        "a0: \"Output not used as the final result - addressing tool retries from this round first.\"",
        "a1: \"try another way\"",
    ]);
    assert_eq!(
        ends(&turn).await,
        vec![
            (
                number(1),
                lines(&[
                    "a0: \"Final result processed.\"",
                    "a1: \"Tool not executed - a final result was already processed.\"",
                ])
            ),
            (number(9), again.clone()),
            (number(9), again),
        ]
    );
    // A tool that is not there has no work to do.
    let unknown = ends(&[("final_result", "{\"n\": 1}"), ("nothing", "{}")]).await;
    assert!(unknown.iter().all(|(output, _)| *output == number(1)));
}

#[tokio::test]
async fn an_answer_in_text_skips_the_tools_only_when_the_run_ends_early() {
    let with_text = || {
        let mut response = calls("a", &[("work", &how("well"))]);
        response.parts.insert(0, ResponsePart::text("{\"n\": 3}"));
        response
    };
    for (strategy, expected) in [(EndStrategy::Early, 3), (EndStrategy::Graceful, 4)] {
        let model = Playback::new(vec![with_text(), text("```json\n{\"n\": 4}\n```")]);
        let outcome = numbers(&model, strategy).run(input()).await;
        assert_eq!(outcome.output.unwrap(), number(expected));
    }
}

#[tokio::test]
async fn outputs_that_stay_wrong_end_the_run_and_a_cut_off_one_says_why() {
    let run = async |responses| {
        let model = Playback::new(responses);
        let outcome = numbers(&model, EndStrategy::Graceful).run(input()).await;
        outcome.output.unwrap_err().to_string()
    };
    let wrong = || calls("a", &[("final_result", "{}")]);
    assert_eq!(
        run(vec![wrong(), wrong()]).await,
        "Exceeded maximum output retries (1)"
    );
    assert_eq!(
        run(vec![text("Three."), text("3")]).await,
        "Exceeded maximum output retries (1)"
    );
    let cut = |mut response: ModelResponse| {
        response.finish_reason = Some("length".to_owned());
        response
    };
    assert_eq!(
        run(vec![wrong(), cut(calls("b", &[("final_result", "{\"n")]))]).await,
        AgentError::IncompleteToolCall { max_tokens: None }.to_string()
    );
    assert_eq!(
        run(vec![cut(text("{\"n\": "))]).await,
        AgentError::IncompleteOutput { max_tokens: None }.to_string()
    );
}
