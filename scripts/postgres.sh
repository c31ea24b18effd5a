# shellcheck shell=bash
# A temporary PostgreSQL for the tests, in $work/postgres. Sourced by ./test.
# shellcheck disable=SC2154 # $work is set by ./test

postgres_running=''

# Runs a PostgreSQL program. It refuses to run as root, so root switches to another user.
as_postgres() {
    (
        cd "$work/postgres" || exit
        if ((EUID == 0)); then exec runuser -u "$(postgres_user)" -- "$@"; else exec "$@"; fi
    )
}

# The user for PostgreSQL when running as root.
postgres_user() {
    if getent passwd postgres >/dev/null; then echo postgres; else echo nobody; fi
}

# Prints a free TCP port.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts the server, unless TEST_DATABASE_URL is set, and exports its URL.
start_postgres() {
    if [[ -z ${TEST_CITUS_URL:-} ]]; then
        echo "NOT RUN: the tests on a Citus cluster, because TEST_CITUS_URL does not name a coordinator"
    fi
    if [[ -n ${TEST_DATABASE_URL:-} ]]; then
        echo "using the server at TEST_DATABASE_URL"
        export TEST_DATABASE_URL
        return
    fi
    local folder=$work/postgres attempt port
    mkdir -m 700 "$folder"
    if ((EUID == 0)); then chown "$(postgres_user):" "$folder"; fi
    quietly as_postgres "$(command -v initdb)" -D data -A trust -U tributary -E UTF8 --locale=C.UTF-8 --no-sync
    # fsync stays on: the product refuses a server without it.
    local settings="-c listen_addresses=127.0.0.1 -c unix_socket_directories=$folder"
    settings+=" -c max_connections=200 -c shared_buffers=256MB -c fsync=on"
    postgres_running=1
    # Another process may take the port before PostgreSQL starts.
    for attempt in 1 2 3; do
        port=$(free_port)
        if quietly as_postgres "$(command -v pg_ctl)" -D data -o "$settings -p $port" -l server.log -w -t 60 start; then
            export TEST_DATABASE_URL=postgres://tributary@127.0.0.1:$port/postgres
            echo "$TEST_DATABASE_URL"
            return
        fi
    done
    echo "PostgreSQL did not start ($attempt attempts):"
    tail -n 20 "$folder/server.log"
    return 1
}

# Stops the server immediately; its data is discarded.
stop_postgres() {
    [[ -n $postgres_running ]] || return 0
    as_postgres "$(command -v pg_ctl)" -D data -m immediate -w -t 30 stop >/dev/null 2>&1 || true
    postgres_running=''
}
