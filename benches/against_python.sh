#!/usr/bin/env bash
# Measures Updraft against Airflow's own edge worker and prints a table: see against_python.py.
#
#   benches/against_python.sh [ARGUMENTS of against_python.py]
#
# Builds the release binary (or takes UPDRAFT_BIN). The Python environment is the one that tests/run.sh makes.
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
    # Where the linker puts the code decides about a third of a task's memory.
    if command -v valgrind >/dev/null; then
        status=0
        "$python" benches/code_layout.py --if-stale "$UPDRAFT_BIN" || status=$?
        case $status in
        0) touch src/main.rs && cargo build --release --bin updraft ;;
        3) ;;
        *) exit "$status" ;;
        esac
    else
        echo "without valgrind it stays unknown whether benches/code_layout.txt fits this build" >&2
    fi
fi
export UPDRAFT_BIN
PYTHONDONTWRITEBYTECODE=1 exec "$python" benches/against_python.py "$@"
