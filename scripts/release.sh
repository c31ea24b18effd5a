#!/usr/bin/env bash
# Makes the files of a release: scripts/release.sh [FOLDER]
#
# Builds the static binary for this machine's architecture, writes its bill of materials (CycloneDX) beside it, and the
# SHA-256 sums of both. Needs musl-tools and the target of rustup. The folder is target/release-files by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# > 1)); then
    echo "usage: scripts/release.sh [FOLDER]" >&2
    exit 2
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$(realpath -m "${1:-$target/release-files}")
platform=$(uname -m)-unknown-linux-musl
version=$(cargo metadata --locked --format-version 1 --no-deps |
    python3 -c 'import json, sys
print(next(one["version"] for one in json.load(sys.stdin)["packages"] if one["name"] == "tributary-server"))')
name=tributary-$version-$platform

# The time of the commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
cargo build --locked --profile dist --target "$platform" -p tributary-server
mkdir -p "$folder"
install -m 755 "$target/$platform/dist/tributary" "$folder/$name"
scripts/sbom.py --target "$platform" >"$folder/$name.cdx.json"
(cd "$folder" && sha256sum "$name" "$name.cdx.json" >"$name.sha256")
echo "the files of the release are in $folder"
