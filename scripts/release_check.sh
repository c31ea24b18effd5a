#!/usr/bin/env bash
# Checks the files of a release: scripts/release_check.sh FOLDER
#
# The sums; that binaries are static; the bills of materials; the Debian package with lintian, and by installing,
# upgrading, removing and purging it in a copy of this machine's root; the image with skopeo, and by starting it in an
# empty root; the packages of the SDKs with npm; and the archives. Then makes everything again from the same binaries,
# and compares the bytes. Needs root or sudo, and the packages lintian and skopeo. Nothing is left behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# != 1)) || [[ ! -d $1 ]]; then
    echo "usage: scripts/release_check.sh FOLDER" >&2
    exit 2
fi
folder=$(realpath "$1")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d)
server='' port=''

# shellcheck source=scripts/node.sh
source scripts/node.sh

# Runs a command as root, with sudo if necessary.
as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

cleanup() {
    local status=$?
    trap - EXIT
    trap '' INT TERM HUP PIPE
    if [[ -n $server ]]; then
        as_root kill -TERM -- "-$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if ((status != 0)) && [[ -s $work/server.log ]]; then cat "$work/server.log" >&2; fi
    as_root rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

check_sums() {
    (cd "$folder" && sha256sum --check --strict --quiet SHA256SUMS) || die "the sums are wrong"
    local listed existing
    listed=$(cut -c 67- "$folder/SHA256SUMS" | sort)
    existing=$(cd "$folder" && find . -type f -not -name SHA256SUMS -printf '%P\n' | sort)
    [[ $listed == "$existing" ]] || die "SHA256SUMS lists other files than there are: $(diff <(echo "$listed") <(echo "$existing"))"
    echo "sums: ok"
}

check_binary() { # file
    local headers
    headers=$(readelf --program-headers --dynamic --wide "$1")
    if grep -E 'INTERP|NEEDED' <<<"$headers"; then die "$1 is not static"; fi
    if readelf --sections --wide "$1" | grep -F .symtab; then die "$1 is not stripped"; fi
    if grep -aqF "$PWD/" "$1"; then die "$1 contains the path of the folder in which it was built"; fi
    echo "${1##*/}: static"
}

# Checks the package in a copy of this machine's root, which is gone afterwards with its mount namespace.
check_deb() { # file
    local copy=$work/copy files
    lintian --fail-on error,warning --tag-display-limit 0 "$1" || die "lintian rejects the package"
    files=$(dpkg-deb --contents "$1" | awk '{ print $6 }')
    local wanted
    for wanted in usr/bin/tributary usr/lib/systemd/system/tributary.service usr/lib/sysusers.d/tributary.conf \
        etc/tributary/environment usr/share/man/man1/tributary.1.gz usr/share/doc/tributary/copyright; do
        grep -qx "./$wanted" <<<"$files" || die "the package lacks $wanted"
    done
    [[ $(dpkg-deb --field "$1" Version) == "$version" ]] || die "the package has another version"
    # The same files as a later version.
    dpkg-deb --raw-extract "$1" "$work/later"
    sed -i "s/^Version: .*/&+later/" "$work/later/DEBIAN/control"
    dpkg-deb --root-owner-group -Znone --build "$work/later" "$work/later.deb" >/dev/null
    cp "$1" "$work/first.deb"
    mkdir "$copy"
    as_root unshare --mount bash -euo pipefail -s "$work" "$copy" <<'ROOT'
        mount -t tmpfs tmpfs "$2"
        mkdir "$2"/{upper,work,root}
        mount -t overlay overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" "$2/root"
        mount -t proc proc "$2/root/proc"
        mount --rbind /dev "$2/root/dev"
        mount -t tmpfs tmpfs "$2/root/tmp"
        mount -t tmpfs tmpfs "$2/root/run"
        chmod 1777 "$2/root/tmp"
        cp "$1"/{first,later}.deb scripts/release_deb.sh "$2/root/tmp/"
        chroot "$2/root" bash /tmp/release_deb.sh
ROOT
    echo "${1##*/}: ok"
}

# Runs the binary as the image does.
in_image() { # user, root, arguments...
    as_root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" "TRIBUTARY_LISTEN=127.0.0.1:$port" \
        TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL='' chroot --userspec="$1" "$2" "$entrypoint" "${@:3}"
}

# Prints a part of the image's configuration.
configured() { # expression
    python3 -c 'import json, sys; image = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/config" "$1"
}

# Reads the image in both formats of the archive and starts the server in its root file system.
check_image() { # file
    local format user root=$work/root environment entrypoint layer tries strangers
    for format in oci-archive docker-archive; do
        skopeo inspect --config "$format:$1" >"$work/$format"
    done
    cmp "$work/oci-archive" "$work/docker-archive" || die "the two indexes of the image differ"
    mv "$work/oci-archive" "$work/config"
    user=$(configured 'image["config"]["User"]')
    entrypoint=$(configured 'image["config"]["Entrypoint"][0]')
    mapfile -t environment < <(configured '"\n".join(image["config"]["Env"])')
    [[ $(configured 'image["config"]["Labels"]["org.opencontainers.image.version"]') == "$version" ]] ||
        die "the image has another version"
    skopeo copy --quiet --insecure-policy "oci-archive:$1" "dir:$work/image"
    as_root mkdir "$root"
    layer=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["layers"][0]["digest"].split(":")[1])' \
        "$work/image/manifest.json")
    as_root tar --extract --gzip --file "$work/image/$layer" --directory "$root"
    chmod 755 "$work"
    touch "$work/before"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    # A separate process group, so that it can be stopped as a whole.
    set -m
    in_image "$user" "$root" serve >"$work/server.log" 2>&1 </dev/null &
    server=$!
    set +m
    for ((tries = 0; tries < 100; tries++)); do
        if curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/readyz" >/dev/null; then break; fi
        kill -0 "$server" 2>/dev/null || die "the server exited"
        sleep 0.2
    done
    ((tries < 100)) || die "the server did not become ready"
    in_image "$user" "$root" admin key create --permission full >"$work/key"
    curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/api/v1/apps" \
        --header "Authorization: Bearer $(<"$work/key")" >/dev/null || die "the server rejected the key"
    strangers=$(as_root find "$root" -mindepth 1 -newer "$work/before" -not -path "$root/data*")
    [[ -z $strangers ]] || die "files were written outside /data: $strangers"
    echo "${1##*/}: starts in its root file system as user $user, and writes to /data only"
}

# Installs the SDKs in an empty app, and looks into the clients, whose own tests install them.
check_packages() {
    local app=$work/app file
    mkdir "$app"
    cd "$app"
    npm init --yes >/dev/null
    # Without React Native, which is not needed to look at the files.
    npm install --offline --legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel=error \
        "$folder/tributary-sdk-$version.tgz" "$folder/tributary-react-native-$version.tgz" >/dev/null
    node -e 'if (typeof require("tributary-sdk").configure !== "function") process.exit(1)' || die "the SDK does not load"
    for file in app.plugin.js lib/index.js lib/index.d.ts plugin/index.js android/build.gradle ios/TributaryReactNative.swift; do
        [[ -f node_modules/tributary-react-native/$file ]] || die "tributary-react-native lacks $file"
    done
    tar -xzOf "$folder/tributary-client-$version.tgz" package/dist/index.js package/dist/index.d.ts >/dev/null
    cd "$OLDPWD"
    python3 -m zipfile --list "$folder/tributary_client-$version-py3-none-any.whl" | grep -q '^tributary_client/operations.py ' ||
        die "the package for Python lacks the operations"
    echo "packages for npm and Python: ok"
}

# Checks that the archives are complete, and that links in the documents lead to files.
check_archives() {
    local path
    tar -xzf "$folder/tributary-android-$version.tar.gz" -C "$work"
    for path in LICENSE sdk/android/settings.gradle.kts sdk/android/core/src/main sdk/android/android/src/main; do
        [[ -e $work/tributary-android-$version/$path ]] || die "the archive for Android lacks $path"
    done
    tar -xzf "$folder/tributary-docs-$version.tar.gz" -C "$work"
    python3 - "$work/tributary-docs-$version" <<'PYTHON'
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
pages = [page for page in root.rglob("*.md")]
assert len(pages) > 50, f"only {len(pages)} pages"
broken = [
    f"{page.relative_to(root)}: {target}"
    for page in pages
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"(?ms)^```.*?^```", "", page.read_text()))
    if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
]
assert not broken, "\n".join(broken)
print(f"documents: {len(pages)} pages, all links lead to files")
PYTHON
}

check_again() {
    local binary options=()
    for binary in "$folder"/*-linux-musl; do options+=(--binary "$binary"); done
    scripts/release.sh "${options[@]}" "$work/again" >"$work/release.log" || { cat "$work/release.log"; exit 1; }
    diff --recursive --brief "$folder" "$work/again" || die "the same commit gave other files"
    echo "made again from the same binaries: the same bytes"
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
find_node "$target/node-venv"
check_sums
for file in "$folder"/*-linux-musl; do check_binary "$file"; done
scripts/sbom.sh "$folder"/*.cdx.json
check_archives
check_packages
case $(uname -m) in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
check_deb "$folder/tributary_${version}_$debian.deb"
check_image "$folder/tributary-$version-$debian-image.tar"
check_again
