#!/usr/bin/env bash
# Tests the dashboard and the ways to sign in in Chromium, and checks every page with axe. With --long, it also answers
# ten questions of a marketer from the pages of the demo.
#
# TRIBUTARY_BIN overrides target/debug/tributary, and CHROMIUM_BIN the installed browser. Screenshots of every page, at
# two widths in light and dark mode, are written to target/dashboard-screenshots or SCREENSHOTS_DIR.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests=(journey.test.mjs accounts.test.mjs)
case ${1:-} in
    '') ;;
    --long) tests+=(questions.test.mjs) ;;
    *) echo "usage: scripts/dashboard.sh [--long]" >&2; exit 2 ;;
esac

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
TRIBUTARY_BIN=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
export TRIBUTARY_BIN CARGO_TARGET_DIR=$target
# The tests only connect to this host, so they bypass any proxy.
export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh

[[ -x $TRIBUTARY_BIN ]] || die "no binary at $TRIBUTARY_BIN; run cargo build"
find_node "$target/node-venv"
cd acceptance/browser
install_packages
status=0
node --test --test-reporter=spec --test-timeout=1080000 --test-concurrency=1 "${tests[@]}" | tee "$work/tests" || status=$?

# ./test counts results in cargo's format.
count() { awk -v what="$1" '$2 == what { found = $3 } END { print found + 0 }' "$work/tests"; }
passed=$(count pass) failed=$(($(count fail) + $(count cancelled)))
printf '\nDashboard in Chromium: %s s\n' "$SECONDS"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
