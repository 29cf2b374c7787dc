//! Object stores: from an Airflow connection and a URL to a [`object_store::ObjectStore`].
//!
//! The reading of connections stands here and nowhere else, one file for each cloud; what a caller refuses although it
//! could be read (section by section of its own documentation) stands with the caller. Where a connection names no
//! credential, the worker's own are used as the cloud's Python library would find them, and where there are none the
//! store is asked anonymously if that library would.

mod assume_role;
mod aws;
mod aws_profile;
mod azure;
mod bucket;
mod bucket_tags;
mod failure;
mod fields;
mod gcs;
mod http;
mod location;

use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, RetryConfig};
use serde_json::Value;

pub use self::bucket::{Bucket, BucketError, Operation, copy_between, run};
pub use self::failure::{FailureKind, StoreFailure, failure};
pub(crate) use self::fields::Fields;
pub use self::location::{Location, Scheme};
use crate::airflow::config::Environment;
use crate::airflow::connection::{Connection, MalformedConnection};

/// How long the metadata service of a cloud may take to say that it is not there.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a store can't be opened. Nothing was read yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is of a kind that is not known, or lacks a part.
    #[error("{url}: {problem}")]
    Url { url: String, problem: String },
    /// The connection is of a type that does not open this kind of store.
    #[error(
        "connection `{conn_id}` is of type {conn_type:?}, and {url} needs one of type {expected}"
    )]
    WrongType {
        conn_id: String,
        conn_type: String,
        url: String,
        expected: &'static str,
    },
    /// A field of the connection is wrong, missing or not supported.
    #[error("connection `{conn_id}`: {field} {problem}")]
    Field {
        conn_id: String,
        field: String,
        problem: String,
    },
    /// The extra is not an object.
    #[error(transparent)]
    Malformed(#[from] MalformedConnection),
    /// The worker's own credentials can't be used.
    #[error("{0}")]
    Ambient(String),
    /// The client of the store could not be made.
    #[error("{url} can't be opened: {source}")]
    Client {
        url: String,
        #[source]
        source: object_store::Error,
    },
}

/// Opens the store that a location stands in. Paths in it are relative to the bucket or container, to the server's
/// root, and for local files to `/`.
///
/// # Errors
/// See [`StoreError`]. That the store refuses, or is not there, is known only when it is asked for something.
pub async fn open(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Ok(match location.scheme {
        Scheme::File => Arc::new(LocalFileSystem::new()),
        Scheme::Http => Arc::new(http::open(location, connection)?),
        Scheme::S3 | Scheme::Gcs | Scheme::Azure => {
            open_bucket(location, connection, environment).await?
        }
    })
}

/// Opens a bucket or container of a cloud.
///
/// # Errors
/// See [`StoreError`].
pub async fn open_bucket(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<Arc<dyn Bucket>, StoreError> {
    Ok(match location.scheme {
        Scheme::S3 => Arc::new(aws::open(location, connection, environment).await?.store),
        Scheme::Gcs => Arc::new(gcs::open(location, connection, environment).await?),
        Scheme::Azure => Arc::new(azure::open(location, connection, environment).await?),
        Scheme::File | Scheme::Http => {
            return Err(StoreError::Url {
                url: location.to_string(),
                problem: "it names no bucket".to_owned(),
            });
        }
    })
}

/// The tags of an S3 bucket: `{"tags": [{"Key", "Value"}, ...]}`, or `{"refused": {"code", "message"}}` in S3's own words.
///
/// # Errors
/// The bucket can't be opened, or S3 can't be asked.
pub async fn bucket_tags(
    location: &Location,
    connection: Option<&Connection>,
    environment: &Environment,
) -> Result<Value, String> {
    let bucket = aws::open(location, connection, environment)
        .await
        .map_err(|error| error.to_string())?;
    bucket_tags::tags(&bucket).await
}

/// A request that failed for a passing reason is sent again about as often as the Python clients do.
fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: 4,
        retry_timeout: Duration::from_secs(60),
        ..RetryConfig::default()
    }
}

/// May the endpoint be asked without TLS? Only where it was written so.
fn is_plain_http(endpoint: &str) -> bool {
    endpoint
        .get(..7)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
}

fn expect_type(
    location: &Location,
    connection: &Connection,
    types: &[&str],
    expected: &'static str,
) -> Result<(), StoreError> {
    if types.contains(&connection.conn_type.as_str()) {
        return Ok(());
    }
    Err(StoreError::WrongType {
        conn_id: connection.conn_id.clone(),
        conn_type: connection.conn_type.clone(),
        url: location.to_string(),
        expected,
    })
}
