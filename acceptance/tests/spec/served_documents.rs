//! `/docs` and `/llms.txt`: the documents of this version, for everybody.

use reqwest::Method;
use std::collections::BTreeSet;
use std::path::Path;
use tributary_testkit::{Engine, TestResponse, TestServer};

/// Returns the names of the documents in the repository.
fn names() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let is_document = |name: &String| Path::new(name).extension().is_some_and(|kind| kind == "md");
    let names: BTreeSet<String> = names.filter(is_document).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

async fn get(server: &TestServer, path: &str) -> TestResponse {
    server.send(server.request(Method::GET, path)).await
}

#[test]
fn the_binary_contains_every_document() {
    let list = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/server/src/documents.rs"
    );
    let list = std::fs::read_to_string(list).unwrap();
    let listed = list.split('"').skip(1).step_by(2);
    let listed: Vec<&str> = listed.filter(|name| !name.contains('/')).collect();
    let missing =
        "crates/server/src/documents.rs must list the documents in docs/, the index first";
    assert_eq!(listed.first(), Some(&"README.md"), "{missing}");
    let listed: BTreeSet<String> = listed.into_iter().map(str::to_owned).collect();
    assert_eq!(listed, names(), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_document_is_served_with_working_links() {
    let server = TestServer::start(Engine::Sqlite).await;
    let mut targets = BTreeSet::new();
    for name in names() {
        let answer = get(&server, &format!("/docs/{name}")).await.expect(200);
        assert_eq!(
            answer.header("content-type"),
            Some("text/markdown; charset=utf-8")
        );
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        assert!(answer.text.starts_with("# "), "{name}");
        let links = answer.text.split("](/docs/").skip(1);
        let links = links.filter_map(|rest| rest.split(['#', ')']).next());
        targets.extend(links.map(str::to_owned));
        let is_unserved = answer.text.contains("](adr/") || answer.text.contains("](../");
        assert!(
            !is_unserved,
            "{name} has a link to a file that is not served"
        );
    }
    assert!(targets.len() > 15, "{targets:?}");
    for target in targets {
        get(&server, &format!("/docs/{target}")).await.expect(200);
    }
    let index = get(&server, "/docs").await.expect(200);
    assert_eq!(index.text, get(&server, "/docs/README.md").await.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_sent_again_only_if_it_changed() {
    let server = TestServer::start(Engine::Sqlite).await;
    for path in ["/docs", "/docs/API.md", "/llms.txt"] {
        let first = get(&server, path).await.expect(200);
        let tag = first.header("etag").unwrap();
        let again = server
            .request(Method::GET, path)
            .header("if-none-match", tag);
        let again = server.send(again).await.expect(304);
        assert_eq!((again.text.as_str(), again.header("etag")), ("", Some(tag)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn llms_txt_describes_the_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let answer = get(&server, "/llms.txt").await.expect(200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(answer.text.starts_with("# Tributary\n\n> "));
    for name in names() {
        let line = answer
            .text
            .lines()
            .find(|line| line.contains(&format!("/docs/{name})")));
        let line = line.unwrap_or_else(|| panic!("{name} is missing"));
        let (_, summary) = line.split_once("): ").unwrap();
        assert!(
            !summary.is_empty() || name == "README.md",
            "{name} has no summary"
        );
    }
    assert!(answer.text.contains("https://t.example.com/mcp"));
}
