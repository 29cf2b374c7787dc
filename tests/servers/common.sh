# What the scripts of this folder share. A script sources it with its own arguments, defines `start` (which prints
# KEY=VALUE lines) and `stop`, and calls `act`.
#
#   SCRIPT start DIR [PID]   starts the servers; with PID, they end when that process does
#   SCRIPT stop DIR          ends what `start` started in DIR
set -euo pipefail

# The head of the script.
usage() {
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

fail() {
    echo "$(basename "$0"): $1" >&2
    exit 1
}

[ $# -ge 2 ] || usage
action=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
follow=${3:-}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# SECONDS WHAT LOGS COMMAND...: waits until the command succeeds.
wait_for() {
    local seconds=$1 what=$2 logs=$3 try
    shift 3
    for try in $(seq $((seconds * 5))); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.2
    done
    fail "$what did not come up within $seconds seconds: $(tail -n 20 $logs 2>/dev/null)"
}

# FILE...: ends the processes whose ids stand in the files.
terminate() {
    local file
    for file in "$@"; do
        [ ! -e "$file" ] || kill -TERM "$(head -1 "$file")" 2>/dev/null || true
    done
}

# Have the servers left their folder after `stop`? A script may know better.
have_ended() { true; }

# A process, told apart from a later one with the same number.
identity() {
    awk '{ print $22 }' "/proc/$1/stat" 2>/dev/null || true
}

end_with_process() {
    local identity try
    identity=$(identity "$follow")
    while [ -n "$identity" ] && [ "$(identity "$follow")" = "$identity" ]; do sleep 1; done
    stop
    for try in $(seq 30); do
        have_ended && break
        sleep 1
    done
    rm -rf "$dir"
}

act() {
    case $action in
        start)
            start
            # Of the whole list of commands only this one may run on: whoever reads the lines waits for their end.
            if [ -n "$follow" ]; then end_with_process </dev/null >/dev/null 2>&1 & fi
            ;;
        stop) stop ;;
        *) usage ;;
    esac
}
