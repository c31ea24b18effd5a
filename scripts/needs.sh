# shellcheck shell=bash
# What the tests need of the machine. Sourced by ./test; installs with apt-get only what is not there.
# shellcheck disable=SC2154 # $work is set by ./test

# Adds the folders of PostgreSQL's programs, the newest first: Debian has them outside of PATH.
find_postgres() {
    PATH=$PATH:$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV | paste -sd:)
}

# A build machine may not have read the profile that names cargo's folder.
PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
find_postgres

# Runs a command as root, by whatever right there is.
as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# Installs Debian packages.
install_packages() {
    echo "installing: $*"
    if [[ ! -f $work/apt-updated ]]; then
        quietly as_root apt-get update || return
        touch "$work/apt-updated"
    fi
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Installs PostgreSQL without the cluster that the package would make and start: the tests have their own.
install_postgres() {
    local conf=/etc/postgresql-common/createcluster.conf
    install_packages postgresql-common
    as_root cp "$conf" "$conf.before-tests"
    echo 'create_main_cluster = false' | as_root tee -a "$conf" >/dev/null
    local status=0
    install_packages postgresql || status=$?
    # As it was, for whoever wants a cluster later.
    as_root mv "$conf.before-tests" "$conf"
    find_postgres
    return "$status"
}

# Looks at everything that is needed and installs what is missing.
install_needs() {
    command -v cargo >/dev/null || { echo "cargo is missing; https://rustup.rs installs a Rust toolchain"; return 1; }
    # Rust links with it, and SQLite and ring are partly C.
    command -v cc >/dev/null || install_packages gcc libc6-dev
    command -v curl >/dev/null || install_packages curl
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || install_packages ca-certificates
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3 python3-venv
    if [[ -z ${TEST_DATABASE_URL:-} ]] && ! { command -v initdb && command -v pg_ctl && command -v postgres; } >/dev/null; then
        install_postgres
    fi
    command -v psql >/dev/null || install_packages postgresql-client
    # The SDK is tried out in a browser.
    command -v chromium >/dev/null || install_packages chromium
    # A minimal toolchain comes without them.
    local component
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        echo "installing: $component"
        rustup --quiet component add "$component"
    done
    echo "$(cargo --version), $(psql --version), $(python3 --version)"
}
