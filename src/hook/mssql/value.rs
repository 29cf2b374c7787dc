//! Values as SQL Server sends them, and as pymssql would hand them to Python.

use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use tiberius::time::{Date, DateTime, DateTime2, SmallDateTime, Time};
use tiberius::{ColumnData, ColumnType};

use crate::hook::{Cell, python_value};

/// A value that can't be shown exactly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The value of a column of type `ty`.
pub(super) fn cell(ty: ColumnType, data: ColumnData<'_>) -> Result<Cell, Unreadable> {
    let cell = match data {
        ColumnData::U8(value) => value.map(|value| Cell::Int(value.into())),
        ColumnData::I16(value) => value.map(|value| Cell::Int(value.into())),
        ColumnData::I32(value) => value.map(|value| Cell::Int(value.into())),
        ColumnData::I64(value) => value.map(Cell::Int),
        ColumnData::F32(value) => value.map(|value| Cell::Float(value.into())),
        ColumnData::F64(Some(value)) if matches!(ty, ColumnType::Money | ColumnType::Money4) => {
            Some(Cell::Text(money(value)?))
        }
        ColumnData::F64(value) => value.map(Cell::Float),
        ColumnData::Bit(value) => value.map(Cell::Bool),
        ColumnData::String(value) => value.map(|text| Cell::Text(text.into_owned())),
        ColumnData::Guid(value) => value.map(|id| Cell::Text(id.to_string())),
        ColumnData::Binary(value) => value.map(|bytes| Cell::Bytes(bytes.into_owned())),
        ColumnData::Numeric(value) => match value {
            None => None,
            Some(number) => Some(Cell::Text(
                python_value::decimal(&scaled(number.value(), number.scale())).ok_or(Unreadable)?,
            )),
        },
        ColumnData::Xml(value) => value.map(|xml| Cell::Text(xml.as_ref().as_ref().to_owned())),
        ColumnData::DateTime(value) => moment(value, datetime)?,
        ColumnData::SmallDateTime(value) => moment(value, small_datetime)?,
        ColumnData::Time(value) => moment(value, time)?,
        ColumnData::Date(value) => moment(value, |value| Some(date(value)?.to_string()))?,
        ColumnData::DateTime2(value) => moment(value, datetime2)?,
        ColumnData::DateTimeOffset(value) => moment(value, |value| {
            offset_datetime(value.datetime2(), value.offset())
        })?,
    };
    Ok(cell.unwrap_or(Cell::Null))
}

fn moment<T>(
    value: Option<T>,
    text: impl FnOnce(T) -> Option<String>,
) -> Result<Option<Cell>, Unreadable> {
    value
        .map(|value| text(value).map(Cell::Text).ok_or(Unreadable))
        .transpose()
}

/// `str(Decimal)` of a number and how many of its digits stand behind the point.
fn scaled(value: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let dot = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{dot}{fraction}")
}

/// The driver makes a float of money. Up to here the floats are close enough to each other to tell all four decimals.
fn money(value: f64) -> Result<String, Unreadable> {
    const EXACT: f64 = 549_755_813_888.0;
    if value.abs() > EXACT {
        return Err(Unreadable);
    }
    Ok(format!("{value:.4}"))
}

fn date(value: Date) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(1, 1, 1)?.checked_add_days(Days::new(value.days().into()))
}

/// Since midnight, in nanoseconds.
fn nanoseconds(value: Time) -> Option<i64> {
    let unit = 10_u64.checked_pow(9_u32.checked_sub(value.scale().into())?)?;
    i64::try_from(value.increments().checked_mul(unit)?).ok()
}

fn since_midnight(value: Time) -> Option<NaiveTime> {
    let nanoseconds = nanoseconds(value)?;
    let seconds = u32::try_from(nanoseconds / 1_000_000_000).ok()?;
    let rest = u32::try_from(nanoseconds % 1_000_000_000).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest)
}

/// Six digits as in Python, or seven where the last is not zero, which Python would cut off.
fn clock(time: NaiveTime) -> String {
    use chrono::Timelike as _;
    let nanoseconds = time.nanosecond();
    let seconds = time.format("%H:%M:%S");
    if nanoseconds == 0 {
        seconds.to_string()
    } else if nanoseconds.is_multiple_of(1000) {
        format!("{seconds}.{:06}", nanoseconds / 1000)
    } else {
        format!("{seconds}.{:07}", nanoseconds / 100)
    }
}

fn time(value: Time) -> Option<String> {
    Some(clock(since_midnight(value)?))
}

fn joined(moment: NaiveDateTime) -> String {
    format!("{} {}", moment.date(), clock(moment.time()))
}

fn datetime2(value: DateTime2) -> Option<String> {
    Some(joined(
        date(value.date())?.and_time(since_midnight(value.time())?),
    ))
}

/// What is sent is the moment in UTC, and the minutes by which the clock of the value goes before it.
fn offset_datetime(utc: DateTime2, minutes: i16) -> Option<String> {
    let utc = date(utc.date())?.and_time(since_midnight(utc.time())?);
    let local = utc.checked_add_signed(TimeDelta::minutes(minutes.into()))?;
    let sign = if minutes < 0 { '-' } else { '+' };
    let offset = minutes.unsigned_abs();
    Some(format!(
        "{}{sign}{:02}:{:02}",
        joined(local),
        offset / 60,
        offset % 60
    ))
}

fn from_1900(days: i32, time: TimeDelta) -> Option<String> {
    let midnight = NaiveDate::from_ymd_opt(1900, 1, 1)?.and_time(NaiveTime::MIN);
    let moment = midnight
        .checked_add_signed(TimeDelta::days(days.into()))?
        .checked_add_signed(time)?;
    Some(joined(moment))
}

/// Days and three-hundredths of a second, which are shown as milliseconds.
fn datetime(value: DateTime) -> Option<String> {
    let ticks = i64::from(value.seconds_fragments());
    let milliseconds = ticks / 300 * 1000 + (ticks % 300 * 1000 + 150) / 300;
    from_1900(value.days(), TimeDelta::milliseconds(milliseconds))
}

fn small_datetime(value: SmallDateTime) -> Option<String> {
    from_1900(
        value.days().into(),
        TimeDelta::minutes(value.seconds_fragments().into()),
    )
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn decimals_keep_their_scale() {
        assert_eq!(scaled(-15, 1), "-1.5");
        assert_eq!(scaled(1, 10), "0.0000000001");
        assert_eq!(scaled(0, 2), "0.00");
        assert_eq!(
            scaled(i128::MIN + 1, 0),
            "-170141183460469231731687303715884105727"
        );
    }

    #[test]
    fn money_is_exact_or_refused() {
        assert_eq!(money(-214_748.364_8).unwrap(), "-214748.3648");
        assert_eq!(money(499_999_999_999.999_9).unwrap(), "499999999999.9999");
        assert_eq!(money(922_337_203_685_477.6), Err(Unreadable));
    }

    #[test]
    fn a_seventh_digit_of_a_second_is_shown() {
        let half = Time::new(1_234_567, 7);
        assert_eq!(time(half).unwrap(), "00:00:00.1234567");
        assert_eq!(time(Time::new(5, 1)).unwrap(), "00:00:00.500000");
    }
}
