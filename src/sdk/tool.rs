//! Tools that are Rust functions.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, Toolset};

type Call = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A function that a model may call.
#[derive(Clone)]
pub struct Tool {
    pub(super) definition: ToolDefinition,
    call: Call,
}

impl Tool {
    /// A tool of an async function. What the model is told of its arguments comes from `A`: field names, types, and doc
    /// comments as descriptions. Arguments that do not fit are sent back to the model before the function sees them.
    ///
    /// The function answers [`ToolError::Retry`] for what the model can put right, [`ToolError::Failed`] for what it is to
    /// know, and [`ToolError::Fatal`] to end the run.
    pub fn new<A, R, W, F>(name: &str, description: &str, function: F) -> Self
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        R: Serialize,
        W: Future<Output = Result<R, ToolError>> + Send + 'static,
        F: Fn(A) -> W + Send + Sync + 'static,
    {
        let call: Call = Arc::new(move |args| {
            let called = serde_json::from_value(args).map(&function);
            async move {
                let work = called.map_err(|error| ToolError::Retry(error.to_string()))?;
                let result = serde_json::to_value(work.await?);
                result.map_err(|error| {
                    ToolError::Fatal(format!("the tool's result is no JSON: {error}"))
                })
            }
            .boxed()
        });
        Self {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: Some(description.to_owned()).filter(|text| !text.is_empty()),
                parameters: schema::<A>(),
                sequential: false,
                max_retries: None,
            },
            call,
        }
    }

    /// No other call of the same turn runs beside one of this tool.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.definition.sequential = true;
        self
    }

    /// In so many turns may it fail before the run does. Default: what the agent says.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.definition.max_retries = Some(max_retries);
        self
    }
}

/// The JSON schema of a type, as models are told of it: without references to elsewhere.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// The tools that an agent was given one by one.
pub(super) struct FunctionTools(pub Vec<Tool>);

#[async_trait]
impl Toolset for FunctionTools {
    fn id(&self) -> String {
        "tools".to_owned()
    }

    fn label(&self) -> &str {
        "FunctionToolset"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(self.0.iter().map(|tool| tool.definition.clone()).collect())
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let tool = self.0.iter().find(|tool| tool.definition.name == name);
        let tool = tool.ok_or_else(|| ToolError::Fatal(format!("there is no tool {name:?}")))?;
        (tool.call)(args.into()).await
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Where an order is.
    #[derive(Deserialize, JsonSchema)]
    struct Lookup {
        /// The order's number.
        order: u32,
        carrier: Option<Carrier>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Carrier {
        Ship,
        Train,
    }

    #[tokio::test]
    async fn a_function_is_described_by_the_type_of_its_arguments() {
        let tool = Tool::new("lookup", "Finds an order.", |lookup: Lookup| async move {
            match lookup.carrier {
                Some(Carrier::Train) => Err(ToolError::Failed("no trains".to_owned())),
                _ => Ok(format!("{} is at sea", lookup.order)),
            }
        });
        assert_eq!(
            tool.definition.parameters,
            json!({
                "type": "object",
                "description": "Where an order is.",
                "properties": {
                    "order": {
                        "type": "integer", "format": "uint32", "minimum": 0, "description": "The order's number."
                    },
                    "carrier": {"type": ["string", "null"], "enum": ["ship", "train", null]},
                },
                "required": ["order"],
            })
        );
        let tools = FunctionTools(vec![tool]);
        let call = |args: Value| {
            let Value::Object(args) = args else {
                unreachable!()
            };
            tools.call("lookup", args)
        };
        assert_eq!(call(json!({"order": 7})).await.unwrap(), "7 is at sea");
        let error = call(json!({"order": 7, "carrier": "train"}))
            .await
            .unwrap_err();
        assert!(matches!(error, ToolError::Failed(text) if text == "no trains"));
        let error = call(json!({"order": -1})).await.unwrap_err();
        assert!(matches!(error, ToolError::Retry(_)));
    }
}
