//! Replays the corpus and mutations of it: truncated inputs and inputs with one changed byte.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tributary_fuzz::{TARGETS, Target};

/// Length of the prefix of an input that is mutated.
const MUTATED_BYTES_MAX: usize = 200;
/// Masks that change a byte: one bit, the case of a letter, and to non-ASCII.
const FLIPS: [u8; 3] = [0x01, 0x20, 0x80];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the sorted paths in a folder.
fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let path = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").path();
    let mut paths: Vec<PathBuf> = entries.map(path).collect();
    paths.sort();
    paths
}

/// Returns the names in a folder without extensions.
fn names(folder: &Path) -> BTreeSet<String> {
    let paths = paths(folder);
    let stems = paths.iter().filter_map(|path| path.file_stem()?.to_str());
    stems.map(str::to_owned).collect()
}

fn mutations(input: &[u8]) -> Vec<Vec<u8>> {
    let length = input.len().min(MUTATED_BYTES_MAX);
    let mut all: Vec<Vec<u8>> = (0..length).map(|end| input[..end].to_vec()).collect();
    for index in 0..length {
        let mut changed = input.to_vec();
        // Only one mask per byte, in turn, because all of them would triple the time.
        changed[index] ^= FLIPS[index % FLIPS.len()];
        all.push(changed);
    }
    all
}

fn run(name: &str, target: Target, input: &[u8], file: &Path) {
    let result = catch_unwind(AssertUnwindSafe(|| target(input)));
    let input = String::from_utf8_lossy(input);
    assert!(
        result.is_ok(),
        "{name} fails for {}: {input:?}",
        file.display()
    );
}

fn replay(name: &str) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("a target");
    let files = paths(&folder("corpus").join(name));
    assert!(files.len() >= 3, "{name} has a corpus of {}", files.len());
    for file in files {
        let input = fs::read(&file).expect("an input");
        run(name, *target, &input, &file);
        for mutation in mutations(&input) {
            run(name, *target, &mutation, &file);
        }
    }
}

/// Declares one test per target, so that they run in parallel and a failure names its target.
macro_rules! replayed {
    ($($name:ident),*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
    };
}

replayed!(
    body,
    click_id,
    csv,
    cursor,
    jws,
    mcp,
    passkey,
    postback,
    query_string,
    referrer,
    webhook
);

#[test]
fn every_target_is_replayed_and_fuzzed() {
    let known: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let replayed = REPLAYED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(known, replayed);
    assert_eq!(known, names(&folder("corpus")));
    assert_eq!(known, names(&folder("fuzz_targets")));
    let manifest = fs::read_to_string(folder("libfuzzer/Cargo.toml")).unwrap();
    for name in known {
        let source = fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(
            source.contains(&format!("tributary_fuzz::{name}(")),
            "{name}"
        );
        let path = format!("path = \"../fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&path), "{name}");
    }
}
