//! The versions of Airflow that a worker reports: a server takes its own, and some older ones where it is set up so.

use std::sync::LazyLock;

use regex::Regex;

use crate::control_plane::execution_api::ApiVersion;

/// What a worker reports unless it is told otherwise.
const AIRFLOW: &str = "3.3.2";
const EDGE_PROVIDER: &str = "5.1.0";

/// What is reported, and whether that may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    airflow: Version,
    edge_provider: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    number: String,
    /// Set by the operator: then it stays.
    is_set: bool,
}

impl Version {
    fn new(set: Option<String>, default: &str) -> Self {
        Self {
            is_set: set.is_some(),
            number: set.unwrap_or_else(|| default.to_owned()),
        }
    }

    /// Takes the server's; is that another one than was reported?
    fn adopt(&mut self, number: &str) -> bool {
        let differs = !self.is_set && self.number != number;
        if differs {
            number.clone_into(&mut self.number);
        }
        differs
    }
}

/// Of a refusal: what the worker runs on, and which version the server has or wants at least.
static REFUSAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x) runs\ on\ (Airflow|Edge\ Provider)\ \S+\ 
        (?:and\ the\ core\ runs\ on|which\ is\ below\ the\ minimum\ acceptable\ version)\ (\d+\.\d+\.\d+\w*)",
    )
    .ok()
});

impl Versions {
    /// The versions that are set, and the defaults for others.
    #[must_use]
    pub fn new(airflow: Option<String>, edge_provider: Option<String>) -> Self {
        Self {
            airflow: Version::new(airflow, AIRFLOW),
            edge_provider: Version::new(edge_provider, EDGE_PROVIDER),
        }
    }

    /// The version of Airflow to report.
    #[must_use]
    pub fn airflow(&self) -> &str {
        &self.airflow.number
    }

    /// The version of the edge provider to report.
    #[must_use]
    pub fn edge_provider(&self) -> &str {
        &self.edge_provider.number
    }

    /// The version of the Execution API to ask for.
    #[must_use]
    pub fn api(&self) -> ApiVersion {
        ApiVersion::of_airflow(self.airflow()).unwrap_or_default()
    }

    /// Adopts what a server that refuses this worker says of its own versions, and the release of Airflow that it tells
    /// anybody. `false` when nothing is to be changed: then the refusal stands.
    pub fn adopt(&mut self, refusal: &str, release: Option<&str>) -> bool {
        let mut changed = false;
        for found in REFUSAL.iter().flat_map(|form| form.captures_iter(refusal)) {
            let (_, [what, number]) = found.extract();
            changed |= match what {
                "Airflow" if ApiVersion::of_airflow(number).is_some() => self.airflow.adopt(number),
                "Airflow" => false,
                _ => self.edge_provider.adopt(number),
            };
        }
        // Servers since 3.2 do not say it in the refusal.
        if !changed
            && let Some(release) = release
            && ApiVersion::of_airflow(release).is_some()
        {
            changed = self.airflow.adopt(release);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_servers_versions_are_adopted_from_its_refusals_one_after_the_other() {
        let mut versions = Versions::new(None, None);
        assert_eq!(
            (versions.airflow(), versions.edge_provider()),
            ("3.3.2", "5.1.0")
        );
        assert!(versions.adopt(
            "Edge Worker runs on Airflow 3.3.2 and the core runs on 3.1.8. Rejecting access due to difference.",
            None
        ));
        assert!(versions.adopt(
            "Edge Worker runs on Edge Provider 5.1.0 and the core runs on 3.1.0. Rejecting access due to difference.",
            Some("3.1.8")
        ));
        assert_eq!(
            (versions.airflow(), versions.edge_provider()),
            ("3.1.8", "3.1.0")
        );
        assert_eq!(versions.api().header(), "2025-11-05");
    }

    #[test]
    fn a_server_that_does_not_say_its_version_in_the_refusal_says_it_elsewhere() {
        let refusal = "Edge Worker runs on Airflow 3.3.2 which is below the minimum acceptable version None. Rejecting";
        let mut versions = Versions::new(None, None);
        assert!(versions.adopt(refusal, Some("3.2.2")));
        assert_eq!(versions.airflow(), "3.2.2");
        // The same once more is no reason to try again.
        assert!(!versions.adopt(refusal, Some("3.2.2")));
    }

    #[test]
    fn versions_that_are_set_stay_and_servers_that_nobody_here_can_talk_to_are_left_alone() {
        let refusal = "Edge Worker runs on Airflow 3.3.1 and the core runs on 3.3.2. Rejecting";
        assert!(!Versions::new(Some("3.3.1".to_owned()), None).adopt(refusal, Some("3.3.2")));
        let refusal = "Edge Worker runs on Airflow 3.3.2 and the core runs on 3.0.6. Rejecting";
        assert!(!Versions::new(None, None).adopt(refusal, Some("3.0.6")));
    }
}
