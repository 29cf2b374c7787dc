#!/usr/bin/env bash
# A real PostgreSQL and a real MariaDB for the tests: fresh data folders in DIR, free ports on loopback, unix sockets in DIR.
#
#   tests/servers/databases.sh start DIR [PID]   starts both and prints KEY=VALUE lines; with PID, they end when that process does
#   tests/servers/databases.sh stop DIR          ends what `start` started in DIR
#
# The servers refuse to run as root, so under root they run as the users that their packages create.
. "$(dirname "$0")/common.sh"

as() { # USER COMMAND...
    local user=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi
}

postgres_bin() {
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    [ -x "$found/postgres" ] || fail "there is no PostgreSQL server: apt-get install postgresql"
    echo "$found"
}

private_folder() { # NAME USER
    mkdir "$dir/$1"
    [ "$(id -u)" -ne 0 ] || chown "$2" "$dir/$1"
}

certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
        -keyout "$dir/$1/server.key" -out "$dir/$1/server.crt" 2>/dev/null
    chmod 600 "$dir/$1/server.key"
    [ "$(id -u)" -ne 0 ] || chown "$2" "$dir/$1/server.key" "$dir/$1/server.crt"
}

# An authority, and a certificate that it signed for the server.
certificate_of_authority() { # NAME USER
    (
        cd "$dir/$1"
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=Authority of these tests' -keyout authority.key -out authority.crt
        openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 -out server.crt \
            -extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1')
        chmod 600 server.key
        [ "$(id -u)" -ne 0 ] || chown "$2" server.key server.crt
    ) 2>/dev/null
}

start_postgres() {
    local bin port
    bin=$(postgres_bin)
    port=$(free_port)
    private_folder postgres postgres
    certificate postgres postgres
    (
        cd "$dir/postgres"
        as postgres "$bin/initdb" -D "$dir/postgres/data" -U updraft -A trust -E UTF8 --locale=C >"$dir/postgres/initdb.log" 2>&1 \
            || fail "initdb failed: $(tail -3 "$dir/postgres/initdb.log")"
        printf '%s\n' 'local all all trust' 'hostssl all tls_only 127.0.0.1/32 scram-sha-256' \
            'host all tls_only 127.0.0.1/32 reject' 'host all password 127.0.0.1/32 scram-sha-256' \
            'host all all 127.0.0.1/32 trust' >"$dir/postgres/pg_hba.conf"
        [ "$(id -u)" -ne 0 ] || chown postgres "$dir/postgres/pg_hba.conf"
        as postgres "$bin/postgres" -D "$dir/postgres/data" -p "$port" -k "$dir/postgres" \
            -c listen_addresses=127.0.0.1 -c hba_file="$dir/postgres/pg_hba.conf" -c fsync=off -c timezone=UTC -c ssl=on \
            -c ssl_cert_file="$dir/postgres/server.crt" -c ssl_key_file="$dir/postgres/server.key" \
            </dev/null >"$dir/postgres/log" 2>&1 &
    )
    wait_for 30 PostgreSQL "$dir/postgres/log" "$bin/pg_isready" -h 127.0.0.1 -p "$port"
    as postgres "$bin/createdb" -h "$dir/postgres" -p "$port" -U updraft harbour
    echo "UPDRAFT_TEST_POSTGRES_PORT=$port"
    echo "UPDRAFT_TEST_POSTGRES_SOCKETS=$dir/postgres"
}

start_mariadb() {
    local server port
    server=$(command -v mariadbd || ls /usr/sbin/mariadbd 2>/dev/null) \
        || fail "there is no MariaDB server: apt-get install mariadb-server"
    port=$(free_port)
    private_folder mariadb mysql
    certificate_of_authority mariadb mysql
    (
        cd "$dir/mariadb"
        as mysql mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
            --datadir="$dir/mariadb/data" >"$dir/mariadb/install.log" 2>&1 \
            || fail "mariadb-install-db failed: $(tail -3 "$dir/mariadb/install.log")"
        as mysql "$server" --no-defaults --datadir="$dir/mariadb/data" --port="$port" --bind-address=127.0.0.1 \
            --socket="$dir/mariadb/socket" --pid-file="$dir/mariadb/server.pid" --skip-name-resolve \
            --default-time-zone=+00:00 --innodb-flush-log-at-trx-commit=0 --innodb-log-file-size=48M \
            --ssl-cert="$dir/mariadb/server.crt" --ssl-key="$dir/mariadb/server.key" \
            </dev/null >"$dir/mariadb/log" 2>&1 &
    )
    wait_for 30 MariaDB "$dir/mariadb/log" mariadb --no-defaults -u root -S "$dir/mariadb/socket" -e 'SELECT 1'
    mariadb --no-defaults -u root -S "$dir/mariadb/socket" -e "CREATE USER updraft@'127.0.0.1' IDENTIFIED BY 'harbour-pass';
        CREATE USER updraft@localhost IDENTIFIED BY 'harbour-pass';
        GRANT ALL ON *.* TO updraft@'127.0.0.1' WITH GRANT OPTION; GRANT ALL ON *.* TO updraft@localhost WITH GRANT OPTION;
        CREATE DATABASE harbour CHARACTER SET utf8mb4"
    echo "UPDRAFT_TEST_MARIADB_PORT=$port"
    echo "UPDRAFT_TEST_MARIADB_SOCKET=$dir/mariadb/socket"
}

stop() {
    # SIGINT is PostgreSQL's fast shutdown, SIGTERM is MariaDB's.
    local pid
    pid=$(head -1 "$dir/postgres/data/postmaster.pid" 2>/dev/null) && kill -INT "$pid" 2>/dev/null
    pid=$(cat "$dir/mariadb/server.pid" 2>/dev/null) && kill -TERM "$pid" 2>/dev/null
    return 0
}

have_ended() {
    [ ! -e "$dir/postgres/data/postmaster.pid" ] && [ ! -e "$dir/mariadb/server.pid" ]
}

start() {
    chmod 755 "$dir"
    start_postgres
    start_mariadb
}

act
