//! The paths by which a model names files.

use crate::airflow::python_text::repr_str;

/// The parts of a path below the root; none for the root itself.
///
/// # Errors
/// What the model is told: the path is absolute, a URL, or climbs.
pub(super) fn parts(path: &str) -> Result<Vec<&str>, String> {
    if path.starts_with('/') || path.contains("://") {
        return Err(format!(
            "{} is not a relative path. Name files relative to the storage root.",
            repr_str(path)
        ));
    }
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(format!(
            "{} leaves the storage root; '..' is not allowed.",
            repr_str(path)
        ));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn dots_and_doubled_slashes_are_dropped() {
        assert_eq!(parts("./a//b/./c d/").unwrap(), ["a", "b", "c d"]);
        assert!(parts("").unwrap().is_empty() && parts(".").unwrap().is_empty());
        assert_eq!(parts("..a/b..").unwrap(), ["..a", "b.."]);
    }

    #[test]
    fn what_leads_elsewhere_is_refused_even_where_it_would_stay_inside() {
        let absolute = "is not a relative path. Name files relative to the storage root.";
        assert_eq!(parts("/etc").unwrap_err(), format!("'/etc' {absolute}"));
        assert_eq!(
            parts("s3://b/k").unwrap_err(),
            format!("'s3://b/k' {absolute}")
        );
        assert_eq!(
            parts("a/../b").unwrap_err(),
            "'a/../b' leaves the storage root; '..' is not allowed."
        );
    }
}
