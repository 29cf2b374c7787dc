//! What kind of file a name says it is.

/// How a file is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text(Option<Codec>),
    Parquet,
    Avro,
    /// Not text: the ending it is known by.
    Media(&'static str),
}

/// A compression that is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Bzip2,
    Xz,
}

const MEDIA: [&str; 4] = ["jpeg", "jpg", "pdf", "png"];

/// The format that a file name's endings say. What is not known is text, decompressed where the last ending asks for it.
pub(super) fn of_name(name: &str) -> Format {
    let suffixes = suffixes(name);
    let last = suffixes.last().map_or("", String::as_str);
    let codec = match last {
        "gz" => Some(Codec::Gzip),
        "bz2" => Some(Codec::Bzip2),
        "xz" => Some(Codec::Xz),
        _ => None,
    };
    if codec.is_some() || matches!(last, "zst" | "snappy") {
        return Format::Text(codec);
    }
    match last {
        "parquet" => Format::Parquet,
        "avro" => Format::Avro,
        other => match MEDIA.iter().find(|known| **known == other) {
            Some(media) => Format::Media(media),
            None => Format::Text(None),
        },
    }
}

/// `PurePath.suffixes`, in lower case and without their dots.
pub(super) fn suffixes(name: &str) -> Vec<String> {
    if name.ends_with('.') {
        return Vec::new();
    }
    name.trim_start_matches('.')
        .split('.')
        .skip(1)
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ending_decides() {
        let cases = [
            ("a.csv", Format::Text(None)),
            ("a.CSV.GZ", Format::Text(Some(Codec::Gzip))),
            ("a.yaml.xz", Format::Text(Some(Codec::Xz))),
            ("a.bz2", Format::Text(Some(Codec::Bzip2))),
            ("a.csv.zst", Format::Text(None)),
            ("a.parquet", Format::Parquet),
            ("a.parquet.gz", Format::Text(Some(Codec::Gzip))),
            ("a.b.avro", Format::Avro),
            ("photo.JPG", Format::Media("jpg")),
            ("photo.png.gz", Format::Text(Some(Codec::Gzip))),
            (".png", Format::Text(None)),
            ("Makefile", Format::Text(None)),
            ("a.png.", Format::Text(None)),
        ];
        for (name, format) in cases {
            assert_eq!(of_name(name), format, "{name}");
        }
    }
}
