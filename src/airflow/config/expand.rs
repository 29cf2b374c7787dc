//! `$VAR` and `~` in configuration values, and words of a command line.

use super::Environment;

/// Replaces `$NAME`, `${NAME}` and a leading `~` until nothing changes. Unknown names stay as they are.
pub(super) fn expand(text: &str, environment: &Environment) -> String {
    let mut text = text.to_owned();
    // A variable that names itself would grow for ever.
    for _ in 0..16 {
        let next = expand_home(expand_variables(&text, environment), environment);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn expand_variables(text: &str, environment: &Environment) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, tail) = match after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        {
            Some((name, tail)) => (name, tail),
            None => {
                let end = after
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(after.len());
                after.split_at(end)
            }
        };
        let written = &after[..after.len() - tail.len()];
        match environment.get(name).filter(|_| !name.is_empty()) {
            Some(value) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(written);
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn expand_home(text: String, environment: &Environment) -> String {
    match text.strip_prefix('~') {
        Some(tail) if tail.is_empty() || tail.starts_with('/') => match environment.get("HOME") {
            Some(home) => format!("{}{tail}", home.trim_end_matches('/')),
            None => text,
        },
        _ => text,
    }
}

/// Splits a command line as a POSIX shell would, with quotes and backslashes but nothing else.
pub(super) fn split_words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quotation mark is not closed")? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quotation mark is not closed")? {
                        '"' => break,
                        '\\' => match chars.next().ok_or("a quotation mark is not closed")? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or("nothing follows the last backslash")?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        assert_eq!(
            split_words(r#"cat  '/a b'/c "x \" \\ \n" y\ z ''"#).unwrap(),
            ["cat", "/a b/c", r#"x " \ \n"#, "y z", ""]
        );
        assert!(split_words("echo 'open").is_err());
    }

    #[test]
    fn a_variable_that_names_itself_ends() {
        let environment = [("LOOP", "$LOOP")].into_iter().collect();
        assert_eq!(expand("$LOOP", &environment), "$LOOP");
    }

    #[test]
    fn a_lone_dollar_stays() {
        let environment = [("A", "1")].into_iter().collect();
        assert_eq!(expand("pa$$w$A-${A}-${B-$", &environment), "pa$$w1-1-${B-$");
    }
}
