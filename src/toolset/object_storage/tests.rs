use std::ops::Range;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use pretty_assertions::assert_eq;

use super::storage::StoredFile;
use super::*;

struct NoConnections;

#[async_trait]
impl ConnectionSource for NoConnections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        Err(ConnectionError::NotDefined(conn_id.to_owned()))
    }
}

fn toolset(config: ObjectStorageToolsetConfig) -> ObjectStorageToolset {
    let mask: Mask = Arc::new(|text: &str| text.replace("made-up-secret", "***"));
    let environment = [("AWS_EC2_METADATA_DISABLED", "true")]
        .into_iter()
        .collect();
    ObjectStorageToolset::new(config, Arc::new(NoConnections), environment, mask).unwrap()
}

/// A toolset whose root is `root` of a store in memory.
async fn in_memory(
    files: &[(&str, &str)],
    root: &str,
    change: impl FnOnce(&mut ObjectStorageToolsetConfig),
) -> ObjectStorageToolset {
    let store = InMemory::new();
    for (key, text) in files {
        let content = Bytes::copy_from_slice(text.as_bytes());
        store
            .put(&Path::parse(key).unwrap(), content.into())
            .await
            .unwrap();
    }
    let mut config = ObjectStorageToolsetConfig::new(format!("s3://bucket/{root}"));
    change(&mut config);
    let toolset = toolset(config);
    let storage: Box<dyn Storage> = Box::new(RemoteStorage::new(Arc::new(store), root));
    assert!(toolset.storage.set(storage).is_ok());
    toolset
}

/// The result, or the text with the kind of failure.
async fn call(toolset: &ObjectStorageToolset, tool: &str, args: Value) -> String {
    let Value::Object(args) = args else {
        unreachable!()
    };
    match toolset.call(tool, args).await {
        Ok(Value::String(text)) => text,
        Ok(other) => format!("not text: {other}"),
        Err(ToolError::Failed(text)) => format!("failed: {text}"),
        Err(ToolError::Fatal(text)) => format!("fatal: {text}"),
        Err(ToolError::Retry(text)) => format!("retry: {text}"),
    }
}

#[tokio::test]
async fn files_are_read_by_the_names_they_are_listed_with() {
    let names = [
        "a b.txt",
        "100%25.txt",
        "100%.txt",
        "c+d.txt",
        "é/日本.txt",
        "~#[1].txt",
    ];
    let keys: Vec<_> = names.iter().map(|name| format!("root/{name}")).collect();
    let files: Vec<_> = keys
        .iter()
        .map(|key| (key.as_str(), key.as_str()))
        .collect();
    let toolset = in_memory(&files, "root", |_| {}).await;
    assert_eq!(
        call(&toolset, "list_files", json!({})).await,
        r#"{"path": "/", "entries": [{"name": "100%.txt", "size_bytes": 13}, {"name": "100%25.txt", "size_bytes": 15}, {"name": "a b.txt", "size_bytes": 12}, {"name": "c+d.txt", "size_bytes": 12}, {"name": "~#[1].txt", "size_bytes": 14}, {"name": "\u00e9/"}]}"#
    );
    for (name, key) in names.iter().zip(&keys) {
        assert_eq!(
            call(&toolset, "read_file", json!({"path": name})).await,
            *key
        );
    }
}

#[tokio::test]
async fn a_directory_is_what_files_stand_below() {
    let toolset = in_memory(&[("r/sub/x.txt", "12"), ("r", "mark")], "/r/", |_| {}).await;
    let info = |path| call(&toolset, "get_file_info", json!({"path": path}));
    assert_eq!(info("sub").await, r#"{"path": "sub", "type": "directory"}"#);
    assert_eq!(info("su").await, "failed: 'su' does not exist.");
    assert!(
        info("sub/x.txt").await.starts_with(
            r#"{"path": "sub/x.txt", "type": "file", "size_bytes": 2, "modified": "20"#
        )
    );
    assert_eq!(
        call(&toolset, "list_files", json!({"path": "sub/x.txt"})).await,
        "failed: 'sub/x.txt' is not a directory."
    );
    assert_eq!(
        call(&toolset, "read_file", json!({"path": "sub"})).await,
        "failed: 'sub' is not a file."
    );
    assert_eq!(
        call(&toolset, "list_files", json!({"path": "sub"})).await,
        r#"{"path": "sub", "entries": [{"name": "x.txt", "size_bytes": 2}]}"#
    );
}

#[tokio::test]
async fn pages_are_cut_as_python_cuts_a_list() {
    let files: Vec<_> = (1..=5)
        .map(|n| (format!("{n}.txt"), String::new()))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    let toolset = in_memory(&files, "", |config| config.max_files = 2).await;
    let page = |offset| call(&toolset, "list_files", json!({"offset": offset}));
    let entry = |n| format!(r#"{{"name": "{n}.txt", "size_bytes": 0}}"#);
    let note = "Showing entries 1 to 2 of 5; list again with offset=2 for more.";
    assert_eq!(
        page(0).await,
        format!(
            r#"{{"path": "/", "entries": [{}, {}], "note": "{note}"}}"#,
            entry(1),
            entry(2)
        )
    );
    assert_eq!(
        page(4).await,
        format!(r#"{{"path": "/", "entries": [{}]}}"#, entry(5))
    );
    assert_eq!(page(99).await, r#"{"path": "/", "entries": []}"#);
    let written = |offset: &str| {
        let args = serde_json::from_str(&format!(r#"{{"offset": {offset}}}"#)).unwrap();
        call(&toolset, "list_files", args)
    };
    assert_eq!(written("4.0").await, page(4).await);
    for offset in ["1e30", "99999999999999999999", "1e999"] {
        assert_eq!(written(offset).await, page(99).await, "{offset}");
    }
    // What Python's slices make of a negative offset.
    let note = "Showing entries -1 to -2 of 5; list again with offset=-2 for more.";
    assert_eq!(
        page(-2).await,
        format!(r#"{{"path": "/", "entries": [], "note": "{note}"}}"#)
    );
}

#[tokio::test]
async fn secrets_are_masked_also_over_several_lines() {
    let toolset = in_memory(&[("made-up-secret.txt", "x made-up-secret\ny")], "", |_| {}).await;
    assert_eq!(
        call(&toolset, "list_files", json!({})).await,
        r#"{"path": "/", "entries": [{"name": "***.txt", "size_bytes": 18}]}"#
    );
    let path = json!({"path": "made-up-secret.txt"});
    assert_eq!(call(&toolset, "read_file", path).await, "x ***\ny");
}

#[tokio::test]
async fn a_local_root_keeps_what_is_outside_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("sub/dir")).unwrap();
    std::fs::write(root.join("sub/in.txt"), "inside").unwrap();
    std::fs::write(folder.path().join("out.txt"), "outside").unwrap();
    symlink("../out.txt", root.join("out_link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("sub/in.txt", root.join("in_link")).unwrap();
    symlink("sub", root.join("sub_link")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    symlink("../nowhere", root.join("broken_out")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let toolset = toolset(ObjectStorageToolsetConfig::new(root.to_str().unwrap()));
    // Links to a directory are listed as files, as Python lists them.
    let size = std::fs::metadata(root.join("sub")).unwrap().len();
    assert_eq!(
        call(&toolset, "list_files", json!({})).await,
        format!(
            r#"{{"path": "/", "entries": [{{"name": "broken", "size_bytes": 0}}, {{"name": "in_link", "size_bytes": 6}}, {{"name": "loop", "size_bytes": 0}}, {{"name": "sub/"}}, {{"name": "sub_link", "size_bytes": {size}}}]}}"#
        )
    );
    for path in ["out_link", "up/out.txt", "up", "broken_out", "up/nowhere"] {
        for tool in ["list_files", "get_file_info", "read_file"] {
            assert_eq!(
                call(&toolset, tool, json!({"path": path})).await,
                format!("failed: '{path}' resolves outside the storage root.")
            );
        }
    }
    let read = |path| call(&toolset, "read_file", json!({"path": path}));
    assert_eq!(read("in_link").await, "inside");
    assert_eq!(read("sub_link/in.txt").await, "inside");
    assert_eq!(read("broken").await, "failed: 'broken' is not a file.");
    assert_eq!(
        call(&toolset, "get_file_info", json!({"path": "broken"})).await,
        "failed: 'broken' does not exist."
    );
    assert_eq!(
        call(&toolset, "read_file", json!({"path": "a\0b"})).await,
        "failed: 'a\\x00b' cannot be read: ValueError: embedded null byte"
    );
}

#[tokio::test]
async fn a_pipe_is_no_file_and_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(
        &folder.path().join("pipe.txt"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    let toolset = toolset(ObjectStorageToolsetConfig::new(
        folder.path().to_str().unwrap(),
    ));
    assert_eq!(
        call(&toolset, "read_file", json!({"path": "pipe.txt"})).await,
        "failed: 'pipe.txt' is not a file."
    );
}

#[tokio::test]
async fn a_missing_connection_ends_the_run_except_for_amazons() {
    let mut config = ObjectStorageToolsetConfig::new("gs://bucket/x");
    config.conn_id = Some("nope".to_owned());
    assert_eq!(
        call(&toolset(config), "list_files", json!({})).await,
        "fatal: The conn_id `nope` isn't defined"
    );
    let toolset = toolset(ObjectStorageToolsetConfig::new("ftp://bucket/x"));
    assert!(
        call(&toolset, "list_files", json!({}))
            .await
            .starts_with("failed: '/' cannot be read: ValueError: ftp://bucket/x: no store")
    );
}

#[tokio::test]
async fn limits_below_one_are_refused() {
    let config = ObjectStorageToolsetConfig {
        max_files: 0,
        ..ObjectStorageToolsetConfig::new("/x")
    };
    let made = ObjectStorageToolset::new(
        config,
        Arc::new(NoConnections),
        Environment::default(),
        Arc::new(ToOwned::to_owned),
    );
    assert_eq!(
        made.err().unwrap().to_string(),
        "max_files must be at least 1, got 0."
    );
}

#[tokio::test]
async fn the_prefix_is_part_of_names_and_id() {
    let toolset = in_memory(&[("a.txt", "x")], "", |config| {
        config.tool_prefix = "reports".to_owned();
        config.conn_id = Some("aws".to_owned());
    })
    .await;
    assert_eq!(toolset.id(), "object-storage-aws-reports");
    let names: Vec<_> = toolset
        .tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        [
            "reports_list_files",
            "reports_get_file_info",
            "reports_read_file"
        ]
    );
    assert_eq!(
        call(&toolset, "reports_read_file", json!({"path": "a.txt"})).await,
        "x"
    );
    assert_eq!(
        call(&toolset, "read_file", json!({})).await,
        "fatal: Unknown tool: 'read_file'"
    );
}

/// A file of zeros, as large as one likes, that counts the bytes it is asked for.
struct Endless {
    size: u64,
    start: Vec<u8>,
    asked: AtomicU64,
}

#[async_trait]
impl StoredFile for Endless {
    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let length = range.end - range.start;
        self.asked.fetch_add(length, Ordering::Relaxed);
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        let from = usize::try_from(range.start).unwrap().min(self.start.len());
        let known = &self.start[from..];
        let count = known.len().min(bytes.len());
        bytes[..count].copy_from_slice(&known[..count]);
        Ok(bytes.into())
    }
}

#[tokio::test]
async fn ten_gigabytes_cost_what_was_asked_for() {
    use std::io::Write as _;

    let file = Arc::new(Endless {
        size: 10 << 30,
        start: Vec::new(),
        asked: AtomicU64::new(0),
    });
    let stored: Arc<dyn StoredFile> = file.clone();
    let read = content::read(&stored, None, 10 << 20).await;
    assert_eq!(read, Err(StorageError::TooLarge));
    assert_eq!(file.asked.load(Ordering::Relaxed), 0);

    // Stored, not packed: the file goes on for ever, and reading stops at the limit.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&vec![b'x'; 30 << 20]).unwrap();
    let file = Arc::new(Endless {
        size: 10 << 30,
        start: encoder.finish().unwrap(),
        asked: AtomicU64::new(0),
    });
    let stored: Arc<dyn StoredFile> = file.clone();
    let read = content::read(&stored, Some(file_format::Codec::Gzip), 10 << 20).await;
    assert_eq!(read, Err(StorageError::TooLarge));
    assert!(file.asked.load(Ordering::Relaxed) <= 12 << 20);
}

#[tokio::test]
async fn a_small_parquet_file_that_unpacks_to_much_is_not_unpacked() {
    use datafusion::arrow::array::{ArrayRef, BinaryArray, RecordBatch};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::{Compression, ZstdLevel};
    use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};

    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, size: usize| {
        let column: ArrayRef = Arc::new(BinaryArray::from(vec![vec![0_u8; size].as_slice()]));
        let batch = RecordBatch::try_from_iter([("zeros", column)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .build();
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    write("small.parquet", 3);
    write("bomb.parquet", (256 << 20) + 1);
    let toolset = toolset(ObjectStorageToolsetConfig::new(
        folder.path().to_str().unwrap(),
    ));
    let read = |path| call(&toolset, "read_file", json!({"path": path}));
    assert!(read("small.parquet").await.starts_with("Rows: 1."));
    assert_eq!(
        read("bomb.parquet").await,
        "failed: 'bomb.parquet' cannot be read: ArrowInvalid: its first row group comes to more than 256.0MB when it is unpacked"
    );
}
