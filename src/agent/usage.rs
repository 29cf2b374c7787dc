//! What a run has used, and what it may use.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cost::{Cost, MalformedCost};

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Part of `output_tokens`.
    pub output_reasoning_tokens: u64,
    /// The response carried no usage.
    pub unmeasured: bool,
    /// `None` for a model without a known price.
    pub cost: Option<Cost>,
}

impl RequestUsage {
    /// The usage of a response that says nothing of it.
    #[must_use]
    pub fn unmeasured() -> Self {
        Self {
            unmeasured: true,
            ..Self::default()
        }
    }
}

/// What a run has used so far: pydantic-ai's `RunUsage`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunUsage {
    /// Requests that were answered; retries inside the HTTP client don't count.
    pub requests: u64,
    /// Tool calls that succeeded.
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub output_reasoning_tokens: u64,
    pub input_audio_tokens: u64,
    pub cache_audio_read_tokens: u64,
    pub output_audio_tokens: u64,
    /// Responses that carried no usage.
    pub unmeasured_requests: u64,
    /// Counts that only one provider has, by its own names.
    pub details: Map<String, Value>,
    /// `None` when no response came from a model with a known price.
    pub cost: Option<Cost>,
}

impl RunUsage {
    /// Input and output tokens together.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    /// What was used since `earlier`, an older state of the same count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let count = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            requests: count(self.requests, earlier.requests),
            tool_calls: count(self.tool_calls, earlier.tool_calls),
            input_tokens: count(self.input_tokens, earlier.input_tokens),
            output_tokens: count(self.output_tokens, earlier.output_tokens),
            cache_read_tokens: count(self.cache_read_tokens, earlier.cache_read_tokens),
            cache_write_tokens: count(self.cache_write_tokens, earlier.cache_write_tokens),
            output_reasoning_tokens: count(
                self.output_reasoning_tokens,
                earlier.output_reasoning_tokens,
            ),
            input_audio_tokens: count(self.input_audio_tokens, earlier.input_audio_tokens),
            cache_audio_read_tokens: count(
                self.cache_audio_read_tokens,
                earlier.cache_audio_read_tokens,
            ),
            output_audio_tokens: count(self.output_audio_tokens, earlier.output_audio_tokens),
            unmeasured_requests: count(self.unmeasured_requests, earlier.unmeasured_requests),
            details: self
                .details
                .iter()
                .map(|(name, now)| {
                    let then = earlier
                        .details
                        .get(name)
                        .and_then(Value::as_u64)
                        .unwrap_or(0);
                    (
                        name.clone(),
                        json!(now.as_u64().unwrap_or(0).saturating_sub(then)),
                    )
                })
                .collect(),
            cost: match (self.cost, earlier.cost) {
                (Some(now), Some(then)) => Some(now - then),
                (now, _) => now,
            },
        }
    }

    /// The record of the cross-attempt budget (`__commonai_usage__`): every field of `RunUsage`.
    #[must_use]
    pub fn to_record(&self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "cache_write_1h_tokens": 0,
            "cache_read_tokens": self.cache_read_tokens,
            "output_tokens": self.output_tokens,
            "unmeasured_requests": self.unmeasured_requests,
            "output_reasoning_tokens": self.output_reasoning_tokens,
            "input_audio_tokens": self.input_audio_tokens,
            "cache_audio_read_tokens": self.cache_audio_read_tokens,
            "output_audio_tokens": self.output_audio_tokens,
            "audio_seconds": 0,
            "details": self.details,
            "cost": self.cost.map(|cost| cost.to_string()),
            "requests": self.requests,
            "tool_calls": self.tool_calls,
        })
    }

    /// Reads a record back; absent fields are zero.
    ///
    /// # Errors
    /// A cost that is not a decimal number.
    pub fn from_record(record: &Map<String, Value>) -> Result<Self, MalformedCost> {
        let count = |name: &str| record.get(name).and_then(Value::as_u64).unwrap_or(0);
        Ok(Self {
            requests: count("requests"),
            tool_calls: count("tool_calls"),
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            cache_read_tokens: count("cache_read_tokens"),
            cache_write_tokens: count("cache_write_tokens"),
            output_reasoning_tokens: count("output_reasoning_tokens"),
            input_audio_tokens: count("input_audio_tokens"),
            cache_audio_read_tokens: count("cache_audio_read_tokens"),
            output_audio_tokens: count("output_audio_tokens"),
            unmeasured_requests: count("unmeasured_requests"),
            details: match record.get("details") {
                Some(Value::Object(details)) => details.clone(),
                _ => Map::new(),
            },
            cost: match record.get("cost") {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.parse()?),
                Some(other) => Some(other.to_string().parse()?),
            },
        })
    }

    /// The `usage` XCom of `AgentOperator`.
    #[must_use]
    pub fn to_xcom(&self) -> Value {
        json!({
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens(),
            "tool_calls": self.tool_calls,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "cost": self.cost.map(|cost| cost.to_string()),
        })
    }
}

impl AddAssign<&RequestUsage> for RunUsage {
    fn add_assign(&mut self, request: &RequestUsage) {
        self.input_tokens += request.input_tokens;
        self.output_tokens += request.output_tokens;
        self.cache_read_tokens += request.cache_read_tokens;
        self.cache_write_tokens += request.cache_write_tokens;
        self.output_reasoning_tokens += request.output_reasoning_tokens;
        self.unmeasured_requests += u64::from(request.unmeasured);
        if let Some(cost) = request.cost {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }
}

/// pydantic-ai's `UsageLimits`. `None` switches a limit off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLimits {
    pub cost_limit: Option<Cost>,
    /// Requests in a run; 50 unless the author says otherwise.
    pub request_limit: Option<u64>,
    /// Successful tool calls.
    pub tool_calls_limit: Option<u64>,
    pub input_tokens_limit: Option<u64>,
    pub output_tokens_limit: Option<u64>,
    pub total_tokens_limit: Option<u64>,
    /// Input tokens of any one request.
    pub per_request_input_tokens_limit: Option<u64>,
    /// Asks the provider to count before it is asked to answer. Chat Completions has no such call.
    pub count_tokens_before_request: bool,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            cost_limit: None,
            request_limit: Some(50),
            tool_calls_limit: None,
            input_tokens_limit: None,
            output_tokens_limit: None,
            total_tokens_limit: None,
            per_request_input_tokens_limit: None,
            count_tokens_before_request: false,
        }
    }
}

/// Which limit a run ran into. The text is pydantic-ai's, with the advice it adds to all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}. Consider raising the limit, or see the docs on usage limits for budget-aware patterns: \
     https://pydantic.dev/docs/ai/core-concepts/agent/#usage-limits"
)]
pub struct UsageLimitExceeded(String);

impl UsageLimits {
    /// # Errors
    /// The next request would go past a limit.
    pub fn check_before_request(&self, usage: &RunUsage) -> Result<(), UsageLimitExceeded> {
        if let Some(limit) = self.request_limit
            && usage.requests >= limit
        {
            return Err(UsageLimitExceeded(format!(
                "The next request would exceed the request_limit of {limit}"
            )));
        }
        let counts = [
            ("input_tokens", self.input_tokens_limit, usage.input_tokens),
            (
                "total_tokens",
                self.total_tokens_limit,
                usage.total_tokens(),
            ),
        ];
        for (name, limit, count) in counts {
            if let Some(limit) = limit
                && count > limit
            {
                return Err(UsageLimitExceeded(format!(
                    "The next request would exceed the {name}_limit of {limit} ({name}={count})"
                )));
            }
        }
        match (self.cost_limit, usage.cost) {
            (Some(limit), Some(cost)) if cost > limit => Err(UsageLimitExceeded(format!(
                "The next request would exceed the `cost_limit` of {limit} (`cost`=Decimal('{cost}'))"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks after a response: `request_input_tokens` are that response's own.
    ///
    /// # Errors
    /// The response went past a limit.
    pub fn check_after_response(
        &self,
        usage: &RunUsage,
        request_input_tokens: u64,
    ) -> Result<(), UsageLimitExceeded> {
        let counts = [
            ("input_tokens", self.input_tokens_limit, usage.input_tokens),
            (
                "output_tokens",
                self.output_tokens_limit,
                usage.output_tokens,
            ),
            (
                "total_tokens",
                self.total_tokens_limit,
                usage.total_tokens(),
            ),
        ];
        for (name, limit, count) in counts {
            if let Some(limit) = limit
                && count > limit
            {
                return Err(UsageLimitExceeded(format!(
                    "Exceeded the {name}_limit of {limit} ({name}={count})"
                )));
            }
        }
        if let (Some(limit), Some(cost)) = (self.cost_limit, usage.cost)
            && cost > limit
        {
            return Err(UsageLimitExceeded(format!(
                "Exceeded the `cost_limit` of {limit} (`usage.cost`=Decimal('{cost}'))"
            )));
        }
        match self.per_request_input_tokens_limit {
            Some(limit) if request_input_tokens > limit => Err(UsageLimitExceeded(format!(
                "Exceeded the per_request_input_tokens_limit of {limit} \
                 (request_input_tokens={request_input_tokens})"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks a whole batch of calls before the first of them runs.
    ///
    /// # Errors
    /// The batch would go past the limit if all of it succeeded.
    pub fn check_before_tool_calls(
        &self,
        usage: &RunUsage,
        calls: u64,
    ) -> Result<(), UsageLimitExceeded> {
        let projected = usage.tool_calls + calls;
        match self.tool_calls_limit {
            Some(limit) if calls > 0 && projected > limit => Err(UsageLimitExceeded(format!(
                "The next tool call(s) would exceed the tool_calls_limit of {limit} (tool_calls={projected})"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const ADVICE: &str = "Consider raising the limit, or see the docs on usage limits for budget-aware patterns: \
                          https://pydantic.dev/docs/ai/core-concepts/agent/#usage-limits";

    #[test]
    fn limits_fail_with_the_texts_of_pydantic_ai() {
        let usage = RunUsage {
            requests: 3,
            input_tokens: 20,
            output_tokens: 10,
            ..RunUsage::default()
        };
        let limits = UsageLimits {
            request_limit: Some(3),
            ..UsageLimits::default()
        };
        assert_eq!(
            limits.check_before_request(&usage).unwrap_err().to_string(),
            format!("The next request would exceed the request_limit of 3. {ADVICE}")
        );
        let limits = UsageLimits {
            total_tokens_limit: Some(20),
            ..UsageLimits::default()
        };
        assert_eq!(
            limits
                .check_after_response(&usage, 20)
                .unwrap_err()
                .to_string(),
            format!("Exceeded the total_tokens_limit of 20 (total_tokens=30). {ADVICE}")
        );
        let limits = UsageLimits {
            tool_calls_limit: Some(3),
            ..UsageLimits::default()
        };
        assert_eq!(
            limits
                .check_before_tool_calls(&usage, 4)
                .unwrap_err()
                .to_string(),
            format!(
                "The next tool call(s) would exceed the tool_calls_limit of 3 (tool_calls=4). {ADVICE}"
            )
        );
    }

    #[test]
    fn a_budget_record_reads_back_as_it_was_written() {
        let usage = RunUsage {
            requests: 2,
            tool_calls: 1,
            input_tokens: 30,
            output_tokens: 15,
            cost: Some(Cost::of_units(156_600_000)),
            ..RunUsage::default()
        };
        let Value::Object(record) = usage.to_record() else {
            unreachable!("a record is an object")
        };
        assert_eq!(RunUsage::from_record(&record), Ok(usage));
    }

    #[test]
    fn usage_of_an_attempt_is_what_came_on_top_of_the_earlier_ones() {
        let earlier = RunUsage {
            requests: 3,
            input_tokens: 30,
            ..RunUsage::default()
        };
        let now = RunUsage {
            requests: 4,
            input_tokens: 45,
            output_tokens: 5,
            ..RunUsage::default()
        };
        assert_eq!(
            now.since(&earlier),
            RunUsage {
                requests: 1,
                input_tokens: 15,
                output_tokens: 5,
                ..RunUsage::default()
            }
        );
    }
}
