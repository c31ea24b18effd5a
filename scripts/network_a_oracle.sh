#!/usr/bin/env bash
# Compares the adapter for Meta (network_a) with Meta's official client: scripts/network_a_oracle.sh
#
# Starts the simulator and a server that sends to it. scripts/network_a_oracle.py then compares the received payloads
# with those of Meta's Python client for the same data, and sends with that client. The client is downloaded from PyPI
# for this test only, because its licence restricts it to Meta's services. scripts/stripe_oracle.py then posts webhooks
# that Stripe's Python client signed. TRIBUTARY_BIN overrides target/debug/tributary. Everything is stopped and removed afterwards, except the Python environment under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All versions are pinned, so that changes in the client do not break the build unexpectedly.
requirements='aiohappyeyeballs==2.7.1
aiohttp==3.14.5
aiosignal==1.4.0
attrs==26.1.0
capi_param_builder_python==1.3.2
certifi==2026.10.18
charset-normalizer==3.5.2
curlify==3.0.0
facebook_business==26.0.3
frozenlist==1.8.0
idna==3.20
multidict==7.2.1
propcache==0.5.4
pycountry==26.2.16
requests==2.34.2
six==1.17.0
stripe==16.1.0
typing_extensions==4.16.0
urllib3==2.8.0
yarl==1.25.1'

if (($# > 0)); then
    echo "usage: scripts/network_a_oracle.sh" >&2
    exit 2
fi

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
binary=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
venv=$target/network-a-oracle-venv
work=$(mktemp -d)
server='' simulator='' checker=''

# Stops all started processes on every exit. After a failure, prints the ends of both logs.
cleanup() {
    local status=$? process name
    trap - EXIT
    trap '' INT TERM HUP PIPE
    for process in $checker $server $simulator; do
        kill -TERM "$process" 2>/dev/null || true
        timeout 10 tail -f -s 0.1 --pid="$process" /dev/null || kill -KILL "$process" 2>/dev/null || true
    done
    for name in simulator server; do
        if ((status != 0)) && [[ -s $work/$name.log ]]; then
            printf '\nEnd of the %s log:\n' "$name" >&2
            tail -n 40 "$work/$name.log" >&2
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

# shellcheck source=scripts/python.sh
source scripts/python.sh

# Sets the environment: a new data folder, and the simulator in place of all networks.
choose_settings() {
    local ports network
    # The caller's settings must not affect the server under test.
    unset "${!TRIBUTARY_@}"
    # Hold both sockets until both ports are known, so that they differ.
    ports=$("$venv/bin/python" -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in held))')
    server_url=http://127.0.0.1:${ports% *} simulator_url=http://127.0.0.1:${ports#* }
    export TRIBUTARY_LISTEN=${server_url#http://} TRIBUTARY_DATA_DIR=$work/data
    export TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES=true
    for network in A B C D; do
        export "TRIBUTARY_NETWORKS__NETWORK_${network}__BASE_URL=$simulator_url"
    done
    export TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL=$simulator_url/token
    export TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL=$simulator_url
    # Tests do not download exchange rates.
    export TRIBUTARY_RATES__URL=
    export TRIBUTARY_RATES__SECOND_URL=
    # Trust X-Forwarded-For, so that clicks can come from different addresses.
    export TRIBUTARY_TRUSTED_PROXIES=127.0.0.1
    # Only this host is contacted, so bypass any proxy.
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    mkdir "$work/data"
}

# Waits until a started process responds to requests.
wait_for() { # name, process, URL
    local attempt
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$3" 2>/dev/null && return
        kill -0 "$2" 2>/dev/null || die "the $1 exited before it was ready"
        sleep 0.1
    done
    die "the $1 was not ready after $attempt attempts"
}

# Starts the simulator, which accepts registered accounts only, and the server.
start_both() {
    [[ -x $binary ]] || die "no binary at $binary; run cargo build"
    "$binary" simulator --closed --listen "${simulator_url#http://}" >"$work/simulator.log" 2>&1 </dev/null &
    simulator=$!
    "$binary" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    wait_for simulator "$simulator" "$simulator_url/control/state"
    wait_for server "$server" "$server_url/readyz"
}

# Runs a comparison in the background, because bash handles signals only while it waits.
check() { # client, script, arguments...
    local status=0 client=$1
    shift
    "$venv/bin/python" "$@" </dev/null &
    checker=$!
    wait "$checker" || status=$?
    checker=''
    ((status == 0)) || die "the server differs from $client's official client, or the check could not run"
}

prepare_venv "facebook_business and stripe" "$venv/bin/python" -c 'import facebook_business, stripe'
choose_settings
start_both
KEY=$("$binary" admin key create --permission full)
export KEY
check Meta scripts/network_a_oracle.py "$server_url" "$simulator_url"
check Stripe scripts/stripe_oracle.py "$server_url"
