#!/usr/bin/env bash
# Tests the conformance suite for SDKs: the reference SDK passes, and faulty SDKs fail. Then runs the suite with the
# TypeScript SDK, which scripts/sdk.sh has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# The tests only connect to this host, so they bypass any proxy.
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh

[[ -f sdk/typescript/dist/index.js ]] || die "sdk/typescript/dist is missing; run scripts/sdk.sh"
find_node "$target/node-venv"
status=0
# In one process that ends with its last test: a file that the runner had started itself once stayed open until its time
# limit, after all tests had passed. Each wait of a scenario has a limit.
node --test-force-exit --test-reporter=spec sdk/conformance/test/suite.test.mjs | tee "$work/tests" || status=$?
echo
node sdk/conformance/run.mjs -- node sdk/typescript/test/conformance/driver.mjs | tee "$work/typescript" || status=$?

# ./test counts results in cargo's format.
count() { awk -v what="$1" '$2 == what { found = $3 } END { print found + 0 }' "$work/tests"; }
scenarios() { awk -v what="$1" '$0 ~ / passed, / { found = $(what) } END { print found + 0 }' "$work/typescript"; }
passed=$(($(count pass) + $(scenarios 1))) failed=$(($(count fail) + $(count cancelled) + $(scenarios 3)))
printf '\nSDK, conformance: %s s\n' "$SECONDS"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
