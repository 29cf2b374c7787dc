//! The tags of an S3 bucket, which object_store does not ask for: `GetBucketTagging`.

use object_store::aws::AwsAuthorizer;
use object_store::client::{HttpConnector as _, HttpRequest, ReqwestConnector};
use serde::Deserialize;
use serde_json::{Value, json};

use super::aws::OpenBucket;
use crate::airflow::error_chain::error_chain;

/// `{"tags": [{"Key", "Value"}, ...]}`, or `{"refused": {"code", "message"}}` where S3 gave none.
pub(super) async fn tags(bucket: &OpenBucket) -> Result<Value, String> {
    let mut request = HttpRequest::new(Vec::new().into());
    let address = format!("{}?tagging", bucket.url);
    *request.uri_mut() = address
        .parse()
        .map_err(|_| format!("{address} is no address"))?;
    if let Some(credentials) = &bucket.credentials {
        let credential = credentials
            .get_credential()
            .await
            .map_err(|error| error_chain(&error))?;
        AwsAuthorizer::new(&credential, "s3", &bucket.region).authorize(&mut request, None);
    }
    let client = ReqwestConnector::default()
        .connect(&bucket.client)
        .map_err(|error| error_chain(&error))?;
    let answer = client
        .execute(request)
        .await
        .map_err(|error| error_chain(&error))?;
    let status = answer.status();
    let body = answer
        .into_body()
        .bytes()
        .await
        .map_err(|error| error_chain(&error))?;
    let body = String::from_utf8_lossy(&body);
    if status.is_success() {
        let tagging: Tagging = quick_xml::de::from_str(&body)
            .map_err(|error| format!("S3 answered for the bucket's tags: {error}"))?;
        return Ok(
            json!({ "tags": tagging.tag_set.tags.into_iter().map(|tag| json!({"Key": tag.key, "Value": tag.value})).collect::<Vec<_>>() }),
        );
    }
    let refusal = quick_xml::de::from_str(&body).unwrap_or_else(|_| Refusal {
        code: status.as_u16().to_string(),
        message: status.canonical_reason().unwrap_or_default().to_owned(),
    });
    Ok(json!({ "refused": {"code": refusal.code, "message": refusal.message} }))
}

#[derive(Deserialize)]
struct Tagging {
    #[serde(rename = "TagSet", default)]
    tag_set: TagSet,
}

#[derive(Default, Deserialize)]
struct TagSet {
    #[serde(rename = "Tag", default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refusal {
    code: String,
    message: String,
}
