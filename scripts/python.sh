# shellcheck shell=bash
# What the scripts that need packages of Python share. To be sourced, with $venv, $requirements and $work set.
# shellcheck disable=SC2154

# Says what went wrong and ends.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Makes the environment, unless it is there with exactly these versions and the command works.
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
    # Written last: an interrupted installation is not taken for a complete one.
    cp "$work/requirements.txt" "$venv/requirements.txt"
}
