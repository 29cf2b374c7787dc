//! The four tools as the model is told of them.

use serde_json::{Value, json};

use crate::agent::ToolDefinition;

/// In the order of registration.
pub(super) const NAMES: [&str; 4] = ["list_tables", "get_schema", "query", "check_query"];

const GET_SCHEMA: &str = "Get a table's columns. Returns JSON of the form {\"columns\": [{\"name\": ..., \"type\": \
    ...}, ...], \"column_count\": N}. Pass `name_contains` to return only the columns whose name contains that \
    substring (case-insensitive) -- use it to find the columns relevant to your question on a wide table. When a \
    table has more columns than can be returned at once, the full list is replaced by a summary (`column_count`, and \
    where the budget allows a `type_histogram` and a `sample_columns` preview) with `truncated` set, `truncated_by` \
    naming the limit that was hit, and a `hint`. Call get_schema again with a `name_contains` substring to retrieve \
    the specific columns you need instead of the whole table.";

const QUERY: &str = "Execute a SQL query. Returns JSON of the form {\"columns\": [name, ...], \"rows\": [[value, \
    ...], ...]}, where each row holds its values in column order. A `truncated` key means you are not seeing the \
    whole result -- either more rows matched than were returned, or the result was too large -- and `truncated_by` \
    names the limit that was hit; narrow the projection or aggregate in SQL rather than paging through the result.";

/// The definitions, in the order of [`NAMES`].
pub(super) fn definitions(max_retries: Option<u32>) -> Vec<ToolDefinition> {
    let mut tools = common("List available table names in the database.", max_retries);
    tools.push(tool(
        "check_query",
        "Validate SQL syntax without executing it.",
        sql("SQL query to validate."),
        max_retries,
    ));
    tools
}

/// `list_tables`, `get_schema` and `query`: what every toolset over SQL offers.
pub(in crate::toolset) fn common(
    list_tables: &str,
    max_retries: Option<u32>,
) -> Vec<ToolDefinition> {
    let get_schema = json!({
        "type": "object",
        "properties": {
            "table_name": {"type": "string", "description": "Name of the table to inspect."},
            "name_contains": {
                "type": "string",
                "description": "Return only columns whose name contains this substring (case-insensitive). Use it to \
                                find the relevant columns on a very wide table.",
            },
        },
        "required": ["table_name"],
    });
    let nothing = json!({"type": "object", "properties": {}});
    vec![
        tool("list_tables", list_tables, nothing, max_retries),
        tool("get_schema", GET_SCHEMA, get_schema, max_retries),
        tool("query", QUERY, sql("SQL query to execute."), max_retries),
    ]
}

fn sql(description: &str) -> Value {
    json!({
        "type": "object",
        "properties": {"sql": {"type": "string", "description": description}},
        "required": ["sql"],
    })
}

fn tool(
    name: &str,
    description: &str,
    parameters: Value,
    max_retries: Option<u32>,
) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters,
        sequential: true,
        max_retries,
    }
}
