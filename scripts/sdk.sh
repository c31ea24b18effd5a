#!/usr/bin/env bash
# Checks the TypeScript SDK: types, build, size, package, and all tests with a real server and Chromium.
#
# TRIBUTARY_BIN overrides target/debug/tributary, and CHROMIUM_BIN the installed browser. Build dependencies are installed
# in sdk/typescript/node_modules from package-lock.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
TRIBUTARY_BIN=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
export TRIBUTARY_BIN
# The tests only connect to this host, so they bypass any proxy.
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh

[[ -x $TRIBUTARY_BIN ]] || die "no binary at $TRIBUTARY_BIN; run cargo build"
find_node "$target/node-venv"
cd sdk/typescript
install_packages
node_modules/.bin/tsc --noEmit
echo "types: ok"
node scripts/build.mjs
node scripts/size.mjs | tee "$work/size"
node scripts/package.mjs
status=0
node scripts/test.mjs | tee "$work/tests" || status=$?

# ./test counts results in cargo's format.
count() { awk -v what="$1" '$2 == what { found = $3 } END { print found + 0 }' "$work/tests"; }
passed=$(count pass) failed=$(($(count fail) + $(count cancelled)))
printf '\nSDK, TypeScript: %s s; %s\n' "$SECONDS" "$(<"$work/size")"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
