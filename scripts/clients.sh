#!/usr/bin/env bash
# Generates and builds the clients in clients/, checks their types, and tests them against started servers.
#
# TRIBUTARY_BIN overrides target/debug/tributary. Build dependencies are installed in clients/typescript/node_modules and
# in a Python environment under target/, in the versions of package-lock.json and requirements.txt. Everything else is
# stopped and removed afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# > 0)); then
    echo "usage: scripts/clients.sh" >&2
    exit 2
fi

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
binary=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
venv=$target/clients-venv
requirements=$(<clients/python/requirements.txt)
work=$(mktemp -d)
servers=()

# Stops the servers on every exit. After a failure, prints the ends of their logs.
# shellcheck disable=SC2329 # the traps call it
cleanup() {
    local status=$? process log
    trap - EXIT
    trap '' INT TERM HUP PIPE
    for process in "${servers[@]}"; do
        kill -TERM "$process" 2>/dev/null || true
        timeout 10 tail -f -s 0.1 --pid="$process" /dev/null || kill -KILL "$process" 2>/dev/null || true
    done
    for log in "$work"/*/server.log; do
        if ((status != 0)) && [[ -s $log ]]; then
            printf '\nEnd of a server log:\n' >&2
            tail -n 20 "$log" >&2
        fi
    done
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# shellcheck source=scripts/node.sh
source scripts/node.sh
# shellcheck source=scripts/python.sh
source scripts/python.sh

# Starts a server with additional settings. Sets its address, $url, and two keys, $keys.
start_server() { # name, setting...
    local folder=$work/$1 attempt port process
    shift
    mkdir -p "$folder/data"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    url=http://127.0.0.1:$port
    # No exchange rates are downloaded. The keys are created before the server starts, which creates the database.
    local settings=(TRIBUTARY_LISTEN="127.0.0.1:$port" TRIBUTARY_BASE_URL="$url" TRIBUTARY_DATA_DIR="$folder/data"
        TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL='' "$@")
    env "${settings[@]}" "$binary" migrate >"$folder/server.log" 2>&1
    keys=()
    for attempt in 1 2; do
        keys+=("$(env "${settings[@]}" "$binary" admin key create --permission full)")
    done
    env "${settings[@]}" "$binary" serve >"$folder/server.log" 2>&1 </dev/null &
    process=$!
    servers+=("$process")
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$url/readyz" 2>/dev/null && return
        kill -0 "$process" 2>/dev/null || die "a server exited before it was ready"
        sleep 0.1
    done
    die "a server was not ready after $attempt attempts"
}

# Runs a client's tests, each with its own keys: the second server accepts one request per second and key.
with_servers() { # number of the keys, command...
    local number=$1
    shift
    env TRIBUTARY_SERVER="$server" TRIBUTARY_API_KEY="${server_keys[number]}" TRIBUTARY_BUSY_SERVER="$busy" \
        TRIBUTARY_BUSY_API_KEY="${busy_keys[number]}" "$@"
}

# Builds, checks and tests the TypeScript client.
check_typescript() {
    cd clients/typescript
    install_packages
    node scripts/build.mjs
    with_servers 0 node scripts/test.mjs
}

# Generates, checks, packs and tests the Python client. The example of the README is checked and run as well.
check_python() {
    local python=$venv/bin/python
    cd clients/python
    "$python" generate.py
    awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$work/example.py"
    [[ -s $work/example.py ]] || die "README.md has no example"
    "$python" -m mypy --cache-dir "$target/clients-mypy-cache" src tests "$work/example.py"
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index \
        --wheel-dir "$work/wheel" .
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$work/site" "$work"/wheel/*.whl
    # The packed client is tested, not the sources.
    export PYTHONPATH=$work/site
    with_servers 1 "$python" "$work/example.py"
    with_servers 1 "$python" -m unittest discover --verbose --start-directory tests
}

[[ -x $binary ]] || die "no binary at $binary; run cargo build"
find_node "$target/node-venv"
prepare_venv "the tools of the Python client" "$venv/bin/python" -c 'import datamodel_code_generator, httpx, mypy'
# The caller's settings must not affect the servers. The tests only connect to this host, so they bypass any proxy.
unset "${!TRIBUTARY_@}"
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
start_server quick
server=$url server_keys=("${keys[@]}")
start_server busy TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY=1
busy=$url busy_keys=("${keys[@]}")

status=0
for client in typescript python; do
    # `set -e` would not apply inside of a command before `||`.
    set +e
    (
        set -e
        case $client in typescript) check_typescript ;; python) check_python ;; esac
    ) 2>&1 </dev/null | tee "$work/$client.log"
    ((PIPESTATUS[0] == 0)) || status=1
    set -e
done

# ./test counts results in cargo's format.
passed=$(awk '/^ℹ pass / { n += $3 } / \.\.\. ok$/ { n += 1 } END { print n + 0 }' "$work"/*.log)
failed=$(awk '/^ℹ (fail|cancelled) / { n += $3 } / \.\.\. (FAIL|ERROR)$/ { n += 1 } END { print n + 0 }' "$work"/*.log)
printf '\nClients: %s s\n' "$SECONDS"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
