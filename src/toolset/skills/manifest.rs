//! SKILL.md: YAML front matter between two lines of `---`, then the instructions.

use std::path::Path;

use serde_json::{Map, Value};

use crate::airflow::python_text::repr_value;
use crate::airflow::yaml::{self, YamlError};

/// What SKILL.md says of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub name: String,
    /// Empty when there is none.
    pub description: String,
    /// The text after the front matter.
    pub instructions: String,
    /// What is unusual about it, a sentence each. Nothing here keeps the skill from being used.
    pub remarks: Vec<String>,
}

/// A SKILL.md that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The front matter is no YAML.
    #[error("Failed to parse YAML frontmatter: {0}")]
    Yaml(#[from] YamlError),
    /// The front matter is YAML, and no mapping.
    #[error("YAML frontmatter must be a mapping, got {0}")]
    NoMapping(&'static str),
    /// The name is the one thing a skill must say.
    #[error("it is missing the required \"name\" field")]
    NoName,
}

impl Manifest {
    /// Reads the text of the SKILL.md in `folder`.
    ///
    /// # Errors
    /// See [`ManifestError`].
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ManifestError> {
        let (front, instructions) = split(text)?;
        let name = match front.get("name") {
            None | Some(Value::Null) => return Err(ManifestError::NoName),
            Some(name) => python_str(name),
        };
        if name.is_empty() {
            return Err(ManifestError::NoName);
        }
        let description = text_or_empty(front.get("description"));
        let compatibility = text_or_empty(front.get("compatibility"));
        let mut remarks = remarks_on_name(&name);
        if description.is_empty() {
            remarks.push("has no description: a model can't tell when to use it".to_owned());
        }
        let mut long = |what: &str, length: usize, most: usize, unit: &str| {
            if length > most {
                remarks.push(format!(
                    "has a {what} of {length} {unit}; at most {most} are recommended"
                ));
            }
        };
        long(
            "description",
            description.chars().count(),
            1024,
            "characters",
        );
        long(
            "compatibility",
            compatibility.chars().count(),
            500,
            "characters",
        );
        long("body", instructions.split('\n').count(), 500, "lines");
        let remarks = remarks
            .into_iter()
            .map(|remark| format!("Skill {name:?} ({}) {remark}.", folder.display()))
            .collect();
        Ok(Self {
            name,
            description,
            instructions: instructions.to_owned(),
            remarks,
        })
    }
}

fn remarks_on_name(name: &str) -> Vec<String> {
    let mut remarks = Vec::new();
    let length = name.chars().count();
    let word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if length > 64 {
        remarks.push(format!(
            "has a name of {length} characters; at most 64 are recommended"
        ));
    } else if !name.split('-').all(word) {
        remarks
            .push("should have a name of lower-case letters, digits and single hyphens".to_owned());
    }
    for reserved in ["anthropic", "claude"] {
        if name.contains(reserved) {
            remarks.push(format!("has the reserved word {reserved:?} in its name"));
        }
    }
    remarks
}

/// The front matter's entries and the instructions. Without a complete front matter everything is instructions.
fn split(text: &str) -> Result<(Map<String, Value>, &str), ManifestError> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Ok((Map::new(), text.trim()));
    }
    let start = first.len() + 1;
    let mut end = start;
    for line in lines {
        let next = end + line.len() + 1;
        if is_fence(line) {
            let front = text.get(start..end).unwrap_or_default().trim();
            let instructions = text.get(next..).unwrap_or_default().trim();
            if front.is_empty() {
                return Ok((Map::new(), instructions));
            }
            return match yaml::load(front)? {
                Value::Object(entries) => Ok((entries, instructions)),
                other => Err(ManifestError::NoMapping(python_type(&other))),
            };
        }
        end = next;
    }
    Ok((Map::new(), text.trim()))
}

/// Python's `str(value)`.
pub(super) fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr_value(other),
    }
}

/// Python's `str(value or '')`.
fn text_or_empty(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => String::new(),
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => String::new(),
        Some(Value::Array(items)) if items.is_empty() => String::new(),
        Some(Value::Object(entries)) if entries.is_empty() => String::new(),
        Some(value) => python_str(value),
    }
}

/// The name of a JSON value's type in Python.
pub(super) fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.to_string().contains(['.', 'e', 'E']) => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn parse(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(text, Path::new("/skills/x"))
    }

    #[test]
    fn front_matter_and_instructions_are_told_apart() {
        let manifest = parse(
            "---  \nname: port-style\ndescription: >\n  How to\n  write.\nlicense: MIT\n---\n\n# Title\n---\nmore\n",
        )
        .unwrap();
        assert_eq!(
            manifest,
            Manifest {
                name: "port-style".to_owned(),
                description: "How to write.\n".to_owned(),
                instructions: "# Title\n---\nmore".to_owned(),
                remarks: Vec::new(),
            }
        );
        assert_eq!(
            parse("---\r\nname: dos\r\ndescription: d\r\n---\r\nbody\r\n")
                .unwrap()
                .name,
            "dos"
        );
    }

    #[test]
    fn a_name_is_required_and_may_be_any_scalar() {
        assert_eq!(parse("---\nname: 7\n---\n").unwrap().name, "7");
        assert_eq!(parse("---\nname: yes\n---\n").unwrap().name, "True");
        for text in [
            "",
            "no front matter",
            "---\nname: x\nno closing line",
            "---\n---\nbody",
            "---\ndescription: d\n---\n",
            "---\nname: ''\n---\n",
        ] {
            assert_eq!(parse(text), Err(ManifestError::NoName), "{text:?}");
        }
    }

    #[test]
    fn front_matter_that_is_no_mapping_or_no_yaml_is_an_error() {
        assert_eq!(
            parse("---\n- a\n---\n").unwrap_err().to_string(),
            "YAML frontmatter must be a mapping, got list"
        );
        let error = parse("---\nname: [\n---\n").unwrap_err().to_string();
        assert!(
            error.starts_with("Failed to parse YAML frontmatter: "),
            "{error}"
        );
    }

    #[test]
    fn what_is_unusual_is_remarked_upon() {
        assert!(
            parse("---\nname: a-b2\ndescription: d\n---\n")
                .unwrap()
                .remarks
                .is_empty()
        );
        let remarks = |text: &str| parse(text).unwrap().remarks.len();
        assert_eq!(remarks("---\nname: A b\ndescription: d\n---\n"), 1);
        assert_eq!(remarks("---\nname: a--b\n---\n"), 2);
        assert_eq!(remarks("---\nname: my-claude\ndescription: d\n---\n"), 1);
        let long = format!(
            "---\nname: {}\ndescription: {}\n---\n{}",
            "a".repeat(65),
            "d".repeat(1025),
            "line\n".repeat(501)
        );
        assert_eq!(remarks(&long), 3);
    }
}
