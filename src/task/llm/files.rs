//! `LLMFileAnalysisOperator`, `@task.llm_file_analysis`: files go along with the question.

use std::sync::Arc;

use super::{Prepared, with_mapped};
use crate::agent::message::{UserContent, UserPart};
use crate::dag::definitions::FileQuestion;
use crate::task::arguments::python_repr;
use crate::task::attempt::{Attempt, Rendered};
use crate::task::failure::Failure;
use crate::task::loggers;
use crate::task::toolsets::Connections;
use crate::toolset::object_storage::analysis::{FileSelection, build_request};

const INSTRUCTIONS: &str = "You are a read-only file analysis assistant.\n\
    Use only the provided metadata, normalized file content, and multimodal attachments.\n\
    Do not claim to have modified files or executed any external actions.\n\
    If file content is truncated or sampled, say so in your answer.";

/// Reads the files.
///
/// # Errors
/// No file, one of a format that is not read, or more than the limits allow.
pub(super) async fn prepare(
    attempt: &Attempt,
    question: &FileQuestion,
    rendered: &Rendered,
) -> Result<Prepared, Failure> {
    let question = with_mapped(question, &rendered.mapped)?;
    let services = &attempt.services;
    let Some(prompt) = rendered.field("prompt").as_str() else {
        let text = format!(
            "LLMFileAnalysisOperator requires a string prompt (got {}). Supply images or PDFs via file_path with \
             multi_modal=True instead.",
            python_repr(rendered.field("prompt"))
        );
        return Err(Failure::new("TypeError", text));
    };
    let selection = FileSelection {
        file_path: rendered.text("file_path")?.unwrap_or_default(),
        file_conn_id: rendered.text("file_conn_id")?,
        multi_modal: question.multi_modal,
        max_files: question.max_files,
        max_file_size_bytes: question.max_file_size_bytes,
        max_total_size_bytes: question.max_total_size_bytes,
        max_text_chars: question.max_text_chars,
        sample_rows: question.sample_rows,
    };
    let masker = services.resolver.masker().clone();
    let connections = Connections(services.resolver.clone());
    let mask: crate::toolset::sql::Mask =
        Arc::new(move |text: &str| masker.mask_str(text).into_owned());
    let environment = services.config.environment();
    let request = build_request(&selection, prompt, &connections, environment, &mask)
        .await
        .map_err(|error| Failure::of(error.class, &error))?;
    let python_bool = |value| if value { "True" } else { "False" };
    tracing::info!(
        target: "airflow.task", logger = loggers::LLM_FILES,
        "Calling model for file analysis: files={}, attachments={}, text_files={}, total_size_bytes={}, omitted_files={}, \
         text_truncated={}, multi_modal={}, sample_rows={}",
        request.files,
        request.attachments.len(),
        request.text_files,
        request.total_size_bytes,
        request.omitted_files,
        python_bool(request.text_truncated),
        python_bool(selection.multi_modal),
        selection.sample_rows,
    );
    let more = rendered.text("system_prompt")?.unwrap_or_default();
    let instructions = if more.is_empty() {
        INSTRUCTIONS.to_owned()
    } else {
        format!("{INSTRUCTIONS}\n\nAdditional instructions:\n{more}")
    };
    let prompt = if request.attachments.is_empty() {
        UserContent::Text(request.text)
    } else {
        let files = request.attachments.into_iter().map(UserPart::File);
        let parts = std::iter::once(UserPart::Text(request.text)).chain(files);
        UserContent::Parts(parts.collect())
    };
    Ok(Prepared {
        instructions,
        prompt,
    })
}
