//! Python's and pendulum's date and time objects, as templates use them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use chrono::{
    DateTime, Datelike, Days, Duration, FixedOffset, Months, NaiveDate, NaiveDateTime, NaiveTime,
    Offset, TimeZone, Timelike, Utc,
};
use chrono_tz::Tz;
use minijinja::value::{DynObject, Kwargs, Object, ObjectRepr, Tuple, Value, from_args};
use minijinja::{Error, ErrorKind, State};

use super::pendulum_format;

/// The time zone of a [`PyDateTime`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zone {
    /// No zone: Python's naive datetimes.
    Naive,
    Fixed(FixedOffset),
    Named(Tz),
}

impl Zone {
    /// A zone by its name, or by its offset as `+02:00`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("utc") || name == "Z" {
            return Some(Self::Named(Tz::UTC));
        }
        name.parse()
            .map(Self::Named)
            .ok()
            .or_else(|| name.parse().map(Self::Fixed).ok())
    }

    fn offset_at(self, naive_utc: NaiveDateTime) -> FixedOffset {
        match self {
            Self::Naive => Utc.fix(),
            Self::Fixed(offset) => offset,
            Self::Named(tz) => tz.offset_from_utc_datetime(&naive_utc).fix(),
        }
    }

    fn name(self, at: NaiveDateTime) -> String {
        match self {
            Self::Naive => String::new(),
            Self::Fixed(offset) => offset.to_string(),
            Self::Named(Tz::UTC) => "UTC".to_owned(),
            Self::Named(tz) => tz.offset_from_utc_datetime(&at).to_string(),
        }
    }
}

/// A datetime: Python's or pendulum's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PyDateTime {
    utc: NaiveDateTime,
    zone: Zone,
}

impl PyDateTime {
    /// From RFC 3339 text, as Airflow's APIs send it. UTC is UTC by name, any other offset a fixed one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(at) = DateTime::parse_from_rfc3339(text.trim()) {
            return Some(Self::at(at));
        }
        let text = text.trim().replacen(' ', "T", 1);
        if let Ok(at) = DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%z") {
            return Some(Self::at(at));
        }
        let naive = text.parse::<NaiveDateTime>().ok().or_else(|| {
            text.parse::<NaiveDate>()
                .ok()
                .map(|day| day.and_time(NaiveTime::MIN))
        })?;
        Some(Self {
            utc: naive,
            zone: Zone::Naive,
        })
    }

    fn at(at: DateTime<FixedOffset>) -> Self {
        let zone = match at.offset().local_minus_utc() {
            0 => Zone::Named(Tz::UTC),
            _ => Zone::Fixed(*at.offset()),
        };
        Self {
            utc: at.naive_utc(),
            zone,
        }
    }

    /// A moment, shown in a zone.
    #[must_use]
    pub fn new(utc: NaiveDateTime, zone: Zone) -> Self {
        Self { utc, zone }
    }

    /// A local time of a zone; of two (autumn) the first, of none (spring) the one an hour later.
    #[must_use]
    pub fn local(local: NaiveDateTime, zone: Zone) -> Self {
        let utc = match zone {
            Zone::Naive => local,
            Zone::Fixed(offset) => local - Duration::seconds(i64::from(offset.local_minus_utc())),
            Zone::Named(tz) => tz
                .from_local_datetime(&local)
                .earliest()
                .or_else(|| {
                    tz.from_local_datetime(&(local + Duration::hours(1)))
                        .earliest()
                })
                .map_or(local, |at| at.naive_utc()),
        };
        Self { utc, zone }
    }

    /// The moment, in UTC.
    #[must_use]
    pub fn utc(&self) -> NaiveDateTime {
        self.utc
    }

    /// Is it a datetime without a zone?
    #[must_use]
    pub fn is_naive(&self) -> bool {
        self.zone == Zone::Naive
    }

    pub(super) fn wall(&self) -> NaiveDateTime {
        self.utc + Duration::seconds(i64::from(self.offset().local_minus_utc()))
    }

    /// pendulum's `timezone_name`.
    pub(super) fn timezone_name(&self) -> String {
        match self.zone {
            Zone::Naive => String::new(),
            Zone::Fixed(offset) => offset.to_string(),
            Zone::Named(tz) => tz.name().to_owned(),
        }
    }

    /// Since 1970, in UTC.
    pub(super) fn timestamp_micros(&self) -> i64 {
        self.utc.and_utc().timestamp_micros()
    }

    pub(super) fn offset(&self) -> FixedOffset {
        self.zone.offset_at(self.utc)
    }

    fn with_wall(self, wall: NaiveDateTime) -> Self {
        Self::local(wall, self.zone)
    }

    /// `isoformat(sep)`.
    #[must_use]
    pub fn isoformat(&self, separator: &str) -> String {
        let wall = self.wall();
        let micros = match wall.nanosecond() / 1000 {
            0 => String::new(),
            micros => format!(".{micros:06}"),
        };
        let offset = if self.is_naive() {
            String::new()
        } else {
            self.offset().to_string()
        };
        format!(
            "{}{separator}{}{micros}{offset}",
            wall.format("%Y-%m-%d"),
            wall.format("%H:%M:%S")
        )
    }

    /// `strftime`.
    ///
    /// # Errors
    /// A directive that does not exist.
    pub fn strftime(&self, pattern: &str) -> Result<String, Error> {
        let (offset, name) = if self.is_naive() {
            (String::new(), String::new())
        } else {
            (
                self.offset().to_string().replace(':', ""),
                self.zone.name(self.utc),
            )
        };
        strftime(self.wall(), pattern, &offset, &name)
    }

    /// Adds a span of time.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        // Python adds to the wall clock, whatever the zone does in between.
        self.with_wall(self.wall() + span)
    }

    fn shifted(self, kwargs: &Kwargs, sign: i64) -> Result<Self, Error> {
        let unit = |name: &str| {
            kwargs
                .get::<Option<i64>>(name)
                .map(|n| n.unwrap_or(0) * sign)
        };
        let months = unit("years")? * 12 + unit("months")?;
        let days = unit("weeks")? * 7 + unit("days")?;
        let seconds = kwargs.get::<Option<f64>>("seconds")?.unwrap_or(0.0);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "microseconds of a span that people write"
        )]
        let micros = (seconds * 1e6) as i64 * sign + unit("microseconds")?;
        let time = Duration::hours(unit("hours")?)
            + Duration::minutes(unit("minutes")?)
            + Duration::microseconds(micros);
        kwargs.assert_all_used()?;
        let day = shift_months(self.wall().date(), months)
            .and_then(|day| day.checked_add_signed(Duration::try_days(days)?))
            .ok_or_else(|| invalid("the date is out of range"))?;
        let moved = self.with_wall(day.and_time(self.wall().time()));
        Ok(Self {
            utc: moved.utc + time,
            zone: self.zone,
        })
    }

    fn start_of(self, unit: &str) -> Result<Self, Error> {
        let wall = self.wall();
        let day = wall.date();
        let start = match unit {
            "second" => wall.with_nanosecond(0),
            "minute" => day.and_hms_opt(wall.hour(), wall.minute(), 0),
            "hour" => day.and_hms_opt(wall.hour(), 0, 0),
            "day" => day.and_hms_opt(0, 0, 0),
            "week" => (day - Days::new(u64::from(day.weekday().num_days_from_monday())))
                .and_hms_opt(0, 0, 0),
            "month" => day.with_day(1).and_then(|day| day.and_hms_opt(0, 0, 0)),
            "year" => {
                NaiveDate::from_ymd_opt(day.year(), 1, 1).and_then(|day| day.and_hms_opt(0, 0, 0))
            }
            other => {
                return Err(invalid(format!(
                    "Invalid unit {other:?} for start_of() or end_of()"
                )));
            }
        };
        start
            .map(|start| self.with_wall(start))
            .ok_or_else(|| invalid("the date is out of range"))
    }

    fn end_of(self, unit: &str) -> Result<Self, Error> {
        let start = self.start_of(unit)?.wall();
        let end = match unit {
            "second" => start + Duration::seconds(1),
            "minute" => start + Duration::minutes(1),
            "hour" => start + Duration::hours(1),
            "day" => start + Duration::days(1),
            "week" => start + Duration::days(7),
            "month" => start + Months::new(1),
            _ => start + Months::new(12),
        };
        Ok(self.with_wall(end - Duration::microseconds(1)))
    }

    fn replaced(self, args: &[Value]) -> Result<Self, Error> {
        let (kwargs,): (Kwargs,) = from_args(args)?;
        let wall = self.wall();
        let part = |name: &str, now: u32| kwargs.get::<Option<u32>>(name).map(|n| n.unwrap_or(now));
        let replaced = NaiveDate::from_ymd_opt(
            kwargs.get::<Option<i32>>("year")?.unwrap_or(wall.year()),
            part("month", wall.month())?,
            part("day", wall.day())?,
        )
        .and_then(|day| {
            day.and_hms_micro_opt(
                part("hour", wall.hour()).ok()?,
                part("minute", wall.minute()).ok()?,
                part("second", wall.second()).ok()?,
                part("microsecond", wall.nanosecond() / 1000).ok()?,
            )
        })
        .ok_or_else(|| invalid("day is out of range for month"))?;
        let zone = match kwargs.get::<Option<Value>>("tzinfo") {
            Ok(None) if kwargs.has("tzinfo") => Zone::Naive,
            Ok(None) => self.zone,
            Ok(Some(name)) => zone(&name)?,
            Err(error) => return Err(error),
        };
        kwargs.assert_all_used()?;
        Ok(Self::local(replaced, zone))
    }
}

fn zone(name: &Value) -> Result<Zone, Error> {
    if name.is_none() {
        return Ok(Zone::Naive);
    }
    let name = name.to_string();
    Zone::parse(&name).ok_or_else(|| invalid(format!("No time zone found with key {name}")))
}

fn shift_months(day: NaiveDate, months: i64) -> Option<NaiveDate> {
    let count = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 {
        day.checked_sub_months(count)
    } else {
        day.checked_add_months(count)
    }
}

fn invalid(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

/// Python's `strftime` over chrono's, which differs in `%f`, `%z` and `%Z`.
fn strftime(wall: NaiveDateTime, pattern: &str, offset: &str, zone: &str) -> Result<String, Error> {
    let mut translated = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            translated.push(c);
            continue;
        }
        match characters.next() {
            Some('f') => translated.push_str("%6f"),
            Some('z') => translated.push_str(offset),
            Some('Z') => translated.push_str(zone),
            Some(other) => translated.extend(['%', other]),
            None => translated.push_str("%%"),
        }
    }
    let mut text = String::new();
    fmt::Write::write_fmt(&mut text, format_args!("{}", wall.format(&translated)))
        .map_err(|_| invalid(format!("Invalid format string {pattern:?}")))?;
    Ok(text)
}

impl fmt::Display for PyDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.isoformat(" "))
    }
}

impl Object for PyDateTime {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        other
            .downcast_ref::<Self>()
            .map(|other| self.utc.cmp(&other.utc))
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let wall = self.wall();
        Some(match key.as_str()? {
            "year" => wall.year().into(),
            "month" => wall.month().into(),
            "day" => wall.day().into(),
            "hour" => wall.hour().into(),
            "minute" => wall.minute().into(),
            "second" => wall.second().into(),
            "microsecond" => (wall.nanosecond() / 1000).into(),
            "day_of_week" => wall.weekday().num_days_from_monday().into(),
            "day_of_year" => wall.ordinal().into(),
            "week_of_year" => wall.iso_week().week().into(),
            "days_in_month" => wall.num_days_in_month().into(),
            "quarter" => wall.quarter().into(),
            "int_timestamp" => self.utc.and_utc().timestamp().into(),
            "timezone_name" | "tzinfo" | "timezone" | "tz" if self.is_naive() => Value::from(()),
            "timezone_name" | "tzinfo" | "timezone" | "tz" => self.timezone_name().into(),
            "offset" => self.offset().local_minus_utc().into(),
            _ => return None,
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        let wall = self.wall();
        let object = Value::from_object::<Self>;
        let text = |pattern: &str| self.strftime(pattern).map(Value::from);
        Ok(match method {
            "strftime" | "__format__" => text(from_args::<(&str,)>(args)?.0)?,
            "isoformat" => {
                let (separator,): (Option<&str>,) = from_args(args)?;
                self.isoformat(separator.unwrap_or("T")).into()
            }
            "format" => pendulum_format::format(self, from_args::<(&str,)>(args)?.0)?.into(),
            "to_date_string" => text("%Y-%m-%d")?,
            "to_time_string" => text("%H:%M:%S")?,
            "to_datetime_string" => text("%Y-%m-%d %H:%M:%S")?,
            "to_day_datetime_string" => text("%a, %b %-d, %Y %-I:%M %p")?,
            "to_formatted_date_string" => text("%b %d, %Y")?,
            "to_atom_string" | "to_w3c_string" | "to_rss_string_iso" => Value::from(format!(
                "{}{}",
                wall.format("%Y-%m-%dT%H:%M:%S"),
                self.offset()
            )),
            "to_iso8601_string" => Value::from(match self.zone {
                Zone::Named(Tz::UTC) => self.isoformat("T").replace("+00:00", "Z"),
                _ => self.isoformat("T"),
            }),
            "to_rfc3339_string" => self.isoformat("T").into(),
            "to_rfc2822_string" | "to_rss_string" | "to_rfc822_string" => {
                text("%a, %d %b %Y %H:%M:%S %z")?
            }
            "date" => object_date(wall.date()),
            "naive" => object(Self {
                utc: wall,
                zone: Zone::Naive,
            }),
            "add" | "subtract" => {
                let (kwargs,): (Kwargs,) = from_args(args)?;
                object(self.shifted(&kwargs, if method == "add" { 1 } else { -1 })?)
            }
            "in_timezone" | "in_tz" | "astimezone" => object(Self {
                utc: self.utc,
                zone: zone(&from_args::<(Value,)>(args)?.0)?,
            }),
            "start_of" => object(self.start_of(from_args::<(&str,)>(args)?.0)?),
            "end_of" => object(self.end_of(from_args::<(&str,)>(args)?.0)?),
            "replace" | "set" => object(self.replaced(args)?),
            "next" | "previous" => {
                let day = from_args::<(Option<u32>,)>(args)?.0;
                let day = day.unwrap_or(wall.weekday().num_days_from_monday());
                let mut at = wall.date();
                loop {
                    at = if method == "next" {
                        at + Days::new(1)
                    } else {
                        at - Days::new(1)
                    };
                    if at.weekday().num_days_from_monday() == day % 7 {
                        break object(self.with_wall(at.and_time(NaiveTime::MIN)));
                    }
                }
            }
            "timestamp" => {
                #[allow(clippy::cast_precision_loss, reason = "Python gives a float here too")]
                let seconds = self.utc.and_utc().timestamp_micros() as f64 / 1e6;
                seconds.into()
            }
            "weekday" => wall.weekday().num_days_from_monday().into(),
            "isoweekday" => wall.weekday().number_from_monday().into(),
            "isocalendar" => Value::from(Tuple::from(vec![
                wall.iso_week().year().into(),
                wall.iso_week().week().into(),
                wall.weekday().number_from_monday().into(),
            ])),
            "is_leap_year" => wall.date().leap_year().into(),
            "diff" => {
                let (other,): (Value,) = from_args(args)?;
                let other = other
                    .downcast_object_ref::<Self>()
                    .ok_or_else(|| invalid("diff() needs a datetime"))?;
                Value::from_object(PyTimeDelta(other.utc - self.utc))
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        })
    }
}

/// A date without time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PyDate(pub NaiveDate);

fn object_date(day: NaiveDate) -> Value {
    Value::from_object(PyDate(day))
}

impl Object for PyDate {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        other
            .downcast_ref::<Self>()
            .map(|other| self.0.cmp(&other.0))
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Value::from_object(self.midnight())
            .get_item(key)
            .ok()
            .filter(|value| !value.is_undefined())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "isoformat" => Ok(self.0.to_string().into()),
            "add" | "subtract" | "replace" | "start_of" | "end_of" | "set" => {
                let moved = Arc::new(self.midnight()).call_method(state, method, args)?;
                Ok(moved
                    .downcast_object_ref::<PyDateTime>()
                    .map_or(moved.clone(), |at| object_date(at.wall().date())))
            }
            _ => Arc::new(self.midnight()).call_method(state, method, args),
        }
    }
}

impl PyDate {
    fn midnight(&self) -> PyDateTime {
        PyDateTime {
            utc: self.0.and_time(NaiveTime::MIN),
            zone: Zone::Naive,
        }
    }

    /// `strftime`.
    ///
    /// # Errors
    /// A directive that does not exist.
    pub fn strftime(&self, pattern: &str) -> Result<String, Error> {
        self.midnight().strftime(pattern)
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PyTimeDelta(pub Duration);

impl PyTimeDelta {
    /// `timedelta(days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0)`.
    ///
    /// # Errors
    /// An argument that is not a number, or one that does not exist.
    pub fn from_arguments(args: &[Value]) -> Result<Self, Error> {
        let (days, seconds, kwargs): (Option<f64>, Option<f64>, Kwargs) = from_args(args)?;
        let mut micros = days.unwrap_or(0.0) * 86_400e6 + seconds.unwrap_or(0.0) * 1e6;
        for (name, factor) in [
            ("weeks", 604_800e6),
            ("days", 86_400e6),
            ("hours", 3_600e6),
            ("minutes", 60e6),
            ("seconds", 1e6),
            ("milliseconds", 1e3),
            ("microseconds", 1.0),
        ] {
            micros += kwargs.get::<Option<f64>>(name)?.unwrap_or(0.0) * factor;
        }
        kwargs.assert_all_used()?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "beyond the range it saturates, and chrono refuses it"
        )]
        let micros = micros.round() as i64;
        Ok(Self(Duration::microseconds(micros)))
    }

    fn parts(self) -> (i64, i64, i64) {
        let micros = self.0.num_microseconds().unwrap_or(i64::MAX);
        let (days, rest) = (
            micros.div_euclid(86_400_000_000),
            micros.rem_euclid(86_400_000_000),
        );
        (days, rest / 1_000_000, rest % 1_000_000)
    }
}

impl fmt::Display for PyTimeDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds, micros) = self.parts();
        if days != 0 {
            write!(f, "{days} day{}, ", if days.abs() == 1 { "" } else { "s" })?;
        }
        write!(
            f,
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )?;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        Ok(())
    }
}

impl Object for PyTimeDelta {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.0.is_zero()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        other
            .downcast_ref::<Self>()
            .map(|other| self.0.cmp(&other.0))
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (days, seconds, micros) = self.parts();
        Some(match key.as_str()? {
            "days" => days.into(),
            "seconds" => seconds.into(),
            "microseconds" => micros.into(),
            _ => return None,
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        #[allow(clippy::cast_precision_loss, reason = "Python gives a float here too")]
        let seconds = self.0.num_microseconds().unwrap_or(i64::MAX) as f64 / 1e6;
        let whole = |unit: f64| {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "whole units of a span that fits i64 microseconds"
            )]
            Value::from((seconds / unit).trunc() as i64)
        };
        let () = from_args(args)?;
        Ok(match method {
            "total_seconds" => seconds.into(),
            "total_minutes" => (seconds / 60.0).into(),
            "total_hours" => (seconds / 3600.0).into(),
            "total_days" => (seconds / 86_400.0).into(),
            "in_seconds" => whole(1.0),
            "in_minutes" => whole(60.0),
            "in_hours" => whole(3600.0),
            "in_days" => whole(86_400.0),
            "in_weeks" => whole(604_800.0),
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        })
    }
}

/// `left + right` or `left - right` where one side is a date, a time or a span; `None` for anything else.
#[must_use]
pub fn add_or_subtract(left: &Value, right: &Value, subtract: bool) -> Option<Value> {
    let signed = |span: Duration| if subtract { -span } else { span };
    let (l, r) = (left, right);
    if let (Some(at), Some(span)) = (
        l.downcast_object_ref::<PyDateTime>(),
        r.downcast_object_ref::<PyTimeDelta>(),
    ) {
        return Some(Value::from_object(at.plus(signed(span.0))));
    }
    if let (Some(day), Some(span)) = (
        l.downcast_object_ref::<PyDate>(),
        r.downcast_object_ref::<PyTimeDelta>(),
    ) {
        return Some(object_date(
            day.0 + Duration::days(signed(span.0).num_days()),
        ));
    }
    if let (Some(a), Some(b)) = (
        l.downcast_object_ref::<PyTimeDelta>(),
        r.downcast_object_ref::<PyTimeDelta>(),
    ) {
        return Some(Value::from_object(PyTimeDelta(a.0 + signed(b.0))));
    }
    if subtract {
        if let (Some(a), Some(b)) = (
            l.downcast_object_ref::<PyDateTime>(),
            r.downcast_object_ref::<PyDateTime>(),
        ) {
            return Some(Value::from_object(PyTimeDelta(a.utc - b.utc)));
        }
        if let (Some(a), Some(b)) = (
            l.downcast_object_ref::<PyDate>(),
            r.downcast_object_ref::<PyDate>(),
        ) {
            return Some(Value::from_object(PyTimeDelta(a.0 - b.0)));
        }
        return None;
    }
    if l.downcast_object_ref::<PyTimeDelta>().is_some()
        && (r.downcast_object_ref::<PyDateTime>().is_some()
            || r.downcast_object_ref::<PyDate>().is_some())
    {
        return add_or_subtract(r, l, false);
    }
    None
}
