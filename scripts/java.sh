# shellcheck shell=bash
# Shared functions for the scripts that compile Kotlin. To be sourced after node.sh.

as_root() { if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi; }

# Finds a JDK 17 or later, or fails. If there is none, it is installed, or without root, unpacked from Debian's packages.
find_java() { # folder to unpack into
    local folder=$1 release home
    is_modern_jdk && return
    echo "installing: a JDK"
    if as_root true 2>/dev/null; then
        as_root apt-get update >/dev/null
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends default-jdk-headless >/dev/null
        is_modern_jdk || die "the installed JDK is older than 17; install a later one"
        return
    fi
    if [[ ! -f $folder/installed ]]; then
        rm -rf "$folder"
        mkdir -p "$folder/packages"
        release=$(apt-cache depends default-jdk-headless | sed -n 's/.*Depends: \(openjdk-[0-9]*\)-jdk-headless/\1/p')
        [[ -n $release ]] || die "no JDK 17 or later, and no package of one; install a JDK"
        (cd "$folder/packages" && apt-get download "$release-jre-headless" "$release-jdk-headless" >/dev/null)
        for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder"; done
        # The packages link to /etc.
        for home in "$folder"/usr/lib/jvm/*-openjdk-*/; do
            rm -rf "$home/conf"
            cp -r "$folder"/etc/java-*-openjdk "$home/conf"
            find "$home/lib" -maxdepth 1 -type l -lname '/etc/*' -print0 | while IFS= read -r -d '' link; do
                cp -rfT "$folder$(readlink "$link")" "$link.copy" && mv -fT "$link.copy" "$link"
            done
        done
        touch "$folder/installed"
    fi
    for home in "$folder"/usr/lib/jvm/*-openjdk-*/; do PATH=$home/bin:$PATH; done
    is_modern_jdk || die "the unpacked JDK does not work; install a JDK 17 or later"
}

is_modern_jdk() {
    local version
    command -v java >/dev/null && command -v jar >/dev/null || return 1
    version=$(javac -version 2>/dev/null | sed -n 's/^javac \([0-9]*\).*/\1/p')
    ((${version:-0} >= 17))
}
