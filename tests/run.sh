#!/usr/bin/env bash
# Everything that must pass, from a fresh Debian machine with Rust and Python 3 on: formatting, lints, documentation,
# unit and integration tests, then the end-to-end tests against a real Airflow. Installs what it needs.
#
#   tests/run.sh              all of it
#   tests/run.sh rust         without the end-to-end tests
#   tests/run.sh e2e [ARGS]   only those; ARGS go to pytest
#
# What is kept between runs lies under ~/.cache/updraft (UPDRAFT_CACHE names another folder): the Python environment,
# and cargo's target folder where there is one already.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

part=${1:-all}
[ $# -gt 0 ] && shift
case $part in all | rust | e2e) ;; *)
    echo "usage: tests/run.sh [all|rust|e2e [PYTEST ARGUMENT...]]" >&2
    exit 2
    ;;
esac

cache=${UPDRAFT_CACHE:-$HOME/.cache/updraft}
venv=$cache/venv
logs=$(mktemp -d "${TMPDIR:-/tmp}/updraft-tests.XXXXXX")
if [ -z "${CARGO_TARGET_DIR:-}" ] && { [ -d "$cache/target" ] || [ -n "${CI:-}" ]; }; then
    export CARGO_TARGET_DIR=$cache/target
fi
target=${CARGO_TARGET_DIR:-$root/target}

step="start"
finish() {
    local status=$?
    if [ $status -eq 0 ]; then
        rm -rf "$logs"
    else
        echo "tests/run.sh: \"$step\" failed with status $status; logs are under ${E2E_DIR:-$logs}" >&2
    fi
}
trap finish EXIT
begin() {
    step=$1
    echo "== $step"
}

packages() {
    local missing=()
    command -v cc >/dev/null || missing+=(build-essential)
    command -v git >/dev/null || missing+=(git)
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    command -v openssl >/dev/null || missing+=(openssl)
    command -v pgrep >/dev/null || missing+=(procps)
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
    [ -x /usr/sbin/mariadbd ] || missing+=(mariadb-server)
    [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
    # libgit2 is built from source, against the system's OpenSSL.
    [ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev pkg-config)
    # Python's MySQL driver is built from source.
    [ -e /usr/include/mariadb/mysql.h ] || missing+=(libmariadb-dev python3-dev pkg-config)
    [ ${#missing[@]} -eq 0 ] && return
    begin "Debian packages: ${missing[*]}"
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# python_environment FOLDER REQUIREMENTS
python_environment() {
    local wanted
    wanted=$(cat "$2"; python3 --version)
    [ "$(cat "$1/updraft-requirements" 2>/dev/null)" = "$wanted" ] && return
    begin "Python environment in $1"
    mkdir -p "$cache"
    [ -x "$1/bin/pip" ] || python3 -m venv "$1"
    [ -x "$1/bin/uv" ] || "$1/bin/pip" install --quiet uv
    "$1/bin/uv" pip install --quiet --python "$1/bin/python" -r "$2"
    printf '%s' "$wanted" >"$1/updraft-requirements"
}

# servers SCRIPT LAST: starts those of tests/servers/SCRIPT.sh and exports what it prints, of which LAST comes last.
# Their folder is beside the logs and not among them: the servers' own users must get there. They end with this script.
servers() {
    begin "test servers: $1"
    local line
    while IFS= read -t 120 -r line; do export "${line?}"; done < <("tests/servers/$1.sh" start "$logs.$1" $$)
    [ -n "${!2:-}" ] || { echo "tests/servers/$1.sh did not say $2 within 120 seconds" >&2; exit 1; }
}

packages
python_environment "$venv" tests/e2e/requirements.txt
python_environment "$venv-langchain" tests/e2e/requirements-langchain.txt
python_environment "$venv-agents" tests/e2e/requirements-agents.txt
python_environment "$venv-agents-0.20" tests/e2e/requirements-agents-0.20.txt
python_environment "$cache/servers" tests/servers/requirements.txt
export UPDRAFT_SERVERS_VENV=$cache/servers
# Some tests read the example Dags of the installed provider.
export UPDRAFT_TEST_VENV=$venv

if [ "$part" != e2e ]; then
    begin "rustfmt"
    cargo fmt --check
    begin "clippy"
    cargo clippy --quiet --all-targets -- -D warnings
    begin "rustdoc"
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items
    servers databases UPDRAFT_TEST_MARIADB_PORT
    servers git UPDRAFT_TEST_GIT_DIR
    servers stores UPDRAFT_TEST_GCS_URL
    begin "cargo test"
    cargo test
fi

if [ "$part" != rust ]; then
    begin "the updraft binary"
    if [ -z "${UPDRAFT_BIN:-}" ]; then
        # Built as the tests are: with other features every dependency would be built a second time.
        cargo test --quiet --no-run --test it
        cargo build --quiet --examples
        UPDRAFT_BIN=$target/debug/updraft
    fi
    export UPDRAFT_BIN
    begin "end-to-end tests against a real Airflow"
    export E2E_DIR=${E2E_DIR:-$logs/e2e}
    PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest -c tests/e2e/pytest.ini "$@" tests/e2e
fi
