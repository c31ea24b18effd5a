#!/usr/bin/env bash
# Checks the Android SDK: compiles it with the Kotlin compiler from npm, because Gradle's repositories may be out of
# reach, and runs all tests, with a real server and the conformance suite. It runs on the JVM: no device is involved.
#
# sdk_android.sh [SUITE…] runs only these suites. TRIBUTARY_BIN overrides target/debug/tributary. The compiler is installed
# in sdk/android/node_modules from package-lock.json; compiled files are kept in target/sdk-android.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
TRIBUTARY_BIN=$(realpath -m "${TRIBUTARY_BIN:-$target/debug/tributary}")
export TRIBUTARY_BIN
# The tests only connect to this host, so they bypass any proxy.
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
# Maximum size of the core as a jar.
core_bytes_max=150000

# shellcheck source=scripts/node.sh
source scripts/node.sh
# shellcheck source=scripts/java.sh
source scripts/java.sh

# Prints a hash of the files that a step reads, including this script.
fingerprint() { # folders
    find "$@" scripts/sdk_android.sh sdk/android/package-lock.json -type f -print0 | sort -z | xargs -0 sha256sum |
        sha256sum | cut -d ' ' -f 1
}

# Compiles Kotlin, unless the result of the same sources and of the steps before is already there.
before=''
compile() { # output folder, class path, source folders and options
    local out=$1 path=$2 sources=() argument
    shift 2
    for argument in "$@"; do [[ $argument == -* ]] || sources+=("$argument"); done
    before=$before$(fingerprint "${sources[@]}")
    [[ -f $out.done && $(<"$out.done") == "$before" ]] && return
    echo "compiling: ${out##*/}"
    rm -rf "$out" "$out.done"
    # The compiler runs for seconds only, so the best optimisation of the JVM is not worth its time.
    java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$kotlin/kotlin-compiler.jar:$kotlin/*" \
        org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -language-version 2.2 -api-version 2.2 \
        -jvm-target 1.8 -Werror -cp "$kotlin/kotlin-stdlib.jar:$path" -d "$out" "$@"
    echo "$before" >"$out.done"
}

# Compiles Java.
compile_java() { # output folder, class path, source folder
    # shellcheck disable=SC2046 # paths in this repository have no blanks
    javac -nowarn -Xlint:-options --release 8 -cp "$2" -d "$1" $(find "$3" -name '*.java')
}

[[ -x $TRIBUTARY_BIN ]] || die "no binary at $TRIBUTARY_BIN; run cargo build"
find_node "$target/node-venv"
find_java "$target/jdk"
(cd sdk/android && install_packages)
kotlin=$PWD/sdk/android/node_modules/kotlin-compiler/lib
work=$target/sdk-android
mkdir -p "$work"

# What is published sees only the classes of Java 8, and the Android layer only the public part of the core.
published=(-Xjdk-release=8 -Xno-source-debug-extension -Xno-call-assertions -Xno-receiver-assertions)
compile "$work/core" "" "${published[@]}" sdk/android/core/src/main
jar --create --file "$work/tributary-core.jar" -C "$work/core" .
bytes=$(stat -c %s "$work/tributary-core.jar")
echo "core: $bytes bytes as a jar"
((bytes <= core_bytes_max)) || die "the core has $bytes bytes as a jar; at most $core_bytes_max are allowed"
compile_java "$work/stubs" "" sdk/android/stubs/src
before=$before$(fingerprint sdk/android/stubs/src)
compile "$work/android" "$work/core:$work/stubs" "${published[@]}" sdk/android/android/src/main sdk/android/sample/src/main
compile_java "$work/java" "$work/android:$work/core:$work/stubs:$kotlin/kotlin-stdlib.jar" sdk/android/android/src/test/java
compile "$work/tests" "$work/android:$work/core:$work/stubs" "-Xfriend-paths=$work/core,$work/android" \
    sdk/android/core/src/test sdk/android/android/src/test/kotlin sdk/android/conformance/src/main

run=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dtables="$PWD/sdk/tables" -Dclasses="$work/core:$work/android"
    -Dapi="$PWD/sdk/android/api21.txt" -cp "$work/tests:$work/android:$work/core:$work/stubs:$kotlin/kotlin-stdlib.jar")
status=0
"${run[@]}" dev.tributary.sdk.AllTestsKt "$@" || status=$?
if (($# == 0)) && [[ -f sdk/conformance/run.mjs ]]; then
    node sdk/conformance/run.mjs -- "${run[@]}" dev.tributary.sdk.conformance.DriverKt | tee "$work/conformance" || status=$?
    # ./test counts results in cargo's format.
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/test result: conformance. \1 passed; \2 failed;/p' "$work/conformance"
fi
printf '\nSDK, Android: %s s; core: %s bytes\n' "$SECONDS" "$bytes"
exit "$status"
