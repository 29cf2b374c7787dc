//! URLs as text: what is percent-encoded in them, and how they may be shown.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// Everything but letters, digits and RFC 3986's other unreserved characters is encoded, as by Python's
/// `quote(text, safe="")`. For one segment of a path.
pub const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same with slashes left alone, as by Python's `quote(text)`. For a whole path.
pub const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// The URL without user name and password, for error texts and logs. The text need not be a valid URL.
#[must_use]
pub fn without_userinfo(url: &str) -> Cow<'_, str> {
    let start = url.find("://").map_or(0, |index| index + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    match authority.rsplit_once('@') {
        None => Cow::Borrowed(url),
        Some((_, host)) => Cow::Owned(format!("{scheme}{host}{tail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_and_passwords_are_left_out_of_urls() {
        for (url, shown) in [
            (
                "https://ada:made-up@host:8080/p?q=a@b",
                "https://host:8080/p?q=a@b",
            ),
            ("https://made-up@@host", "https://host"),
            ("ada:made-up@host/p", "host/p"),
            ("ht tp://ada:made-up@", "ht tp://"),
            ("https://host/a@b", "https://host/a@b"),
            ("", ""),
        ] {
            assert_eq!(without_userinfo(url), shown, "{url}");
        }
    }

    #[test]
    fn a_segment_encodes_slashes_and_a_path_keeps_them() {
        use percent_encoding::utf8_percent_encode;
        let text = "a/b ä+~._-";
        assert_eq!(
            utf8_percent_encode(text, SEGMENT).to_string(),
            "a%2Fb%20%C3%A4%2B~._-"
        );
        assert_eq!(
            utf8_percent_encode(text, PATH).to_string(),
            "a/b%20%C3%A4%2B~._-"
        );
    }
}
