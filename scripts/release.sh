#!/usr/bin/env bash
# Makes all files of a release: scripts/release.sh [--binary FILE]... [FOLDER]
#
# For x86_64 and aarch64: the static binary, its bill of materials (CycloneDX), a Debian package and a container image.
# A platform is left out, with a message, if rustup's target or the C compiler for it is missing. For all platforms: the
# SDKs, the clients, the documents, and the SHA-256 sums of everything. --binary takes a static binary instead of building any.
#
# FOLDER must be empty or absent; the default, target/release-files, is replaced. The same commit gives the same files;
# CONTRIBUTING.md#releases says on what else they depend.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022
export LC_ALL=C TZ=UTC

usage() {
    echo "usage: scripts/release.sh [--binary FILE]... [FOLDER]" >&2
    exit 2
}

binaries=() folder=''
while (($# > 0)); do
    case $1 in
        --binary)
            [[ -f ${2:-} ]] || usage
            binaries+=("$(realpath "$2")")
            shift
            ;;
        -*) usage ;;
        *) [[ -z $folder ]] || usage; folder=$1 ;;
    esac
    shift
done

# shellcheck source=scripts/node.sh
source scripts/node.sh
# shellcheck source=scripts/python.sh
source scripts/python.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
[[ -n $folder ]] || { folder=$target/release-files; rm -rf "$folder"; }
folder=$(realpath -m "$folder")
[[ ! -e $folder ]] || rmdir "$folder" 2>/dev/null || die "$folder is not an empty folder"
mkdir -p "$target"
# The folder appears when it is complete.
work=$(mktemp -d "$target/release.XXXXXX")
trap 'rm -rf "$work"' EXIT
files=$work/files
mkdir "$files"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [[ -n $(git status --porcelain) ]]; then echo "note: with uncommitted changes, this is not commit $commit"; fi

check_needs() {
    local need
    for need in cargo dpkg-deb gzip python3 xz; do
        command -v "$need" >/dev/null || die "$need is missing"
    done
}

# Prints the processor architecture of a binary, as uname does.
architecture_of() { # binary
    case $(od -An -tx1 -j18 -N2 "$1" | tr -d ' ') in
        3e00) echo x86_64 ;;
        b700) echo aarch64 ;;
        *) die "$1 is not a binary for x86_64 or aarch64" ;;
    esac
}

# Builds the static binary for an architecture, if this machine can.
build() { # architecture
    local triple=$1-unknown-linux-musl compiler=$1-linux-musl-gcc
    if [[ $1 == "$(uname -m)" ]]; then compiler=musl-gcc; fi
    if [[ ! -d $(rustc --print target-libdir --target "$triple") ]]; then
        echo "left out: $1, because rustup's target is missing (rustup target add $triple)"
        return
    fi
    if ! command -v "$compiler" >/dev/null; then
        echo "left out: $1, because the C compiler $compiler is missing"
        return
    fi
    # Paths of this machine do not become part of the binary. The native linker is rustc's default.
    local flags="'--remap-path-prefix=$PWD=/src', '--remap-path-prefix=$target=/target'"
    flags+=", '--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo'"
    local options=(--config "target.$triple.rustflags=[$flags]")
    if [[ $compiler != musl-gcc ]]; then options+=(--config "target.$triple.linker='$compiler'"); fi
    cargo build --locked --profile dist --target "$triple" -p tributary-server "${options[@]}"
    binaries+=("$target/$triple/dist/tributary")
}

# Writes the manual and the shell completions, with the binary that runs on this machine.
make_pages() {
    local binary native='' share=$work/share
    for binary in "${binaries[@]}"; do
        if [[ $(architecture_of "$binary") == "$(uname -m)" ]]; then native=$binary; fi
    done
    [[ -n $native ]] || die "no binary runs on this machine, so nothing can print the manual"
    [[ $("$native" --version) == "tributary $version" ]] || die "$native is not version $version"
    mkdir -p "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    "$native" man --folder "$share/man/man1"
    gzip -9n "$share"/man/man1/*
    "$native" completions bash >"$share/bash-completion/completions/tributary"
    "$native" completions zsh >"$share/zsh/vendor-completions/_tributary"
    "$native" completions fish >"$share/fish/vendor_completions.d/tributary.fish"
}

# Writes a file of the Debian package from standard input.
put() { # path, mode
    install -D -m "${2:-644}" /dev/stdin "$root/$1"
}

make_deb() { # binary, Debian architecture, bill of materials
    local root=$work/deb script doc=usr/share/doc/tributary
    rm -rf "$root"
    put usr/bin/tributary 755 <"$1"
    sed 's#/usr/local/bin/#/usr/bin/#' packaging/tributary.service | put usr/lib/systemd/system/tributary.service
    put usr/lib/sysusers.d/tributary.conf <packaging/tributary.sysusers
    put etc/tributary/environment 600 <packaging/debian/environment
    cp -r "$work/share" "$root/usr/"
    put usr/share/lintian/overrides/tributary <packaging/debian/lintian-overrides
    gzip -9n <crates/server/config.default.toml | put "$doc/config.default.toml.gz"
    gzip -9n <"$3" | put "$doc/tributary.cdx.json.gz"
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        echo "Comment: tributary.cdx.json.gz lists the code of other projects in the binary, with its licences."
        printf '\nFiles: *\n'
        sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
        echo "License: Expat"
        sed '1,/^Copyright/d; s/^$/./; s/^/ /' LICENSE | tail -n +2
    } | put "$doc/copyright"
    gzip -9n <<TEXT | put "$doc/changelog.gz"
tributary ($version) stable; urgency=medium

  * Release $version. The archive of the documents contains the changes.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -Rd "@$SOURCE_DATE_EPOCH")
TEXT
    local size
    size=$(du -sk --apparent-size "$root" | cut -f 1)
    sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$2/; s/@SIZE@/$size/" packaging/debian/control | put DEBIAN/control
    echo /etc/tributary/environment | put DEBIAN/conffiles
    for script in postinst prerm postrm; do put "DEBIAN/$script" 755 <"packaging/debian/$script"; done
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) | put DEBIAN/md5sums
    # One thread, because the number of threads changes the bytes.
    dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$files/tributary_${version}_$2.deb" >/dev/null
}

# Makes the files for the platform of a binary.
make_platform() { # binary
    local architecture debian name
    architecture=$(architecture_of "$1")
    case $architecture in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
    name=tributary-$version-$architecture-unknown-linux-musl
    install -m 755 "$1" "$files/$name"
    scripts/sbom.py --target "$architecture-unknown-linux-musl" >"$files/$name.cdx.json"
    make_deb "$files/$name" "$debian" "$files/$name.cdx.json"
    scripts/image.py --binary "$files/$name" --architecture "$debian" --version "$version" --commit "$commit" \
        --output "$files/tributary-$version-$debian-image.tar"
}

# Archives files of the repository under a folder with the archive's name.
archive() { # name, paths...
    git ls-files -z -- "${@:2}" | sort -z |
        tar --create --null --no-recursion --files-from=- --format=ustar --transform="s,^,$1/," \
            --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" |
        gzip -9n >"$files/$1.tar.gz"
}

make_packages() {
    local package venv=$target/clients-venv requirements
    find_node "$target/node-venv"
    for package in sdk/typescript sdk/react-native clients/typescript; do
        rm -rf "${package:?}"/{dist,lib}
        (cd "$package" && install_packages && npm pack --loglevel=error --pack-destination "$files" >/dev/null)
    done
    requirements=$(<clients/python/requirements.txt)
    prepare_venv "the tools of the Python client" "$venv/bin/python" -c 'import datamodel_code_generator, flit_core'
    (
        cd clients/python
        "$venv/bin/python" generate.py
        "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index \
            --wheel-dir "$files" .
    )
    archive "tributary-android-$version" sdk/android LICENSE
}

check_needs
if ((${#binaries[@]} == 0)); then
    build x86_64
    build aarch64
    ((${#binaries[@]} > 0)) || die "this machine can build no platform"
fi
make_pages
for binary in "${binaries[@]}"; do make_platform "$binary"; done
make_packages
archive "tributary-docs-$version" ./*.md LICENSE docs openapi.yaml packaging 'sdk/*/README.md' 'clients/*/README.md'
(cd "$files" && sha256sum -- * >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$files/"
mkdir -p "$(dirname "$folder")"
mv "$files" "$folder"
echo "the files of release $version are in $folder:"
ls -sh1 "$folder"
