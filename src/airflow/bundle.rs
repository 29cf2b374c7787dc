//! Dag bundles: where a worker finds the Dag files (`[dag_processor] dag_bundle_config_list`).

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::config::{Config, ConfigError};

const SECTION: &str = "dag_processor";
const KEY: &str = "dag_bundle_config_list";
const LOCAL: &str = "airflow.dag_processing.bundles.local.LocalDagBundle";

/// The bundles that this worker is configured with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DagBundles(Vec<DagBundle>);

/// One bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct DagBundle {
    /// The name that a job refers to it by; the same on every machine.
    pub name: String,
    pub kind: BundleKind,
}

/// What a bundle is, by its Python class.
#[derive(Clone, Debug, PartialEq)]
pub enum BundleKind {
    /// `LocalDagBundle`: a folder, used where it is.
    Local { path: PathBuf },
    /// Any other class.
    Other {
        classpath: String,
        kwargs: Map<String, Value>,
    },
}

/// Why a Dag file can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The job names a bundle that this worker does not know.
    #[error(
        "Dag bundle `{name}` is not among this worker's bundles ({known}): add it to [dag_processor] \
         dag_bundle_config_list (AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST), under the same name as on the Dag \
         processor"
    )]
    Unknown { name: String, known: String },
    /// The bundle's class is not one that Updraft can read.
    #[error(
        "Dag bundle `{name}` is of class {classpath}, which Updraft can't read: give the worker a copy of the Dag files and a \
         LocalDagBundle of the same name"
    )]
    UnsupportedKind { name: String, classpath: String },
    /// The bundle's folder is not there.
    #[error("Dag bundle `{name}`: {} is not a folder on this worker", path.display())]
    NoFolder { name: String, path: PathBuf },
    /// The path of the Dag file leads out of its bundle.
    #[error("Dag bundle `{name}`: the Dag file's path {path:?} leads out of the bundle")]
    Outside { name: String, path: String },
    /// There is no such file.
    #[error(
        "Dag bundle `{name}`: there is no Dag file {} on this worker. Does the worker have the same Dag files as the \
         Dag processor?",
        path.display()
    )]
    NoFile { name: String, path: PathBuf },
}

impl DagBundles {
    /// The bundles of a configuration.
    ///
    /// # Errors
    /// The option is not a list of bundles, or names one twice.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let invalid = |expected: String| config.invalid(SECTION, KEY, expected);
        let items = match config.get_json(SECTION, KEY)? {
            None => return Ok(Self::default()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(invalid("a JSON list of bundles".to_owned())),
        };
        let mut bundles: Vec<DagBundle> = Vec::with_capacity(items.len());
        for item in items {
            let bundle = read(item, config, &invalid)?;
            if bundles.iter().any(|other| other.name == bundle.name) {
                return Err(invalid(format!(
                    "a list without two bundles of one name (`{}`)",
                    bundle.name
                )));
            }
            bundles.push(bundle);
        }
        Ok(Self(bundles))
    }

    /// All of them, in the order of the configuration.
    #[must_use]
    pub fn all(&self) -> &[DagBundle] {
        &self.0
    }

    /// The bundle of this name.
    ///
    /// # Errors
    /// [`BundleError::Unknown`].
    pub fn find(&self, name: &str) -> Result<&DagBundle, BundleError> {
        self.0
            .iter()
            .find(|bundle| bundle.name == name)
            .ok_or_else(|| {
                let names: Vec<_> = self.0.iter().map(|bundle| bundle.name.as_str()).collect();
                let known = if names.is_empty() {
                    "it has none".to_owned()
                } else {
                    names.join(", ")
                };
                BundleError::Unknown {
                    name: name.to_owned(),
                    known,
                }
            })
    }
}

impl DagBundle {
    /// The bundle's folder.
    ///
    /// # Errors
    /// The folder is not there, or the bundle is of a kind that Updraft can't read.
    pub fn root(&self) -> Result<&Path, BundleError> {
        match &self.kind {
            BundleKind::Local { path } if path.is_dir() => Ok(path),
            BundleKind::Local { path } => Err(BundleError::NoFolder {
                name: self.name.clone(),
                path: path.clone(),
            }),
            BundleKind::Other { classpath, .. } => Err(BundleError::UnsupportedKind {
                name: self.name.clone(),
                classpath: classpath.clone(),
            }),
        }
    }

    /// The Dag file at a job's `dag_rel_path`.
    ///
    /// # Errors
    /// There is no such file in the bundle; see also [`DagBundle::root`].
    pub fn dag_file(&self, dag_rel_path: &str) -> Result<PathBuf, BundleError> {
        let relative = Path::new(dag_rel_path);
        if !relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(BundleError::Outside {
                name: self.name.clone(),
                path: dag_rel_path.to_owned(),
            });
        }
        let path = self.root()?.join(relative);
        if path.is_file() {
            Ok(path)
        } else {
            Err(BundleError::NoFile {
                name: self.name.clone(),
                path,
            })
        }
    }
}

fn read(
    item: Value,
    config: &Config,
    invalid: &impl Fn(String) -> ConfigError,
) -> Result<DagBundle, ConfigError> {
    let Value::Object(mut item) = item else {
        return Err(invalid("a JSON list of objects".to_owned()));
    };
    let mut text = |key: &str| match item.remove(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(invalid(format!("a list of bundles that each have a {key}"))),
    };
    let (name, classpath) = (text("name")?, text("classpath")?);
    if name == "example_dags" {
        return Err(invalid(
            "a list without the name `example_dags`, which Airflow keeps for itself".to_owned(),
        ));
    }
    let kwargs = match item.remove("kwargs") {
        Some(Value::Object(kwargs)) => kwargs,
        _ => {
            return Err(invalid(format!(
                "a list of bundles that each have kwargs, an object (bundle `{name}`)"
            )));
        }
    };
    if item.get("team_name").is_some_and(|team| !team.is_null())
        && !config.get_bool("core", "multi_team")?
    {
        return Err(invalid(format!(
            "without a team_name (bundle `{name}`) unless [core] multi_team is True"
        )));
    }
    let kind = if classpath == LOCAL {
        let path = match kwargs.get("path") {
            None | Some(Value::Null) => config.required("core", "dags_folder")?,
            Some(Value::String(path)) => path.clone(),
            Some(_) => return Err(invalid(format!("text as the path of bundle `{name}`"))),
        };
        BundleKind::Local { path: path.into() }
    } else {
        BundleKind::Other { classpath, kwargs }
    };
    Ok(DagBundle { name, kind })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn config(list: Option<&str>) -> Config {
        let home = [("AIRFLOW_HOME", "/nonexistent/airflow")];
        let list = list.map(|list| ("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", list));
        Config::new(home.into_iter().chain(list).collect())
    }

    fn bundles(list: &str) -> DagBundles {
        DagBundles::from_config(&config(Some(list))).unwrap()
    }

    fn local(path: &Path) -> DagBundle {
        DagBundle {
            name: "b".to_owned(),
            kind: BundleKind::Local {
                path: path.to_owned(),
            },
        }
    }

    #[test]
    fn without_configuration_there_is_the_dags_folder() {
        let bundles = DagBundles::from_config(&config(None)).unwrap();
        let expected = DagBundle {
            name: "dags-folder".to_owned(),
            kind: BundleKind::Local {
                path: "/nonexistent/airflow/dags".into(),
            },
        };
        assert_eq!(bundles.all(), [expected]);
        assert_eq!(
            DagBundles::from_config(&config(Some(""))).unwrap(),
            DagBundles::default()
        );
    }

    #[test]
    fn a_bundle_of_another_class_is_kept_and_refused_when_it_is_used() {
        let bundles = bundles(
            r#"[{"name": "a", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {"path": "/d"}},
                {"name": "g", "classpath": "airflow.providers.git.bundles.git.GitDagBundle", "kwargs": {"tracking_ref": "main"}, "team_name": null}]"#,
        );
        assert_eq!(
            bundles.find("a").unwrap().kind,
            BundleKind::Local { path: "/d".into() }
        );
        let text = bundles.find("g").unwrap().root().unwrap_err().to_string();
        assert!(
            text.starts_with(
                "Dag bundle `g` is of class airflow.providers.git.bundles.git.GitDagBundle"
            ),
            "{text}"
        );
        let text = bundles.find("x").unwrap_err().to_string();
        assert!(
            text.starts_with("Dag bundle `x` is not among this worker's bundles (a, g): add it to"),
            "{text}"
        );
    }

    #[test]
    fn a_malformed_list_is_an_error_that_names_the_option() {
        for list in [
            "{}",
            "[1]",
            r#"[{"name": "a"}]"#,
            r#"[{"name": "a", "classpath": "x"}]"#,
            r#"[{"name": "example_dags", "classpath": "x", "kwargs": {}}]"#,
            r#"[{"name": "a", "classpath": "x", "kwargs": {}}, {"name": "a", "classpath": "y", "kwargs": {}}]"#,
            r#"[{"name": "a", "classpath": "x", "kwargs": {}, "team_name": "t"}]"#,
        ] {
            let text = DagBundles::from_config(&config(Some(list)))
                .unwrap_err()
                .to_string();
            assert!(
                text.starts_with("[dag_processor] dag_bundle_config_list must be "),
                "{text}"
            );
            assert!(
                text.contains("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"),
                "{text}"
            );
        }
    }

    #[test]
    fn dag_files_are_found_inside_the_bundle_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("team")).unwrap();
        std::fs::write(folder.path().join("team/dag.py"), "").unwrap();
        let bundle = local(&folder.path().join("team"));
        assert_eq!(
            bundle.dag_file("dag.py").unwrap(),
            folder.path().join("team/dag.py")
        );
        assert!(matches!(
            bundle.dag_file("other.py"),
            Err(BundleError::NoFile { .. })
        ));
        for path in ["../team/dag.py", "/etc/passwd", "a/../../b.py"] {
            assert!(
                matches!(bundle.dag_file(path), Err(BundleError::Outside { .. })),
                "{path}"
            );
        }
        assert!(matches!(
            local(Path::new("/nonexistent")).dag_file("dag.py"),
            Err(BundleError::NoFolder { .. })
        ));
    }
}
