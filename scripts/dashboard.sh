#!/usr/bin/env bash
# Drives the dashboard in Chromium, from the set-up to the sign-out, and looks at every page with axe.
#
# TRIBUTARY_BIN names another binary than target/debug/tributary, CHROMIUM_BIN another browser than the machine's.
# Screenshots of every page, at two widths in light and dark, are left in target/dashboard-screenshots, or where
# SCREENSHOTS_DIR says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
TRIBUTARY_BIN=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
export TRIBUTARY_BIN CARGO_TARGET_DIR=$target
# The only host talked to by the tests is this one, proxy or not.
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh

[[ -x $TRIBUTARY_BIN ]] || die "no binary at $TRIBUTARY_BIN; cargo build makes it"
find_node "$target/node-venv"
cd acceptance/browser
install_packages
status=0
node --test --test-reporter=spec --test-timeout=300000 journey.test.mjs | tee "$work/tests" || status=$?

# In cargo's words, which ./test counts.
count() { awk -v what="$1" '$2 == what { found = $3 } END { print found + 0 }' "$work/tests"; }
passed=$(count pass) failed=$(($(count fail) + $(count cancelled)))
printf '\nDashboard in Chromium: %s s\n' "$SECONDS"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
