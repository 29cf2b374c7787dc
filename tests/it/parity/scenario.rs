//! One recorded run: its Dag file, its folder, its connections.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use serde_json::Value;

const FUTURE: &str = "from __future__ import annotations\n";

/// A file of the corpus.
pub struct Scenario {
    pub name: String,
    pub recorded: Value,
}

impl Scenario {
    pub fn read(path: &Path) -> Self {
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(path).expect("a readable file");
        Self {
            name,
            recorded: serde_json::from_str(&text).expect("a JSON file"),
        }
    }

    pub fn list(&self, key: &str) -> Vec<Value> {
        self.recorded[key].as_array().cloned().unwrap_or_default()
    }

    pub fn renders(&self) -> bool {
        self.recorded["python"]["render"] == Value::Bool(true)
    }

    /// The Dag file's source.
    pub fn dag_source(&self) -> String {
        let python = &self.recorded["python"];
        let mut classes = vec![python["operator"].as_str().expect("an operator").to_owned()];
        let mut arguments = String::new();
        for (name, value) in python["kwargs"].as_object().expect("kwargs") {
            let mut value = value.clone();
            // Rendering drops a text's last line break, and `updraft run` always renders.
            if let Value::String(text) = &mut value
                && text.ends_with('\n')
                && !self.renders()
            {
                text.push('\n');
            }
            arguments.push_str(&format!(
                "        {name}={},\n",
                expression(&value, &mut classes)
            ));
        }
        let module = python["module"].as_str().unwrap_or_default();
        // Python wants this one first of all.
        let (future, module) = match module.strip_prefix(FUTURE) {
            Some(rest) => (FUTURE, rest),
            None => ("", module),
        };
        let mut downstream = String::new();
        if let Some(ids) = python["downstream_task_ids"].as_array() {
            classes.push("EmptyOperator".to_owned());
            for id in ids {
                downstream.push_str(&format!("    ask >> EmptyOperator(task_id={id})\n"));
            }
        }
        let imports: String = classes.iter().map(|class| import_of(class)).collect();
        format!(
            "{future}from airflow.sdk import DAG\n{imports}\n{module}\n\nwith DAG(dag_id=\"parity\"):\n    ask = {}(\n        \
             task_id=\"ask\",\n{arguments}    )\n{downstream}",
            classes[0]
        )
    }

    /// Makes databases and files in the scenario's folder.
    pub fn set_up(&self, folder: &Path) {
        for (name, statements) in self.recorded["setup"]["sqlite"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let database = rusqlite::Connection::open(folder.join(name)).expect("a database");
            for statement in statements.as_array().into_iter().flatten() {
                database
                    .execute_batch(statement.as_str().expect("SQL"))
                    .expect("a good statement");
            }
        }
        for (name, content) in self.recorded["setup"]["files"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            if let Some(text) = content["text"].as_str() {
                fs::write(&path, text).expect("a written file");
            } else if let Some(text) = content["base64"].as_str() {
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .expect("base64");
                fs::write(&path, bytes).expect("a written file");
            } else if let Some([text, count]) = content["repeat"].as_array().map(Vec::as_slice) {
                let count =
                    usize::try_from(count.as_u64().expect("a count")).expect("a small count");
                fs::write(&path, text.as_str().expect("text").repeat(count))
                    .expect("a written file");
            } else if let Some(target) = content["symlink"].as_str() {
                std::os::unix::fs::symlink(target, &path).expect("a link");
            } else {
                panic!("{}: no way to make {name} from {content}", self.name);
            }
            if let Some(mode) = content["mode"].as_str() {
                let mode = u32::from_str_radix(mode, 8).expect("octal digits");
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            }
        }
    }

    /// What an earlier try left, as the file beside the Dag file that `updraft run` reads.
    pub fn leave_task_state(&self, dag_file: &Path) {
        let left = &self.recorded["setup"]["task_state_store"];
        if !left.is_null() {
            fs::write(
                dag_file.with_extension("task_state.json"),
                serde_json::json!({ "ask": left }).to_string(),
            )
            .expect("a written file");
        }
    }

    /// Do the rows that the run should have left differ from those that are there?
    pub fn database_difference(&self, folder: &Path) -> Option<String> {
        let after = self.recorded.get("database_after")?;
        let path = folder.join(after["database"].as_str().expect("a file name"));
        let database = rusqlite::Connection::open(path).expect("a database");
        let mut query = database
            .prepare(after["sql"].as_str().expect("SQL"))
            .expect("a good query");
        let columns = query.column_count();
        let rows: Vec<Value> = query
            .query_map([], |row| {
                (0..columns)
                    .map(|index| {
                        Ok(match row.get_ref(index)? {
                            rusqlite::types::ValueRef::Null => Value::Null,
                            rusqlite::types::ValueRef::Integer(integer) => integer.into(),
                            rusqlite::types::ValueRef::Real(real) => real.into(),
                            rusqlite::types::ValueRef::Text(text) => {
                                String::from_utf8_lossy(text).into()
                            }
                            rusqlite::types::ValueRef::Blob(_) => {
                                panic!("a recorded row holds no bytes")
                            }
                        })
                    })
                    .collect()
            })
            .expect("rows")
            .collect::<Result<_, _>>()
            .expect("readable rows");
        let rows = Value::Array(rows);
        (rows != after["rows"]).then(|| format!("database: {rows} instead of {}", after["rows"]))
    }

    /// `AIRFLOW_CONN_...` variables, with `replace` applied to their text.
    pub fn connections(&self, replace: impl Fn(&str) -> String) -> Vec<(String, String)> {
        let connections = self.recorded["connection"]
            .as_object()
            .into_iter()
            .flatten();
        connections
            .map(|(id, value)| {
                (
                    format!("AIRFLOW_CONN_{}", id.to_uppercase()),
                    replace(&value.to_string()),
                )
            })
            .collect()
    }
}

/// A recorded argument as Python source.
fn expression(value: &Value, classes: &mut Vec<String>) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // JSON's escapes are Python's, but for surrogate pairs, which serde_json does not write.
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| expression(item, classes)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            if let Some(source) = map.get("expr").and_then(Value::as_str) {
                if source.starts_with("NativeOutput(") {
                    classes.push("NativeOutput".to_owned());
                }
                return source.to_owned();
            }
            let Some(class) = map.get("class").and_then(Value::as_str) else {
                let entries: Vec<String> = map
                    .iter()
                    .map(|(key, item)| {
                        format!(
                            "{}: {}",
                            Value::from(key.as_str()),
                            expression(item, classes)
                        )
                    })
                    .collect();
                return format!("{{{}}}", entries.join(", "));
            };
            if !classes.iter().any(|known| known == class) {
                classes.push(class.to_owned());
            }
            let arguments: Vec<String> = map["kwargs"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, item)| format!("{name}={}", expression(item, classes)))
                .collect();
            let prefixed = map
                .get("prefixed")
                .map_or(String::new(), |prefix| format!(".prefixed({prefix})"));
            format!("{class}({}){prefixed}", arguments.join(", "))
        }
    }
}

fn import_of(class: &str) -> String {
    let module = match class {
        "AgentOperator" => "airflow.providers.common.ai.operators.agent",
        "EmptyOperator" => "airflow.providers.standard.operators.empty",
        "LLMBranchOperator" => "airflow.providers.common.ai.operators.llm_branch",
        "DataSourceConfig" => "airflow.providers.common.sql.config",
        "LLMFileAnalysisOperator" => "airflow.providers.common.ai.operators.llm_file_analysis",
        "LLMSQLQueryOperator" => "airflow.providers.common.ai.operators.llm_sql",
        "LLMSchemaCompareOperator" => "airflow.providers.common.ai.operators.llm_schema_compare",
        "LLMOperator" => "airflow.providers.common.ai.operators.llm",
        "SQLToolset" => "airflow.providers.common.ai.toolsets.sql",
        "HookToolset" => "airflow.providers.common.ai.toolsets.hook",
        "ObjectStorageToolset" => "airflow.providers.common.ai.toolsets.object_storage",
        "NativeOutput" => "pydantic_ai.output",
        "AgentSkillsToolset" => "airflow.providers.common.ai.toolsets.skills",
        "MCPToolset" => "airflow.providers.common.ai.toolsets.mcp",
        other => panic!("where does {other} come from?"),
    };
    format!("from {module} import {class}\n")
}
