#!/usr/bin/env bash
# Tests a running server against its OpenAPI description: scripts/schemathesis.sh ENGINE EXAMPLES
#
# ENGINE is `sqlite` or `postgres` (the latter in a new schema of the server at TEST_DATABASE_URL), EXAMPLES the number
# of generated requests per operation. TRIBUTARY_BIN overrides target/debug/tributary. Everything is stopped and removed
# afterwards, except the Python environment under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All versions are pinned: another version would generate other requests from the same seed.
requirements='anyio==4.16.0
certifi==2026.10.18
charset-normalizer==3.5.2
click==8.5.1
graphql-core==3.3.2
harfile==0.6.0
hypothesis==6.170.15
hypothesis-graphql==0.13.5
idna==3.20
iniconfig==2.3.1
jsonschema_rs==0.60.3
markdown-it-py==4.3.0
MarkupSafe==3.0.4
mdurl==0.1.2
packaging==26.3
pluggy==1.7.0
Pygments==2.21.0
pyrate-limiter==4.5.1
pytest==9.2.0
PyYAML==6.0.3
requests==2.34.2
rich==15.0.0
schemathesis==4.32.5
sortedcontainers==2.4.0
typing_extensions==4.16.0
urllib3==2.8.0
Werkzeug==3.1.9'

engine=${1:-} examples=${2:-}
if [[ ! $engine =~ ^(sqlite|postgres)$ || ! $examples =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: scripts/schemathesis.sh sqlite|postgres EXAMPLES" >&2
    exit 2
fi

seed=20250101
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
binary=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
venv=$target/schemathesis-venv
work=$(mktemp -d)
server='' checker='' schema=''

# Stops all started processes on every exit. After a failure, prints the end of the server's log.
cleanup() {
    local status=$? process
    trap - EXIT
    trap '' INT TERM HUP PIPE
    for process in $checker $server; do
        kill -TERM "$process" 2>/dev/null || true
        timeout 10 tail -f -s 0.1 --pid="$process" /dev/null || kill -KILL "$process" 2>/dev/null || true
    done
    if [[ -n $schema ]]; then
        psql "$TEST_DATABASE_URL" -qXc "drop schema if exists $schema cascade" 2>"$work/psql.log" || cat "$work/psql.log" >&2
    fi
    if ((status != 0)) && [[ -s $work/server.log ]]; then
        printf '\nEnd of the server log (%s):\n' "$engine" >&2
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

# Sets the server's environment: a new data folder and, for PostgreSQL, a new schema.
choose_settings() {
    local separator='?'
    # The caller's settings must not affect the server under test.
    unset "${!TRIBUTARY_@}"
    port=$("$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    base=http://127.0.0.1:$port
    export TRIBUTARY_LISTEN=127.0.0.1:$port TRIBUTARY_DATA_DIR=$work/data
    # Generated requests may test integrations, so the networks' URLs point to a closed port.
    local network
    for network in A__BASE_URL B__BASE_URL B__TOKEN_URL C__BASE_URL D__BASE_URL; do
        export "TRIBUTARY_NETWORKS__NETWORK_$network=http://127.0.0.1:9"
    done
    # Only this host is contacted, so bypass any proxy.
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    mkdir "$work/data"
    if [[ $engine == postgres ]]; then
        [[ -n ${TEST_DATABASE_URL:-} ]] || die "TEST_DATABASE_URL must be the URL of a PostgreSQL server"
        PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
        local name=schemathesis_$$_$RANDOM
        psql "$TEST_DATABASE_URL" -qXc "create schema $name"
        schema=$name
        [[ $TEST_DATABASE_URL == *\?* ]] && separator='&'
        export TRIBUTARY_DATABASE_URL="$TEST_DATABASE_URL${separator}options=-csearch_path%3D$schema"
        TRIBUTARY_SECRET_KEY=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
        export TRIBUTARY_SECRET_KEY
    fi
}

# Starts the server and waits until it is ready.
start_server() {
    [[ -x $binary ]] || die "no binary at $binary; run cargo build"
    "$binary" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    local attempt
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$base/readyz" 2>/dev/null && return
        kill -0 "$server" 2>/dev/null || die "the server exited before it was ready"
        sleep 0.1
    done
    die "the server was not ready after $attempt attempts"
}

# Posts a document and prints the `id` of the created resource.
create() { # path, document
    local answer
    answer=$(curl -sS --max-time 10 -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d "$2" "$base$1")
    "$venv/bin/python" -c 'import json, sys; print(json.loads(sys.argv[1])["data"]["id"])' "$answer" 2>/dev/null ||
        die "POST $1 created nothing: $answer"
}

# Creates an app and links, so that generated requests can refer to existing resources.
create_records() {
    key=$("$binary" admin key create --permission full)
    # Enable web events, because otherwise the endpoint would always return 403.
    app=$(create /api/v1/apps '{"name":"Described","webEvents":{"enabled":true}}')
    sdk_key=$(curl -fsS --max-time 10 -H "Authorization: Bearer $key" "$base/api/v1/apps/$app" |
        "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["data"]["sdk"]["liveKey"])')
    links=()
    local number
    # The first link is read and changed; the others can be deleted.
    for number in {1..9}; do
        links+=("$(create "/api/v1/apps/$app/links" "{\"name\":\"Described $number\"}")")
    done
}

# Writes the two configurations. The names of path parameters come from the description.
write_configs() {
    curl -fsS --max-time 10 -o "$work/openapi.yaml" "$base/openapi.yaml" || die "no description at $base/openapi.yaml"
    KEY=$key SDK_KEY=$sdk_key "$venv/bin/python" - "$work" "$app" "${links[@]}" <<'PYTHON'
import json, os, re, sys, yaml

work, app, link, *spare = sys.argv[1:]
with open(f"{work}/openapi.yaml", encoding="utf-8") as file:
    paths = yaml.safe_load(file)["paths"]
names = [m.groups() for m in (re.search(r"/apps/\{([^}]+)\}/links/\{([^}]+)\}$", path) for path in paths) if m]
if not names:
    sys.exit("schemathesis.sh: the description has no path that ends in /apps/{…}/links/{…}")
app_name, link_name = names[0]
common = f"""
cache.enabled = false
headers = {{ Authorization = {json.dumps("Bearer " + os.environ["KEY"])}, X-Tributary-Key = {json.dumps(os.environ["SDK_KEY"])} }}
# Either of these warnings means that requests did not reach the tested handlers.
warnings.fail-on = ["missing_auth", "rate_limited"]
"""
# The SDK endpoints accept more than they describe: an invalid event gets its own result instead of 422, and an amount
# may be a string. Here they receive only valid data; the acceptance tests send the rest. This section comes first,
# because the first matching rule applies.
patient = """
[[operations]]
include-path-regex = "^/api/track/"
generation.mode = "positive"
"""
known = f"""
[dictionaries.spare_links]
values = {json.dumps(spare)}

[parameters]
"path.{app_name}" = "{app}"

[[operations]]
exclude-method = "DELETE"
parameters = {{ "path.{link_name}" = "{link}" }}

# Several links, because each can be deleted only once.
[[operations]]
include-method = "DELETE"
parameters = {{ "path.{link_name}" = {{ dictionary = "spare_links", probability = 0.7 }} }}
"""
for name, text in (("known", common + patient + known), ("free", common + patient)):
    with open(f"{work}/{name}.toml", "w", encoding="utf-8") as file:
        file.write(text)
PYTHON
}

# Runs schemathesis with one of the configurations.
check() { # configuration, phases, examples
    printf '\n%s, %s ids: %s, at most %s examples\n' "$engine" "$1" "$2" "$3"
    local status=0
    # One worker, so that a seed always produces the same run. It writes only to the temporary folder. It runs in the
    # background, because bash handles signals only while it waits.
    (cd "$work" && exec "$venv/bin/schemathesis" --config-file "$work/$1.toml" run "$base/openapi.yaml" \
        --checks all --exclude-checks positive_data_acceptance --phases "$2" --max-examples "$3" --seed "$seed" \
        --workers 1 --request-timeout 10 --generation-database none --suppress-health-check too_slow \
        --continue-on-failure --no-color) </dev/null &
    checker=$!
    wait "$checker" || status=$?
    checker=''
    ((status == 0)) || die "the server does not match its description ($engine, $1 ids), or the check could not run"
    kill -0 "$server" 2>/dev/null || die "the server exited"
}

prepare_venv "schemathesis" "$venv/bin/schemathesis" --version
choose_settings
start_server
create_records
write_configs
# With existing ids, to get past 404. Without the stateful phase, because it takes ids from earlier responses.
check known examples,coverage,fuzzing "$examples"
# With generated ids and ids from earlier responses.
check free examples,coverage,fuzzing,stateful $(((examples + 4) / 5))
