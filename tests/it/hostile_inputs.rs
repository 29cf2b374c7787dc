//! Bytes that no peer, administrator or author would write: the fuzz targets' own checks on what is well formed, on that
//! with pieces exchanged, and on what is made to be large or deep.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use updraft::airflow::frame::RequestFrame;

#[path = "../../fuzz/inputs.rs"]
mod inputs;

/// Bytes that mean something to one reader or another.
const SIGNS: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xc1",
    b"\xdf\xff\xff\xff\xff",
    b"\xdd\x7f\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\xff",
    b"://",
    b"@",
    b":",
    b"%",
    b"%%",
    b"%zz",
    b"?",
    b"#",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b"'''",
    b"\n",
    b"\r\n",
    b"\t",
    b"=",
    b"---\n",
    b"!!",
    b"&a",
    b"*a",
    b"\xef\xbb\xbf",
    b"(",
    b")",
    b"$HOME",
    b"def f():",
    b"class X(",
    b"lambda:",
    b"\xf0\x9f\x92\xa9",
];

/// One to four pieces of some bytes replaced by pieces of others, or by signs.
fn exchanged(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..=bytes.len());
        let until = (at + rng.usize(..12)).min(bytes.len());
        let piece = if rng.bool() {
            SIGNS[rng.usize(..SIGNS.len())].to_vec()
        } else {
            let from = rng.usize(..=other.len());
            other[from..(from + rng.usize(..32)).min(other.len())].to_vec()
        };
        bytes.splice(at..until, piece);
    }
    bytes
}

/// Checks every seed, and `times` seeds with pieces exchanged. The same ones every time.
fn check_around(seeds: &[Vec<u8>], times: usize, check: impl Fn(&[u8])) {
    for seed in seeds {
        check(seed);
    }
    let mut rng = Rng::with_seed(20_260_102);
    for _ in 0..times {
        let seed = &seeds[rng.usize(..seeds.len())];
        let other = &seeds[rng.usize(..seeds.len())];
        check(&exchanged(&mut rng, seed, other));
    }
}

fn frame(body: Value) -> Vec<u8> {
    let frame = RequestFrame {
        id: 7,
        body,
        context_carrier: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut bytes = Vec::new();
    runtime.block_on(frame.write(&mut bytes)).unwrap();
    bytes
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn streams_that_are_no_frames_are_refused_and_frames_come_back_as_they_were() {
    let when = "2026-01-02T03:04:05Z";
    let mut seeds: Vec<_> = [
        json!({"type": "GetConnection", "conn_id": "c"}),
        json!({"type": "SetXCom", "key": "k", "value": {"a": [1, 2.5, null, "é"]}, "dag_id": "d", "run_id": "r",
            "task_id": "t", "map_index": -1}),
        json!({"type": "SucceedTask", "end_date": when, "task_outlets": [], "outlet_events": []}),
        json!({"type": "DeferTask", "classpath": "a.B", "trigger_kwargs": {}, "next_method": "m", "next_kwargs": {}}),
        json!({"type": "NoSuchMessage", "x": deep(40)}),
    ]
    .into_iter()
    .map(frame)
    .collect();
    seeds.push(seeds.concat());
    // Announced and not sent, and sent without an end.
    seeds.push(vec![0xff, 0xff, 0xff, 0xff]);
    seeds.push([[0, 0, 0x10, 0].as_slice(), &[0x91; 4096]].concat());
    check_around(&seeds, 20_000, inputs::frames);
}

#[test]
fn connections_are_read_or_refused_and_show_no_password() {
    let listed: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/connection_uris.json")).unwrap();
    let mut seeds: Vec<_> = listed
        .iter()
        .filter_map(|row| row["uri"].as_str())
        .map(|uri| uri.as_bytes().to_vec())
        .collect();
    seeds.push(
        br#"{"conn_type": "http", "password": "made-up-password", "extra": {"a": [1]}, "port": "80"}"#
            .to_vec(),
    );
    seeds.push(b"pydanticai://:made-up-long-password@host:port/x?a=b".to_vec());
    check_around(&seeds, 20_000, inputs::connection);
}

#[test]
fn configuration_files_are_read_or_refused() {
    let seeds = [
        b"[core]\ndags_folder = ~/dags\n# a comment\n[edge]\napi_url=http://127.0.0.1/x\nworker_concurrency = 5.0\n".to_vec(),
        b"[common.ai]\ndurable_cache_path: file:///x\n  more\n\n[updraft]\nlocal_storage = /a,\n /b\n".to_vec(),
        b"[dag_processor]\ndag_bundle_config_list = [{\"name\": \"x\"}]\n[edge]\nheartbeat_interval = 1e400\npush_logs = maybe\n".to_vec(),
        b"\xef\xbb\xbf[core]\r\ndags_folder = %%$HOME${HOME}%(x)s\r\n".to_vec(),
    ];
    check_around(&seeds, 1_000, inputs::airflow_cfg);
}

#[test]
fn descriptions_of_skills_are_read_or_refused() {
    let seeds = [
        include_bytes!("../../skills/shop-reporting/SKILL.md").to_vec(),
        b"---\nname: x\ndescription: |\n  many\n  lines\nallowed-tools: [a, b]\nmetadata: {a: {b: c}}\n---\n# Text\n".to_vec(),
        b"---\nname: &a [*a]\n---\n".to_vec(),
        [b"---\nname: ".as_slice(), &[b'['; 5000], b"\n---\n"].concat(),
        [b"---\n".as_slice(), &b"a: &x [*x, *x]\n".repeat(200), b"---\n"].concat(),
    ];
    check_around(&seeds, 1_000, inputs::skill_md);
}

fn dag_seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dags");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

#[test]
fn dag_files_load_or_say_why_not() {
    // Each takes an interpreter of its own: a few here, many in the fuzz target.
    let seeds = dag_seeds();
    let mut rng = Rng::with_seed(20_260_102);
    for _ in 0..25 {
        let seed = &seeds[rng.usize(..seeds.len())];
        let other = &seeds[rng.usize(..seeds.len())];
        let bytes = exchanged(&mut rng, seed, other);
        inputs::dag_file(&bytes, Duration::from_secs(60));
    }
}

#[test]
fn dag_files_at_the_limits_of_the_interpreter_say_so() {
    let many = |piece: &str, count: usize| piece.repeat(count).into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    for bytes in [
        many("(", 20_000),
        many("[", 200_000),
        many("if x:\n ", 300),
        many("x = 1\n", 200_000),
        many("-", 100_000),
        text("def f(): f()\nf()\n"),
        text("x = []\nx.append(x)\nprint(x)\n"),
        text("class A:\n    def __getattr__(self, n): return getattr(self, n)\nA().x\n"),
        text("raise SystemExit(0)\n"),
        text("import os\nos._exit(3)\n"),
        text("import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)\n"),
        text("# -*- coding: latin-1 -*-\nx = '\u{e9}'\n"),
    ] {
        inputs::dag_file(&bytes, Duration::from_secs(20));
    }
    // Ends when its time is over.
    inputs::dag_file(b"while True: pass\n", Duration::from_secs(1));
}
