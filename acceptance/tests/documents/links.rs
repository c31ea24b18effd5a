//! What the documents point at is there: other pages, their headings, files of the repository.

use super::fences::{Document, documents, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders whose files are named with their whole path, in `code`.
const NAMED: [&str; 8] = [
    "acceptance/",
    "bench/",
    "crates/",
    "docs/",
    "fuzz/",
    "packaging/",
    "scripts/",
    "sdk/",
];

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

/// A heading's anchor, as code forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c })
        .collect::<String>()
        .to_lowercase()
}

fn anchors(page: &Document) -> BTreeSet<String> {
    let prose = page.prose();
    let headings = prose.iter().filter(|line| line.starts_with('#'));
    headings.map(|heading| anchor(heading)).collect()
}

#[test]
fn every_link_leads_somewhere() {
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
            let place = page.path.display();
            assert!(file.exists(), "{place}: {target} leads nowhere");
            if !fragment.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                let path = file.clone();
                let there = anchors(&Document { path, text });
                assert!(there.contains(fragment), "{place}: {target}: {there:?}");
            }
        }
    }
}

#[test]
fn every_file_that_is_named_exists() {
    for page in documents() {
        // History names what was.
        if page.path == Path::new("CHANGELOG.md") {
            continue;
        }
        for line in page.prose() {
            for code in line.split('`').skip(1).step_by(2) {
                let is_path = NAMED.iter().any(|folder| code.starts_with(folder))
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
