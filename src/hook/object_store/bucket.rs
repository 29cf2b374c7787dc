//! What the hooks of the clouds' stores do with one bucket or container.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use chrono::SecondsFormat;
use futures::TryStreamExt as _;
use object_store::aws::AmazonS3;
use object_store::azure::MicrosoftAzure;
use object_store::gcp::GoogleCloudStorage;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{StoreError, failure};

/// A store whose keys can be listed by any beginning, and not only by folders.
pub trait Bucket: ObjectStore + PaginatedListStore {
    /// Is the object whose key is the whole prefix missing from a list? Azure's client takes it for the mark of a folder.
    fn list_lacks_the_prefix_itself(&self) -> bool {
        false
    }
}

impl Bucket for AmazonS3 {}
impl Bucket for GoogleCloudStorage {}
impl Bucket for MicrosoftAzure {
    fn list_lacks_the_prefix_itself(&self) -> bool {
        true
    }
}

/// Bytes of an object that Dag code is given.
const MAX_READ: u64 = 256 << 20;
/// Bytes of a part of an object that is copied through this machine.
const PART: u64 = 10 << 20;
/// Parts that an object may have.
const MAX_PARTS: u64 = 10_000;

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
    /// Writes an object, over one that is there already.
    Write {
        key: String,
        /// In base64.
        data: String,
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
    /// The client can't address the key: it is empty, has a slash at an end, or a part that is empty, `.` or `..`.
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
            content_type,
            metadata,
        } => {
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
            // Nothing is deleted when one of them can't be.
            let paths: Vec<Path> = keys.iter().map(|key| path(key)).collect::<Result<_, _>>()?;
            let mut deleted = Vec::new();
            for (key, path) in keys.into_iter().zip(&paths) {
                match bucket.delete(path).await {
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
    let (size, attributes) = (found.meta.size, found.attributes.clone());
    if size <= PART {
        let data = found.bytes().await?;
        let options = PutOptions::from(attributes);
        into.put_opts(&path(to)?, data.into(), options).await?;
        return Ok(());
    }
    let options = PutMultipartOptions::from(attributes);
    let mut upload = into.put_multipart_opts(&path(to)?, options).await?;
    let part = usize::try_from(PART.max(size.div_ceil(MAX_PARTS))).unwrap_or(usize::MAX);
    let copied = copy_parts(found, upload.as_mut(), part).await;
    if let Err(error) = copied {
        // Parts that stay behind are paid for.
        if let Err(error) = upload.abort().await {
            tracing::warn!("the parts of {to:?} that were written can't be removed: {error}");
        }
        return Err(error.into());
    }
    Ok(())
}

async fn copy_parts(
    from: GetResult,
    into: &mut dyn MultipartUpload,
    part: usize,
) -> object_store::Result<()> {
    let mut stream = from.into_stream();
    let mut waiting = BytesMut::new();
    while let Some(bytes) = stream.try_next().await? {
        waiting.extend_from_slice(&bytes);
        while waiting.len() >= part {
            into.put_part(waiting.split_to(part).freeze().into())
                .await?;
        }
    }
    if !waiting.is_empty() {
        into.put_part(waiting.freeze().into()).await?;
    }
    into.complete().await.map(|_| ())
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
    let is_after = start_after.as_deref().is_none_or(|start| prefix > start);
    if bucket.list_lacks_the_prefix_itself() && is_after && path(prefix).is_ok() {
        let itself = head(bucket, prefix).await?;
        objects.extend(Some(itself).filter(|itself| !itself.is_null()));
    }
    // The client drops a slash at the end of what it names.
    let dropped = if delimiter.ends_with('/') { "/" } else { "" };
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            offset: start_after.clone().filter(|_| page_token.is_none()),
            delimiter: (!delimiter.is_empty()).then(|| delimiter.to_owned().into()),
            max_keys: max_items.map(|_| {
                wanted
                    .saturating_sub(objects.len() + prefixes.len())
                    .clamp(1, 1000)
            }),
            page_token,
            ..PaginatedListOptions::default()
        };
        let found = bucket.list_paginated(Some(prefix), options).await?;
        for below in found.result.common_prefixes {
            prefixes.push(format!("{below}{dropped}"));
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

/// The client's name for an object. It drops slashes at both ends, which would be another object.
fn path(key: &str) -> Result<Path, BucketError> {
    if key.is_empty() || key.starts_with('/') || key.ends_with('/') {
        return Err(BucketError::Key {
            key: key.to_owned(),
            reason: "a key must not be empty, or begin or end with a slash".to_owned(),
        });
    }
    Path::parse(key).map_err(|error| BucketError::Key {
        key: key.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3Builder;
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn bucket(server: &MockServer, name: &str) -> Arc<dyn Bucket> {
        let opened = AmazonS3Builder::new()
            .with_endpoint(server.uri())
            .with_allow_http(true)
            .with_region("eu-north-1")
            .with_bucket_name(name)
            .with_access_key_id("AKIAMADEUP")
            .with_secret_access_key("made-up")
            .build();
        Arc::new(opened.unwrap())
    }

    #[tokio::test]
    async fn parts_of_a_copy_that_fails_are_removed() {
        let server = MockServer::start().await;
        let large = vec![0; usize::try_from(PART).unwrap() + 1];
        Mock::given(method("GET"))
            .and(path("/from/k"))
            .respond_with(
                ResponseTemplate::new(200)
                    .insert_header("last-modified", "Thu, 01 Jul 2021 10:45:02 GMT")
                    .insert_header("etag", "\"1\"")
                    .set_body_bytes(large),
            )
            .mount(&server)
            .await;
        let begun = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
        Mock::given(method("POST"))
            .and(path("/to/k"))
            .respond_with(ResponseTemplate::new(200).set_body_string(begun))
            .mount(&server)
            .await;
        Mock::given(method("PUT"))
            .respond_with(ResponseTemplate::new(403))
            .mount(&server)
            .await;
        Mock::given(method("DELETE"))
            .and(path("/to/k"))
            .and(query_param("uploadId", "u1"))
            .respond_with(ResponseTemplate::new(204))
            .expect(1)
            .mount(&server)
            .await;
        let (from, into) = (bucket(&server, "from"), bucket(&server, "to"));
        let told = copy_between(&from, "k", &into, "k").await.unwrap_err();
        assert!(matches!(told, BucketError::Client(_)), "{told}");
    }

    #[tokio::test]
    async fn one_key_that_can_not_be_addressed_keeps_all_from_being_deleted() {
        let server = MockServer::start().await;
        for key in ["", "/k", "reports/", "a//b"] {
            let keys = vec!["k".to_owned(), key.to_owned()];
            let told = run(&bucket(&server, "b"), Operation::Delete { keys }).await;
            let told = told.unwrap_err();
            assert!(
                matches!(&told, BucketError::Key { key: named, .. } if named == key),
                "{told}"
            );
        }
        assert!(server.received_requests().await.unwrap().is_empty());
    }
}
