//! The three tools as the model is told of them.

use serde_json::{Value, json};

use crate::agent::ToolDefinition;

/// In the order of registration, without the toolset's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    ListFiles,
    GetFileInfo,
    ReadFile,
}

impl Tool {
    pub const ALL: [Self; 3] = [Self::ListFiles, Self::GetFileInfo, Self::ReadFile];

    /// The name with a prefix, which may be empty.
    pub fn name(self, prefix: &str) -> String {
        let name = match self {
            Self::ListFiles => "list_files",
            Self::GetFileInfo => "get_file_info",
            Self::ReadFile => "read_file",
        };
        match prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}_{name}"),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ListFiles => {
                "List the files and directories in one directory of the storage, sorted by name. Directories end with \
                 a slash; list one of them to go deeper. A large directory is listed a page at a time, and the result \
                 tells you the offset to continue from."
            }
            Self::GetFileInfo => "Get the size and last-modified time of one file or directory.",
            Self::ReadFile => {
                "Read a text file. Long files are returned a window at a time and the result tells you the offset to \
                 continue from. For a Parquet or Avro file, returns its row count, schema and first rows; offset and \
                 limit do not apply to it."
            }
        }
    }

    fn parameters(self) -> Value {
        let path = json!({
            "type": "string",
            "description": "Path relative to the storage root, using / between parts. Omit for the root itself.",
        });
        let number =
            |description: &str| json!({"type": ["integer", "null"], "description": description});
        match self {
            Self::ListFiles => {
                let offset =
                    "Entry to start listing from (0-indexed), to page through a large directory.";
                json!({
                    "type": "object",
                    "properties": {"path": path, "offset": number(offset)},
                    "required": [],
                })
            }
            Self::GetFileInfo => {
                json!({"type": "object", "properties": {"path": path}, "required": ["path"]})
            }
            Self::ReadFile => json!({
                "type": "object",
                "properties": {
                    "path": path,
                    "offset": number("Line number to start reading from (1-indexed)."),
                    "limit": number("Maximum number of lines to read."),
                },
                "required": ["path"],
            }),
        }
    }
}

/// The definitions, in the order of [`Tool::ALL`].
pub(super) fn definitions(prefix: &str, max_retries: Option<u32>) -> Vec<ToolDefinition> {
    Tool::ALL
        .into_iter()
        .map(|tool| ToolDefinition {
            name: tool.name(prefix),
            description: Some(tool.description().to_owned()),
            parameters: tool.parameters(),
            sequential: false,
            max_retries,
        })
        .collect()
}
