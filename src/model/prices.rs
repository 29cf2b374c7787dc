//! What the models people use most cost, so that a run's `cost` and `cost_limit` mean something.
//!
//! List prices as of October 2026, in millionths of a US dollar per million tokens, which makes the price of one token
//! a whole number of [`Cost`] units. A model that is not here costs `None`, as one unknown to the Python provider does.

use crate::agent::cost::Cost;
use crate::agent::usage::RequestUsage;

struct Price {
    provider: &'static str,
    /// The model's name; a dated or `-latest` form of it costs the same.
    name: &'static str,
    input: i128,
    cache_read: Option<i128>,
    cache_write: Option<i128>,
    output: i128,
    /// From this many input tokens on, a request's input costs twice as much and its output half as much again.
    long_from: Option<u64>,
}

const fn price(
    provider: &'static str,
    name: &'static str,
    input: i128,
    cache_read: i128,
    output: i128,
) -> Price {
    Price {
        provider,
        name,
        input,
        cache_read: Some(cache_read),
        cache_write: None,
        output,
        long_from: None,
    }
}

const fn writing(price: Price, cache_write: i128) -> Price {
    Price {
        cache_write: Some(cache_write),
        ..price
    }
}

const fn long(price: Price, from: u64) -> Price {
    Price {
        long_from: Some(from),
        ..price
    }
}

const PRICES: &[Price] = &[
    Price {
        // Dearer than the later ones, and without a price of its own for what is read from the cache.
        cache_read: None,
        ..price("openai", "gpt-4o-2024-05-13", 5_000_000, 0, 15_000_000)
    },
    price("openai", "gpt-4o", 2_500_000, 1_250_000, 10_000_000),
    price("openai", "gpt-4o-mini", 150_000, 75_000, 600_000),
    price("openai", "gpt-4.1", 2_000_000, 500_000, 8_000_000),
    price("openai", "gpt-4.1-mini", 400_000, 100_000, 1_600_000),
    price("openai", "gpt-4.1-nano", 100_000, 25_000, 400_000),
    price("openai", "gpt-5", 1_250_000, 125_000, 10_000_000),
    price("openai", "gpt-5-mini", 250_000, 25_000, 2_000_000),
    price("openai", "gpt-5-nano", 50_000, 5_000, 400_000),
    price("openai", "gpt-5.1", 1_250_000, 125_000, 10_000_000),
    price("openai", "gpt-5.2", 1_750_000, 175_000, 14_000_000),
    price("openai", "gpt-5.3", 1_750_000, 175_000, 14_000_000),
    long(
        price("openai", "gpt-5.4", 2_500_000, 250_000, 15_000_000),
        272_000,
    ),
    price("openai", "gpt-5.4-mini", 750_000, 75_000, 4_500_000),
    price("openai", "gpt-5.4-nano", 200_000, 20_000, 1_250_000),
    long(
        price("openai", "gpt-5.5", 5_000_000, 500_000, 30_000_000),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-5.6-luna", 200_000, 20_000, 1_200_000),
            250_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-5.6-sol", 4_000_000, 400_000, 20_000_000),
            5_000_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-5.6-terra", 2_000_000, 200_000, 12_000_000),
            2_500_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-6-astra", 10_000_000, 1_000_000, 50_000_000),
            12_500_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-6-luna", 100_000, 10_000, 500_000),
            125_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-6-sol", 2_000_000, 200_000, 10_000_000),
            2_500_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-6.1-sol", 2_000_000, 100_000, 10_000_000),
            2_500_000,
        ),
        272_000,
    ),
    long(
        writing(
            price("openai", "gpt-6.1-terra", 1_000_000, 50_000, 5_000_000),
            1_250_000,
        ),
        272_000,
    ),
    price("openai", "o1", 15_000_000, 7_500_000, 60_000_000),
    price("openai", "o3", 2_000_000, 500_000, 8_000_000),
    price("openai", "o3-mini", 1_100_000, 550_000, 4_400_000),
    price("openai", "o4-mini", 1_100_000, 275_000, 4_400_000),
    writing(
        price(
            "anthropic",
            "claude-haiku-4-5",
            1_000_000,
            100_000,
            5_000_000,
        ),
        1_250_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-4-1",
            15_000_000,
            1_500_000,
            75_000_000,
        ),
        18_750_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-4-5",
            5_000_000,
            500_000,
            25_000_000,
        ),
        6_250_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-4-6",
            5_000_000,
            500_000,
            25_000_000,
        ),
        6_250_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-4-7",
            5_000_000,
            500_000,
            25_000_000,
        ),
        6_250_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-4-8",
            5_000_000,
            500_000,
            25_000_000,
        ),
        6_250_000,
    ),
    writing(
        price("anthropic", "claude-opus-5", 5_000_000, 500_000, 25_000_000),
        6_250_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-opus-5-5",
            4_000_000,
            200_000,
            20_000_000,
        ),
        5_000_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-sonnet-4-0",
            3_000_000,
            300_000,
            15_000_000,
        ),
        3_750_000,
    ),
    long(
        writing(
            price(
                "anthropic",
                "claude-sonnet-4-5",
                3_000_000,
                300_000,
                15_000_000,
            ),
            3_750_000,
        ),
        200_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-sonnet-4-6",
            3_000_000,
            300_000,
            15_000_000,
        ),
        3_750_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-sonnet-5",
            2_000_000,
            200_000,
            10_000_000,
        ),
        2_500_000,
    ),
    writing(
        price(
            "anthropic",
            "claude-sonnet-5-5",
            2_000_000,
            100_000,
            10_000_000,
        ),
        2_500_000,
    ),
    price("google", "gemini-2.5-flash", 300_000, 30_000, 2_500_000),
    price("google", "gemini-2.5-flash-lite", 100_000, 10_000, 400_000),
    long(
        price("google", "gemini-2.5-pro", 1_250_000, 125_000, 10_000_000),
        200_000,
    ),
    price(
        "google",
        "gemini-3-flash-preview",
        500_000,
        50_000,
        3_000_000,
    ),
    long(
        price(
            "google",
            "gemini-3-pro-preview",
            2_000_000,
            200_000,
            12_000_000,
        ),
        200_000,
    ),
    price(
        "google",
        "gemini-3.1-flash-lite",
        250_000,
        25_000,
        1_500_000,
    ),
    long(
        price(
            "google",
            "gemini-3.1-pro-preview",
            2_000_000,
            200_000,
            12_000_000,
        ),
        200_000,
    ),
    price("google", "gemini-3.5-flash", 1_500_000, 150_000, 9_000_000),
    price(
        "google",
        "gemini-3.5-flash-lite",
        300_000,
        30_000,
        2_500_000,
    ),
];

/// What a request cost, if the model's price is known and the response said what it used.
pub(super) fn cost(provider: &str, model_name: &str, usage: &RequestUsage) -> Option<Cost> {
    if usage.unmeasured {
        return None;
    }
    let price = PRICES
        .iter()
        .find(|price| price.provider == provider && is_form_of(model_name, price.name))?;
    let uncached = usage
        .input_tokens
        .saturating_sub(usage.cache_read_tokens)
        .saturating_sub(usage.cache_write_tokens);
    let is_long = price
        .long_from
        .is_some_and(|from| usage.input_tokens > from);
    let of = |tokens: u64, price: i128| i128::from(tokens) * price;
    let input = |tokens, price| Cost::of_units(of(tokens, price) * if is_long { 2 } else { 1 });
    let output = of(usage.output_tokens, price.output);
    let output = Cost::of_units(if is_long { output * 3 / 2 } else { output });
    // A sum has the places of its parts, so each kind of tokens is a part of its own.
    Some(
        input(uncached, price.input)
            + input(
                usage.cache_read_tokens,
                price.cache_read.unwrap_or(price.input),
            )
            + input(
                usage.cache_write_tokens,
                price.cache_write.unwrap_or(price.input),
            )
            + output,
    )
}

/// `gpt-5`, `gpt-5-2025-08-07`, `claude-opus-5-20260101`, `gpt-5-latest`, but not `gpt-5-mini`.
fn is_form_of(model_name: &str, name: &str) -> bool {
    match model_name.strip_prefix(name) {
        Some("" | "-latest") => true,
        Some(rest) => {
            let digits: Vec<&str> = rest
                .strip_prefix('-')
                .map(|date| date.split('-').collect())
                .unwrap_or_default();
            let lengths: Vec<usize> = digits.iter().map(|part| part.len()).collect();
            matches!(lengths.as_slice(), [8] | [4, 2, 2])
                && digits
                    .iter()
                    .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, cache_read_tokens: u64, output_tokens: u64) -> RequestUsage {
        RequestUsage {
            input_tokens,
            cache_read_tokens,
            output_tokens,
            ..RequestUsage::default()
        }
    }

    #[test]
    fn costs_are_those_the_python_provider_computes() {
        let cost = |name, usage| cost("openai", name, &usage).map(|cost| cost.to_string());
        assert_eq!(
            cost("gpt-4o", usage(2000, 1024, 100)).as_deref(),
            Some("0.00472")
        );
        assert_eq!(
            cost("gpt-4o-2024-05-13", usage(1000, 500, 100)).as_deref(),
            Some("0.0065")
        );
        assert_eq!(
            cost("gpt-5", usage(1000, 0, 200)).as_deref(),
            Some("0.00325")
        );
        assert_eq!(
            cost("gpt-5-2025-08-07", usage(1000, 0, 200)).as_deref(),
            Some("0.00325")
        );
        assert_eq!(
            cost("gpt-5.4", usage(300_000, 0, 1000)).as_deref(),
            Some("1.5225")
        );
        assert_eq!(cost("mock-model", usage(1000, 0, 200)), None);
        assert_eq!(cost("gpt-5-made-up", usage(1000, 0, 200)), None);
    }
}
