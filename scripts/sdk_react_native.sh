#!/usr/bin/env bash
# Checks the React Native package: types, build, the Expo config plugin, and that the Kotlin code compiles against stubs.
# The Swift code is not compiled, because that requires Xcode.
#
# The Kotlin compiler is that of the Android SDK, in sdk/android/node_modules.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/node.sh
source scripts/node.sh
# shellcheck source=scripts/java.sh
source scripts/java.sh

find_node "$target/node-venv"
find_java "$target/jdk"
(cd sdk/android && install_packages)
kotlin=$PWD/sdk/android/node_modules/kotlin-compiler/lib
cd sdk/react-native
install_packages
node_modules/.bin/tsc --noEmit
rm -rf lib
node_modules/.bin/tsc --project tsconfig.build.json
echo "types and build: ok"
java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$kotlin/kotlin-compiler.jar:$kotlin/*" \
    org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -jvm-target 17 -Werror \
    -cp "$kotlin/kotlin-stdlib.jar:$kotlin/annotations-13.0.jar" -d "$work/classes" android/src/main/java test/stubs
echo "Kotlin: ok"
status=0
node --test --test-reporter=spec test/*.test.mjs | tee "$work/tests" || status=$?

# ./test counts results in cargo's format.
count() { awk -v what="$1" '$2 == what { found = $3 } END { print found + 0 }' "$work/tests"; }
passed=$(count pass) failed=$(($(count fail) + $(count cancelled)))
printf '\nSDK, React Native: %s s\n' "$SECONDS"
echo "test result: $( ((status == 0)) && echo ok || echo FAILED). $passed passed; $failed failed;"
exit "$status"
