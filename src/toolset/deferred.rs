//! `toolset.defer_loading()`: tools that a model is told of when it has searched for them.
//!
//! All such toolsets of an agent share one search; its tool stands after all others. (pydantic-ai leaves the search to
//! providers that have one of their own; here every model gets the tool.)

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::wrapper::Wrapper;
use crate::agent::{ToolDefinition, ToolError, Toolset};

const SEARCH_TOOLS: &str = "search_tools";
/// How many tools one search tells of.
const MAX_RESULTS: usize = 10;
const NO_MATCH: &str = "No matching tools found. The tools you need may not be available.";
const NO_QUERY: &str = "Please provide at least one non-empty search query.";

/// The tools that an agent's toolsets hold back, and which of them the model has found.
#[derive(Debug, Default)]
pub struct ToolSearch(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    /// In the order of the toolsets, each of which puts its own here anew for every request.
    hidden: Vec<Hidden>,
    found: HashSet<String>,
    /// How many toolsets hold tools back.
    owners: usize,
}

#[derive(Debug)]
struct Hidden {
    /// The toolset, counted from 1.
    owner: usize,
    name: String,
    words: HashSet<String>,
}

impl ToolSearch {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the tools that fit best, those first that the model does not know yet.
    fn search(&self, queries: &[&str]) -> Result<Vec<String>, ToolError> {
        let wanted = words(&queries.join(" "));
        if wanted.is_empty() {
            return Err(ToolError::Retry(NO_QUERY.to_owned()));
        }
        let mut index = self.index();
        let mut fits: Vec<(bool, usize, String)> = index
            .hidden
            .iter()
            .map(|tool| {
                let shared = tool.words.intersection(&wanted).count();
                (index.found.contains(&tool.name), shared, tool.name.clone())
            })
            .filter(|(_, shared, _)| *shared > 0)
            .collect();
        fits.sort_by_key(|(known, shared, _)| (*known, std::cmp::Reverse(*shared)));
        fits.truncate(MAX_RESULTS);
        let names: Vec<String> = fits.into_iter().map(|(_, _, name)| name).collect();
        index.found.extend(names.iter().cloned());
        Ok(names)
    }
}

/// Runs of letters and digits, in lower case.
fn words(text: &str) -> HashSet<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// A toolset that holds tools back until they are found.
pub struct DeferredLoadingToolset {
    wrapped: Arc<dyn Toolset>,
    /// `None`: all of them.
    tool_names: Option<HashSet<String>>,
    search: Arc<ToolSearch>,
    owner: usize,
}

impl DeferredLoadingToolset {
    /// Holds back the tools of these names, or all.
    #[must_use]
    pub fn new(
        wrapped: Arc<dyn Toolset>,
        tool_names: Option<HashSet<String>>,
        search: Arc<ToolSearch>,
    ) -> Self {
        let owner = {
            let mut index = search.index();
            index.owners += 1;
            index.owners
        };
        Self {
            wrapped,
            tool_names,
            search,
            owner,
        }
    }
}

#[async_trait]
impl Wrapper for DeferredLoadingToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn offered(&self, tools: Vec<ToolDefinition>) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut index = self.search.index();
        // What is offered no more is found no more.
        index.hidden.retain(|tool| tool.owner != self.owner);
        let mut shown = Vec::new();
        for tool in tools {
            let held_back = self
                .tool_names
                .as_ref()
                .is_none_or(|names| names.contains(&tool.name));
            if held_back {
                let description = tool.description.as_deref().unwrap_or_default();
                let words = words(&format!("{} {description}", tool.name));
                index.hidden.push(Hidden {
                    owner: self.owner,
                    name: tool.name.clone(),
                    words,
                });
            }
            if !held_back || index.found.contains(&tool.name) {
                shown.push(tool);
            }
        }
        Ok(shown)
    }
}

/// The tool that searches. It must come after the toolsets that hold tools back.
pub struct SearchToolset(Arc<ToolSearch>);

impl SearchToolset {
    /// Searches what the toolsets with the same search hold back.
    #[must_use]
    pub fn new(search: Arc<ToolSearch>) -> Self {
        Self(search)
    }
}

#[async_trait]
impl Toolset for SearchToolset {
    fn id(&self) -> String {
        String::new()
    }

    fn label(&self) -> &str {
        "ToolSearchToolset"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        if self.0.index().hidden.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![ToolDefinition {
            name: SEARCH_TOOLS.to_owned(),
            description: Some(
                "Find more tools by words of their names and descriptions. Use it when none of the tools that you have \
                 does what is asked; what is found can be called from the next turn on."
                    .to_owned(),
            ),
            parameters: json!({
                "additionalProperties": false,
                "properties": {
                    "queries": {
                        "description": "What to look for: each query is taken word by word, and a tool fits that has \
                                        any of the words.",
                        "items": {"type": "string"},
                        "type": "array",
                    }
                },
                "required": ["queries"],
                "type": "object",
            }),
            sequential: false,
            max_retries: None,
        }])
    }

    async fn call(&self, _name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let queries: Vec<&str> = args
            .get("queries")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let names = self.0.search(&queries)?;
        Ok(if names.is_empty() {
            json!({"discovered_tools": [], "message": NO_MATCH})
        } else {
            let found: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
            json!({ "discovered_tools": found })
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    struct Harbour;

    #[async_trait]
    impl Toolset for Harbour {
        fn id(&self) -> String {
            "harbour".to_owned()
        }

        fn label(&self) -> &str {
            "Harbour"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            let tool = |name: &str, description: &str| ToolDefinition {
                name: name.to_owned(),
                description: Some(description.to_owned()),
                parameters: json!({"type": "object", "properties": {}}),
                sequential: false,
                max_retries: None,
            };
            Ok(vec![
                tool("list_ports", "All ports."),
                tool("read_tide", "When the tide is high in a port."),
                tool("book_berth", "Books a berth."),
            ])
        }

        async fn call(&self, name: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
            Ok(name.into())
        }
    }

    async fn offered(toolsets: &[Arc<dyn Toolset>]) -> Vec<String> {
        let mut names = Vec::new();
        for toolset in toolsets {
            let tools = toolset.tools().await.unwrap();
            names.extend(tools.into_iter().map(|tool| tool.name));
        }
        names
    }

    fn queries(queries: &[&str]) -> Map<String, Value> {
        Map::from_iter([("queries".to_owned(), json!(queries))])
    }

    #[tokio::test]
    async fn tools_are_offered_once_they_were_found() {
        let search = Arc::new(ToolSearch::default());
        let names = HashSet::from(["read_tide".to_owned(), "book_berth".to_owned()]);
        let toolsets: [Arc<dyn Toolset>; 2] = [
            Arc::new(DeferredLoadingToolset::new(
                Arc::new(Harbour),
                Some(names),
                Arc::clone(&search),
            )),
            Arc::new(SearchToolset::new(search)),
        ];
        assert_eq!(offered(&toolsets).await, ["list_ports", "search_tools"]);
        let nothing = toolsets[1].call("search_tools", queries(&["weather"]));
        assert_eq!(
            nothing.await.unwrap(),
            json!({"discovered_tools": [], "message": NO_MATCH})
        );
        assert_eq!(offered(&toolsets).await, ["list_ports", "search_tools"]);
        let tide = toolsets[1].call("search_tools", queries(&["TIDE, high", "port"]));
        assert_eq!(
            tide.await.unwrap(),
            json!({"discovered_tools": [{"name": "read_tide"}]})
        );
        assert_eq!(
            offered(&toolsets).await,
            ["list_ports", "read_tide", "search_tools"]
        );
        assert!(matches!(
            toolsets[1].call("search_tools", queries(&[" ", "?"])).await,
            Err(ToolError::Retry(_))
        ));
    }

    #[tokio::test]
    async fn a_tool_that_is_withdrawn_is_found_no_more() {
        let search = Arc::new(ToolSearch::default());
        let deferred = || DeferredLoadingToolset::new(Arc::new(Harbour), None, Arc::clone(&search));
        let (one, other) = (deferred(), deferred());
        let tools = Harbour.tools().await.unwrap();
        one.offered(tools.clone()).await.unwrap();
        other.offered(tools[..1].to_vec()).await.unwrap();
        one.offered(tools[2..].to_vec()).await.unwrap();
        assert_eq!(
            search.search(&["port berth"]).unwrap(),
            ["book_berth".to_owned()]
        );
        assert_eq!(
            search.search(&["ports"]).unwrap(),
            ["list_ports".to_owned()]
        );
    }

    #[tokio::test]
    async fn what_is_not_known_yet_comes_first_and_the_best_fit_before_others() {
        let search = Arc::new(ToolSearch::default());
        let all = DeferredLoadingToolset::new(Arc::new(Harbour), None, Arc::clone(&search));
        assert_eq!(all.tools().await.unwrap(), Vec::new());
        assert_eq!(
            search.search(&["port tide"]).unwrap(),
            ["read_tide".to_owned()]
        );
        assert_eq!(
            search.search(&["a tide in all ports"]).unwrap(),
            ["list_ports", "book_berth", "read_tide"]
        );
    }
}
