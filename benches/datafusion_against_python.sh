#!/usr/bin/env bash
# Measures DataFusionToolset against the Python provider's on one Parquet file of five million rows and prints a table.
# The Python environment is the one that tests/run.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${UPDRAFT_CACHE:-$HOME/.cache/updraft}/venv/bin/python
if [ ! -x "$python" ]; then
    echo "there is no Python environment at $python yet: run tests/run.sh once, it makes one" >&2
    exit 1
fi
if [ -z "${UPDRAFT_BIN:-}" ]; then
    cargo build --release --bin updraft
    UPDRAFT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/updraft
fi
PYTHONWARNINGS=ignore exec "$python" benches/datafusion_against_python.py "$UPDRAFT_BIN"
