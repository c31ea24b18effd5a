#!/usr/bin/env bash
# Holds network_a against its official client: scripts/network_a_oracle.sh
#
# Starts the simulator and a server that sends to it, and has scripts/network_a_oracle.py compare what arrives with
# what the network's own Python client makes of the same facts, and send with that client. The client is fetched from
# PyPI for this test only; its licence ties it to the network's services. TRIBUTARY_BIN names another binary than
# target/debug/tributary. Whatever is started or made is stopped and removed again, except the Python environment
# under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned as a whole: what another version does differently is to be looked at, not to be stumbled over.
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

# Stops what was started here, whatever the reason to end; a failure shows what both had to say.
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
            printf '\nThe last lines of the %s:\n' "$name" >&2
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

# Sets the environment: a data folder of its own, and the simulator in place of every network.
choose_settings() {
    local ports network
    # Settings of whoever calls must not reach the server under test.
    unset "${!TRIBUTARY_@}"
    # Both are held until both are known, or they could be the same.
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
    # No test asks a bank for its rates.
    export TRIBUTARY_RATES__URL=
    export TRIBUTARY_RATES__SECOND_URL=
    # People tap from addresses of their own, as if there were a proxy.
    export TRIBUTARY_TRUSTED_PROXIES=127.0.0.1
    # The only host talked to is this one, proxy or not.
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    mkdir "$work/data"
}

# Waits until a process that was started answers.
wait_for() { # name, process, URL
    local attempt
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$3" 2>/dev/null && return
        kill -0 "$2" 2>/dev/null || die "the $1 ended before it was ready"
        sleep 0.1
    done
    die "the $1 was not ready after $attempt attempts"
}

# Starts the simulator, which takes registered accounts only, and the server.
start_both() {
    [[ -x $binary ]] || die "no binary at $binary; cargo build makes it"
    "$binary" simulator --closed --listen "${simulator_url#http://}" >"$work/simulator.log" 2>&1 </dev/null &
    simulator=$!
    "$binary" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    wait_for simulator "$simulator" "$simulator_url/control/state"
    wait_for server "$server" "$server_url/readyz"
}

# Lets things happen, compares and sends. In the background, because bash answers a signal only while it waits.
check() {
    local key status=0
    key=$("$binary" admin key create --permission full)
    KEY=$key "$venv/bin/python" scripts/network_a_oracle.py "$server_url" "$simulator_url" </dev/null &
    checker=$!
    wait "$checker" || status=$?
    checker=''
    ((status == 0)) || die "network_a and its official client disagree, or the check could not run"
}

prepare_venv "facebook_business" "$venv/bin/python" -c 'import facebook_business'
choose_settings
start_both
check
