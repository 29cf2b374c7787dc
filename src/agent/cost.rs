//! Money, exactly.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of money in units of 10⁻¹² US dollars: the price tables are per million tokens with at most six places.
///
/// As JSON it is text in plain decimal notation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cost(pub i128);

/// How many of a [`Cost`]'s units make a dollar.
const UNITS_PER_DOLLAR: u128 = 1_000_000_000_000;

impl fmt::Display for Cost {
    /// Plain decimal notation without trailing zeros: `0.00472`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let units = self.0.unsigned_abs();
        let whole = units / UNITS_PER_DOLLAR;
        let fraction = format!("{:012}", units % UNITS_PER_DOLLAR);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            fraction => write!(f, "{sign}{whole}.{fraction}"),
        }
    }
}

impl From<Cost> for String {
    fn from(cost: Cost) -> Self {
        cost.to_string()
    }
}

impl TryFrom<String> for Cost {
    type Error = MalformedCost;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl std::str::FromStr for Cost {
    type Err = MalformedCost;

    /// Reads plain decimal notation; digits past the twelfth place are dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || MalformedCost(text.to_owned());
        let (sign, digits) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.trim()),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty())
            || !fraction.bytes().all(|b| b.is_ascii_digit())
        {
            return Err(bad());
        }
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| bad())?
        };
        let fraction: i128 = format!("{fraction:0<12.12}").parse().map_err(|_| bad())?;
        whole
            .checked_mul(1_000_000_000_000)
            .map(|units| Self(sign * (units + fraction)))
            .ok_or_else(bad)
    }
}

/// Text that is no amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a decimal number")]
pub struct MalformedCost(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_prints_as_a_plain_decimal() {
        assert_eq!(Cost(4_720_000_000).to_string(), "0.00472");
        assert_eq!(Cost(0).to_string(), "0");
        assert_eq!(Cost(2_000_000_000_000).to_string(), "2");
        assert_eq!("0.0001566".parse(), Ok(Cost(156_600_000)));
        assert_eq!("-1.5".parse(), Ok(Cost(-1_500_000_000_000)));
        assert!("1,5".parse::<Cost>().is_err());
        assert!("".parse::<Cost>().is_err());
    }
}
