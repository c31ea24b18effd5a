#!/usr/bin/env bash
# Holds a running server against its own interface description: scripts/schemathesis.sh ENGINE EXAMPLES
#
# ENGINE is `sqlite` or `postgres` (the latter in a fresh schema of the server at TEST_DATABASE_URL), EXAMPLES
# the number of generated requests per operation. TRIBUTARY_BIN names another binary than target/debug/tributary.
# Whatever is started or made is stopped and removed again, except the Python environment under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned as a whole: another generator version would make other requests from the same seed.
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

# Stops what was started here, whatever the reason to end; a failure shows what the server had to say.
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
        printf '\nThe last lines of the server (%s):\n' "$engine" >&2
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

# Sets the server's environment: a data folder of its own and, for PostgreSQL, a schema of its own.
choose_settings() {
    local separator='?'
    # Settings of whoever calls must not reach the server under test.
    unset "${!TRIBUTARY_@}"
    port=$("$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    base=http://127.0.0.1:$port
    export TRIBUTARY_LISTEN=127.0.0.1:$port TRIBUTARY_DATA_DIR=$work/data
    # Generated requests may connect a network and try it out: nobody listens there.
    local network
    for network in A__BASE_URL B__BASE_URL B__TOKEN_URL C__BASE_URL D__BASE_URL; do
        export "TRIBUTARY_NETWORKS__NETWORK_$network=http://127.0.0.1:9"
    done
    # The only host talked to is this one, proxy or not.
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    mkdir "$work/data"
    if [[ $engine == postgres ]]; then
        [[ -n ${TEST_DATABASE_URL:-} ]] || die "TEST_DATABASE_URL must name a PostgreSQL server"
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

# Starts the server and waits until it is ready to answer.
start_server() {
    [[ -x $binary ]] || die "no binary at $binary; cargo build makes it"
    "$binary" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    local attempt
    for attempt in {1..300}; do
        curl -fsS -o /dev/null --max-time 2 "$base/readyz" 2>/dev/null && return
        kill -0 "$server" 2>/dev/null || die "the server ended before it was ready"
        sleep 0.1
    done
    die "the server was not ready after $attempt attempts"
}

# Posts a document and prints the `id` of what it made.
create() { # path, document
    local answer
    answer=$(curl -sS --max-time 10 -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d "$2" "$base$1")
    "$venv/bin/python" -c 'import json, sys; print(json.loads(sys.argv[1])["data"]["id"])' "$answer" 2>/dev/null ||
        die "POST $1 made nothing: $answer"
}

# Makes an app and links, so that generated requests meet something that exists.
create_records() {
    key=$("$binary" admin key create --permission full)
    # Website events are taken, or that door would answer nothing but 403.
    app=$(create /api/v1/apps '{"name":"Described","webEvents":{"enabled":true}}')
    sdk_key=$(curl -fsS --max-time 10 -H "Authorization: Bearer $key" "$base/api/v1/apps/$app" |
        "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["data"]["sdk"]["liveKey"])')
    links=()
    local number
    # The first is looked at and changed, the others are there to be deleted.
    for number in {1..9}; do
        links+=("$(create "/api/v1/apps/$app/links" "{\"name\":\"Described $number\"}")")
    done
}

# Writes the two configurations; the description itself says what its path parameters are called.
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
# Both would mean that the requests did not reach what they are to check.
warnings.fail-on = ["missing_auth", "rate_limited"]
"""
# The doors of the SDK take more than they describe: a bad event is answered in its place, not with 422, and an
# amount may be a string. They are sent what is described; the acceptance tests send the rest. This comes first,
# because the first rule that fits an operation is the one that holds.
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

# Not always the same one: it would be gone after the first request.
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
    # One worker, so that a seed always makes the same run. It works in the temporary folder and leaves nothing here.
    # In the background, because bash answers a signal only while it waits.
    (cd "$work" && exec "$venv/bin/schemathesis" --config-file "$work/$1.toml" run "$base/openapi.yaml" \
        --checks all --exclude-checks positive_data_acceptance --phases "$2" --max-examples "$3" --seed "$seed" \
        --workers 1 --request-timeout 10 --generation-database none --suppress-health-check too_slow \
        --continue-on-failure --no-color) </dev/null &
    checker=$!
    wait "$checker" || status=$?
    checker=''
    ((status == 0)) || die "the server and its description disagree ($engine, $1 ids), or the check could not run"
    kill -0 "$server" 2>/dev/null || die "the server is gone"
}

prepare_venv "schemathesis" "$venv/bin/schemathesis" --version
choose_settings
start_server
create_records
write_configs
# With ids that exist, to get past the 404. Not stateful: there, ids come from earlier answers.
check known examples,coverage,fuzzing "$examples"
# With whatever is generated or was answered before.
check free examples,coverage,fuzzing,stateful $(((examples + 4) / 5))
