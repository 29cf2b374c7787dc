//! Arrow values as Python shows them: what the original makes with `to_pydict` and `json.dumps(default=str)`.

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::types::{
    ArrowTemporalType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray as _, UnionArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::array_value_to_string;

use chrono::{DateTime, Datelike as _, Offset as _, TimeZone as _, Timelike as _};

use crate::hook::{Cell, python_value};

/// Why a value can't be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(in crate::toolset) enum ValueError {
    /// Python's dates go from the year 1 to 9999, and its text for what is outside is this.
    #[error("date value out of range")]
    OutOfRange,
    /// Arrow can't read a value of its own.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;

/// One value of a column.
pub(in crate::toolset) fn cell(array: &dyn Array, row: usize) -> Result<Cell, ValueError> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
        DataType::Int8 => Cell::Int(of::<Int8Type>(array, row).into()),
        DataType::Int16 => Cell::Int(of::<Int16Type>(array, row).into()),
        DataType::Int32 => Cell::Int(of::<Int32Type>(array, row).into()),
        DataType::Int64 => Cell::Int(of::<Int64Type>(array, row)),
        DataType::UInt8 => Cell::Int(of::<UInt8Type>(array, row).into()),
        DataType::UInt16 => Cell::Int(of::<UInt16Type>(array, row).into()),
        DataType::UInt32 => Cell::Int(of::<UInt32Type>(array, row).into()),
        DataType::UInt64 => Cell::Json(of::<UInt64Type>(array, row).into()),
        DataType::Float16 => Cell::Float(of::<Float16Type>(array, row).to_f64()),
        DataType::Float32 => Cell::Float(of::<Float32Type>(array, row).into()),
        DataType::Float64 => Cell::Float(of::<Float64Type>(array, row)),
        DataType::Decimal32(..) => {
            decimal(&array.as_primitive::<Decimal32Type>().value_as_string(row))
        }
        DataType::Decimal64(..) => {
            decimal(&array.as_primitive::<Decimal64Type>().value_as_string(row))
        }
        DataType::Decimal128(..) => {
            decimal(&array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::Decimal256(..) => {
            decimal(&array.as_primitive::<Decimal256Type>().value_as_string(row))
        }
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_owned()),
        DataType::LargeBinary => Cell::Bytes(array.as_binary::<i64>().value(row).to_owned()),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row).to_owned()),
        DataType::FixedSizeBinary(_) => {
            Cell::Bytes(array.as_fixed_size_binary().value(row).to_owned())
        }
        DataType::Date32 => {
            let days = i128::from(of::<Date32Type>(array, row));
            Cell::Text(day(days * NANOS_PER_DAY)?)
        }
        DataType::Date64 => {
            let millis = i128::from(of::<Date64Type>(array, row));
            Cell::Text(day(millis * 1_000_000)?)
        }
        DataType::Timestamp(unit, zone) => {
            let nanos = i128::from(timestamp(array, row, *unit)) * nanos_per(*unit);
            Cell::Text(moment(nanos, zone.as_deref())?)
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let count = match unit {
                TimeUnit::Second => of::<Time32SecondType>(array, row).into(),
                TimeUnit::Millisecond => of::<Time32MillisecondType>(array, row).into(),
                TimeUnit::Microsecond => of::<Time64MicrosecondType>(array, row),
                TimeUnit::Nanosecond => of::<Time64NanosecondType>(array, row),
            };
            Cell::Text(clock(i128::from(count) * nanos_per(*unit)))
        }
        DataType::Duration(unit) => {
            let count = match unit {
                TimeUnit::Second => of::<DurationSecondType>(array, row),
                TimeUnit::Millisecond => of::<DurationMillisecondType>(array, row),
                TimeUnit::Microsecond => of::<DurationMicrosecondType>(array, row),
                TimeUnit::Nanosecond => of::<DurationNanosecondType>(array, row),
            };
            Cell::Text(duration(i128::from(count) * nanos_per(*unit))?)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = of::<IntervalMonthDayNanoType>(array, row);
            Cell::List(vec![
                Cell::Int(interval.months.into()),
                Cell::Int(interval.days.into()),
                Cell::Int(interval.nanoseconds),
            ])
        }
        // Python has no value for these two.
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            Cell::Text(array_value_to_string(array, row)?)
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::ListView(_) => list(&array.as_list_view::<i32>().value(row))?,
        DataType::LargeListView(_) => list(&array.as_list_view::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let entries = fields.iter().zip(columns);
            Cell::Object(
                entries
                    .map(|(field, column)| Ok((field.name().clone(), cell(column, row)?)))
                    .collect::<Result<_, ValueError>>()?,
            )
        }
        // Pairs: a key of a map may be anything, and may come twice.
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let pair = |at| {
                let columns = entries.columns().iter();
                Ok(Cell::List(
                    columns
                        .map(|column| cell(column, at))
                        .collect::<Result<_, ValueError>>()?,
                ))
            };
            Cell::List(
                (0..entries.len())
                    .map(pair)
                    .collect::<Result<_, ValueError>>()?,
            )
        }
        DataType::Dictionary(_, values) => {
            let plain = cast(&array.slice(row, 1), values)?;
            cell(&plain, 0)?
        }
        DataType::RunEndEncoded(_, values) => {
            let plain = cast(&array.slice(row, 1), values.data_type())?;
            cell(&plain, 0)?
        }
        DataType::Union(..) => match array.as_any().downcast_ref::<UnionArray>() {
            Some(union) => cell(&union.value(row), 0)?,
            None => Cell::Text(array_value_to_string(array, row)?),
        },
    })
}

fn of<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

fn list(items: &dyn Array) -> Result<Cell, ValueError> {
    let cells = (0..items.len()).map(|row| cell(items, row));
    Ok(Cell::List(cells.collect::<Result<_, _>>()?))
}

fn decimal(text: &str) -> Cell {
    Cell::Text(python_value::decimal(text).unwrap_or_else(|| text.to_owned()))
}

fn timestamp(array: &dyn Array, row: usize, unit: TimeUnit) -> i64 {
    fn count<T: ArrowTemporalType<Native = i64>>(array: &dyn Array, row: usize) -> i64 {
        of::<T>(array, row)
    }
    match unit {
        TimeUnit::Second => count::<TimestampSecondType>(array, row),
        TimeUnit::Millisecond => count::<TimestampMillisecondType>(array, row),
        TimeUnit::Microsecond => count::<TimestampMicrosecondType>(array, row),
        TimeUnit::Nanosecond => count::<TimestampNanosecondType>(array, row),
    }
}

fn nanos_per(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => NANOS_PER_SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A moment in UTC, by its distance from 1970; Python holds the years 1 to 9999.
fn utc(nanos: i128) -> Result<DateTime<chrono::Utc>, ValueError> {
    let seconds = i64::try_from(nanos.div_euclid(NANOS_PER_SECOND));
    let rest = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).unwrap_or_default();
    seconds
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, rest))
        .filter(|moment| (1..=9999).contains(&moment.year()))
        .ok_or(ValueError::OutOfRange)
}

fn day(nanos: i128) -> Result<String, ValueError> {
    Ok(utc(nanos)?.format("%Y-%m-%d").to_string())
}

/// `str(datetime)`; with more than microseconds what pandas shows.
fn moment(nanos: i128, zone: Option<&str>) -> Result<String, ValueError> {
    let utc = utc(nanos)?;
    let Some(zone) = zone else {
        return Ok(local_text(utc.naive_utc()));
    };
    let zone: Tz = zone.parse()?;
    let offset = zone.offset_from_utc_datetime(&utc.naive_utc()).fix();
    let local = utc.with_timezone(&offset).naive_local();
    if !(1..=9999).contains(&local.year()) {
        return Err(ValueError::OutOfRange);
    }
    let seconds = offset.local_minus_utc();
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.abs();
    let mut text = local_text(local);
    text.push_str(&format!(
        "{sign}{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60
    ));
    if seconds % 60 != 0 {
        text.push_str(&format!(":{:02}", seconds % 60));
    }
    Ok(text)
}

fn local_text(local: chrono::NaiveDateTime) -> String {
    let mut text = local.format("%Y-%m-%d %H:%M:%S").to_string();
    push_fraction(&mut text, local.nanosecond() % 1_000_000_000);
    text
}

fn push_fraction(text: &mut String, nanos: u32) {
    if !nanos.is_multiple_of(1_000) {
        text.push_str(&format!(".{nanos:09}"));
    } else if nanos > 0 {
        text.push_str(&format!(".{:06}", nanos / 1_000));
    }
}

fn clock(nanos: i128) -> String {
    let seconds = nanos.div_euclid(NANOS_PER_SECOND);
    let mut text = format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let rest = nanos.rem_euclid(NANOS_PER_SECOND);
    push_fraction(&mut text, u32::try_from(rest).unwrap_or_default());
    text
}

/// `str(timedelta)`; with more than microseconds what pandas shows.
fn duration(nanos: i128) -> Result<String, ValueError> {
    if nanos % 1_000 == 0 {
        return python_value::timedelta(nanos / 1_000).ok_or(ValueError::OutOfRange);
    }
    let days = nanos.div_euclid(NANOS_PER_DAY);
    let sign = if days < 0 { "+" } else { "" };
    let rest = clock(nanos.rem_euclid(NANOS_PER_DAY));
    Ok(format!("{days} days {sign}{rest}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, Decimal128Array, DictionaryArray, Float32Array, Int64Array, ListArray,
        StringArray, StructArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
    };
    use datafusion::arrow::datatypes::Field;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn only(array: impl Array) -> Cell {
        cell(&array, 0).unwrap()
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn numbers_keep_their_exact_value() {
        assert_eq!(
            only(UInt64Array::from(vec![u64::MAX])),
            Cell::Json(json!(u64::MAX))
        );
        assert_eq!(
            only(Float32Array::from(vec![0.1_f32])),
            Cell::Float(0.100_000_001_490_116_12)
        );
        let decimals = Decimal128Array::from(vec![1])
            .with_precision_and_scale(20, 8)
            .unwrap();
        assert_eq!(only(decimals), text("1E-8"));
    }

    #[test]
    fn moments_carry_the_offset_of_their_zone_on_that_day() {
        let summer = 1_593_565_323_000_000;
        let array = TimestampMicrosecondArray::from(vec![summer]);
        assert_eq!(only(array.clone()), text("2020-07-01 01:02:03"));
        let cases = [
            ("Europe/Berlin", "2020-07-01 03:02:03+02:00"),
            ("UTC", "2020-07-01 01:02:03+00:00"),
            ("-03:30", "2020-06-30 21:32:03-03:30"),
        ];
        for (zone, expected) in cases {
            assert_eq!(only(array.clone().with_timezone(zone)), text(expected));
        }
    }

    #[test]
    fn nanoseconds_show_only_where_there_are_some() {
        let array = TimestampNanosecondArray::from(vec![1_000, 1]);
        assert_eq!(cell(&array, 0).unwrap(), text("1970-01-01 00:00:00.000001"));
        assert_eq!(
            cell(&array, 1).unwrap(),
            text("1970-01-01 00:00:00.000000001")
        );
        assert_eq!(duration(-1).unwrap(), "-1 days +23:59:59.999999999");
        assert_eq!(duration(-1_000_000_000).unwrap(), "-1 day, 23:59:59");
    }

    #[test]
    fn a_year_that_python_does_not_have_is_an_error() {
        let array = TimestampMicrosecondArray::from(vec![253_402_300_800_000_000]);
        assert_eq!(
            cell(&array, 0).unwrap_err().to_string(),
            "date value out of range"
        );
    }

    #[test]
    fn nested_values_stay_nested() {
        let dictionary: DictionaryArray<Int64Type> = vec![Some("x"), None].into_iter().collect();
        assert_eq!(cell(&dictionary, 0).unwrap(), text("x"));
        assert_eq!(cell(&dictionary, 1).unwrap(), Cell::Null);
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), None]),
            Some(vec![]),
        ]);
        let structs = StructArray::from(vec![
            (
                Arc::new(Field::new("n", DataType::Int64, true)),
                Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef,
            ),
            (
                Arc::new(Field::new("l", lists.data_type().clone(), true)),
                Arc::new(lists) as ArrayRef,
            ),
            (
                Arc::new(Field::new("s", DataType::Utf8, true)),
                Arc::new(StringArray::from(vec![None, Some("y")])) as ArrayRef,
            ),
        ]);
        assert_eq!(
            only(structs),
            Cell::Object(vec![
                ("n".to_owned(), Cell::Int(1)),
                ("l".to_owned(), Cell::List(vec![Cell::Int(1), Cell::Null])),
                ("s".to_owned(), Cell::Null),
            ])
        );
    }
}
