#!/usr/bin/env bash
# Real git servers for the tests: HTTPS with an authority of their own, and sshd; free ports on loopback, everything in DIR.
#
#   tests/servers/git.sh start DIR [PID]   starts them and prints KEY=VALUE lines; with PID, they end when that process does
#   tests/servers/git.sh stop DIR          ends what `start` started in DIR
#
# What git_https.py serves, and the token it asks for, stand at its top. sshd lets the user who started it in, with the
# key DIR/client_key or, with the passphrase "made-up-passphrase", DIR/locked_key.
. "$(dirname "$0")/common.sh"

certificates() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Updraft test authority" \
        -keyout "$dir/ca.key" -out "$dir/ca.crt" 2>/dev/null
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Another authority" \
        -keyout "$dir/other_ca.key" -out "$dir/other_ca.crt" 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$dir/server.key" -out "$dir/server.csr" 2>/dev/null
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n' >"$dir/extensions"
    openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
        -extfile "$dir/extensions" -out "$dir/server.crt" 2>/dev/null
    # Of a GitHub App.
    openssl genrsa -out "$dir/app.key" 2048 2>/dev/null
    openssl rsa -in "$dir/app.key" -pubout -out "$dir/app.pub" 2>/dev/null
}

# A repository as a stranger might make it: with links, a submodule, a filter and a hook.
repository() {
    local work=$dir/work
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@example.com GIT_COMMITTER_NAME=Test GIT_COMMITTER_EMAIL=test@example.com
    mkdir -p "$work/skills/tides/scripts" "$dir/repositories"
    git -C "$work" init -q -b main
    printf -- '---\nname: tides\ndescription: First edition.\n---\nRead the table.\n' >"$work/skills/tides/SKILL.md"
    git -C "$work" add -A
    git -C "$work" commit -q -m "First edition"
    git -C "$work" tag v1
    printf -- '---\nname: tides\ndescription: When the tide is high.\n---\nRun scripts/high.sh.\n' >"$work/skills/tides/SKILL.md"
    printf '#!/bin/sh\necho "high at noon"\n' >"$work/skills/tides/scripts/high.sh"
    chmod +x "$work/skills/tides/scripts/high.sh"
    ln -s /etc/passwd "$work/skills/tides/passwd.txt"
    ln -s /etc "$work/outside"
    printf '*.md filter=evil\n' >"$work/.gitattributes"
    printf '[submodule "sub"]\n\tpath = sub\n\turl = https://example.invalid/sub.git\n' >"$work/.gitmodules"
    git -C "$work" update-index --add --cacheinfo "160000,$(git -C "$work" rev-parse HEAD),sub"
    git -C "$work" add .gitattributes .gitmodules outside skills
    git -C "$work" commit -q -m "Second edition"
    git clone -q --bare "$work" "$dir/repositories/skills.git"
    git -C "$dir/repositories/skills.git" config uploadpack.allowFilter true
    too_much
}

# Branches beyond what may be cloned: a file that is large once it is unpacked, many files, much to send.
too_much() {
    local bare=$dir/repositories/skills.git zeros noise small
    zeros=$(head -c 269000000 /dev/zero | git -C "$bare" hash-object -w --stdin)
    noise=$(head -c 106000000 /dev/urandom | git -C "$bare" hash-object -w --stdin)
    small=$(echo small | git -C "$bare" hash-object -w --stdin)
    branch() { git -C "$bare" update-ref "refs/heads/$1" "$(git -C "$bare" commit-tree -m "$1" "$(git -C "$bare" mktree)")"; }
    printf '100644 blob %s\tzeros\n' "$zeros" | branch unpacks
    seq 20001 | sed "s/.*/100644 blob $small\tfile-&/" | branch files
    printf '100644 blob %s\tnoise\n' "$noise" | branch sends
}

start_sshd() {
    local sshd port
    sshd=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) || fail "there is no sshd: apt-get install openssh-server"
    port=$(free_port)
    ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$dir/client_key"
    ssh-keygen -q -t ed25519 -N 'made-up-passphrase' -f "$dir/locked_key"
    ssh-keygen -q -t ed25519 -N '' -f "$dir/stranger_key"
    cat "$dir/client_key.pub" "$dir/locked_key.pub" >"$dir/authorized_keys"
    printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d' ' -f1,2 "$dir/host_key.pub")" >"$dir/known_hosts"
    printf '%s\n' "Port $port" "ListenAddress 127.0.0.1" "HostKey $dir/host_key" "AuthorizedKeysFile $dir/authorized_keys" \
        "PidFile $dir/sshd.pid" "UsePAM no" "StrictModes no" "PasswordAuthentication no" "PermitRootLogin yes" \
        "AllowTcpForwarding no" "X11Forwarding no" >"$dir/sshd_config"
    # Where sshd puts itself out of reach; its package's service makes this.
    [ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
    "$sshd" -f "$dir/sshd_config" -E "$dir/sshd.log"
    echo "UPDRAFT_TEST_GIT_SSH_PORT=$port"
}

start_https() {
    python3 "$here/git_https.py" "$dir" </dev/null >"$dir/https.log" 2>&1 &
    echo $! >"$dir/https.pid"
    wait_for 10 "the HTTPS server" "$dir/https.log" test -e "$dir/ports"
    echo "UPDRAFT_TEST_GIT_HTTPS_PORT=$(head -1 "$dir/ports")"
}

start() {
    certificates
    repository
    start_https
    start_sshd
    echo "UPDRAFT_TEST_GIT_DIR=$dir"
}

stop() {
    terminate "$dir/sshd.pid" "$dir/https.pid"
}

act
