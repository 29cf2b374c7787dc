//! `_updraft`: what the stand-in modules (`python/`) may ask of the host.
//!
//! Everything crosses as text, numbers or None; JSON where the parameter's name says so.

use rustpython_vm::pymodule;

pub(super) use _updraft::module_def;

#[pymodule]
mod _updraft {
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use chrono::{DateTime, TimeZone};
    use chrono_tz::{OffsetComponents, OffsetName, Tz};
    use rustpython_vm::builtins::{PyBaseExceptionRef, PyStrRef, PyUtf8StrRef};
    use rustpython_vm::function::ArgIntoFloat;
    use rustpython_vm::{PyResult, VirtualMachine};
    use serde_json::Value;

    use crate::agent::arguments::{self, InvalidArguments};
    use crate::airflow::config::is_sensitive;
    use crate::airflow::yaml;
    use crate::dag::function_names;
    use crate::dag::guarded_imports;
    use crate::dag::host::{HostError, LogRecord, XComQuery};
    use crate::dag::nesting;
    use crate::dag::world;
    use crate::toolset::skills::local_repository;

    fn raise(error: HostError, vm: &VirtualMachine) -> PyBaseExceptionRef {
        match error {
            HostError::NotFound(text) => vm.new_lookup_error(text),
            HostError::Other(text) => vm.new_runtime_error(text),
        }
    }

    fn json<T: serde::de::DeserializeOwned>(
        text: &PyUtf8StrRef,
        vm: &VirtualMachine,
    ) -> PyResult<T> {
        serde_json::from_str::<Value>(text.as_str())
            .and_then(serde_json::from_value)
            .map_err(|error| vm.new_value_error(format!("not the JSON that was expected: {error}")))
    }

    #[pyfunction]
    fn connection(conn_id: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let connection = world::of(vm)?
            .host
            .connection(conn_id.as_str())
            .map_err(|error| raise(error, vm))?;
        Ok(connection.to_string())
    }

    #[pyfunction]
    fn variable(key: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        world::of(vm)?
            .host
            .variable(key.as_str())
            .map_err(|error| raise(error, vm))
    }

    #[pyfunction]
    fn set_variable(
        key: PyUtf8StrRef,
        value: Option<PyUtf8StrRef>,
        description: Option<PyUtf8StrRef>,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        world::of(vm)?
            .host
            .set_variable(
                key.as_str(),
                value.as_ref().map(|value| value.as_str()),
                description.as_ref().map(|description| description.as_str()),
            )
            .map_err(|error| raise(error, vm))
    }

    #[pyfunction]
    fn xcom_pull(query_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let query: XComQuery = json(&query_json, vm)?;
        let value = world::of(vm)?
            .host
            .xcom_pull(query)
            .map_err(|error| raise(error, vm))?;
        Ok(value.to_string())
    }

    #[pyfunction]
    fn xcom_push(key: PyUtf8StrRef, value_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<()> {
        let value = json(&value_json, vm)?;
        world::of(vm)?
            .host
            .xcom_push(key.as_str(), value)
            .map_err(|error| raise(error, vm))
    }

    #[pyfunction]
    fn request(request_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let request = json(&request_json, vm)?;
        let answer = world::of(vm)?
            .host
            .request(request)
            .map_err(|error| raise(error, vm))?;
        Ok(answer.to_string())
    }

    #[pyfunction]
    fn render_template(
        text: PyUtf8StrRef,
        more_json: PyUtf8StrRef,
        vm: &VirtualMachine,
    ) -> PyResult<String> {
        let more = json(&more_json, vm)?;
        world::of(vm)?
            .host
            .render_template(text.as_str(), &more)
            .map_err(|error| raise(error, vm))
    }

    #[pyfunction]
    fn config(
        section: PyUtf8StrRef,
        key: PyUtf8StrRef,
        vm: &VirtualMachine,
    ) -> PyResult<Option<String>> {
        // Kept from Dag code here as they are in `os.environ`.
        if is_sensitive(
            &section.as_str().to_lowercase(),
            &key.as_str().to_lowercase(),
        ) {
            return Ok(None);
        }
        Ok(world::of(vm)?.host.config(section.as_str(), key.as_str()))
    }

    #[pyfunction]
    fn mask_secret(
        value_json: PyUtf8StrRef,
        name: Option<PyUtf8StrRef>,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let value = json(&value_json, vm)?;
        world::of(vm)?
            .host
            .mask_secret(&value, name.as_ref().map(|name| name.as_str()));
        Ok(())
    }

    #[pyfunction]
    fn mask(text: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        Ok(world::of(vm)?.host.mask(text.as_str()))
    }

    #[pyfunction]
    fn toolset(request_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let request: Value = json(&request_json, vm)?;
        let answer = world::of(vm)?
            .host
            .toolset(&request)
            .map_err(|error| raise(error, vm))?;
        Ok(answer.to_string())
    }

    #[pyfunction]
    fn hook(request_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let request: Value = json(&request_json, vm)?;
        let answer = world::of(vm)?
            .host
            .hook(&request)
            .map_err(|error| raise(error, vm))?;
        Ok(answer.to_string())
    }

    #[pyfunction]
    fn agent(request_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let request: Value = json(&request_json, vm)?;
        let answer = world::of(vm)?
            .host
            .agent(&request)
            .map_err(|error| raise(error, vm))?;
        Ok(answer.to_string())
    }

    /// The data of a YAML text as JSON.
    #[pyfunction]
    fn yaml_data(text: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        yaml::load(text.as_str())
            .map(|data| data.to_string())
            .map_err(|error| vm.new_value_error(format!("this is no YAML: {error}")))
    }

    /// Clones repositories of skills and lets Dag code read them: a JSON list of the key and the folders.
    #[pyfunction]
    fn clone_skills(repositories_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let mut repositories: Value = json(&repositories_json, vm)?;
        let world = world::of(vm)?;
        for url in repositories
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(|source| source.pointer_mut("/git/repo_url"))
        {
            let Some(path) = url.as_str().and_then(local_repository) else {
                continue;
            };
            // A clone is readable, and so must have been what it is a clone of.
            let readable = world.files.resolve(&path).map_err(|error| {
                vm.new_os_error(format!("the repository {}: {error}", path.display()))
            })?;
            *url = readable.to_string_lossy().into();
        }
        let cloned = world
            .host
            .clone_skills(&repositories)
            .map_err(|error| raise(error, vm))?;
        for folder in &cloned.folders {
            world.files.lend(folder.clone());
        }
        Ok(serde_json::json!([cloned.key, cloned.folders]).to_string())
    }

    /// Ends what `clone_skills` began; takes its answer.
    #[pyfunction]
    fn remove_skills(cloned_json: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<()> {
        let (key, folders): (u64, Vec<PathBuf>) = json(&cloned_json, vm)?;
        let world = world::of(vm)?;
        for folder in &folders {
            world.files.take_back(folder);
        }
        world.host.remove_skills(key);
        Ok(())
    }

    #[pyfunction]
    fn log(
        logger: PyUtf8StrRef,
        level: PyUtf8StrRef,
        message: PyUtf8StrRef,
        fields_json: PyUtf8StrRef,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let fields = json(&fields_json, vm)?;
        world::of(vm)?.host.log(LogRecord {
            logger: logger.as_str().to_owned(),
            level: level.as_str().to_owned(),
            message: message.as_str().to_owned(),
            fields,
        });
        Ok(())
    }

    #[pyfunction]
    fn dag_file(vm: &VirtualMachine) -> PyResult<String> {
        Ok(world::of(vm)?.dag_file.to_string_lossy().into_owned())
    }

    /// The text of the Dag file: decoded, without a byte-order mark.
    #[pyfunction]
    fn dag_source(vm: &VirtualMachine) -> PyResult<String> {
        Ok(world::of(vm)?.source.clone())
    }

    #[pyfunction]
    fn dag_folder(vm: &VirtualMachine) -> PyResult<String> {
        Ok(world::of(vm)?.bundle_root.to_string_lossy().into_owned())
    }

    /// Text of a file that Dag code may read, if it can be read.
    fn source_of(path: &PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        let path = world::of(vm)?.files.resolve(Path::new(path.as_str()));
        Ok(path
            .ok()
            .and_then(|path| std::fs::read_to_string(path).ok()))
    }

    /// Line numbers that stand in a `try` (or `suppress`) that catches ImportError, as a JSON list.
    ///
    /// A file that can't be read or parsed has none: whoever imports it says so better.
    #[pyfunction]
    fn caught_imports(path: PyUtf8StrRef, vm: &VirtualMachine) -> PyResult<String> {
        let lines = source_of(&path, vm)?
            .map(|source| guarded_imports::lines(&source))
            .unwrap_or_default();
        Ok(serde_json::json!(lines).to_string())
    }

    /// What the body of a function asks for (see `function_names`), as JSON; None when it is not found.
    #[pyfunction]
    fn function_names(
        path: PyUtf8StrRef,
        name: PyUtf8StrRef,
        line: u32,
        vm: &VirtualMachine,
    ) -> PyResult<Option<String>> {
        let found = source_of(&path, vm)?
            .and_then(|source| function_names::of(&source, name.as_str(), line));
        Ok(found.map(|found| serde_json::json!(found).to_string()))
    }

    /// What a time zone says at a moment (seconds since 1970): the standard offset and what summer time adds, in
    /// seconds, and the abbreviation, as a JSON list; `None` when there is no zone of that name. From the time zone
    /// database in the binary: Dag code sees no files of the machine.
    #[pyfunction]
    fn zone_at(name: PyUtf8StrRef, seconds: i64) -> Option<String> {
        let zone = name.as_str().parse::<Tz>().ok()?;
        let moment = DateTime::from_timestamp(seconds, 0)?.naive_utc();
        let offset = zone.offset_from_utc_datetime(&moment);
        let parts = serde_json::json!([
            offset.base_utc_offset().num_seconds(),
            offset.dst_offset().num_seconds(),
            offset.abbreviation(),
        ]);
        Some(parts.to_string())
    }

    /// The names of the time zones, as a JSON list.
    #[pyfunction]
    fn zone_names() -> String {
        let names: Vec<_> = chrono_tz::TZ_VARIANTS
            .iter()
            .map(|zone| zone.name())
            .collect();
        serde_json::json!(names).to_string()
    }

    /// What is wrong with JSON text, in the words that pydantic has for it; None for good JSON.
    #[pyfunction]
    fn json_fault(text: PyUtf8StrRef) -> Option<String> {
        let read = serde_json::from_str::<serde::de::IgnoredAny>(text.as_str());
        read.err().map(|error| error.to_string())
    }

    /// A tool call's arguments by the tool's JSON schema: `{"args"}`, or the items of what is wrong under `errors`.
    #[pyfunction]
    fn checked_arguments(
        schema_json: PyUtf8StrRef,
        arguments_json: PyUtf8StrRef,
        vm: &VirtualMachine,
    ) -> PyResult<String> {
        let schema: Value = json(&schema_json, vm)?;
        Ok(
            match arguments::validate(arguments_json.as_str(), &schema) {
                Ok(args) => serde_json::json!({ "args": args }).to_string(),
                Err(InvalidArguments(errors)) => {
                    serde_json::json!({ "errors": errors }).to_string()
                }
            },
        )
    }

    /// What is nested too deeply in a source text for the compiler; None when it can be compiled.
    #[pyfunction]
    fn nesting_excess(source: PyUtf8StrRef) -> Option<String> {
        nesting::excess(source.as_str()).map(str::to_owned)
    }

    /// Do lists and objects nest more than `limit` levels in the JSON value that begins at a character of a text?
    #[pyfunction]
    fn json_is_deeper(text: PyStrRef, start: usize, limit: usize) -> bool {
        nesting::json_is_deeper(text.as_wtf8().as_bytes(), start, limit)
    }

    /// `time.sleep`, in slices, so that a Dag file which sleeps for ever can be stopped.
    #[pyfunction]
    fn sleep(seconds: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<()> {
        const SLICE: Duration = Duration::from_millis(20);
        let duration = Duration::try_from_secs_f64(seconds.into_float())
            .map_err(|_| vm.new_value_error("sleep length must be non-negative and finite"))?;
        let start = Instant::now();
        while let Some(rest) = duration
            .checked_sub(start.elapsed())
            .filter(|rest| !rest.is_zero())
        {
            vm.allow_threads(|| std::thread::sleep(rest.min(SLICE)));
            vm.check_signals()?;
        }
        Ok(())
    }
}
