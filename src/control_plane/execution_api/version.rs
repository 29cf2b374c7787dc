//! The versions of the Execution API, and what an older server lacks.

use serde_json::{Map, Value, json};

use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskRequest};

/// A version of the Execution API: the newest that a minor version of Airflow knows.
///
/// A server takes a newer date for its newest version and does not say so: the version that it knows goes by the version
/// of Airflow that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVersion {
    /// Airflow 3.1.
    V2025_11_05,
    /// Airflow 3.2.
    V2026_04_06,
    /// Airflow 3.3.
    #[default]
    V2026_06_30,
}

impl ApiVersion {
    /// Of a release of Airflow, such as `3.1.8`; `None` for one that is older than 3.1, or no version at all.
    #[must_use]
    pub fn of_airflow(release: &str) -> Option<Self> {
        let mut numbers = release.split('.').map(str::parse::<u32>);
        match (numbers.next()?.ok()?, numbers.next()?.ok()?) {
            (3, 1) => Some(Self::V2025_11_05),
            (3, 2) => Some(Self::V2026_04_06),
            (3, 3..) | (4.., _) => Some(Self::V2026_06_30),
            _ => None,
        }
    }

    /// As the header `airflow-api-version` has it.
    #[must_use]
    pub fn header(self) -> &'static str {
        match self {
            Self::V2025_11_05 => "2025-11-05",
            Self::V2026_04_06 => "2026-04-06",
            Self::V2026_06_30 => "2026-06-30",
        }
    }

    fn airflow(self) -> &'static str {
        match self {
            Self::V2025_11_05 => "3.1",
            Self::V2026_04_06 => "3.2",
            Self::V2026_06_30 => "3.3",
        }
    }

    /// Why a server of this version can't be asked this; `None` when it can.
    pub(super) fn lacks(self, request: &TaskRequest) -> Option<ErrorResponse> {
        let (since, what) = needs(request)?;
        (self < since).then(|| ErrorResponse {
            kind: ErrorKind::ApiServerError,
            // The status that the server would give; some of what asks can do without when it sees that.
            detail: json!({"status_code": 404, "message": format!(
                "{what} came with Airflow {}, and this server is of Airflow {}: upgrade it, or do without",
                since.airflow(),
                self.airflow()
            )}),
        })
    }

    /// Leaves out of a payload of `PATCH state` what this version refuses to read.
    pub(super) fn fit_state(self, payload: &mut Map<String, Value>) {
        if self < Self::V2026_06_30 {
            payload.shift_remove("retry_delay_seconds");
            payload.shift_remove("retry_reason");
        }
        if self < Self::V2026_04_06 {
            payload.shift_remove("queue");
        }
    }
}

/// The version that a request needs, and what it is about.
fn needs(request: &TaskRequest) -> Option<(ApiVersion, &'static str)> {
    use ApiVersion::{V2026_04_06, V2026_06_30};
    Some(match request {
        TaskRequest::GetTaskStateStore { .. }
        | TaskRequest::SetTaskStateStore { .. }
        | TaskRequest::DeleteTaskStateStore { .. }
        | TaskRequest::ClearTaskStateStore { .. } => (V2026_06_30, "the task state store"),
        TaskRequest::AwaitInputTask { .. } => (V2026_06_30, "waiting for a person's answer"),
        TaskRequest::GetVariableKeys { .. } => (V2026_06_30, "the list of variables"),
        TaskRequest::Other(message) => {
            let field = |name: &str| message.get(name).is_some_and(|value| !value.is_null());
            match message
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default()
            {
                "CreateHITLDetailPayload" => (V2026_06_30, "waiting for a person's answer"),
                "GetAssetsByAlias" => (V2026_06_30, "the assets of an alias"),
                kind if kind.contains("AssetStateStore") => (V2026_06_30, "the asset state store"),
                "GetDagRun" => (V2026_04_06, "reading about a Dag run"),
                "GetDag" => (V2026_04_06, "reading about a Dag"),
                "GetPreviousTI" => (V2026_04_06, "reading about an earlier task instance"),
                "GetTaskBreadcrumbs" => (V2026_04_06, "the list of what a Dag run has done"),
                "TriggerDagRun" if field("run_after") => (V2026_06_30, "run_after of a Dag run"),
                "TriggerDagRun" if field("partition_key") => {
                    (V2026_04_06, "partition_key of a Dag run")
                }
                "TriggerDagRun" if field("note") => (V2026_04_06, "note of a Dag run"),
                _ => return None,
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_version_of_the_api_goes_by_the_release_of_airflow() {
        let of = |release: &str| ApiVersion::of_airflow(release).map(ApiVersion::header);
        assert_eq!(of("3.1.8"), Some("2025-11-05"));
        assert_eq!(of("3.2.0rc1"), Some("2026-04-06"));
        assert_eq!(of("3.3.2"), Some("2026-06-30"));
        assert_eq!(of("3.10.0"), Some("2026-06-30"));
        assert_eq!(of("4.0.0"), Some("2026-06-30"));
        for release in ["3.0.6", "2.11.0", "3", "", "next"] {
            assert_eq!(of(release), None, "{release}");
        }
    }
}
