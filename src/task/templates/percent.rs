//! Python's `%` on text (`"%s: %d" % (name, count)`), and Jinja's `format` filter, which is the same.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::values;

fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

/// What stands to the right of the operator.
pub enum Operand<'a> {
    /// A tuple: one value for each conversion.
    Tuple(&'a [Value]),
    /// Anything else: one value, or a mapping for conversions that name their keys.
    One(&'a Value),
}

/// One `%...` of a format.
#[derive(Default)]
struct Conversion<'a> {
    key: Option<&'a str>,
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// The format with its conversions filled in.
///
/// # Errors
/// Too few or too many values, or one that a conversion can't take. The texts are Python's.
pub fn format(format: &str, operand: &Operand<'_>) -> Result<String, Error> {
    let values: Vec<&Value> = match operand {
        Operand::Tuple(values) => values.iter().collect(),
        Operand::One(value) => vec![value],
    };
    let mapping = match operand {
        Operand::One(value) if value.kind() == ValueKind::Map => Some(*value),
        _ => None,
    };
    let mut values = values.into_iter();
    let mut named = false;
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let (text, after) = rest.split_at(at);
        out.push_str(text);
        rest = after.get(1..).unwrap_or_default();
        let mut conversion = Conversion::default();
        if let Some(keyed) = rest.strip_prefix('(') {
            let (key, after) = keyed
                .split_once(')')
                .ok_or_else(|| wrong("incomplete format key"))?;
            conversion.key = Some(key);
            rest = after;
        }
        while let Some(flag) = rest.chars().next() {
            match flag {
                '-' => conversion.minus = true,
                '+' => conversion.plus = true,
                ' ' => conversion.space = true,
                '0' => conversion.zero = true,
                '#' => conversion.alternate = true,
                _ => break,
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        let too_few = || wrong("not enough arguments for format string");
        if let Some(width) = number(&mut rest, || values.next().ok_or_else(too_few))? {
            conversion.minus |= width < 0;
            conversion.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            let precision = number(&mut rest, || values.next().ok_or_else(too_few))?;
            conversion.precision = Some(usize::try_from(precision.unwrap_or(0)).unwrap_or(0));
        }
        rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
        let kind = rest
            .chars()
            .next()
            .ok_or_else(|| wrong("incomplete format"))?;
        rest = rest.get(kind.len_utf8()..).unwrap_or_default();
        if kind == '%' {
            out.push('%');
            continue;
        }
        let looked_up;
        let value = match conversion.key {
            Some(key) => {
                named = true;
                looked_up = mapping
                    .ok_or_else(|| wrong("format requires a mapping"))?
                    .get_item(&Value::from(key))
                    .ok()
                    .filter(|value| !value.is_undefined())
                    .ok_or_else(|| {
                        wrong(format!(
                            "the format names the key '{key}', which the mapping lacks"
                        ))
                    })?;
                &looked_up
            }
            None => values.next().ok_or_else(too_few)?,
        };
        out.push_str(&conversion.fill(kind, value)?);
    }
    out.push_str(rest);
    if values.next().is_some() && !named && mapping.is_none() {
        return Err(wrong(
            "not all arguments converted during string formatting",
        ));
    }
    Ok(out)
}

/// A width or a precision: digits, or `*` for the next value.
fn number<'v>(
    rest: &mut &str,
    next: impl FnOnce() -> Result<&'v Value, Error>,
) -> Result<Option<i64>, Error> {
    if let Some(after) = rest.strip_prefix('*') {
        *rest = after;
        let value = next()?;
        return i64::try_from(value.clone())
            .map(Some)
            .map_err(|_| wrong("* wants int"));
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    if number.is_empty() {
        return Ok(None);
    }
    // More characters than anyone wants to see, and few enough to be made.
    match number.parse() {
        Ok(number) if number <= 1_000_000 => Ok(Some(number)),
        _ => Err(wrong("width too big")),
    }
}

impl Conversion<'_> {
    fn fill(&self, kind: char, value: &Value) -> Result<String, Error> {
        let cut = |text: String| match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text,
        };
        let (sign, digits) = match kind {
            's' => return Ok(self.pad("", &cut(values::text(value)), false)),
            'r' | 'a' => return Ok(self.pad("", &cut(values::repr(value)), false)),
            'c' => return Ok(self.pad("", &character(value)?, false)),
            'd' | 'i' | 'u' => signed(whole(value, kind)?, |number| number.to_string()),
            'x' => signed(whole(value, kind)?, |number| {
                self.marked("0x", format!("{number:x}"))
            }),
            'X' => signed(whole(value, kind)?, |number| {
                self.marked("0X", format!("{number:X}"))
            }),
            'o' => signed(whole(value, kind)?, |number| {
                self.marked("0o", format!("{number:o}"))
            }),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let number = float(value)?;
                let text = self.float(kind.to_ascii_lowercase(), number.abs());
                let text = if kind.is_ascii_uppercase() {
                    text.to_uppercase()
                } else {
                    text
                };
                (number.is_sign_negative() && !number.is_nan(), text)
            }
            other => {
                return Err(wrong(format!(
                    "unsupported format character '{other}' (0x{:x})",
                    u32::from(other)
                )));
            }
        };
        let sign = match (sign, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let finite = digits.chars().any(|c| c.is_ascii_digit());
        let digits = match self.precision {
            Some(precision) if !"eEfFgG".contains(kind) && digits.len() < precision => {
                "0".repeat(precision - digits.len()) + &digits
            }
            _ => digits,
        };
        Ok(self.pad(sign, &digits, self.zero && finite))
    }

    fn marked(&self, mark: &str, digits: String) -> String {
        if self.alternate {
            format!("{mark}{digits}")
        } else {
            digits
        }
    }

    fn pad(&self, sign: &str, text: &str, zeros: bool) -> String {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        if self.minus {
            format!("{sign}{text}{}", " ".repeat(missing))
        } else if zeros {
            format!("{sign}{}{text}", "0".repeat(missing))
        } else {
            format!("{}{sign}{text}", " ".repeat(missing))
        }
    }

    /// A number that is not negative.
    fn float(&self, kind: char, number: f64) -> String {
        if number.is_nan() {
            return "nan".to_owned();
        }
        if number.is_infinite() {
            return "inf".to_owned();
        }
        let precision = self.precision.unwrap_or(6);
        match kind {
            'f' => format!("{number:.precision$}"),
            'e' => scientific(number, precision),
            _ => {
                let precision = precision.max(1);
                let rounded = scientific(number, precision - 1);
                let exponent: i64 = rounded
                    .split_once('e')
                    .and_then(|(_, exponent)| exponent.parse().ok())
                    .unwrap_or(0);
                let wide = i64::try_from(precision).unwrap_or(i64::MAX);
                let text = if exponent < -4 || exponent >= wide {
                    rounded
                } else {
                    let decimals = usize::try_from(wide - 1 - exponent).unwrap_or(0);
                    format!("{number:.decimals$}")
                };
                if self.alternate {
                    return text;
                }
                let (digits, exponent) = match text.split_once('e') {
                    Some((digits, exponent)) => (digits.to_owned(), format!("e{exponent}")),
                    None => (text, String::new()),
                };
                let digits = if digits.contains('.') {
                    digits.trim_end_matches('0').trim_end_matches('.')
                } else {
                    &digits
                };
                format!("{digits}{exponent}")
            }
        }
    }
}

/// Python writes at least two digits of an exponent, and always its sign.
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

fn signed(number: i128, write: impl FnOnce(u128) -> String) -> (bool, String) {
    (number < 0, write(number.unsigned_abs()))
}

fn whole(value: &Value, kind: char) -> Result<i128, Error> {
    if let Ok(number) = i128::try_from(value.clone()) {
        return Ok(number);
    }
    if let Ok(truth) = bool::try_from(value.clone()) {
        return Ok(i128::from(truth));
    }
    match f64::try_from(value.clone()) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "Python cuts the decimals off as well"
        )]
        Ok(number) if number.is_finite() && "diu".contains(kind) => Ok(number.trunc() as i128),
        _ => Err(wrong(format!(
            "%{kind} format: a number is required, not {}",
            value.kind()
        ))),
    }
}

fn float(value: &Value) -> Result<f64, Error> {
    if let Ok(truth) = bool::try_from(value.clone()) {
        return Ok(f64::from(u8::from(truth)));
    }
    f64::try_from(value.clone())
        .map_err(|_| wrong(format!("must be real number, not {}", value.kind())))
}

fn character(value: &Value) -> Result<String, Error> {
    let one = match value.as_str() {
        Some(text) if text.chars().count() == 1 => Some(text.to_owned()),
        Some(_) => None,
        None => u32::try_from(value.clone())
            .ok()
            .and_then(char::from_u32)
            .map(String::from),
    };
    one.ok_or_else(|| wrong("%c requires int or char"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn formatted(text: &str, values: &[Value]) -> String {
        format(text, &Operand::Tuple(values)).unwrap_or_else(|error| {
            error
                .detail()
                .unwrap_or("an error without a detail")
                .to_owned()
        })
    }

    /// The right-hand sides are what CPython prints.
    #[test]
    fn conversions_are_pythons() {
        let v = |value: f64| Value::from(value);
        for (text, value, expected) in [
            ("%s", Value::from(()), "None"),
            ("%s", Value::from(true), "True"),
            ("%r", Value::from("it's"), "\"it's\""),
            ("%5s|", Value::from("ab"), "   ab|"),
            ("%-5s|", Value::from("ab"), "ab   |"),
            ("%.2s", Value::from("abc"), "ab"),
            ("%d", v(3.9), "3"),
            ("%05d", Value::from(-42), "-0042"),
            ("%+d", Value::from(7), "+7"),
            ("%x", Value::from(255), "ff"),
            ("%#X", Value::from(255), "0XFF"),
            ("%.2f", v(1.239), "1.24"),
            ("%8.3f|", v(-2.5), "  -2.500|"),
            ("%e", v(12345.678), "1.234568e+04"),
            ("%g", v(0.0001), "0.0001"),
            ("%g", v(1e20), "1e+20"),
            ("%g", v(100_000.0), "100000"),
            ("%.3d", Value::from(5), "005"),
            ("%c", Value::from(65), "A"),
            ("%f", v(f64::INFINITY), "inf"),
        ] {
            assert_eq!(formatted(text, &[value]), expected, "{text}");
        }
        assert_eq!(
            formatted("100%% of %s, %*d", &["x".into(), 4.into(), 7.into()]),
            "100% of x,    7"
        );
    }

    #[test]
    fn mappings_are_asked_by_key() {
        let mapping = Value::from_pairs([("name", Value::from("a")), ("n", Value::from(2))]);
        assert_eq!(
            format("%(name)s has %(n)03d", &Operand::One(&mapping)).unwrap(),
            "a has 002"
        );
    }

    #[test]
    fn wrong_formats_are_refused_in_pythons_words() {
        for (text, values, expected) in [
            (
                "%s %s",
                vec![Value::from(1)],
                "not enough arguments for format string",
            ),
            (
                "%s",
                vec![1.into(), 2.into()],
                "not all arguments converted during string formatting",
            ),
            (
                "%y",
                vec![1.into()],
                "unsupported format character 'y' (0x79)",
            ),
            ("%", vec![1.into()], "incomplete format"),
            ("%(a)s", vec![1.into()], "format requires a mapping"),
        ] {
            assert_eq!(formatted(text, &values), expected, "{text}");
        }
    }
}
