//! Checks that everything in a release has the version of the workspace. Only `Cargo.toml` decides
//! it; the failed test lists the files to correct.

use super::fences::{documents, root};
use crate::command_line::tributary;
use std::fs;
use std::path::Path;

/// Files that contain the version because another tool reads it there, and the text around it.
const PLACES: [(&str, &str); 19] = [
    ("CHANGELOG.md", "\n## VERSION ("),
    ("clients/python/pyproject.toml", "\nversion = \"VERSION\"\n"),
    (
        "clients/python/src/tributary_client/__init__.py",
        "__version__ = \"VERSION\"",
    ),
    ("clients/typescript/package.json", NPM),
    ("clients/typescript/package-lock.json", NPM),
    ("clients/typescript/package-lock.json", NPM_ROOT),
    ("openapi.yaml", "\n  version: VERSION\n"),
    (
        "packaging/Dockerfile",
        "org.opencontainers.image.version=\"VERSION\"",
    ),
    ("packaging/kubernetes.yaml", "/tributary:VERSION\n"),
    (
        "sdk/android/core/src/main/kotlin/dev/tributary/sdk/Limits.kt",
        "\"android-VERSION\"",
    ),
    ("sdk/android/gradle.properties", "\nversion=VERSION\n"),
    ("sdk/react-native/package.json", NPM),
    (
        "sdk/react-native/package.json",
        "\"tributary-sdk\": \"VERSION\"",
    ),
    ("sdk/react-native/package-lock.json", NPM),
    ("sdk/react-native/package-lock.json", NPM_ROOT),
    ("sdk/typescript/package.json", NPM),
    ("sdk/typescript/package-lock.json", NPM),
    ("sdk/typescript/package-lock.json", NPM_ROOT),
    ("sdk/typescript/src/version.ts", "\"ts-VERSION\""),
];
/// The version of a package, and of the locked package itself.
const NPM: &str = "\n  \"version\": \"VERSION\",\n";
const NPM_ROOT: &str = "\n      \"version\": \"VERSION\",\n";

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the version in `[workspace.package]`.
fn workspace_version() -> String {
    let manifest = file("Cargo.toml");
    let (_, package) = manifest.split_once("[workspace.package]\n").unwrap();
    let line = package
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    line.unwrap().trim_matches('"').to_owned()
}

/// Returns the numbers of the form 1.2.3 in a word.
fn versions(word: &str) -> impl Iterator<Item = &str> {
    let numbers = word.split(|c: char| !c.is_ascii_digit() && c != '.');
    numbers
        .map(|number| number.trim_matches('.'))
        .filter(|number| {
            let parts: Vec<&str> = number.split('.').collect();
            parts.len() == 3 && parts.iter().all(|part| !part.is_empty())
        })
}

/// Returns the crates of the workspace that have another version.
fn wrong_crates(version: &str) -> Vec<String> {
    let lock = file("Cargo.lock");
    let ours = lock.split("[[package]]\n").filter(|package| {
        package.starts_with("name = \"tributary") && !package.contains("\nsource = ")
    });
    let wrong = ours.filter(|package| !package.contains(&format!("\nversion = \"{version}\"\n")));
    wrong
        .map(|package| format!("Cargo.lock: {}", package.lines().next().unwrap()))
        .collect()
}

/// Returns the commands and file names in documents that contain another version.
fn wrong_words(version: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let current = documents()
        .into_iter()
        .filter(|page| page.path != Path::new("CHANGELOG.md"));
    for page in current {
        let words = page.text.split_whitespace();
        for word in words.filter(|word| word.contains("tributary")) {
            if versions(word).any(|found| found != version) {
                wrong.push(format!("{}: {word}", page.path.display()));
            }
        }
    }
    wrong
}

#[test]
fn everything_has_the_version_of_the_workspace() {
    let version = workspace_version();
    let mut wrong = wrong_crates(&version);
    for (path, around) in PLACES {
        let expected = around.replace("VERSION", &version);
        if !file(path).contains(&expected) {
            wrong.push(format!("{path}: {:?} is missing", expected.trim()));
        }
    }
    wrong.extend(wrong_words(&version));
    let printed = tributary(&["--version"], &[]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    if printed != format!("tributary {version}\n") {
        wrong.push(format!("tributary --version: {printed}"));
    }
    assert!(wrong.is_empty(), "not {version}:\n{}", wrong.join("\n"));
}

#[test]
fn versions_are_found_in_file_names() {
    let found = |word| versions(word).collect::<Vec<_>>();
    assert_eq!(
        found("tributary-0.1.0-x86_64-unknown-linux-musl"),
        ["0.1.0"]
    );
    assert_eq!(found("(tributary_1.20.3_amd64.deb)."), ["1.20.3"]);
    assert_eq!(found("http://127.0.0.1:8080/tributary/2.0"), [""; 0]);
}
