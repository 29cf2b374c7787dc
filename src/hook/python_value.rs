//! Python's text forms of what database drivers and SQLAlchemy make: `Decimal`, `timedelta`, `datetime`, names.
//!
//! The Python toolset writes a value that JSON has no form for as its `str()`, so these texts are what a model reads.

/// `str(Decimal(text))` for a plain decimal number: digits with at most one point, no exponent.
///
/// `None` when `text` is something else.
pub(crate) fn decimal(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = match digits.trim_start_matches('0') {
        "" => "0",
        rest => rest,
    };
    // Python turns to an exponent when more than five zeros would stand behind the point.
    let point = i64::try_from(significant.len()).ok()? - i64::try_from(fraction.len()).ok()?;
    if point > -6 {
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            rest => rest,
        };
        let dot = if fraction.is_empty() { "" } else { "." };
        return Some(format!("{sign}{whole}{dot}{fraction}"));
    }
    let (first, rest) = significant.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    Some(format!("{sign}{first}{dot}{rest}E{}", point - 1))
}

/// `str(timedelta(microseconds=...))`; `None` beyond the range of the type.
pub(crate) fn timedelta(microseconds: i128) -> Option<String> {
    const DAY: i128 = 86_400_000_000;
    let days = microseconds.div_euclid(DAY);
    let rest = microseconds.rem_euclid(DAY);
    if days.abs() > 999_999_999 {
        return None;
    }
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let mut text = match days {
        0 => String::new(),
        1 | -1 => format!("{days} day, "),
        _ => format!("{days} days, "),
    };
    text.push_str(&format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    ));
    if fraction > 0 {
        text.push_str(&format!(".{fraction:06}"));
    }
    Some(text)
}

/// `str(date)` of an ISO date in years 1 to 9999, which is the text itself.
pub(super) fn date(text: &str) -> Option<String> {
    let digits = |part: &str, len: usize| {
        (part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let in_range = digits(year, 4)? >= 1
        && (1..=12).contains(&digits(month, 2)?)
        && (1..=31).contains(&digits(day, 2)?)
        && parts.next().is_none();
    in_range.then(|| text.to_owned())
}

/// `str(time)` of `HH:MM:SS[.f][+HH[:MM[:SS]]]`: a fraction has six digits, an offset has minutes.
pub(super) fn time(text: &str) -> Option<String> {
    let (clock, offset) = match text.rfind(['+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts = two_digit_parts(clock)?;
    let [hour, minute, second] = parts.as_slice() else {
        return None;
    };
    if *hour > 23
        || *minute > 59
        || *second > 59
        || fraction.len() > 6
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let mut out = clock.to_owned();
    if fraction.bytes().any(|byte| byte != b'0') {
        out.push_str(&format!(".{fraction:0<6}"));
    }
    if let Some(digits) = offset.get(1..) {
        let parts = two_digit_parts(digits)?;
        if parts.is_empty() || parts.len() > 3 {
            return None;
        }
        out.push_str(offset);
        if parts.len() == 1 {
            out.push_str(":00");
        }
    }
    Some(out)
}

/// `str(datetime)` of an ISO date, a space, and what [`time`] takes.
pub(super) fn datetime(text: &str) -> Option<String> {
    let (day, clock) = text.split_once(' ')?;
    Some(format!("{} {}", date(day)?, time(clock)?))
}

/// A name in SQL as SQLAlchemy writes it for no database in particular: quoted unless it is plain and lower-case.
pub(super) fn sql_name(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '$'));
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn two_digit_parts(text: &str) -> Option<Vec<u8>> {
    text.split(':')
        .map(|part| {
            (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse().ok())
                .flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_scale_and_turn_to_an_exponent_where_python_does() {
        let cases = [
            ("1.50", "1.50"),
            ("-0.000001", "-0.000001"),
            ("0.0000001", "1E-7"),
            ("0.00000012", "1.2E-7"),
            ("0.00000000", "0E-8"),
            ("0.000000", "0.000000"),
            ("0001.50", "1.50"),
            ("100000000000000000000", "100000000000000000000"),
        ];
        for (text, expected) in cases {
            assert_eq!(decimal(text).as_deref(), Some(expected));
        }
        assert_eq!(decimal("NaN"), None);
        assert_eq!(decimal(""), None);
    }

    #[test]
    fn durations_count_days_apart_and_never_go_negative_within_one() {
        let second = 1_000_000;
        let cases = [
            (0, "0:00:00"),
            (-second, "-1 day, 23:59:59"),
            (86_400 * second, "1 day, 0:00:00"),
            (2 * 86_400 * second + 1_500_000, "2 days, 0:00:01.500000"),
            (86_399 * second, "23:59:59"),
        ];
        for (microseconds, expected) in cases {
            assert_eq!(timedelta(microseconds).as_deref(), Some(expected));
        }
        assert_eq!(timedelta(i128::from(i64::MAX) * 1_000_000), None);
    }

    #[test]
    fn moments_have_microseconds_and_whole_offsets() {
        assert_eq!(
            datetime("2020-01-01 10:11:12.5+02").as_deref(),
            Some("2020-01-01 10:11:12.500000+02:00")
        );
        assert_eq!(
            datetime("2020-01-01 10:11:12").as_deref(),
            Some("2020-01-01 10:11:12")
        );
        assert_eq!(time("12:00:00.000000").as_deref(), Some("12:00:00"));
        assert_eq!(time("12:00:00-03:30").as_deref(), Some("12:00:00-03:30"));
    }

    #[test]
    fn what_a_python_moment_cannot_hold_is_left_to_the_caller() {
        for text in [
            "infinity",
            "0044-03-15 00:00:00 BC",
            "12020-01-01 00:00:00",
            "01/02/2020 00:00:00",
        ] {
            assert_eq!(datetime(text), None);
        }
        assert_eq!(time("24:00:00"), None);
        assert_eq!(date("0000-00-00"), None);
    }
}
