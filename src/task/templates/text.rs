//! Filters and methods of texts and lists that Jinja and Python have and minijinja has not.

use minijinja::value::{Kwargs, Rest, Tuple, Value, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State};

use super::datetime::{PyDate, PyDateTime};
use super::values;
use crate::airflow::python_text::casefold;

/// The longest text that padding makes.
const LONGEST: usize = 1 << 20;

pub(super) fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("center", |text: Value, width: Option<usize>| {
        centered(&values::text(&text), width.unwrap_or(80), ' ')
    });
    environment.add_filter("wordcount", |text: Value| {
        let text = values::text(&text);
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|word| !word.is_empty()).count()
    });
    environment.add_filter("striptags", |text: Value| {
        minijinja_contrib::filters::striptags(values::text(&text))
    });
    environment.add_filter("filesizeformat", minijinja_contrib::filters::filesizeformat);
    environment.add_filter("truncate", truncate);
    environment.add_filter("wordwrap", wordwrap);
}

/// An argument that may be given by position or by name.
fn argument(
    rest: &[Value],
    position: usize,
    kwargs: &Kwargs,
    name: &str,
) -> Result<Option<Value>, Error> {
    match rest.get(position) {
        Some(given) => Ok(Some(given.clone())),
        None if kwargs.has(name) => kwargs.get(name).map(Some),
        None => Ok(None),
    }
}

/// Jinja's `truncate(length=255, killwords=False, end='...', leeway=5)`.
fn truncate(text: Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let text = values::text(&text);
    let length = argument(&rest, 0, &kwargs, "length")?.map_or(Ok(255), usize::try_from)?;
    let kill_words = argument(&rest, 1, &kwargs, "killwords")?.map_or(Ok(false), bool::try_from)?;
    let end = argument(&rest, 2, &kwargs, "end")?
        .map_or_else(|| "...".to_owned(), |given| values::text(&given));
    let leeway = argument(&rest, 3, &kwargs, "leeway")?.map_or(Ok(5), usize::try_from)?;
    kwargs.assert_all_used()?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept = length.checked_sub(end.chars().count()).ok_or_else(|| {
        let what = format!(
            "truncate: expected length >= {}, got {length}",
            end.chars().count()
        );
        Error::new(ErrorKind::InvalidOperation, what)
    })?;
    let cut: String = text.chars().take(kept).collect();
    let cut = match cut.rsplit_once(' ') {
        Some((whole_words, _)) if !kill_words => whole_words,
        _ => &cut,
    };
    Ok(format!("{cut}{end}"))
}

/// Jinja's `wordwrap(width=79, break_long_words=True, wrapstring='\n', break_on_hyphens=True)`.
fn wordwrap(text: Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let text = values::text(&text);
    let width = argument(&rest, 0, &kwargs, "width")?.map_or(Ok(79), usize::try_from)?;
    let break_words =
        argument(&rest, 1, &kwargs, "break_long_words")?.map_or(Ok(true), bool::try_from)?;
    let between = argument(&rest, 2, &kwargs, "wrapstring")?
        .map_or_else(|| "\n".to_owned(), |given| values::text(&given));
    let on_hyphens =
        argument(&rest, 3, &kwargs, "break_on_hyphens")?.map_or(Ok(true), bool::try_from)?;
    kwargs.assert_all_used()?;
    if width == 0 {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "invalid width 0 (must be > 0)",
        ));
    }
    let lines = text
        .lines()
        .map(|line| wrapped(line, width, break_words, on_hyphens).join(&between));
    Ok(lines.collect::<Vec<_>>().join(&between))
}

fn wrapped(line: &str, width: usize, break_words: bool, on_hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (position, c) in line.char_indices() {
        let turns = before.is_some_and(|before| before.is_whitespace() != c.is_whitespace());
        let hyphen = on_hyphens && before == Some('-') && c.is_alphabetic();
        if turns || hyphen {
            chunks.extend(line.get(start..position));
            start = position;
        }
        before = Some(c);
    }
    chunks.extend(line.get(start..).filter(|last| !last.is_empty()));
    let (mut lines, mut current, mut room) = (Vec::new(), String::new(), width);
    for chunk in chunks {
        let mut chunk = chunk.to_owned();
        while !chunk.is_empty() {
            let length = chunk.chars().count();
            if length <= room {
                // No line begins with a blank but the first.
                if !(current.is_empty() && chunk.trim().is_empty() && !lines.is_empty()) {
                    current.push_str(&chunk);
                    room -= length;
                }
                chunk.clear();
            } else if length > width && break_words && room > 0 {
                let head: String = chunk.chars().take(room).collect();
                chunk = chunk.chars().skip(room).collect();
                current.push_str(&head);
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
                room = width;
            } else if current.is_empty() {
                current.push_str(&chunk);
                chunk.clear();
                room = 0;
            } else {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
                room = width;
            }
        }
    }
    let last = current.trim_end();
    if !last.is_empty() {
        lines.push(last.to_owned());
    }
    lines
}

fn pad(width: usize, length: usize) -> Result<usize, Error> {
    if width > LONGEST {
        let what = format!("a text of {width} characters is more than a template makes");
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    Ok(width.saturating_sub(length))
}

/// Python's `str.center`: of an odd number of blanks the greater part goes left when the width is odd too.
fn centered(text: &str, width: usize, fill: char) -> Result<String, Error> {
    let all = pad(width, text.chars().count())?;
    let left = all / 2 + (all & width & 1);
    let side = |count| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(format!("{}{text}{}", side(left), side(all - left)))
}

/// Methods of texts and lists beyond those that `pycompat` of minijinja-contrib has.
pub(super) fn method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(text) = value.as_str()
        && let Some(result) = of_text(text, method, args)?
    {
        return Ok(result);
    }
    if value.kind() == ValueKind::Seq
        && let Some(result) = of_list(value, method, args)?
    {
        return Ok(result);
    }
    if value.kind() == ValueKind::Map && matches!(method, "update" | "pop" | "setdefault" | "clear")
    {
        return Err(unchangeable("dict", method));
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
}

fn unchangeable(kind: &str, method: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!(
            "a {kind} can't be changed in templates here, as {kind}.{method}() would: set the variable to a new one, such \
             as {{% set items = items + [2] %}}"
        ),
    )
}

fn not_found(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} not found"))
}

fn of_text(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let fill = |fill: Option<&str>| fill.and_then(|fill| fill.chars().next()).unwrap_or(' ');
    let length = text.chars().count();
    let at = |bytes: usize| text.get(..bytes).unwrap_or_default().chars().count();
    Ok(Some(match method {
        "center" => {
            let (width, with) = from_args::<(usize, Option<&str>)>(args)?;
            centered(text, width, fill(with))?.into()
        }
        "ljust" | "rjust" => {
            let (width, with) = from_args::<(usize, Option<&str>)>(args)?;
            let more: String = std::iter::repeat_n(fill(with), pad(width, length)?).collect();
            match method {
                "ljust" => format!("{text}{more}"),
                _ => format!("{more}{text}"),
            }
            .into()
        }
        "zfill" => {
            let (width,) = from_args::<(usize,)>(args)?;
            let zeros = "0".repeat(pad(width, length)?);
            match text.strip_prefix(['+', '-']) {
                Some(digits) => {
                    let sign = text.get(..1).unwrap_or_default();
                    format!("{sign}{zeros}{digits}").into()
                }
                None => format!("{zeros}{text}").into(),
            }
        }
        "partition" | "rpartition" => {
            let (by,) = from_args::<(&str,)>(args)?;
            let three = match (method, text.split_once(by), text.rsplit_once(by)) {
                ("partition", Some((a, b)), _) | ("rpartition", _, Some((a, b))) => [a, by, b],
                ("partition", ..) => [text, "", ""],
                _ => ["", "", text],
            };
            Value::from(Tuple::from(three.map(Value::from).to_vec()))
        }
        "removeprefix" => {
            let (prefix,) = from_args::<(&str,)>(args)?;
            text.strip_prefix(prefix).unwrap_or(text).into()
        }
        "removesuffix" => {
            let (suffix,) = from_args::<(&str,)>(args)?;
            text.strip_suffix(suffix).unwrap_or(text).into()
        }
        "swapcase" => {
            let mut swapped = String::new();
            for c in text.chars() {
                if c.is_uppercase() {
                    swapped.extend(c.to_lowercase());
                } else {
                    swapped.extend(c.to_uppercase());
                }
            }
            swapped.into()
        }
        "casefold" => casefold(text).into(),
        "index" | "rindex" => {
            let (what,) = from_args::<(&str,)>(args)?;
            let found = if method == "index" {
                text.find(what)
            } else {
                text.rfind(what)
            };
            at(found.ok_or_else(|| not_found("substring"))?).into()
        }
        "rsplit" => {
            let (by, times) = from_args::<(Option<&str>, Option<i64>)>(args)?;
            let times = times.and_then(|times| usize::try_from(times).ok());
            let Some(by) = by else {
                if times.is_some() {
                    return Ok(None);
                }
                return Ok(Some(text.split_whitespace().map(Value::from).collect()));
            };
            let mut parts: Vec<&str> = match times {
                Some(times) => text.rsplitn(times.saturating_add(1), by).collect(),
                None => text.rsplit(by).collect(),
            };
            parts.reverse();
            parts.into_iter().map(Value::from).collect()
        }
        "expandtabs" => {
            let (size,) = from_args::<(Option<usize>,)>(args)?;
            let size = size.unwrap_or(8).min(80);
            let (mut out, mut column) = (String::new(), 0);
            for c in text.chars() {
                match c {
                    '\t' => {
                        let blanks = if size == 0 { 0 } else { size - column % size };
                        out.extend(std::iter::repeat_n(' ', blanks));
                        column += blanks;
                    }
                    '\n' | '\r' => {
                        out.push(c);
                        column = 0;
                    }
                    _ => {
                        out.push(c);
                        column += 1;
                    }
                }
            }
            out.into()
        }
        "format" => return formatted_times(text, args),
        _ => return Ok(None),
    }))
}

/// `'{:%Y/%m}'.format(moment)`, where the format is of dates alone; `None` for any other.
fn formatted_times(text: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let (mut out, mut rest, mut next, mut of_dates) = (String::new(), text, 0, false);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((field, behind)) = after.split_once('}') else {
            return Ok(None);
        };
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let position = match name {
            "" => {
                next += 1;
                next - 1
            }
            digits => match digits.parse() {
                Ok(position) => position,
                Err(_) => return Ok(None),
            },
        };
        let Some(value) = args.get(position) else {
            return Ok(None);
        };
        let formatted = match (
            value.downcast_object_ref::<PyDateTime>(),
            value.downcast_object_ref::<PyDate>(),
        ) {
            (Some(at), _) if spec.contains('%') => at.strftime(spec)?,
            (_, Some(day)) if spec.contains('%') => day.strftime(spec)?,
            _ if spec.is_empty() => {
                out.push_str(&values::text(value));
                rest = behind;
                continue;
            }
            _ => return Ok(None),
        };
        of_dates = true;
        out.push_str(&formatted);
        rest = behind;
    }
    out.push_str(rest);
    // Doubled braces are left to what knows them.
    Ok((of_dates && !text.contains("{{") && !text.contains("}}")).then(|| out.into()))
}

fn of_list(list: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "index" => {
            let (what,) = from_args::<(Value,)>(args)?;
            let found = list.try_iter()?.position(|item| item == what);
            found.ok_or_else(|| not_found("the item"))?.into()
        }
        "copy" => {
            let () = from_args(args)?;
            list.clone()
        }
        "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "reverse" | "sort" => {
            return Err(unchangeable("list", method));
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use minijinja::context;
    use pretty_assertions::assert_eq;

    use super::super::datetime::Zone;
    use super::super::{Options, Templates};
    use super::*;

    fn render(source: &str) -> String {
        let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day");
        let at = day.and_hms_opt(0, 0, 0).expect("a time");
        let at = PyDateTime::local(at, Zone::Named(chrono_tz::Tz::UTC));
        let context = context! { logical_date => Value::from_object(at) };
        Templates::new(Options::default(), context)
            .render_text("prompt", source)
            .unwrap_or_else(|error| format!("{}: {error}", error.class))
    }

    /// The values are those of Jinja 3.1 on Python 3.11.
    #[test]
    fn filters_and_methods_give_what_jinja_and_python_give() {
        for (source, text) in [
            ("{{ 'Hello world foo'|truncate(9) }}", "Hello..."),
            ("{{ 'Hello world foo'|truncate(11) }}", "Hello world foo"),
            ("{{ 'Hello world foo'|truncate(9, true) }}", "Hello ..."),
            ("{{ 'Hello world foo'|truncate(11, leeway=0) }}", "Hello..."),
            ("{{ 'a b  c'|wordcount }}", "3"),
            ("{{ 'x'|center(4) }}|", " x  |"),
            ("{{ '<b>a</b> &amp; <!-- c -->b'|striptags }}", "a & b"),
            ("{{ 1234567|filesizeformat }}", "1.2 MB"),
            ("{{ 1|filesizeformat }}", "1 Byte"),
            ("{{ 1000|filesizeformat }}", "1.0 kB"),
            ("{{ 1234567|filesizeformat(true) }}", "1.2 MiB"),
            (
                "{{ 'one two three four'|wordwrap(9) }}",
                "one two\nthree\nfour",
            ),
            (
                "{{ 'unbreakableword two'|wordwrap(5) }}",
                "unbre\nakabl\neword\ntwo",
            ),
            (
                "{{ 'one two three'|wordwrap(9, wrapstring='|') }}",
                "one two|three",
            ),
            ("{{ 'x'.center(5) }}|", "  x  |"),
            ("{{ 'ab'.center(5,'*') }}", "**ab*"),
            ("{{ 'abc'.center(6,'*') }}", "*abc**"),
            ("{{ 'x'.zfill(3) }}", "00x"),
            ("{{ '-7'.zfill(4) }}", "-007"),
            ("{{ 'x'.ljust(3) }}|", "x  |"),
            ("{{ 'x'.rjust(3,'.') }}", "..x"),
            ("{{ 'a-b-c'.partition('-')[2] }}", "b-c"),
            ("{{ 'a-b-c'.rpartition('-')[0] }}", "a-b"),
            (
                "{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}",
                "bcab",
            ),
            ("{{ 'aBc'.swapcase() }}", "AbC"),
            ("{{ 'a.b.c'.rsplit('.',1)|join('|') }}", "a.b|c"),
            ("{{ 'abcabc'.index('c') }}{{ 'abcabc'.rindex('c') }}", "25"),
            ("{{ 'a\tb'.expandtabs(4) }}", "a   b"),
            ("{{ [1,2,1].index(2) }}", "1"),
            ("{{ '{:%Y/%m}'.format(logical_date) }}", "2026/01"),
            ("{{ '{}-{:%d}'.format('x', logical_date) }}", "x-01"),
            ("{{ '{:>5}|{:,}'.format('a', 12345) }}", "    a|12,345"),
        ] {
            assert_eq!(render(source), text, "{source}");
        }
    }

    #[test]
    fn what_would_change_a_list_says_what_to_write_instead() {
        let error = render("{% set q = [1] %}{% do q.append(2) %}");
        assert!(
            error.contains("a list can't be changed in templates here, as list.append() would"),
            "{error}"
        );
    }

    #[test]
    fn the_undefined_name_of_a_longer_expression_is_named_as_jinja_names_it() {
        assert_eq!(
            render("{{ 'x' if undefined_name else 'y' }}"),
            "jinja2.exceptions.UndefinedError: prompt: 'undefined_name' is undefined"
        );
    }
}
