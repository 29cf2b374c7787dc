//! The worker's own toolsets, for Dag code that wraps them.
//!
//! While Dag code waits for an answer its interpreter can do nothing else: nothing here may ask the interpreter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::kept_files::KeptFiles;
use super::python_toolset::describe;
use crate::agent::{ToolError, Toolset};
use crate::dag::definitions::{Handle, ToolsetSpec};
use crate::toolset::mcp;

/// Makes a toolset of the worker's own.
pub(super) type MakeToolset =
    Arc<dyn Fn(&ToolsetSpec) -> Result<Arc<dyn Toolset>, String> + Send + Sync>;

/// The worker's own toolsets that Dag code holds, by their handles in the interpreter.
#[derive(Default)]
pub struct NativeToolsets {
    make: Mutex<Option<MakeToolset>>,
    made: Mutex<HashMap<u64, Arc<dyn Toolset>>>,
    /// Toolsets open one at a time, so that what is wanted is wanted by the one that opens.
    opening: tokio::sync::Mutex<()>,
    pub(super) given: Arc<Given>,
    pub(super) files: Arc<KeptFiles>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NativeToolsets {
    /// From now on toolsets can be made.
    pub(super) fn serve(&self, make: MakeToolset) {
        *locked(&self.make) = Some(make);
    }

    fn toolset(&self, request: &Value) -> Result<Arc<dyn Toolset>, String> {
        let handle = request.get("handle").and_then(Value::as_u64).unwrap_or(0);
        let mut made = locked(&self.made);
        if let Some(toolset) = made.get(&handle) {
            return Ok(Arc::clone(toolset));
        }
        let make = locked(&self.make)
            .clone()
            .ok_or("toolsets are there while an agent runs, and at no other time")?;
        let spec = request.get("spec").cloned().unwrap_or_default();
        let spec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
        let toolset = make(&spec)?;
        made.insert(handle, Arc::clone(&toolset));
        Ok(toolset)
    }

    /// Does what Dag code asks: `{"handle", "spec", "operation", ...}`. The answer may be `{"wanted": handle}`: the same
    /// question is to be asked again with `"given": [handle, what that function gives]`.
    pub(super) async fn answer(&self, request: &Value) -> Value {
        let toolset = match self.toolset(request) {
            Ok(toolset) => toolset,
            Err(text) => return json!({ "fatal": text }),
        };
        let name = request
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let answer = match request.get("operation").and_then(Value::as_str) {
            Some("open") => {
                let _alone = self.opening.lock().await;
                self.given.take(request.get("given"));
                let opened = toolset.open().await;
                if let (Err(_), Some(Handle(wanted))) = (&opened, self.given.take_wanted()) {
                    return json!({ "wanted": wanted });
                }
                opened.map(|()| Value::Null)
            }
            Some("close") => {
                toolset.close().await;
                Ok(Value::Null)
            }
            Some("instructions") => toolset.instructions().await.map(Value::from),
            Some("tools") => toolset
                .tools()
                .await
                .map(|tools| tools.iter().map(describe).collect()),
            _ => {
                let args = match request.get("args") {
                    Some(Value::Object(args)) => args.clone(),
                    _ => Map::new(),
                };
                let called = toolset.call_for_files(name, args).await;
                called.map(|output| {
                    self.files.keep(output.files);
                    output.content
                })
            }
        };
        match answer {
            Ok(value) => json!({ "value": value }),
            Err(ToolError::Retry(text)) => json!({ "retry": text }),
            Err(ToolError::Failed(text)) => json!({ "failed": text }),
            Err(ToolError::Fatal(text)) => json!({ "fatal": text }),
        }
    }
}

/// What functions of the Dag file gave for a toolset that Dag code opens. The function is called by that code: the
/// interpreter waits, and can't be asked to.
#[derive(Default)]
pub(super) struct Given(Mutex<(HashMap<Handle, Value>, Option<Handle>)>);

impl Given {
    /// Gives what came with the question; notes that it is wanted when nothing came.
    pub(super) fn provider(self: &Arc<Self>, function: Handle) -> mcp::Provider {
        let given = Arc::clone(self);
        Arc::new(move || {
            let mut given = locked(&given.0);
            let value = given.0.remove(&function);
            if value.is_none() {
                given.1 = Some(function);
            }
            let value =
                value.ok_or_else(|| "a function of the Dag is to be called first".to_owned());
            Box::pin(std::future::ready(value))
        })
    }

    fn take(&self, given: Option<&Value>) {
        if let Some(Value::Array(given)) = given
            && let [handle, value] = given.as_slice()
            && let Some(handle) = handle.as_u64()
        {
            locked(&self.0).0.insert(Handle(handle), value.clone());
        }
    }

    fn take_wanted(&self) -> Option<Handle> {
        locked(&self.0).1.take()
    }
}
