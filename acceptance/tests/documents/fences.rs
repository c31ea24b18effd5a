//! The documents of the repository and their fenced code blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// Tag of fences whose commands a test runs.
pub(super) const RUN: &str = "sh";
/// Allowed tags of fences. `CONTRIBUTING.md` describes them.
const TAGS: [&str; 13] = [
    RUN,       // commands that `commands.rs` runs
    "console", // commands that are not run: they need a compiler, Docker, systemd or Ctrl-C
    "json", "yaml", // must parse
    "text", "mermaid", "html", "ts", "swift", "kotlin", "java", "python",
    "xml", // not checked
];
/// Folders with documents. Subfolders are not searched.
const FOLDERS: [&str; 11] = [
    "",
    "docs",
    "docs/adr",
    "clients/python",
    "clients/typescript",
    "packaging",
    "sdk/android",
    "sdk/conformance",
    "sdk/react-native",
    "sdk/typescript",
    ".github",
];

/// A Markdown page.
pub(super) struct Document {
    /// Path from the root of the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A fenced code block.
pub(super) struct Fence<'a> {
    pub(super) tag: &'a str,
    /// Number of the first line inside the fence.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Returns the root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Reads every page.
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
    assert!(pages.len() > 20, "found only {} documents", pages.len());
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    pages
}

impl Document {
    /// Returns the fences in order.
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

    /// Returns the lines outside fences.
    pub(super) fn prose(&self) -> Vec<&str> {
        let mut open = false;
        self.text
            .lines()
            .filter(|line| {
                let is_fence = line.starts_with("```");
                open ^= is_fence;
                !open && !is_fence
            })
            .collect()
    }
}

#[test]
fn every_fence_has_an_allowed_tag() {
    for document in documents() {
        for fence in document.fences() {
            assert!(
                TAGS.contains(&fence.tag),
                "{}:{}: the tag {:?} is not one of {TAGS:?}",
                document.path.display(),
                fence.line,
                fence.tag
            );
        }
    }
}

#[test]
fn json_and_yaml_fences_parse() {
    for document in documents() {
        for fence in document.fences() {
            let location = format!("{}:{}", document.path.display(), fence.line);
            let error = match fence.tag {
                "json" => serde_json::from_str::<serde_json::Value>(&fence.text)
                    .err()
                    .map(|error| error.to_string()),
                "yaml" => yaml_serde::from_str::<yaml_serde::Value>(&fence.text)
                    .err()
                    .map(|error| error.to_string()),
                _ => None,
            };
            assert_eq!(error, None, "{location}");
        }
    }
}
