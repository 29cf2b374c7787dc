//! A window of a text file's lines, with the offset to read on from.

/// Lines that one window holds at most.
const MAX_LINES: usize = 2000;

/// A count of bytes as the model reads it: `5B`, `50.0KB`, `10.0MB`.
pub(super) fn size_text(bytes: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one digit after the point is shown"
    )]
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    if bytes >= 1 << 20 {
        format!("{:.1}MB", scaled(1 << 20))
    } else if bytes >= 1 << 10 {
        format!("{:.1}KB", scaled(1 << 10))
    } else {
        format!("{bytes}B")
    }
}

/// The lines from `offset` (counted from 1), at most `limit` of them, as many as fit into `max_bytes`.
pub(super) fn render(
    text: &str,
    offset: Option<i64>,
    limit: Option<i64>,
    max_bytes: u64,
) -> String {
    let lines = lines(text);
    let total = lines.len();
    let start = offset.unwrap_or(1).max(1);
    let first = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let Some(window) = lines.get(first..).filter(|window| !window.is_empty()) else {
        let plural = if total == 1 { "" } else { "s" };
        return format!("(no lines at offset {start}; file has {total} line{plural})");
    };
    let asked = limit
        .and_then(|limit| usize::try_from(limit).ok())
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    let mut body = String::new();
    let mut kept = 0;
    for line in window.iter().take(asked.min(MAX_LINES)) {
        let cost = line.len() + usize::from(kept > 0);
        if (body.len() + cost) as u64 > max_bytes {
            break;
        }
        if kept > 0 {
            body.push('\n');
        }
        body.push_str(line);
        kept += 1;
    }
    if kept == 0 {
        return format!(
            "Line {start} is longer than the {} output limit. It cannot be read a line at a time.",
            size_text(max_bytes)
        );
    }
    let read = first + kept;
    let remaining = total - read;
    if remaining > 0 {
        let plural = if remaining == 1 { "" } else { "s" };
        body.push_str(&format!(
            "\n[... {remaining} more line{plural}; read on with offset={}]",
            read + 1
        ));
    }
    body
}

/// `str.splitlines`.
fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(ends) {
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = match after.strip_prefix("\r\n") {
            Some(rest) => rest,
            None => {
                let mut chars = after.chars();
                chars.next();
                chars.as_str()
            }
        };
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(
            lines("a\r\nb\rc\nd\x0be\x0cf\x1cg\x1dh\x1ei\u{85}j\u{2028}k\u{2029}l\n"),
            ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
        );
        assert_eq!(lines("\n\n"), ["", ""]);
        assert!(lines("").is_empty());
    }

    #[test]
    fn a_window_says_how_to_read_on() {
        let text = "l1\nl2\nl3\n";
        assert_eq!(render(text, None, None, 100), "l1\nl2\nl3");
        assert_eq!(
            render(text, None, Some(2), 100),
            "l1\nl2\n[... 1 more line; read on with offset=3]"
        );
        assert_eq!(
            render(text, Some(-4), Some(1), 100),
            "l1\n[... 2 more lines; read on with offset=2]"
        );
        assert_eq!(render(text, Some(3), Some(0), 100), "l3");
        assert_eq!(
            render(text, None, None, 5),
            "l1\nl2\n[... 1 more line; read on with offset=3]"
        );
    }

    #[test]
    fn what_can_not_be_shown_is_said() {
        assert_eq!(
            render("a\nb\nc", Some(9), None, 100),
            "(no lines at offset 9; file has 3 lines)"
        );
        assert_eq!(
            render("a", Some(2), None, 100),
            "(no lines at offset 2; file has 1 line)"
        );
        assert_eq!(
            render("", None, None, 100),
            "(no lines at offset 1; file has 0 lines)"
        );
        assert_eq!(
            render("longer", None, None, 5),
            "Line 1 is longer than the 5B output limit. It cannot be read a line at a time."
        );
    }

    #[test]
    fn no_more_than_two_thousand_lines_are_shown() {
        let shown = render(&"x\n".repeat(2001), None, None, 1 << 20);
        assert!(shown.ends_with("\n[... 1 more line; read on with offset=2001]"));
    }

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        assert_eq!(
            [5, 1023, 1024, 51_200, 10 << 20].map(size_text),
            ["5B", "1023B", "1.0KB", "50.0KB", "10.0MB"]
        );
    }

    proptest! {
        #[test]
        fn reading_on_by_the_offsets_gives_every_line_once(text in "([a-cé]{0,4}\n){0,30}", max in 12_u64..40) {
            let mut offset = 1;
            let mut seen = Vec::new();
            loop {
                let shown = render(&text, Some(offset), None, max);
                if shown.starts_with("(no lines") {
                    break;
                }
                let (body, next) = match shown.rsplit_once("\n[... ") {
                    Some((body, note)) => {
                        let next = note.rsplit('=').next().and_then(|n| n.trim_end_matches(']').parse().ok());
                        (body.to_owned(), next)
                    }
                    None => (shown, None),
                };
                prop_assert!(body.len() as u64 <= max);
                seen.extend(body.split('\n').map(ToOwned::to_owned));
                match next {
                    Some(next) => offset = next,
                    None => break,
                }
            }
            prop_assert_eq!(seen, lines(&text));
        }
    }
}
