//! CSV as Python's `csv.reader` reads it in its default dialect.

use super::super::storage::StorageError;

/// Characters of one field.
const MAX_FIELD: usize = 131_072;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    RecordStart,
    FieldStart,
    InField,
    InQuotes,
    /// A quote within quotes: the end of the field, or the first half of a quote.
    AfterQuote,
    /// Behind a line break: the record is over.
    AfterBreak,
}

/// The rows of a text. An empty line is an empty row.
pub(super) fn rows(text: &str) -> Result<Vec<Vec<String>>, StorageError> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut length = 0;
    let mut state = State::RecordStart;
    for line in text.split_inclusive('\n') {
        for c in line.chars() {
            state = match (state, c) {
                (State::RecordStart, '\n' | '\r') => State::AfterBreak,
                (State::AfterBreak, '\n' | '\r') => State::AfterBreak,
                (State::AfterBreak, _) => {
                    return Err(wrong(
                        "new-line character seen in unquoted field - do you need to open the file with newline=''?",
                    ));
                }
                (State::FieldStart | State::InField | State::AfterQuote, '\n' | '\r') => {
                    row.push(std::mem::take(&mut field));
                    length = 0;
                    State::AfterBreak
                }
                (State::RecordStart | State::FieldStart, '"') => State::InQuotes,
                (State::InQuotes, '"') => State::AfterQuote,
                (State::InQuotes, c) => {
                    add(&mut field, &mut length, c)?;
                    State::InQuotes
                }
                (State::AfterQuote, '"') => {
                    add(&mut field, &mut length, '"')?;
                    State::InQuotes
                }
                (_, ',') => {
                    row.push(std::mem::take(&mut field));
                    length = 0;
                    State::FieldStart
                }
                (_, c) => {
                    add(&mut field, &mut length, c)?;
                    State::InField
                }
            };
        }
        if state != State::InQuotes {
            // The text may end without a line break.
            if !matches!(state, State::AfterBreak | State::RecordStart) {
                row.push(std::mem::take(&mut field));
                length = 0;
            }
            rows.push(std::mem::take(&mut row));
            state = State::RecordStart;
        }
    }
    if state == State::InQuotes {
        row.push(field);
        rows.push(row);
    }
    Ok(rows)
}

fn add(field: &mut String, length: &mut usize, c: char) -> Result<(), StorageError> {
    *length += 1;
    if *length > MAX_FIELD {
        return Err(wrong("field larger than field limit (131072)"));
    }
    field.push(c);
    Ok(())
}

fn wrong(text: &str) -> StorageError {
    StorageError::exception("_csv.Error", text)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn rows_are_those_of_python() {
        for (text, expected) in [
            ("a,b\n1,2", vec![vec!["a", "b"], vec!["1", "2"]]),
            ("a\n\nb\n", vec![vec!["a"], vec![], vec!["b"]]),
            (
                "\"x, y\",\"say \"\"no\"\"\"\r\n",
                vec![vec!["x, y", "say \"no\""]],
            ),
            ("\"two\nlines\",z", vec![vec!["two\nlines", "z"]]),
            ("a\"b\",\"c\"d,", vec![vec!["a\"b\"", "cd", ""]]),
            ("\"never closed\n", vec![vec!["never closed\n"]]),
            ("", vec![]),
        ] {
            assert_eq!(rows(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_break_of_old_and_a_field_without_end_are_refused() {
        assert!(rows("a\rb\n").is_err());
        assert!(rows(&"x".repeat(MAX_FIELD + 1)).is_err());
        assert!(rows(&"é".repeat(MAX_FIELD)).is_ok());
    }
}
