//! The four tools as the model is told of them, and what they answer.

use serde_json::{Value, json};

use super::catalogue::{Skill, SkillFile};
use crate::agent::ToolDefinition;
use crate::airflow::python_text::repr_str;

pub(super) const LIST_SKILLS: &str = "list_skills";
pub(super) const LOAD_SKILL: &str = "load_skill";
pub(super) const READ_RESOURCE: &str = "read_skill_resource";
pub(super) const RUN_SCRIPT: &str = "run_skill_script";

/// In the order of registration.
pub(super) const NAMES: [&str; 4] = [LIST_SKILLS, LOAD_SKILL, READ_RESOURCE, RUN_SCRIPT];

const LIST_SKILLS_DESCRIPTION: &str = "<summary>Get an overview of all available skills and what they do.\n\n\
    Use this when you need to discover what skills exist or refresh your knowledge\n\
    of available capabilities. Skills provide domain-specific knowledge and instructions\n\
    for specialized tasks.</summary>\n<returns>\n<description>Dictionary mapping skill names to their descriptions.\n\
    Empty dictionary if no skills are available.</description>\n</returns>";

const LOAD_SKILL_DESCRIPTION: &str = "<summary>Load complete instructions and capabilities for a specific skill.\n\n\
    A skill contains detailed instructions, supplementary resources (like templates or\n\
    reference docs), and executable scripts. Load a skill when you need to perform a\n\
    task within its domain.</summary>\n<returns>\n<type>Structured documentation containing</type>\n<description>\n\
    - Skill name, description, and source location\n\
    - Available resources: supplementary files with their parameters\n\
    - Available scripts: executable programs with their parameters\n\
    - Detailed instructions: step-by-step guidance for using the skill</description>\n</returns>";

const READ_RESOURCE_DESCRIPTION: &str = "<summary>Access supplementary documentation, templates, or data from a \
    skill.\n\nResources are additional files that support skill execution. They can be static\n\
    content (markdown docs, templates, schemas) or dynamic callables (functions that\n\
    generate content based on parameters).\n\nWhen to use this:\n\
    - When a skill's instructions reference a specific resource\n\
    - To access form templates, reference documentation, or data schemas\n\
    - When you need supplementary information beyond the skill instructions</summary>\n<returns>\n\
    <description>The resource content as a string.</description>\n</returns>";

const RUN_SCRIPT_DESCRIPTION: &str = "<summary>Execute a skill script that performs actions or computations.\n\n\
    Scripts are executable programs provided by skills that can perform actions\n\
    (API calls, file operations), process data (transformations, analysis), or\n\
    generate outputs (reports, visualizations).\n\nWhen to use this:\n\
    - When a skill's instructions tell you to run a specific script\n\
    - To perform automated tasks that the skill provides\n\
    - For data processing, API interactions, or file operations</summary>\n<returns>\n\
    <description>Script execution output including stdout and stderr.</description>\n</returns>";

/// The definitions, in the order of [`NAMES`].
pub(super) fn definitions(max_retries: Option<u32>) -> Vec<ToolDefinition> {
    let text = |description: &str| json!({"description": description, "type": "string"});
    let args = |description: &str| {
        json!({
            "default": null,
            "description": description,
            "anyOf": [{"additionalProperties": true, "type": "object"}, {"type": "null"}],
        })
    };
    let object = |properties: Value, required: Value| json!({"additionalProperties": false, "properties": properties, "required": required, "type": "object"});
    let tool = |name: &str, description: &str, parameters: Value| ToolDefinition {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters,
        sequential: false,
        max_retries,
    };
    vec![
        tool(
            LIST_SKILLS,
            LIST_SKILLS_DESCRIPTION,
            json!({"additionalProperties": false, "properties": {}, "type": "object"}),
        ),
        tool(
            LOAD_SKILL,
            LOAD_SKILL_DESCRIPTION,
            object(
                json!({"skill_name": text(
                    "Exact name from your available skills list.\nMust match exactly (e.g., \"data-analysis\" not \
                     \"data analysis\").",
                )}),
                json!(["skill_name"]),
            ),
        ),
        tool(
            READ_RESOURCE,
            READ_RESOURCE_DESCRIPTION,
            object(
                json!({
                    "skill_name": text("Name of the skill containing the resource."),
                    "resource_name": text(
                        "Exact name of the resource as listed in the skill.\nExamples: \"FORMS.md\", \"REFERENCE.md\", \
                         \"get_schema\"\nMust match exactly - do not infer or guess.",
                    ),
                    "args": args(
                        "Arguments for callable resources (optional for static files).\nKeys must match the parameter \
                         names in the resource's schema.",
                    ),
                }),
                json!(["skill_name", "resource_name"]),
            ),
        ),
        tool(
            RUN_SCRIPT,
            RUN_SCRIPT_DESCRIPTION,
            object(
                json!({
                    "skill_name": text("Name of the skill containing the script."),
                    "script_name": text(
                        "Exact name of the script as listed in the skill.\nExamples: \"analyze.py\", \
                         \"scripts/analyze.py\", \"scripts/deploy.sh\", \"scripts/runner\"\nMust match exactly - do \
                         not infer or guess.",
                    ),
                    "args": args(
                        "Arguments required by the script.\nKeys must match the parameter names in the script's \
                         schema.",
                    ),
                }),
                json!(["skill_name", "script_name"]),
            ),
        ),
    ]
}

/// The part of the system prompt that tells of the skills; `None` when there are none.
pub(super) fn catalogue_text(skills: &[Skill]) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let mut sorted: Vec<&Skill> = skills.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut entries = String::new();
    for skill in sorted {
        entries.push_str(&format!(
            "<skill>\n<name>{}</name>\n<description>{}</description>\n<uri>{}</uri>\n</skill>\n",
            skill.name,
            skill.description,
            skill.folder.display()
        ));
    }
    Some(format!(
        "You have access to a collection of skills containing domain-specific knowledge and capabilities.\n\
         Each skill provides specialized instructions, resources, and scripts for specific tasks.\n\n\
         <available_skills>\n{entries}</available_skills>\n\n\
         When a task falls within a skill's domain:\n\
         1. Use `load_skill` first to read the complete skill instructions for that skill\n\
         2. Only after `load_skill` succeeds, follow the skill's guidance to complete the task\n\
         3. Call `read_skill_resource` or `run_skill_script` only for skills already loaded with `load_skill`\n\
         4. Never guess resource or script names; use the exact names listed by `load_skill`\n\n\
         Use progressive disclosure: load only what you need, when you need it."
    ))
}

/// The result of `load_skill`.
pub(super) fn skill_text(skill: &Skill) -> String {
    let list = |files: &[SkillFile], tag: &str, none: &str| {
        if files.is_empty() {
            return format!("<!-- No {none} -->");
        }
        let lines: Vec<String> = files
            .iter()
            .map(|file| format!("<{tag} name=\"{}\" />", file.name))
            .collect();
        lines.join("\n")
    };
    format!(
        "<skill>\n<name>{}</name>\n<description>{}</description>\n<uri>{}</uri>\n\n<resources>\n{}\n</resources>\n\n\
         <scripts>\n{}\n</scripts>\n\n<instructions>\n{}\n</instructions>\n</skill>\n",
        skill.name,
        skill.description,
        skill.folder.display(),
        list(&skill.resources, "resource", "resources"),
        list(&skill.scripts, "script", "scripts"),
        skill.instructions,
    )
}

/// What the model is told of a skill that is not there. `what_to_do` follows `Call list_skills`.
pub(super) fn no_skill(skills: &[Skill], name: &str, what_to_do: &str) -> String {
    let mut names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    names.sort_unstable();
    let available = match names.join(", ") {
        names if names.is_empty() => "none".to_owned(),
        names => names,
    };
    format!(
        "Skill '{name}' not found. Available skills: {available}. Call list_skills {what_to_do} with an exact name."
    )
}

/// What the model is told of a file that is not there. `kind` is `Resource` or `Script`.
pub(super) fn no_file(kind: &str, name: &str, skill: &Skill, files: &[SkillFile]) -> String {
    let names: Vec<String> = files.iter().map(|file| repr_str(&file.name)).collect();
    format!(
        "{kind} '{name}' not found in skill '{}'. Available {}s: [{}]. Use the exact name from load_skill output.",
        skill.name,
        kind.to_lowercase(),
        names.join(", ")
    )
}
