//! Airflow's trigger rules, over the final states of the tasks before a task.

/// The final state of a task instance in a local run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Success,
    Failed,
    Skipped,
    UpstreamFailed,
}

impl State {
    /// Airflow's name for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::UpstreamFailed => "upstream_failed",
        }
    }
}

/// May a task run, given its trigger rule and the states of all task instances upstream? Else the state it gets.
///
/// # Errors
/// The state of a task that must not run.
pub fn decide(rule: &str, upstream: &[State]) -> Result<(), State> {
    let count = |wanted: State| upstream.iter().filter(|state| **state == wanted).count();
    let (success, skipped) = (count(State::Success), count(State::Skipped));
    let failed = count(State::Failed) + count(State::UpstreamFailed);
    let total = upstream.len();
    if total == 0 {
        return Ok(());
    }
    let or = |holds: bool, state: State| if holds { Ok(()) } else { Err(state) };
    match rule {
        "always" | "all_done" | "one_done" | "dummy" => Ok(()),
        "all_failed" => or(failed == total, State::Skipped),
        "one_failed" => or(failed > 0, State::Skipped),
        "one_success" if failed == total => Err(State::UpstreamFailed),
        "one_success" => or(success > 0, State::Skipped),
        "none_failed" => or(failed == 0, State::UpstreamFailed),
        "none_failed_min_one_success" | "none_failed_or_skipped" if failed > 0 => {
            Err(State::UpstreamFailed)
        }
        "none_failed_min_one_success" | "none_failed_or_skipped" => or(success > 0, State::Skipped),
        "none_skipped" => or(skipped == 0, State::Skipped),
        "all_skipped" => or(skipped == total, State::Skipped),
        "all_done_min_one_success" => or(
            success > 0,
            if failed > 0 {
                State::UpstreamFailed
            } else {
                State::Skipped
            },
        ),
        // `all_success`, and rules about setup tasks, which are not told apart here.
        _ if failed > 0 => Err(State::UpstreamFailed),
        _ => or(skipped == 0, State::Skipped),
    }
}

#[cfg(test)]
mod tests {
    use super::State::{Failed, Skipped, Success, UpstreamFailed};
    use super::*;

    #[test]
    fn rules_decide_as_airflows_scheduler_does() {
        let cases: &[(&str, &[State], Result<(), State>)] = &[
            ("all_success", &[], Ok(())),
            ("all_success", &[Success, Success], Ok(())),
            ("all_success", &[Success, Failed], Err(UpstreamFailed)),
            ("all_success", &[Success, Skipped], Err(Skipped)),
            (
                "all_success",
                &[Skipped, UpstreamFailed],
                Err(UpstreamFailed),
            ),
            ("all_done", &[Failed, Skipped], Ok(())),
            ("none_failed", &[Success, Skipped], Ok(())),
            (
                "none_failed_min_one_success",
                &[Skipped, Skipped],
                Err(Skipped),
            ),
            ("one_success", &[Failed, Success], Ok(())),
            (
                "one_success",
                &[Failed, UpstreamFailed],
                Err(UpstreamFailed),
            ),
            ("one_failed", &[Success], Err(Skipped)),
            ("all_failed", &[Failed, UpstreamFailed], Ok(())),
            ("none_skipped", &[Skipped, Success], Err(Skipped)),
        ];
        for (rule, upstream, expected) in cases {
            assert_eq!(decide(rule, upstream), *expected, "{rule} {upstream:?}");
        }
    }
}
