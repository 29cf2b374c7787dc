#!/usr/bin/env bash
# Measures the SQL guard against the Python provider's validator on the same statements and prints a table.
# The Python environment is the one that tests/run.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${UPDRAFT_CACHE:-$HOME/.cache/updraft}/venv/bin/python
if [ ! -x "$python" ]; then
    echo "there is no Python environment at $python yet: run tests/run.sh once, it makes one" >&2
    exit 1
fi
cargo bench --bench sql_guard
PYTHONWARNINGS=ignore exec "$python" benches/sql_guard.py "${CARGO_TARGET_DIR:-$PWD/target}/criterion"
