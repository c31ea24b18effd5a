# shellcheck shell=bash
# Prerequisites for the tests. ./test sources this file, which installs missing packages with apt-get.
# shellcheck disable=SC2154 # $work is set by ./test

# Adds PostgreSQL's program folders to PATH, newest version first, because Debian does not.
find_postgres() {
    PATH=$PATH:$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV | paste -sd:)
}

# Non-login shells may not have cargo's folder in PATH.
PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
# PgBouncer is in a folder that only root has in PATH.
PATH=$PATH:/usr/sbin
find_postgres

# Runs a command as root, with sudo if necessary.
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

# Installs PostgreSQL without creating the default cluster; the tests create their own.
install_postgres() {
    local conf=/etc/postgresql-common/createcluster.conf
    install_packages postgresql-common
    as_root cp "$conf" "$conf.before-tests"
    echo 'create_main_cluster = false' | as_root tee -a "$conf" >/dev/null
    local status=0
    install_packages postgresql || status=$?
    # Restore the configuration for later installations.
    as_root mv "$conf.before-tests" "$conf"
    find_postgres
    return "$status"
}

# Installs PgBouncer. The tests start their own, so the service that Debian starts is stopped.
install_pgbouncer() {
    install_packages pgbouncer || return
    [[ ! -d /run/systemd/system ]] || quietly as_root systemctl disable --now pgbouncer
}

# Checks all prerequisites and installs the missing ones.
install_needs() {
    command -v cargo >/dev/null || { echo "cargo is missing; install a Rust toolchain from https://rustup.rs"; return 1; }
    # Needed for linking, and for the C code in SQLite and ring.
    command -v cc >/dev/null || install_packages gcc libc6-dev
    command -v curl >/dev/null || install_packages curl
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || install_packages ca-certificates
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3 python3-venv
    # Also with TEST_DATABASE_URL: some tests start servers of their own, which they stop and freeze.
    if ! { command -v initdb && command -v pg_ctl && command -v pg_basebackup && command -v postgres; } >/dev/null; then
        install_postgres
    fi
    command -v pgbouncer >/dev/null || install_pgbouncer
    command -v ps >/dev/null || install_packages procps
    command -v psql >/dev/null || install_packages postgresql-client
    # For the browser tests of the SDK and the dashboard.
    command -v chromium >/dev/null || install_packages chromium
    # For the Android SDK.
    command -v javac >/dev/null || install_packages default-jdk-headless
    # The minimal toolchain does not include them.
    local component
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        echo "installing: $component"
        rustup --quiet component add "$component"
    done
    echo "$(cargo --version), $(psql --version), $(python3 --version)"
}
