# shellcheck shell=bash
# Shared functions for the scripts that use Python packages. To be sourced, with $venv, $requirements and $work set.
# shellcheck disable=SC2154

# Prints an error and exits.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Creates the Python environment, unless it already has exactly these versions and the command works.
prepare_venv() { # what it is for, command...
    local words=$1
    shift
    if [[ -f $venv/requirements.txt && $(<"$venv/requirements.txt") == "$requirements" ]] && "$@" >/dev/null 2>&1; then
        return
    fi
    echo "installing: $words into $venv"
    python3 -m venv --clear "$venv"
    printf '%s\n' "$requirements" >"$work/requirements.txt"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$work/requirements.txt"
    # Written last, so that an interrupted installation is repeated.
    cp "$work/requirements.txt" "$venv/requirements.txt"
}
