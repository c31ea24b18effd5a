#!/usr/bin/env bash
# Uses a server's MCP endpoint with the protocol's official client: scripts/mcp.sh
#
# Starts a server on SQLite. scripts/mcp_client.py then connects over HTTP and through `tributary mcp`, with and without
# the handshake. TRIBUTARY_BIN overrides target/debug/tributary. Everything is stopped and removed afterwards, except the
# Python environment under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All versions are pinned, so that changes in the client do not break the build unexpectedly.
requirements='annotated-types==0.8.0
anyio==4.16.0
attrs==26.1.0
cffi==2.1.1
click==8.5.1
cryptography==50.0.2
h11==0.16.0
httpcore2==2.16.2
httpx2==2.16.2
idna==3.20
jsonschema==4.26.0
jsonschema-specifications==2025.9.1
mcp==2.3.0
mcp-types==2.3.0
opentelemetry-api==1.45.2
pycparser==3.12
pydantic==2.14.3
pydantic_core==2.50.4
PyJWT==2.15.1
python-multipart==0.0.34
referencing==0.37.0
rpds-py==2026.9.1
sse-starlette==3.7.0
starlette==1.10.0
truststore==0.10.5
typing-inspection==0.4.5
typing_extensions==4.16.0
uvicorn==0.54.0'

if (($# > 0)); then
    echo "usage: scripts/mcp.sh" >&2
    exit 2
fi

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
binary=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
venv=$target/mcp-venv
work=$(mktemp -d)
server='' checker=''

# Stops all started processes on every exit. After a failure, prints the end of the server's log.
cleanup() {
    local status=$? process
    trap - EXIT
    trap '' INT TERM HUP PIPE
    for process in $checker $server; do
        kill -TERM "$process" 2>/dev/null || true
        timeout 10 tail -f -s 0.1 --pid="$process" /dev/null || kill -KILL "$process" 2>/dev/null || true
    done
    if ((status != 0)) && [[ -s $work/server.log ]]; then
        printf '\nEnd of the server log:\n' >&2
        tail -n 40 "$work/server.log" >&2
    fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# shellcheck source=scripts/python.sh
source scripts/python.sh

# Starts the server with a new data folder and waits until it is ready.
start_server() {
    [[ -x $binary ]] || die "no binary at $binary; run cargo build"
    # The caller's settings must not affect the server under test.
    unset "${!TRIBUTARY_@}"
    local port attempt
    port=$("$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    base=http://127.0.0.1:$port
    export TRIBUTARY_LISTEN=127.0.0.1:$port TRIBUTARY_DATA_DIR=$work/data
    # Tests do not download exchange rates.
    export TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL=''
    # Only this host is contacted, so bypass any proxy.
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    mkdir "$work/data"
    "$binary" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$base/readyz" 2>/dev/null && return
        kill -0 "$server" 2>/dev/null || die "the server exited before it was ready"
        sleep 0.1
    done
    die "the server was not ready after $attempt attempts"
}

prepare_venv "the MCP client" "$venv/bin/python" -c 'import mcp'
start_server
full=$("$binary" admin key create --permission full)
analytics=$("$binary" admin key create --permission analytics)
# In the background, because bash handles signals only while it waits.
FULL_KEY=$full ANALYTICS_KEY=$analytics \
    timeout 120 "$venv/bin/python" scripts/mcp_client.py "$base" "$binary" </dev/null &
checker=$!
status=0
wait "$checker" || status=$?
checker=''
((status == 0)) || die "the client and the server do not understand each other"
kill -0 "$server" 2>/dev/null || die "the server exited"
