#!/usr/bin/env bash
# Builds the examples in sdk/typescript/examples with the packed SDK, which scripts/sdk.sh has built: HTML and React, with
# --long also Next.js and Vue.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

examples=(react)
case ${1:-} in
    '') ;;
    --long) examples+=(next vue) ;;
    *) echo "usage: ${0##*/} [--long]" >&2; exit 2 ;;
esac
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export NEXT_TELEMETRY_DISABLED=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh

[[ -f sdk/typescript/dist/index.js ]] || die "sdk/typescript/dist is missing; run scripts/sdk.sh"
find_node "$target/node-venv"
(cd sdk/typescript && npm pack --silent --ignore-scripts --pack-destination "$work" >/dev/null)
tar -xzf "$work"/tributary-sdk-*.tgz -C "$work"

# HTML needs no build: the page and the packed script are served as they are.
cd sdk/typescript/examples
mkdir "$work/html"
cp html/* "$work/package/dist/tributary.js" "$work/html"
for script in "$work"/html/*.js; do node --check "$script"; done
echo "example html: ok"
for example in "${examples[@]}"; do
    (
        cd "$example"
        install_packages
        rm -rf node_modules/tributary-sdk
        cp -r "$work/package" node_modules/tributary-sdk
        npm run --silent build
    )
    echo "example $example: ok"
done
printf '\nSDK, examples: %s s\n' "$SECONDS"
echo "test result: ok. $((${#examples[@]} + 1)) passed; 0 failed;"
