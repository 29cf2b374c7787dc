//! Frames of the supervisor protocol: a big-endian `u32` length, then one MessagePack array.
//!
//! A task process sends [`RequestFrame`]s, its supervisor answers each with a [`ReplyFrame`] of the same id, and the
//! supervisor's first frame (id 0, unprompted) carries the `StartupDetails`. Messages are `serde_json::Value`s on
//! this side of the codec; MessagePack timestamps (extension -1) become RFC 3339 text on the way in.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Number, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest frame either side of Updraft accepts, in bytes. The format itself would allow 4 GiB.
pub const MAX_FRAME_BYTES: u32 = 256 * 1024 * 1024;

/// How deep lists and maps may be nested in one frame.
const MAX_DEPTH: usize = 200;

/// The extension type that MessagePack reserves for timestamps.
const TIMESTAMP_EXTENSION: i8 = -1;

/// Why a frame could not be read or written. Every one of them ends the conversation: the stream is out of step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The socket failed.
    #[error("the socket between task and supervisor failed: {0}")]
    Io(#[from] std::io::Error),
    /// The other side closed the connection in the middle of a frame.
    #[error(
        "the other side closed the connection in the middle of a frame ({received} of {expected} bytes)"
    )]
    Truncated {
        /// Bytes that arrived.
        received: usize,
        /// Bytes that were announced.
        expected: usize,
    },
    /// A frame larger than the limit was announced or would have to be sent.
    #[error("a frame of {length} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        /// Bytes announced.
        length: usize,
        /// Bytes allowed.
        limit: u32,
    },
    /// The bytes are not what the protocol says a frame is.
    #[error("not a frame of the supervisor protocol: {0}")]
    Malformed(String),
    /// The message holds something that MessagePack cannot carry.
    #[error("this value cannot be sent over the supervisor protocol: {0}")]
    Unencodable(String),
}

/// What a task process sends: a request, or the message that ends it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFrame {
    /// Chosen by the task; the reply carries it again.
    pub id: i64,
    /// A message with its `type`.
    pub body: Value,
    /// W3C trace context (`traceparent`, `tracestate`) of the span the request belongs to.
    pub context_carrier: Option<BTreeMap<String, String>>,
}

/// What a supervisor sends. `body` and `error` are both null for "done, nothing to say".
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyFrame {
    /// Id of the request this answers; 0 for `StartupDetails`.
    pub id: i64,
    /// A message with its `type`, or null. May be an `ErrorResponse` too.
    pub body: Value,
    /// An `ErrorResponse`, or null.
    pub error: Value,
}

impl RequestFrame {
    /// Reads the next request; `None` when the task closed its side between two frames.
    ///
    /// # Errors
    /// See [`FrameError`]. Not safe to cancel: a frame read in part is lost.
    pub async fn read<R>(reader: &mut R, limit: u32) -> Result<Option<Self>, FrameError>
    where
        R: AsyncRead + Unpin,
    {
        let Some(mut items) = read_array(reader, limit).await? else {
            return Ok(None);
        };
        if !(2..=3).contains(&items.len()) {
            return Err(FrameError::Malformed(format!(
                "a request has 2 or 3 elements, this one has {}",
                items.len()
            )));
        }
        let carrier = if items.len() == 3 { items.pop() } else { None };
        let body = items.pop().unwrap_or_default();
        let id = frame_id(items.pop())?;
        let context_carrier = match carrier {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(
                map.into_iter()
                    .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
                    .collect(),
            ),
            Some(other) => {
                return Err(FrameError::Malformed(format!(
                    "the trace context is not a map: {}",
                    kind(&other)
                )));
            }
        };
        Ok(Some(Self {
            id,
            body,
            context_carrier,
        }))
    }

    /// Writes this request and flushes.
    ///
    /// # Errors
    /// See [`FrameError`]; after `Unencodable` and `TooLarge` nothing has been written.
    pub async fn write<W>(&self, writer: &mut W) -> Result<(), FrameError>
    where
        W: AsyncWrite + Unpin,
    {
        let carrier = match &self.context_carrier {
            None => rmpv::Value::Nil,
            Some(carrier) => rmpv::Value::Map(
                carrier
                    .iter()
                    .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                    .collect(),
            ),
        };
        write_array(
            writer,
            vec![self.id.into(), to_msgpack(&self.body)?, carrier],
        )
        .await
    }
}

impl ReplyFrame {
    /// Reads the next reply; `None` when the supervisor closed its side between two frames.
    ///
    /// # Errors
    /// See [`FrameError`]. Not safe to cancel: a frame read in part is lost.
    pub async fn read<R>(reader: &mut R, limit: u32) -> Result<Option<Self>, FrameError>
    where
        R: AsyncRead + Unpin,
    {
        let Some(mut items) = read_array(reader, limit).await? else {
            return Ok(None);
        };
        if items.len() != 3 {
            return Err(FrameError::Malformed(format!(
                "a reply has 3 elements, this one has {}",
                items.len()
            )));
        }
        let error = items.pop().unwrap_or_default();
        let body = items.pop().unwrap_or_default();
        Ok(Some(Self {
            id: frame_id(items.pop())?,
            body,
            error,
        }))
    }

    /// Writes this reply and flushes.
    ///
    /// # Errors
    /// See [`FrameError`]; after `Unencodable` and `TooLarge` nothing has been written.
    pub async fn write<W>(&self, writer: &mut W) -> Result<(), FrameError>
    where
        W: AsyncWrite + Unpin,
    {
        write_array(
            writer,
            vec![
                self.id.into(),
                to_msgpack(&self.body)?,
                to_msgpack(&self.error)?,
            ],
        )
        .await
    }
}

/// Writes `StartupDetails` as frame 0. Its datetimes travel as MessagePack timestamps, as runtimes in other languages
/// expect them.
///
/// # Errors
/// See [`FrameError`].
pub async fn write_startup<W>(
    writer: &mut W,
    details: &super::supervisor::StartupDetails,
) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    let mut body = to_msgpack(&details.to_body())?;
    datetimes_to_timestamps(&mut body, &["start_date"]);
    if let Some(context) = field(&mut body, "ti_context") {
        datetimes_to_timestamps(context, &["start_date"]);
        if let Some(dag_run) = field(context, "dag_run") {
            datetimes_to_timestamps(
                dag_run,
                &[
                    "logical_date",
                    "data_interval_start",
                    "data_interval_end",
                    "run_after",
                    "start_date",
                    "end_date",
                    "partition_date",
                ],
            );
        }
    }
    write_array(writer, vec![0.into(), body, rmpv::Value::Nil]).await
}

fn field<'a>(value: &'a mut rmpv::Value, name: &str) -> Option<&'a mut rmpv::Value> {
    match value {
        rmpv::Value::Map(entries) => entries
            .iter_mut()
            .find(|(key, _)| key.as_str() == Some(name))
            .map(|(_, value)| value),
        _ => None,
    }
}

fn datetimes_to_timestamps(value: &mut rmpv::Value, names: &[&str]) {
    for name in names {
        let Some(slot) = field(value, name) else {
            continue;
        };
        if let Some(datetime) = slot
            .as_str()
            .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
        {
            *slot = rmpv::Value::Ext(TIMESTAMP_EXTENSION, timestamp_bytes(datetime.to_utc()));
        }
    }
}

/// The shortest of MessagePack's three timestamp forms.
fn timestamp_bytes(datetime: DateTime<Utc>) -> Vec<u8> {
    let (seconds, nanos) = (datetime.timestamp(), datetime.timestamp_subsec_nanos());
    match u64::try_from(seconds) {
        Ok(seconds) if nanos == 0 && u32::try_from(seconds).is_ok() => {
            (seconds as u32).to_be_bytes().to_vec()
        }
        Ok(seconds) if seconds >> 34 == 0 => {
            ((u64::from(nanos) << 34) | seconds).to_be_bytes().to_vec()
        }
        _ => [
            nanos.to_be_bytes().as_slice(),
            seconds.to_be_bytes().as_slice(),
        ]
        .concat(),
    }
}

fn timestamp_text(bytes: &[u8]) -> Option<String> {
    let (seconds, nanos) = match bytes.len() {
        4 => (i64::from(u32::from_be_bytes(bytes.try_into().ok()?)), 0),
        8 => {
            let packed = u64::from_be_bytes(bytes.try_into().ok()?);
            (
                i64::try_from(packed & 0x3_ffff_ffff).ok()?,
                u32::try_from(packed >> 34).ok()?,
            )
        }
        12 => {
            let (nanos, seconds) = bytes.split_at_checked(4)?;
            (
                i64::from_be_bytes(seconds.try_into().ok()?),
                u32::from_be_bytes(nanos.try_into().ok()?),
            )
        }
        _ => return None,
    };
    let datetime = DateTime::<Utc>::from_timestamp(seconds, nanos)?;
    // pydantic's form: no fraction for whole seconds, microseconds otherwise.
    let format = if nanos == 0 {
        SecondsFormat::Secs
    } else {
        SecondsFormat::Micros
    };
    Some(datetime.to_rfc3339_opts(format, true))
}

/// Turns a JSON value into a MessagePack one.
///
/// # Errors
/// [`FrameError::Unencodable`] for integers beyond 64 bits and numbers beyond a double.
pub fn to_msgpack(value: &Value) -> Result<rmpv::Value, FrameError> {
    Ok(match value {
        Value::Null => rmpv::Value::Nil,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number_to_msgpack(number)?,
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            rmpv::Value::Array(items.iter().map(to_msgpack).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => rmpv::Value::Map(
            map.iter()
                .map(|(key, value)| Ok((key.as_str().into(), to_msgpack(value)?)))
                .collect::<Result<_, FrameError>>()?,
        ),
    })
}

fn number_to_msgpack(number: &Number) -> Result<rmpv::Value, FrameError> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer.into());
    }
    if let Some(integer) = number.as_u64() {
        return Ok(integer.into());
    }
    let text = number.to_string();
    if !text.contains(['.', 'e', 'E']) {
        return Err(FrameError::Unencodable(format!(
            "the integer {text} needs more than 64 bits"
        )));
    }
    match number.as_f64() {
        Some(float) if float.is_finite() => Ok(float.into()),
        _ => Err(FrameError::Unencodable(format!(
            "the number {text} is out of range"
        ))),
    }
}

/// Turns a MessagePack value into a JSON one; timestamps become RFC 3339 text.
///
/// # Errors
/// [`FrameError::Malformed`] for what JSON has no word for: binary data, other extensions, NaN and infinities, text
/// that is not UTF-8, keys that are not text.
pub fn from_msgpack(value: rmpv::Value) -> Result<Value, FrameError> {
    Ok(match value {
        rmpv::Value::Nil => Value::Null,
        rmpv::Value::Boolean(flag) => Value::Bool(flag),
        rmpv::Value::Integer(integer) => match (integer.as_i64(), integer.as_u64()) {
            (Some(signed), _) => signed.into(),
            (None, Some(unsigned)) => unsigned.into(),
            (None, None) => return Err(FrameError::Malformed("an integer out of range".into())),
        },
        rmpv::Value::F32(float) => finite(f64::from(float))?,
        rmpv::Value::F64(float) => finite(float)?,
        rmpv::Value::String(text) => Value::String(
            text.into_str()
                .ok_or_else(|| FrameError::Malformed("a text that is not UTF-8".into()))?,
        ),
        rmpv::Value::Array(items) => Value::Array(
            items
                .into_iter()
                .map(from_msgpack)
                .collect::<Result<_, _>>()?,
        ),
        rmpv::Value::Map(entries) => {
            let mut map = Map::with_capacity(entries.len());
            for (key, value) in entries {
                let Value::String(key) = from_msgpack(key)? else {
                    return Err(FrameError::Malformed("a map key that is not text".into()));
                };
                map.insert(key, from_msgpack(value)?);
            }
            Value::Object(map)
        }
        rmpv::Value::Ext(TIMESTAMP_EXTENSION, bytes) => Value::String(
            timestamp_text(&bytes)
                .ok_or_else(|| FrameError::Malformed("a timestamp of an unknown form".into()))?,
        ),
        rmpv::Value::Ext(extension, _) => {
            return Err(FrameError::Malformed(format!(
                "an unknown MessagePack extension ({extension})"
            )));
        }
        rmpv::Value::Binary(_) => return Err(FrameError::Malformed("binary data".into())),
    })
}

fn finite(float: f64) -> Result<Value, FrameError> {
    Number::from_f64(float)
        .map(Value::Number)
        .ok_or_else(|| FrameError::Malformed(format!("{float} is not a JSON number")))
}

fn frame_id(value: Option<Value>) -> Result<i64, FrameError> {
    value
        .as_ref()
        .and_then(Value::as_i64)
        .ok_or_else(|| FrameError::Malformed("the first element is not an integer id".into()))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

async fn read_array<R>(reader: &mut R, limit: u32) -> Result<Option<Vec<Value>>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut head = Vec::with_capacity(4);
    reader.take(4).read_to_end(&mut head).await?;
    if head.is_empty() {
        return Ok(None);
    }
    let Ok(prefix) = <[u8; 4]>::try_from(head.as_slice()) else {
        return Err(FrameError::Truncated {
            received: head.len(),
            expected: 4,
        });
    };
    let length = u32::from_be_bytes(prefix);
    let expected = length as usize;
    if length > limit {
        return Err(FrameError::TooLarge {
            length: expected,
            limit,
        });
    }
    // Grows with what arrives: a length alone must not make this side allocate.
    let mut payload = Vec::with_capacity(expected.min(64 * 1024));
    reader
        .take(u64::from(length))
        .read_to_end(&mut payload)
        .await?;
    if payload.len() < expected {
        return Err(FrameError::Truncated {
            received: payload.len(),
            expected,
        });
    }
    let mut rest = payload.as_slice();
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH)
        .map_err(|error| FrameError::Malformed(format!("not MessagePack ({error})")))?;
    if !rest.is_empty() {
        return Err(FrameError::Malformed(format!(
            "{} bytes after the end of the message",
            rest.len()
        )));
    }
    match from_msgpack(value)? {
        Value::Array(items) => Ok(Some(items)),
        other => Err(FrameError::Malformed(format!(
            "expected a list, got {}",
            kind(&other)
        ))),
    }
}

async fn write_array<W>(writer: &mut W, items: Vec<rmpv::Value>) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    let mut frame = vec![0; 4];
    rmpv::encode::write_value(&mut frame, &rmpv::Value::Array(items))
        .map_err(|error| FrameError::Unencodable(error.to_string()))?;
    let length = frame.len().saturating_sub(4);
    let prefix = u32::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_FRAME_BYTES)
        .ok_or(FrameError::TooLarge {
            length,
            limit: MAX_FRAME_BYTES,
        })?;
    if let Some(head) = frame.first_chunk_mut::<4>() {
        *head = prefix.to_be_bytes();
    }
    writer.write_all(&frame).await?;
    writer.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    async fn request_through_the_wire(frame: &RequestFrame) -> RequestFrame {
        let mut bytes = Vec::new();
        frame.write(&mut bytes).await.unwrap();
        RequestFrame::read(&mut bytes.as_slice(), MAX_FRAME_BYTES)
            .await
            .unwrap()
            .unwrap()
    }

    fn framed(value: &rmpv::Value) -> Vec<u8> {
        let mut payload = Vec::new();
        rmpv::encode::write_value(&mut payload, value).unwrap();
        [
            &u32::try_from(payload.len()).unwrap().to_be_bytes(),
            payload.as_slice(),
        ]
        .concat()
    }

    #[tokio::test]
    async fn a_request_comes_back_as_it_was_sent() {
        let frame = RequestFrame {
            id: 7,
            body: json!({"type": "SetXCom", "value": [1, -2, 1.5, u64::MAX, null, true, "ä", {"a": {}}]}),
            context_carrier: Some([("traceparent".to_owned(), "00-1-2-01".to_owned())].into()),
        };
        assert_eq!(request_through_the_wire(&frame).await, frame);
    }

    #[tokio::test]
    async fn the_trace_context_may_be_left_out() {
        let bytes = framed(&rmpv::Value::Array(vec![
            1.into(),
            rmpv::Value::Map(vec![]),
        ]));
        let frame = RequestFrame::read(&mut bytes.as_slice(), MAX_FRAME_BYTES)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            frame,
            RequestFrame {
                id: 1,
                body: json!({}),
                context_carrier: None
            }
        );
    }

    #[tokio::test]
    async fn a_closed_stream_between_frames_is_the_end_and_not_an_error() {
        assert!(
            RequestFrame::read(&mut [].as_slice(), MAX_FRAME_BYTES)
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_stream_closed_inside_a_frame_is_an_error() {
        for bytes in [vec![0, 0], vec![0, 0, 0, 9, 0x93]] {
            let error = RequestFrame::read(&mut bytes.as_slice(), MAX_FRAME_BYTES)
                .await
                .unwrap_err();
            assert!(matches!(error, FrameError::Truncated { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn a_frame_above_the_limit_is_refused_before_it_is_read() {
        let error = RequestFrame::read(&mut [0, 0, 1, 0].as_slice(), 255)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a frame of 256 bytes is larger than the limit of 255 bytes"
        );
    }

    #[tokio::test]
    async fn garbage_is_an_error() {
        let cases = [
            framed(&rmpv::Value::Nil),
            framed(&rmpv::Value::Array(vec![])),
            framed(&rmpv::Value::Array(vec!["a".into(), rmpv::Value::Nil])),
            framed(&rmpv::Value::Array(vec![
                1.into(),
                rmpv::Value::Binary(vec![1]),
            ])),
            framed(&rmpv::Value::Array(vec![1.into(), f64::NAN.into()])),
            framed(&rmpv::Value::Array(vec![
                1.into(),
                rmpv::Value::Nil,
                3.into(),
            ])),
            framed(&rmpv::Value::Array(vec![
                1.into(),
                rmpv::Value::Map(vec![(1.into(), 2.into())]),
            ])),
            vec![0, 0, 0, 2, 0x92, 0xc1],
            vec![0, 0, 0, 2, 0xc0, 0xc0],
        ];
        for bytes in cases {
            let error = RequestFrame::read(&mut bytes.as_slice(), MAX_FRAME_BYTES)
                .await
                .unwrap_err();
            assert!(
                matches!(error, FrameError::Malformed(_)),
                "{bytes:?}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn nesting_without_end_is_an_error_and_not_a_stack_overflow() {
        let payload = vec![0x91; 100_000];
        let bytes = [
            &u32::try_from(payload.len()).unwrap().to_be_bytes(),
            payload.as_slice(),
        ]
        .concat();
        let error = RequestFrame::read(&mut bytes.as_slice(), MAX_FRAME_BYTES)
            .await
            .unwrap_err();
        assert!(matches!(error, FrameError::Malformed(_)), "{error}");
    }

    #[test]
    fn timestamps_become_rfc_3339_in_all_three_forms() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        for (text, length) in [
            ("2026-01-02T03:04:05Z", 4),
            ("2026-01-02T03:04:05.678901Z", 8),
            ("1969-12-31T23:59:59Z", 12),
            ("2999-01-02T03:04:05.000001Z", 12),
        ] {
            let bytes = timestamp_bytes(at(text));
            assert_eq!(bytes.len(), length, "{text}");
            assert_eq!(
                from_msgpack(rmpv::Value::Ext(-1, bytes)).unwrap(),
                json!(text)
            );
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_with_its_digits() {
        let huge: Value = serde_json::from_str("123456789012345678901234567890").unwrap();
        let error = to_msgpack(&huge).unwrap_err();
        assert!(
            error.to_string().contains("123456789012345678901234567890"),
            "{error}"
        );
        assert!(to_msgpack(&serde_json::from_str("1e999").unwrap()).is_err());
    }

    #[test]
    fn a_whole_number_written_as_a_float_stays_a_float() {
        let sent = to_msgpack(&json!(3.0)).unwrap();
        assert_eq!(sent, rmpv::Value::F64(3.0));
        assert_eq!(from_msgpack(sent).unwrap().to_string(), "3.0");
    }
}
