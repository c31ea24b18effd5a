#!/usr/bin/env bash
# Builds the last commit with another PostgreSQL schema and replaces it by this version under load. Needs the binary of
# this version, the repository's history and TEST_DATABASE_URL.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
changed=$(git log -n 1 --format=%H -- crates/store-postgres/migrations)
older=$(mktemp -d)
trap 'rm -rf "$older"' EXIT
git archive "$changed^" | tar -x -C "$older"
echo "the older version is $(git log -n 1 --format='%h, %s' "$changed^")"
# A separate folder: artifacts of two versions in one would replace each other.
(cd "$older" && CARGO_TARGET_DIR="$target/older" cargo build --locked -p tributary-server)
TRIBUTARY_OLDER_BINARY="$target/older/debug/tributary" \
    cargo test --locked -p tributary-acceptance operation::upgrade -- --nocapture
