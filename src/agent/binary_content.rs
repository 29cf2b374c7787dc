//! Files that tools give back beside their text: images, sound, documents.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use serde_json::Value;

use super::pydantic_json::compact_json;

/// pydantic-ai's `BinaryContent`.
#[derive(Clone, PartialEq, Eq)]
pub struct BinaryContent {
    pub data: Vec<u8>,
    /// Its MIME type, e.g. `image/png`.
    pub media_type: String,
}

impl std::fmt::Debug for BinaryContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.media_type, self.data.len())
    }
}

/// As pydantic-ai 2.68 writes it: the data as base64 with the alphabet for URLs.
impl Serialize for BinaryContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("BinaryContent", 5)?;
        fields.serialize_field("data", &URL_SAFE.encode(&self.data))?;
        fields.serialize_field("media_type", &self.media_type)?;
        fields.serialize_field("vendor_metadata", &None::<()>)?;
        fields.serialize_field("kind", "binary")?;
        fields.serialize_field("identifier", &self.identifier())?;
        fields.end()
    }
}

impl BinaryContent {
    /// The name by which the text of a result refers to it, as pydantic-ai makes it: six hexadecimal digits.
    #[must_use]
    pub fn identifier(&self) -> String {
        let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.data);
        let three = sum.as_ref().iter().take(3);
        three.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The data as base64.
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.data)
    }

    /// `data:image/png;base64,...`.
    #[must_use]
    pub fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64())
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What stands in the tool's result. Where a file was, it says `See file <identifier>.`.
    pub content: Value,
    /// The files, in their order.
    pub files: Vec<BinaryContent>,
}

impl From<Value> for ToolOutput {
    fn from(content: Value) -> Self {
        Self {
            content,
            files: Vec::new(),
        }
    }
}

/// One piece of a result that may hold files.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutputItem {
    Value(Value),
    File(BinaryContent),
}

impl ToolOutput {
    /// A result of several pieces: one stands for itself, several are a list. Beside files, what is not text becomes
    /// JSON text, as pydantic-ai has it.
    #[must_use]
    pub fn of_items(mut items: Vec<ToolOutputItem>) -> Self {
        let is_file = |item: &ToolOutputItem| matches!(item, ToolOutputItem::File(_));
        let has_files = items.iter().any(is_file);
        let mut files = Vec::new();
        let mut value_of = |item| match item {
            ToolOutputItem::File(file) => {
                let reference = format!("See file {}.", file.identifier());
                files.push(file);
                reference.into()
            }
            ToolOutputItem::Value(value @ Value::String(_)) => value,
            ToolOutputItem::Value(value) if has_files => compact_json(&value).into(),
            ToolOutputItem::Value(value) => value,
        };
        let content = if items.len() == 1 {
            items.pop().map(value_of).unwrap_or_default()
        } else {
            items.into_iter().map(&mut value_of).collect()
        };
        Self { content, files }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn file(data: &[u8], media_type: &str) -> BinaryContent {
        BinaryContent {
            data: data.to_vec(),
            media_type: media_type.to_owned(),
        }
    }

    #[test]
    fn files_are_named_as_pydantic_ai_names_them() {
        assert_eq!(file(b"%PDF", "application/pdf").identifier(), "39b6d7");
        assert_eq!(
            file(b"%PDF", "application/pdf").data_uri(),
            "data:application/pdf;base64,JVBERg=="
        );
    }

    #[test]
    fn files_are_written_as_pydantic_ai_writes_them() {
        assert_eq!(
            serde_json::to_string(&file(b"\xfb\xff\xfe", "image/png")).unwrap(),
            "{\"data\":\"-__-\",\"media_type\":\"image/png\",\"vendor_metadata\":null,\"kind\":\"binary\",\
             \"identifier\":\"7a2f66\"}"
        );
    }

    #[test]
    fn a_list_with_a_file_is_a_list_of_texts() {
        let output = ToolOutput::of_items(vec![
            ToolOutputItem::Value(json!("caption")),
            ToolOutputItem::File(file(b"%PDF", "application/pdf")),
            ToolOutputItem::Value(json!({"a": 1})),
        ]);
        assert_eq!(
            output.content,
            json!(["caption", "See file 39b6d7.", "{\"a\":1}"])
        );
        assert_eq!(output.files.len(), 1);
    }

    #[test]
    fn one_piece_stands_for_itself_and_values_alone_stay_values() {
        let one = ToolOutput::of_items(vec![ToolOutputItem::Value(json!({"a": 1}))]);
        assert_eq!(one, json!({"a": 1}).into());
        let image = ToolOutput::of_items(vec![ToolOutputItem::File(file(b"%PDF", "image/png"))]);
        assert_eq!(image.content, json!("See file 39b6d7."));
        let two = [json!("a"), json!({"b": 2})].map(ToolOutputItem::Value);
        assert_eq!(
            ToolOutput::of_items(two.into()),
            json!(["a", {"b": 2}]).into()
        );
        assert_eq!(ToolOutput::of_items(Vec::new()), json!([]).into());
    }
}
