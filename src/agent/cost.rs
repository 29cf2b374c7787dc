//! Money, exactly.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// An amount of money, in units of 10⁻¹² US dollars: the price tables are per million tokens with at most six places.
///
/// As JSON it is text in plain decimal notation. A sum has as many decimal places as its most precise part, as Python's
/// `Decimal` has.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cost {
    units: i128,
    /// Decimal places, trailing zeros included.
    places: usize,
}

/// How many of a [`Cost`]'s units make a dollar.
const UNITS_PER_DOLLAR: u128 = 1_000_000_000_000;

impl Cost {
    /// So many units, with the places that they need.
    #[must_use]
    pub fn of_units(units: i128) -> Self {
        let fraction = fraction(units);
        Self {
            units,
            places: fraction.trim_end_matches('0').len(),
        }
    }
}

fn fraction(units: i128) -> String {
    format!("{:012}", units.unsigned_abs() % UNITS_PER_DOLLAR)
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            units: self.units + other.units,
            places: self.places.max(other.places),
        }
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            units: self.units - other.units,
            places: self.places.max(other.places),
        }
    }
}

impl PartialEq for Cost {
    fn eq(&self, other: &Self) -> bool {
        self.units == other.units
    }
}

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> Ordering {
        self.units.cmp(&other.units)
    }
}

impl fmt::Display for Cost {
    /// Plain decimal notation: `0.00472`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.units < 0 { "-" } else { "" };
        let whole = self.units.unsigned_abs() / UNITS_PER_DOLLAR;
        let fraction = fraction(self.units);
        match fraction.get(..self.places).unwrap_or(&fraction) {
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
        let places = fraction.len().min(12);
        let fraction: i128 = format!("{fraction:0<12.12}").parse().map_err(|_| bad())?;
        whole
            .checked_mul(1_000_000_000_000)
            .map(|units| Self {
                units: sign * (units + fraction),
                places,
            })
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
        let text = |units| Cost::of_units(units).to_string();
        assert_eq!(text(4_720_000_000), "0.00472");
        assert_eq!(text(0), "0");
        assert_eq!(text(2_000_000_000_000), "2");
        assert_eq!("0.0001566".parse(), Ok(Cost::of_units(156_600_000)));
        assert_eq!("-1.5".parse(), Ok(Cost::of_units(-1_500_000_000_000)));
        assert!("1,5".parse::<Cost>().is_err());
        assert!("".parse::<Cost>().is_err());
    }

    #[test]
    fn a_sum_keeps_the_places_of_its_parts() {
        let cost = |text: &str| text.parse::<Cost>().unwrap();
        let sum = cost("0.000075") + cost("0.000105");
        assert_eq!(sum.to_string(), "0.000180");
        assert_eq!((sum + cost("0.00018")).to_string(), "0.000360");
        assert_eq!((sum - cost("0.00018")).to_string(), "0.000000");
        assert_eq!(sum, cost("0.00018"));
    }
}
