//! Files that tools gave and Dag code was only told of.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::agent::BinaryContent;

/// How much of the files is kept. A service runs for long; an agent's files are far less.
const KEPT_BYTES: usize = 64 << 20;

/// Files that went to Dag code as the words that name them, the newest last.
#[derive(Default)]
pub(super) struct KeptFiles(Mutex<VecDeque<(String, BinaryContent)>>);

impl KeptFiles {
    fn locked(&self) -> MutexGuard<'_, VecDeque<(String, BinaryContent)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keep(&self, files: Vec<BinaryContent>) {
        let mut kept = self.locked();
        for file in files {
            kept.retain(|(_, known)| *known != file);
            kept.push_back((file.identifier(), file));
        }
        let mut bytes: usize = kept.iter().map(|(_, file)| file.data.len()).sum();
        while bytes > KEPT_BYTES
            && let Some((_, oldest)) = kept.pop_front()
        {
            bytes -= oldest.data.len();
        }
    }

    /// The files that a value names, in the order in which it names them.
    pub fn named_in(&self, value: &Value) -> Vec<BinaryContent> {
        let mut names = Vec::new();
        collect_names(value, &mut names);
        let kept = self.locked();
        let mut seen: HashMap<&str, usize> = HashMap::new();
        names
            .into_iter()
            .filter_map(|name| {
                // The same bytes may be two files, of two types.
                let mut same = kept.iter().filter(|(identifier, _)| identifier == name);
                let times = seen.entry(name).or_default();
                let (_, file) = same.clone().nth(*times).or_else(|| same.next_back())?;
                *times += 1;
                Some(file.clone())
            })
            .collect()
    }
}

/// The names in texts such as `See file 39b6d7.`.
fn collect_names<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => {
            let references = text.split("See file ").skip(1);
            names.extend(references.filter_map(|rest| Some(rest.split_once('.')?.0)));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect_names(item, names)),
        _ => {}
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
    fn files_are_found_by_the_words_that_name_them() {
        let (sound, paper, photo) = (
            file(b"%PDF", "audio/wav"),
            file(b"%PDF", "application/pdf"),
            file(b"PNG", "image/png"),
        );
        let name = photo.identifier();
        let files = KeptFiles::default();
        files.keep(vec![sound.clone(), paper.clone()]);
        files.keep(vec![photo.clone(), sound.clone()]);
        let value = json!({
            "a": [format!("the photo: See file {name}."), "See file 39b6d7."],
            "b": "See file 39b6d7. See file ffffff. See file 39b6d7",
        });
        assert_eq!(files.named_in(&value), [photo, paper, sound]);
    }

    #[test]
    fn the_oldest_files_are_dropped_when_there_are_too_many() {
        let large = |byte| file(&vec![byte; KEPT_BYTES / 2], "image/png");
        let files = KeptFiles::default();
        for byte in 0..3 {
            files.keep(vec![large(byte)]);
        }
        let named = |byte| json!(format!("See file {}.", large(byte).identifier()));
        let kept: Vec<_> = (0..3)
            .map(|byte| files.named_in(&named(byte)).len())
            .collect();
        assert_eq!(kept, [0, 1, 1]);
    }
}
