//! The documents of the repository, and what is fenced in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Fences whose commands a test runs.
pub(super) const RUN: &str = "sh";
/// Every tag that a fence may have, and what it promises. `CONTRIBUTING.md` says the same in words.
const TAGS: [&str; 9] = [
    RUN,       // commands that `commands.rs` runs, in order, document by document
    "console", // commands that want more: a compiler, a container engine, systemd, somebody to stop them
    "json", "yaml", // a whole text
    "text", "mermaid", "html", "ts", "swift", // to be looked at
];
/// Where documents are; folders below are not looked into.
const FOLDERS: [&str; 6] = [
    "",
    "docs",
    "docs/adr",
    "packaging",
    "sdk/typescript",
    ".github",
];

/// A page.
pub(super) struct Document {
    /// From the root of the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Something fenced.
pub(super) struct Fence<'a> {
    pub(super) tag: &'a str,
    /// The line after the opening one.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Every page.
pub(super) fn documents() -> Vec<Document> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        let Ok(files) = root().join(folder).read_dir() else {
            panic!("{folder} is missing");
        };
        for file in files.map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "md") {
                let path = Path::new(folder).join(file.file_name().unwrap());
                let text = fs::read_to_string(&file).unwrap();
                pages.push(Document { path, text });
            }
        }
    }
    assert!(pages.len() > 20, "the documents are not found");
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    pages
}

impl Document {
    /// What is fenced, in order.
    pub(super) fn fences(&self) -> Vec<Fence<'_>> {
        let mut fences: Vec<Fence<'_>> = Vec::new();
        let mut open = false;
        for (number, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), open) {
                (Some(tag), false) => {
                    let (text, line) = (String::new(), number + 2);
                    fences.push(Fence { tag, line, text });
                    open = true;
                }
                (Some(_), true) => open = false,
                (None, true) => {
                    let fence = fences.last_mut().unwrap();
                    fence.text.push_str(line);
                    fence.text.push('\n');
                }
                (None, false) => {}
            }
        }
        assert!(!open, "{} ends within a fence", self.path.display());
        fences
    }

    /// The text without what is fenced, line by line.
    pub(super) fn prose(&self) -> Vec<&str> {
        let mut open = false;
        self.text
            .lines()
            .filter(|line| {
                let fence = line.starts_with("```");
                open ^= fence;
                !open && !fence
            })
            .collect()
    }
}

#[test]
fn every_fence_says_what_it_is() {
    for document in documents() {
        for fence in document.fences() {
            assert!(
                TAGS.contains(&fence.tag),
                "{}:{}: the tag {:?} is none of {TAGS:?}",
                document.path.display(),
                fence.line,
                fence.tag
            );
        }
    }
}

#[test]
fn what_is_fenced_as_data_can_be_read() {
    for document in documents() {
        for fence in document.fences() {
            let place = format!("{}:{}", document.path.display(), fence.line);
            let fault = match fence.tag {
                "json" => serde_json::from_str::<serde_json::Value>(&fence.text)
                    .err()
                    .map(|error| error.to_string()),
                "yaml" => yaml_serde::from_str::<yaml_serde::Value>(&fence.text)
                    .err()
                    .map(|error| error.to_string()),
                _ => None,
            };
            assert_eq!(fault, None, "{place}");
        }
    }
}
