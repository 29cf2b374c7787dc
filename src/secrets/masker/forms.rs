//! The forms in which a secret may stand in a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use crate::airflow::python_text::{JsonStyle, dumps};
use crate::airflow::url_text;

/// The secret as it is, and JSON-escaped (also twice: JSON within JSON), URL-quoted, in base64, and as a literal of SQL.
pub(super) fn of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for style in [JsonStyle::LOOSE, JsonStyle::COMPACT] {
        let once = escaped(secret, style);
        forms.extend([JsonStyle::LOOSE, JsonStyle::COMPACT].map(|outer| escaped(&once, outer)));
        forms.push(once);
    }
    let quoted = utf8_percent_encode(secret, url_text::SEGMENT).to_string();
    forms.push(quoted.replace("%20", "+"));
    forms.push(quoted);
    forms.push(utf8_percent_encode(secret, url_text::PATH).to_string());
    forms.extend([
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
    ]);
    forms.extend(inside_base64(secret));
    forms.extend(sql_literals(secret));
    forms
}

/// A text as it stands between the quotation marks of JSON.
fn escaped(text: &str, style: JsonStyle) -> String {
    let quoted = dumps(&Value::from(text), style);
    quoted
        .get(1..quoted.len() - 1)
        .unwrap_or_default()
        .to_owned()
}

/// A text as literals of SQL and Python hold it.
fn sql_literals(text: &str) -> [String; 4] {
    let slashes = text.replace('\\', "\\\\");
    [
        text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        text.replace('\'', "''"),
        slashes.replace('\'', "''"),
        slashes.replace('\'', "\\'"),
    ]
}

/// What of a secret's base64 is the same wherever it stands within a longer text: three alignments, less the characters
/// that its neighbours have a part in. None where that is so short that it may be anything.
fn inside_base64(secret: &str) -> impl Iterator<Item = String> {
    const SHORTEST: usize = 8;
    let bytes = secret.as_bytes().to_vec();
    [STANDARD_NO_PAD, URL_SAFE_NO_PAD]
        .into_iter()
        .flat_map(move |alphabet| {
            [(0, 0), (1, 2), (2, 3)].map(|(before, touched)| {
                let mut padded = vec![0; before];
                padded.extend(&bytes);
                // Whole characters of six bits.
                let whole = padded.len() * 8 / 6;
                let text = alphabet.encode(padded);
                text.get(touched..whole).unwrap_or_default().to_owned()
            })
        })
        .filter(|text| text.len() >= SHORTEST)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::super::{MASK, Masker};
    use super::*;

    fn knowing(secrets: &[&str]) -> Masker {
        let masker = Masker::new();
        secrets.iter().for_each(|secret| masker.add_secret(secret));
        masker
    }

    #[test]
    fn encoded_forms_of_a_secret_are_masked_too() {
        let masker = knowing(&["pä\"ss/w rd\n"]);
        for text in [
            "pä\"ss/w rd\n",
            r#"pä\"ss/w rd\n"#,
            r#"p\u00e4\"ss/w rd\n"#,
            r#"pä\\\"ss/w rd\\n"#,
            r#"p\\u00e4\\\"ss/w rd\\n"#,
            "p%C3%A4%22ss%2Fw%20rd%0A",
            "p%C3%A4%22ss/w%20rd%0A",
            "p%C3%A4%22ss%2Fw+rd%0A",
            "cMOkInNzL3cgcmQK",
        ] {
            assert_eq!(masker.mask_str(text), "***", "{text}");
        }
    }

    #[test]
    fn a_secret_is_masked_in_literals_of_sql() {
        let masker = knowing(&["pa'ss\\word"]);
        for text in [
            "pa''ss\\word",
            "pa''ss\\\\word",
            "pa\\'ss\\\\word",
            "70612773735c776f7264",
        ] {
            assert_eq!(masker.mask_str(text), "***", "{text}");
        }
    }

    #[test]
    fn a_secret_within_a_longer_text_is_masked_in_its_base64() {
        let masker = knowing(&["made-up/s\u{fb}cret?"]);
        for (before, after) in [
            ("", "!"),
            ("a", ""),
            ("ab", "c"),
            ("ada:", " and more"),
            ("{\"k\":\"", "\"}"),
        ] {
            let text = format!("{before}made-up/s\u{fb}cret?{after}");
            for alphabet in [STANDARD, URL_SAFE] {
                let encoded = alphabet.encode(&text);
                let masked = masker.mask_str(&encoded);
                // At most the characters that the neighbours share are left.
                assert!(masked.contains(MASK), "{text}: {masked}");
                let left = masked.replace(MASK, "").len();
                let beside = (before.len() + after.len()) * 4 / 3 + 8;
                assert!(left <= beside, "{text}: {masked}");
            }
        }
        assert_eq!(knowing(&["12345"]).mask_str("ADEyMzQ1"), "ADEyMzQ1");
    }
}
