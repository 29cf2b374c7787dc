#!/usr/bin/env bash
# Runs many agent tasks through one worker and prints a table: see soak.py.
#
#   benches/soak.sh [--tasks 2000] [--concurrency 8]
#
# Builds the release binary (or takes UPDRAFT_BIN).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${UPDRAFT_BIN:-}" ]; then
    cargo build --release --bin updraft
    UPDRAFT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/updraft
fi
export UPDRAFT_BIN
PYTHONDONTWRITEBYTECODE=1 exec python3 benches/soak.py "$@"
