//! pendulum's `format()` of moments, as templates call it. `pendulum/formatting.py` does the same for Dag code.

use chrono::{Datelike, NaiveDateTime, Timelike};
use minijinja::Error;

use super::datetime::PyDateTime;

/// What a token stands for.
enum Piece {
    /// A directive of `strftime`.
    Directive(&'static str),
    /// Other tokens.
    Pattern(&'static str),
    Own(fn(&NaiveDateTime) -> String),
    /// So many digits of the fraction of a second.
    Fraction(usize),
    Offset,
    Zone,
    /// The time since 1970 in units of so many microseconds.
    Since(i64),
}

/// pendulum 3's tokens in English, each behind those that begin with it.
const TOKENS: &[(&str, Piece)] = &[
    ("LTS", Piece::Pattern("h:mm:ss A")),
    ("LT", Piece::Pattern("h:mm A")),
    ("LLLL", Piece::Pattern("dddd, MMMM D, YYYY h:mm A")),
    ("LLL", Piece::Pattern("MMMM D, YYYY h:mm A")),
    ("LL", Piece::Pattern("MMMM D, YYYY")),
    ("L", Piece::Pattern("MM/DD/YYYY")),
    ("YYYY", Piece::Directive("%Y")),
    ("YY", Piece::Directive("%y")),
    ("Y", Piece::Own(|at| at.year().to_string())),
    ("Qo", Piece::Own(|at| ordinal(quarter(at)))),
    ("Q", Piece::Own(|at| quarter(at).to_string())),
    ("MMMM", Piece::Directive("%B")),
    ("MMM", Piece::Directive("%b")),
    ("MM", Piece::Directive("%m")),
    ("Mo", Piece::Own(|at| ordinal(at.month()))),
    ("M", Piece::Own(|at| at.month().to_string())),
    ("DDDD", Piece::Directive("%j")),
    ("DDD", Piece::Own(|at| at.ordinal().to_string())),
    ("DD", Piece::Directive("%d")),
    ("Do", Piece::Own(|at| ordinal(at.day()))),
    ("D", Piece::Own(|at| at.day().to_string())),
    ("dddd", Piece::Directive("%A")),
    ("ddd", Piece::Directive("%a")),
    (
        "dd",
        Piece::Own(|at| at.format("%a").to_string().chars().take(2).collect()),
    ),
    ("d", Piece::Own(from_sunday)),
    (
        "E",
        Piece::Own(|at| at.weekday().number_from_monday().to_string()),
    ),
    ("e", Piece::Own(from_sunday)),
    ("wo", Piece::Own(|at| ordinal(at.iso_week().week()))),
    ("HH", Piece::Directive("%H")),
    ("H", Piece::Own(|at| at.hour().to_string())),
    ("hh", Piece::Directive("%I")),
    ("h", Piece::Own(|at| at.hour12().1.to_string())),
    ("mm", Piece::Directive("%M")),
    ("m", Piece::Own(|at| at.minute().to_string())),
    ("ss", Piece::Directive("%S")),
    ("s", Piece::Own(|at| at.second().to_string())),
    ("SSSSSS", Piece::Fraction(6)),
    ("SSSSS", Piece::Fraction(5)),
    ("SSSS", Piece::Fraction(4)),
    ("SSS", Piece::Fraction(3)),
    ("SS", Piece::Fraction(2)),
    ("S", Piece::Fraction(1)),
    ("A", Piece::Directive("%p")),
    ("ZZ", Piece::Directive("%z")),
    ("Z", Piece::Offset),
    ("zz", Piece::Directive("%Z")),
    ("z", Piece::Zone),
    ("X", Piece::Since(1_000_000)),
    ("x", Piece::Since(1000)),
];

fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn quarter(at: &NaiveDateTime) -> u32 {
    at.month().div_ceil(3)
}

fn from_sunday(at: &NaiveDateTime) -> String {
    at.weekday().num_days_from_sunday().to_string()
}

/// A moment by a pattern. Text in brackets and a character behind a backslash stand for themselves.
pub(super) fn format(at: &PyDateTime, pattern: &str) -> Result<String, Error> {
    let mut text = String::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        if let Some((literal, after)) = rest
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'))
        {
            text.push_str(literal);
            rest = after;
            continue;
        }
        if let Some((token, piece)) = TOKENS.iter().find(|(token, _)| rest.starts_with(token)) {
            rest = rest.get(token.len()..).unwrap_or_default();
            match piece {
                Piece::Directive(directive) => text.push_str(&at.strftime(directive)?),
                Piece::Pattern(pattern) => text.push_str(&format(at, pattern)?),
                Piece::Since(unit) => {
                    text.push_str(&at.timestamp_micros().div_euclid(*unit).to_string());
                }
                Piece::Own(own) => text.push_str(&own(&at.wall())),
                Piece::Fraction(digits) => {
                    text.extend(at.strftime("%f")?.chars().take(*digits));
                }
                Piece::Offset => text.push_str(&at.offset().to_string()),
                Piece::Zone => text.push_str(&at.timezone_name()),
            }
            continue;
        }
        let mut characters = rest.strip_prefix('\\').unwrap_or(rest).chars();
        text.extend(characters.next());
        rest = characters.as_str();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use pretty_assertions::assert_eq;

    use super::super::datetime::Zone;
    use super::*;

    /// The values are pendulum 3's.
    #[test]
    fn every_token_gives_what_pendulum_gives() {
        let wall = chrono::NaiveDate::from_ymd_opt(2026, 11, 22)
            .unwrap()
            .and_hms_micro_opt(13, 5, 9, 123_456)
            .unwrap();
        let at = PyDateTime::local(wall, Zone::Named(Tz::Europe__Oslo));
        for (pattern, text) in [
            ("YYYY YY Y", "2026 26 2026"),
            ("MMMM MMM MM Mo M", "November Nov 11 11th 11"),
            ("DDDD DDD DD Do D", "326 326 22 22nd 22"),
            ("dddd ddd dd d E e", "Sunday Sun Su 0 7 0"),
            ("Qo Q wo", "4th 4 47th"),
            ("HH H hh h mm m ss s", "13 13 01 1 05 5 09 9"),
            ("SSSSSS SSSSS SSSS SSS SS S", "123456 12345 1234 123 12 1"),
            ("A a", "PM a"),
            ("ZZ Z zz z", "+0100 +01:00 CET Europe/Oslo"),
            ("X x", "1795349109 1795349109123"),
            ("LT LTS L", "1:05 PM 1:05:09 PM 11/22/2026"),
            ("LL", "November 22, 2026"),
            ("LLL", "November 22, 2026 1:05 PM"),
            ("LLLL", "Sunday, November 22, 2026 1:05 PM"),
            ("W WW w G g k N T", "W WW w G g k N T"),
            ("[at] HH \\Y\\Y Do", "at 13 YY 22nd"),
        ] {
            assert_eq!(format(&at, pattern).unwrap(), text, "{pattern}");
        }
        for (day, text) in [
            (1, "1st"),
            (3, "3rd"),
            (11, "11th"),
            (12, "12th"),
            (23, "23rd"),
        ] {
            assert_eq!(ordinal(day), text);
        }
    }
}
