//! The stand-ins' constructors take what the real ones take, so that a misspelt argument fails here as it fails there.
//!
//! `fixtures/constructors.json` was read from Airflow 3.3.2, common-ai 1.0.0 and pydantic-ai 2.68 with `inspect`: name,
//! kind and the `repr` of the default of each parameter.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::dag_host::{TestHost, fixture_json, load_source};

/// Describes the constructors of the classes that `WANTED` names, the way `inspect` described the real ones.
const DESCRIBE: &str = r#"
import json, sys
import _updraft, updraft_record, updraft_signature

def parameters(cls):
    if cls.__init__ is updraft_record.Record.__init__:
        for kind, defaults in (("POSITIONAL_OR_KEYWORD", cls._positional), ("KEYWORD_ONLY", cls._keyword)):
            for name, default in defaults.items():
                yield name, kind, default
        return
    init = getattr(cls.__init__, "__wrapped__", cls.__init__)
    for p in updraft_signature.parameters(init):
        if p.name != "self":
            yield p.name, p.kind, p.default

def shown(default):
    return None if default in (updraft_signature.EMPTY, updraft_record.REQUIRED) else repr(default)

found = {}
for module, names in WANTED.items():
    __import__(module)
    for name in names:
        cls = getattr(sys.modules[module], name)
        found.setdefault(module, {})[name] = [[n, k, shown(d)] for n, k, d in parameters(cls)]
_updraft.log("constructors", "info", json.dumps(found), "{}")
"#;

/// Parameters by name, where the order of those that are given by name only does not matter.
fn comparable(parameters: &Value) -> Value {
    let mut by_name = serde_json::Map::new();
    for (position, parameter) in parameters
        .as_array()
        .expect("parameters")
        .iter()
        .enumerate()
    {
        let name = parameter[0].as_str().expect("a name");
        if name.starts_with('_') && name != "_datetime" {
            continue;
        }
        let kind = parameter[1].as_str().expect("a kind");
        let position = (kind != "KEYWORD_ONLY").then_some(position);
        by_name.insert(
            name.to_owned(),
            json!({"kind": kind, "position": position, "required": parameter[2].is_null()}),
        );
    }
    Value::Object(by_name)
}

/// Is the default a plain value, whose text must be the same?
fn is_plain(default: &str) -> bool {
    matches!(default, "None" | "True" | "False")
        || default.parse::<f64>().is_ok()
        || default.starts_with('\'')
}

#[test]
fn constructors_take_the_arguments_of_the_real_ones() {
    let wanted = fixture_json("constructors.json");
    let names: serde_json::Map<String, Value> = wanted
        .as_object()
        .expect("modules")
        .iter()
        .map(|(module, classes)| {
            let names: Vec<_> = classes.as_object().expect("classes").keys().collect();
            (module.clone(), json!(names))
        })
        .collect();
    let host = Arc::new(TestHost::default());
    let source = format!("WANTED = {}\n{DESCRIBE}", Value::Object(names));
    load_source(&source, host.clone()).expect("the stand-ins import");
    let messages = host.messages("constructors");
    let found: Value = serde_json::from_str(&messages[0]).expect("JSON");
    for (module, classes) in wanted.as_object().expect("modules") {
        for (name, parameters) in classes.as_object().expect("classes") {
            let mine = &found[module][name];
            assert_eq!(comparable(mine), comparable(parameters), "{module}.{name}");
            for parameter in parameters.as_array().expect("parameters") {
                let Some(default) = parameter[2].as_str().filter(|default| is_plain(default))
                else {
                    continue;
                };
                let mine = mine
                    .as_array()
                    .and_then(|all| all.iter().find(|other| other[0] == parameter[0]))
                    .unwrap_or_else(|| panic!("{module}.{name} lacks {}", parameter[0]));
                assert_eq!(
                    mine[2].as_str(),
                    Some(default),
                    "the default of {module}.{name}({})",
                    parameter[0]
                );
            }
        }
    }
}
