//! Checks that the documents cover every table, metric and page. The tests of the configuration
//! cover the settings.

use super::fences::{documents, root};
use std::fs;
use std::path::{Path, PathBuf};

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for file in folder.read_dir().unwrap().map(|file| file.unwrap().path()) {
            if file.is_dir() {
                folders.push(file);
            } else if file.extension().is_some_and(|found| found == extension) {
                found.push(file);
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no .{extension}");
    found
}

/// Returns the tables that exist after a folder's migrations.
fn tables(folder: &str) -> Vec<String> {
    let mut migrations = files(folder, "sql");
    migrations.sort();
    let mut tables: Vec<String> = Vec::new();
    for file in migrations {
        for line in fs::read_to_string(file).unwrap().lines() {
            let words: Vec<&str> = line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .collect();
            match words[..] {
                ["create", "table", name, ..] => tables.push(name.to_owned()),
                ["drop", "table", name, ..] => tables.retain(|table| table != name),
                ["alter", "table", old, "rename", "to", new, ..] => {
                    tables.retain(|table| table != old);
                    tables.push(new.to_owned());
                }
                _ => {}
            }
        }
    }
    tables
}

#[test]
fn every_table_is_in_the_data_model() {
    let model = page("docs/DATA-MODEL.md");
    for engine in ["sqlite", "postgres"] {
        let tables = tables(&format!("crates/store-{engine}/migrations"));
        assert!(tables.len() > 40, "{tables:?}");
        for table in tables {
            let is_documented = model.contains(&format!("`{table}`"));
            assert!(
                is_documented,
                "docs/DATA-MODEL.md lacks {table} of {engine}"
            );
        }
    }
}

#[test]
fn every_metric_is_in_operations_md() {
    let operations = page("docs/OPERATIONS.md");
    let mut metrics = 0;
    for file in files("crates", "rs") {
        if !file.ends_with("metrics.rs") {
            continue;
        }
        for text in fs::read_to_string(&file).unwrap().split('"').skip(1) {
            let is_metric = text.starts_with("tributary_")
                && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if is_metric {
                metrics += 1;
                assert!(operations.contains(text), "docs/OPERATIONS.md lacks {text}");
            }
        }
    }
    assert!(metrics > 10, "found only {metrics} metrics");
}

#[test]
fn every_page_is_linked_from_the_index() {
    assert!(page("README.md").contains("(docs/README.md)"));
    let index = page("docs/README.md");
    for document in documents() {
        if document.path.parent() == Some(Path::new("docs")) {
            let name = document.path.file_name().unwrap().to_string_lossy();
            let is_listed = name == "README.md" || index.contains(&format!("({name})"));
            assert!(is_listed, "docs/README.md does not list {name}");
        }
    }
    let decisions = page("docs/adr/README.md");
    for decision in files("docs/adr", "md") {
        let name = decision.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            name == "README.md" || decisions.contains(&name),
            "docs/adr/README.md lacks {name}"
        );
    }
}

#[test]
fn every_decision_has_a_date_and_a_status() {
    let decisions = files("docs/adr", "md").into_iter();
    for path in decisions.filter(|path| !path.ends_with("README.md")) {
        let page = fs::read_to_string(&path).unwrap();
        let line = page.lines().nth(2).unwrap_or_default();
        let is_valid = line.strip_prefix("Date: 20").is_some_and(|rest| {
            let status = rest.split_once(". Status: ").map(|(_, status)| status);
            let is_known = |status: &str| {
                ["accepted", "superseded"]
                    .iter()
                    .any(|one| status.starts_with(one))
            };
            status.is_some_and(is_known)
        });
        assert!(is_valid, "{}: {line}", path.display());
    }
}

/// Returns all sources that may contain tests.
fn sources() -> Vec<String> {
    let sources = [files("acceptance/tests", "rs"), files("crates", "rs")].concat();
    let read = |file| fs::read_to_string(file).unwrap();
    sources.into_iter().map(read).collect()
}

/// Returns the names of functions in a cell of a table.
fn functions(cell: &str) -> impl Iterator<Item = &str> {
    let names = cell.split('`').skip(1).step_by(2);
    names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// Asserts that the functions named in a cell of a table exist.
fn assert_tests_exist(tests: &str, page: &str, sources: &[String]) {
    for name in functions(tests) {
        let function = format!("fn {name}(");
        assert!(
            sources.iter().any(|source| source.contains(&function)),
            "{page} names {name}, which does not exist"
        );
    }
}

/// Every attack names the file of a test, and named tests exist.
#[test]
fn every_test_in_the_table_of_attacks_exists() {
    let security = page("docs/SECURITY.md");
    let (_, table) = security.split_once("## Abuse").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let sources = sources();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert!(rows.len() > 20, "{} attacks", rows.len());
    for row in rows.iter().skip(1) {
        let tests = row.rsplit(" | ").next().unwrap();
        assert!(tests.contains(".rs`"), "no test: {row}");
        assert_tests_exist(tests, "docs/SECURITY.md", &sources);
    }
}

/// The states of a requirement.
const STATES: [&str; 5] = ["met", "partly", "not met", "not applicable", "operator"];

/// Requirements that are met and that no test in Rust can hold, with the reason.
const WITHOUT_TEST: [(&str, &str); 16] = [
    (
        "1.2.9",
        "the absence of regular expressions that are built from input",
    ),
    ("1.3.10", "the compiler accepts only constants as formats"),
    ("1.4.1, 1.4.3", "the compiler rejects `unsafe`"),
    ("2.1.2, 2.1.3", "asks for documents"),
    (
        "3.2.2",
        "about scripts; the browser tests of `acceptance/browser` hold it",
    ),
    ("3.7.1", "a choice of technologies"),
    (
        "6.2.6, 6.2.7",
        "the absence of scripts that prevent pasting",
    ),
    ("6.2.10", "the absence of a rule"),
    ("6.4.2", "the absence of a feature"),
    ("11.4.1, 11.4.3", "a choice of algorithms"),
    (
        "11.5.1",
        "the lints of `clippy.toml` reject other generators",
    ),
    ("13.1.1", "asks for documents"),
    (
        "14.3.3",
        "about scripts; the browser tests of `acceptance/browser` hold it",
    ),
    (
        "15.1.2",
        "`scripts/sbom.sh` checks the bill of materials of a release",
    ),
    ("15.3.6", "about scripts"),
    ("16.1.1", "asks for documents"),
];

/// Every requirement of ASVS levels 1 and 2 is in one row, with a state and existing tests. A row that
/// is met names a test, or is an exception.
#[test]
fn every_security_requirement_has_a_state_and_existing_tests() {
    const PAGE: &str = "docs/SECURITY-ASVS.md";
    let (text, sources) = (page(PAGE), sources());
    let (mut found, mut exceptions) = (Vec::<String>::new(), 0);
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [requirement, state, how, tests] = cells[..] else {
            panic!("{row}");
        };
        if state == "State" {
            continue;
        }
        assert!(STATES.contains(&state) && !how.is_empty(), "{row}");
        let has_evidence = tests.contains('`');
        assert!(
            has_evidence || ["not met", "not applicable"].contains(&state),
            "{row}"
        );
        assert_tests_exist(tests, PAGE, &sources);
        let is_exception = WITHOUT_TEST.iter().any(|(one, _)| *one == requirement);
        let has_test = functions(tests).next().is_some();
        assert!(
            state != "met" || has_test != is_exception,
            "{requirement} needs a test, or a reason in WITHOUT_TEST: {row}"
        );
        exceptions += usize::from(is_exception);
        found.extend(requirement.split(", ").map(str::to_owned));
    }
    assert_eq!(exceptions, WITHOUT_TEST.len(), "of rows that exist");
    let (risks, mut numbers): (Vec<String>, Vec<String>) =
        found.into_iter().partition(|name| name.starts_with("API"));
    assert_eq!(risks.len(), 10, "{risks:?}");
    let listed = page("acceptance/tests/documents/asvs-5.0.0.txt");
    let mut expected: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    expected.sort_unstable();
    numbers.sort_unstable();
    assert_eq!(numbers, expected);
}

/// The API, the pages and the documents use these names. Only `BILLING.md` and the webhook parsers
/// use the names of billing providers.
#[test]
fn environments_are_live_and_test() {
    let mut texts = files("crates/api/src/v1", "rs");
    texts.extend(files("crates/dashboard/templates", "html"));
    texts.extend(files("docs", "md"));
    texts.retain(|file| !file.ends_with("BILLING.md"));
    for file in texts {
        let text = fs::read_to_string(&file).unwrap().to_lowercase();
        // Codes and the stores' own sandboxes keep their names.
        let text = ["production_only", "`sandbox`", "a store's sandbox"]
            .iter()
            .fold(text, |text, allowed| text.replace(allowed, ""));
        for word in ["sandbox", "production"] {
            assert!(!text.contains(word), "{} contains {word}", file.display());
        }
    }
}
