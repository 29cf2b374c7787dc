//! What the hooks of the clouds' stores do with one bucket or container.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::SecondsFormat;
use futures::TryStreamExt as _;
use object_store::buffered::BufWriter;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutOptions,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{StoreError, failure};

/// A store whose keys can be listed by any beginning, and not only by folders.
pub trait Bucket: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Bucket for T {}

/// Bytes of an object that Dag code is given.
const MAX_READ: u64 = 256 << 20;

/// One thing that a hook asks of a bucket.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Operation {
    /// Keys that begin with `prefix`, and with a delimiter the prefixes below it.
    List {
        #[serde(default)]
        prefix: String,
        #[serde(default)]
        delimiter: String,
        #[serde(default)]
        start_after: Option<String>,
        /// Keys and prefixes together.
        #[serde(default)]
        max_items: Option<usize>,
    },
    /// What is known of an object; null when there is none.
    Head { key: String },
    /// The bytes of an object, in base64.
    Read { key: String },
    /// Writes an object.
    Write {
        key: String,
        /// In base64.
        data: String,
        /// False: an object that is there already is an error.
        #[serde(default)]
        replace: bool,
        #[serde(default)]
        content_type: Option<String>,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    /// Copies within the bucket.
    Copy { key: String, to: String },
    /// Deletes objects; those that are not there are none the less gone.
    Delete { keys: Vec<String> },
}

/// Why a bucket did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BucketError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is there.
    #[error("there is no {0:?}")]
    NotFound(String),
    /// Something is there already.
    #[error("The key {0} already exists.")]
    Exists(String),
    /// The key has a part that the client can't address: empty, `.` or `..`.
    #[error("{key:?} can't be addressed: {reason}")]
    Key { key: String, reason: String },
    /// More than Dag code may hold.
    #[error("{key:?} has {size} bytes, and a hook here reads no more than {MAX_READ}")]
    TooLarge { key: String, size: u64 },
    /// The data is no base64.
    #[error("the data can't be read: {0}")]
    Data(#[from] base64::DecodeError),
    /// The store refused, or could not be reached.
    #[error("{}", failure(.0).text)]
    Client(#[from] object_store::Error),
}

/// Does it. Lists answer `{"objects", "prefixes"}`, objects have `key`, `size`, `last_modified` (ISO 8601) and `e_tag`.
///
/// # Errors
/// See [`BucketError`].
pub async fn run(bucket: &Arc<dyn Bucket>, operation: Operation) -> Result<Value, BucketError> {
    match operation {
        Operation::List {
            prefix,
            delimiter,
            start_after,
            max_items,
        } => list(bucket.as_ref(), &prefix, &delimiter, start_after, max_items).await,
        Operation::Head { key } => head(bucket.as_ref(), &key).await,
        Operation::Read { key } => {
            let answer = match bucket.get(&path(&key)?).await {
                Err(object_store::Error::NotFound { .. }) => {
                    return Err(BucketError::NotFound(key));
                }
                answer => answer?,
            };
            let size = answer.meta.size;
            if size > MAX_READ {
                return Err(BucketError::TooLarge { key, size });
            }
            let described = object(&key, &answer.meta, &answer.attributes);
            let bytes = answer.bytes().await?;
            Ok(json!({"base64": STANDARD.encode(bytes), "object": described}))
        }
        Operation::Write {
            key,
            data,
            replace,
            content_type,
            metadata,
        } => {
            if !replace && !head(bucket.as_ref(), &key).await?.is_null() {
                return Err(BucketError::Exists(key));
            }
            let mut attributes = Attributes::new();
            if let Some(content_type) = content_type {
                attributes.insert(Attribute::ContentType, content_type.into());
            }
            for (name, value) in metadata {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), ToOwned::to_owned);
                attributes.insert(Attribute::Metadata(name.into()), value.into());
            }
            let data = STANDARD.decode(data)?;
            let options = PutOptions::from(attributes);
            bucket.put_opts(&path(&key)?, data.into(), options).await?;
            Ok(Value::Null)
        }
        Operation::Copy { key, to } => match bucket.copy(&path(&key)?, &path(&to)?).await {
            Err(object_store::Error::NotFound { .. }) => Err(BucketError::NotFound(key)),
            done => Ok(done.map(|()| Value::Null)?),
        },
        Operation::Delete { keys } => {
            let mut deleted = Vec::new();
            for key in keys {
                match bucket.delete(&path(&key)?).await {
                    Err(object_store::Error::NotFound { .. }) => {}
                    done => {
                        done?;
                        deleted.push(key);
                    }
                }
            }
            Ok(json!({ "deleted": deleted }))
        }
    }
}

/// Copies an object into another bucket, through this machine and with no more of it in memory than a part.
///
/// # Errors
/// See [`BucketError`].
pub async fn copy_between(
    from: &Arc<dyn Bucket>,
    key: &str,
    into: &Arc<dyn Bucket>,
    to: &str,
) -> Result<(), BucketError> {
    let found = match from.get(&path(key)?).await {
        Err(object_store::Error::NotFound { .. }) => {
            return Err(BucketError::NotFound(key.to_owned()));
        }
        found => found?,
    };
    let store: Arc<dyn ObjectStore> = Arc::<dyn Bucket>::clone(into);
    let attributes = found.attributes.clone();
    let mut writer = BufWriter::new(store, path(to)?).with_attributes(attributes);
    let mut stream = found.into_stream();
    while let Some(bytes) = stream.try_next().await? {
        writer.put(bytes).await?;
    }
    writer
        .shutdown()
        .await
        .map_err(|source| object_store::Error::Generic {
            store: "copy",
            source: source.into(),
        })?;
    Ok(())
}

async fn list(
    bucket: &dyn Bucket,
    prefix: &str,
    delimiter: &str,
    start_after: Option<String>,
    max_items: Option<usize>,
) -> Result<Value, BucketError> {
    let wanted = max_items.unwrap_or(usize::MAX);
    let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            offset: start_after.clone().filter(|_| page_token.is_none()),
            delimiter: (!delimiter.is_empty()).then(|| delimiter.to_owned().into()),
            max_keys: max_items.map(|_| (wanted - objects.len() - prefixes.len()).min(1000)),
            page_token,
            ..PaginatedListOptions::default()
        };
        let found = bucket.list_paginated(Some(prefix), options).await?;
        for below in found.result.common_prefixes {
            prefixes.push(format!("{below}{delimiter}"));
        }
        for meta in found.result.objects {
            // The client drops the slash at the end of the object that marks a folder.
            let key = meta.location.to_string();
            let key = if key.len() < prefix.len() {
                prefix
            } else {
                &key
            };
            objects.push(object(key, &meta, &Attributes::new()));
        }
        page_token = found.page_token;
        if page_token.is_none() || objects.len() + prefixes.len() >= wanted {
            break;
        }
    }
    objects.truncate(wanted);
    prefixes.truncate(wanted - objects.len());
    Ok(json!({"objects": objects, "prefixes": prefixes}))
}

async fn head(bucket: &dyn Bucket, key: &str) -> Result<Value, BucketError> {
    let options = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    match bucket.get_opts(&path(key)?, options).await {
        Ok(found) => Ok(object(key, &found.meta, &found.attributes)),
        Err(object_store::Error::NotFound { .. }) => Ok(Value::Null),
        Err(error) => Err(error.into()),
    }
}

fn object(key: &str, meta: &ObjectMeta, attributes: &Attributes) -> Value {
    let metadata: Map<String, Value> = attributes
        .iter()
        .filter_map(|(name, value)| match name {
            Attribute::Metadata(name) => Some((name.to_string(), value.as_ref().into())),
            _ => None,
        })
        .collect();
    json!({
        "key": key,
        "size": meta.size,
        "last_modified": meta.last_modified.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        "e_tag": meta.e_tag,
        "version": meta.version,
        "content_type": attributes.get(&Attribute::ContentType).map(AsRef::<str>::as_ref),
        "metadata": metadata,
    })
}

fn path(key: &str) -> Result<Path, BucketError> {
    Path::parse(key).map_err(|error| BucketError::Key {
        key: key.to_owned(),
        reason: error.to_string(),
    })
}
