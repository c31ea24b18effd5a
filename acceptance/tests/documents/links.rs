//! Checks that links in documents lead to existing pages, headings and files.

use super::fences::{Document, documents, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders whose files documents name by full path, in backticks.
const FOLDERS: [&str; 8] = [
    "acceptance/",
    "bench/",
    "crates/",
    "docs/",
    "fuzz/",
    "packaging/",
    "scripts/",
    "sdk/",
];

/// Returns the targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

/// Returns the anchor that GitHub generates for a heading.
fn anchor(heading: &str) -> String {
    let characters = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    characters
        .map(|c| if c == ' ' { '-' } else { c })
        .collect::<String>()
        .to_lowercase()
}

fn anchors(page: &Document) -> BTreeSet<String> {
    let prose = page.prose();
    let headings = prose.iter().filter(|line| line.starts_with('#'));
    headings.map(|heading| anchor(heading)).collect()
}

#[test]
fn every_link_has_an_existing_target() {
    let pages = documents();
    for page in &pages {
        let prose = page.prose();
        for target in prose.iter().flat_map(|line| targets(line)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => root().join(&page.path),
                _ => root().join(page.path.parent().unwrap()).join(path),
            };
            let page = page.path.display();
            assert!(file.exists(), "{page}: {target} does not exist");
            if !fragment.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                let path = file.clone();
                let anchors = anchors(&Document { path, text });
                assert!(anchors.contains(fragment), "{page}: {target}: {anchors:?}");
            }
        }
    }
}

#[test]
fn every_named_file_exists() {
    for page in documents() {
        // The changelog may name removed files.
        if page.path == Path::new("CHANGELOG.md") {
            continue;
        }
        for line in page.prose() {
            for code in line.split('`').skip(1).step_by(2) {
                let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder))
                    && !code.contains(['<', '{', '*', '…', ' ']);
                assert!(
                    !is_path || root().join(code).exists(),
                    "{}: {code} does not exist",
                    page.path.display()
                );
            }
        }
    }
}
