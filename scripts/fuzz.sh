#!/usr/bin/env bash
# Fuzzes the named targets in fuzz/, or all of them, with cargo-fuzz. New inputs that reach new code are stored in the
# target folder for the next run; the committed corpus does not change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="usage: scripts/fuzz.sh SECONDS [TARGET...]"
seconds=${1:?$usage}
shift

missing=()
cargo fuzz --version >/dev/null 2>&1 || missing+=("cargo-fuzz (cargo install cargo-fuzz)")
cargo +nightly --version >/dev/null 2>&1 || missing+=("a nightly compiler (rustup toolchain install nightly)")
command -v c++ >/dev/null || missing+=("a C++ compiler (to build libFuzzer)")
if ((${#missing[@]} > 0)); then
    printf 'SKIPPED: fuzzing requires %s\n' "${missing[@]}"
    exit 0
fi

# Fuzz with the same dependency versions as the product.
cp Cargo.lock fuzz/libfuzzer/Cargo.lock
if (($# == 0)); then
    mapfile -t targets < <(basename -a -s .rs fuzz/fuzz_targets/*.rs)
    set -- "${targets[@]}"
fi
built=${CARGO_TARGET_DIR:-target}/fuzz found=${CARGO_TARGET_DIR:-target}/fuzz-corpus
for target in "$@"; do
    mkdir -p "$found/$target"
    # libFuzzer writes to the first folder and only reads the others.
    cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer --target-dir "$built" "$target" "$found/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=30
done
