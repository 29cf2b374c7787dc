//! A value of a CSV file that does not fit the type its column seemed to have.

use std::sync::LazyLock;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DataFusionError;
use regex::Regex;

use super::listing::Listing;
use super::source::FileFormatName;
use super::type_name::python_name;
use crate::airflow::python_text::repr_str;
use crate::toolset::sql::Mask;

/// What arrow-csv says of such a value.
static MESSAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?s)Error while parsing value '(.*?)' as type '[^']*' for column (\d+) at line \d+\.",
    )
    .ok()
});
/// Characters of a value that a note shows.
const SHOWN: usize = 60;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub value: String,
    /// Counted from 0 in the file.
    pub column: usize,
}

/// The value that an error tells of, if it is an error of this kind.
pub(super) fn find(error: &DataFusionError) -> Option<Misfit> {
    let text = error.to_string();
    let found = MESSAGE.as_ref()?.captures(&text)?;
    Some(Misfit {
        value: found.get(1)?.as_str().to_owned(),
        column: found.get(2)?.as_str().parse().ok()?,
    })
}

impl Misfit {
    /// Can the value be one of this table?
    pub fn may_be_of(&self, listing: &Listing) -> bool {
        listing.format == FileFormatName::Csv
            && listing
                .file_schema
                .fields()
                .get(self.column)
                .is_some_and(|field| field.data_type() != &DataType::Utf8)
    }

    /// What the model is told once the column is text. The value is masked before it is cut: half of a secret would not
    /// be known for one.
    pub fn note(&self, table: &str, field: &Field, mask: &Mask) -> String {
        let shown: String = mask(&self.value).chars().take(SHOWN).collect();
        let sql_type = match field.data_type() {
            DataType::Int64 => "BIGINT",
            DataType::Float64 => "DOUBLE",
            DataType::Boolean => "BOOLEAN",
            DataType::Date32 | DataType::Date64 => "DATE",
            _ => "TIMESTAMP",
        };
        format!(
            "Column {} of table {} is read as text from now on: its first rows look like {}, but the value {} is \
             none. Use TRY_CAST(... AS {sql_type}) where you need one; it gives NULL for such values.",
            repr_str(field.name()),
            repr_str(table),
            python_name(field.data_type()),
            repr_str(&shown),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::error::ArrowError;

    use super::*;

    #[test]
    fn a_secret_that_the_cut_would_halve_is_masked_before() {
        let misfit = Misfit {
            value: format!("{} made-up secret", "x".repeat(SHOWN - 10)),
            column: 0,
        };
        let mask: Mask = Arc::new(|text| text.replace("made-up secret", "***"));
        let note = misfit.note("t", &Field::new("c", DataType::Int64, true), &mask);
        assert!(note.contains("xx ***' is none"), "{note}");
    }

    #[test]
    fn the_value_is_found_however_deep_the_error_lies() {
        let inner = ArrowError::ParseError(
            "Error while parsing value 'N/A' as type 'Int64' for column 1 at line 2001. Row data: '[2000,N/A]'"
                .to_owned(),
        );
        let error = DataFusionError::Shared(Arc::new(DataFusionError::from(inner)))
            .context("while reading");
        let expected = Misfit {
            value: "N/A".to_owned(),
            column: 1,
        };
        assert_eq!(find(&error), Some(expected));
        assert_eq!(find(&DataFusionError::Plan("no".to_owned())), None);
    }
}
