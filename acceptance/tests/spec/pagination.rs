//! Lists: `limit` and `cursor` in, `data`, `meta.hasMore` and `meta.cursor` out.

use crate::routes::RouteFixture;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_testkit::{Engine, TestServer, on_both_engines};

/// Links created before the reader starts.
const LINKS: usize = 10_000;
/// Concurrent clients that create them.
const CREATORS: usize = 32;

async fn create_links(
    server: &Arc<TestServer>,
    path: &str,
    key: &str,
    count: usize,
) -> BTreeSet<String> {
    let mut creators = tokio::task::JoinSet::new();
    for creator in 0..CREATORS {
        let (server, path, key) = (server.clone(), path.to_owned(), key.to_owned());
        creators.spawn(async move {
            let mut created = Vec::new();
            for number in (creator..count).step_by(CREATORS) {
                let body = json!({"name": format!("Link {number}")});
                let link = server.post(&path, &key, body).await.expect(201).data();
                created.push(link["id"].as_str().unwrap().to_owned());
            }
            created
        });
    }
    creators.join_all().await.into_iter().flatten().collect()
}

async fn read_all(server: &TestServer, path: &str, key: &str, limit: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = server
            .get(&format!("{path}?limit={limit}{cursor}"), key)
            .await
            .expect(200);
        let page = answer.json();
        let items = page["data"].as_array().unwrap();
        assert!(items.len() <= limit);
        seen.extend(
            items
                .iter()
                .map(|link| link["id"].as_str().unwrap().to_owned()),
        );
        if page["meta"]["hasMore"] == false {
            assert!(
                page["meta"]["cursor"].is_null(),
                "the last page has no cursor"
            );
            return seen;
        }
        assert_eq!(items.len(), limit, "every page but the last is full");
        cursor = format!("&cursor={}", page["meta"]["cursor"].as_str().unwrap());
    }
}

async fn check_paging_during_creation(engine: Engine) {
    let server = Arc::new(TestServer::start(engine).await);
    let key = server.full_key().await;
    let path = format!("{}/links", server.app(&key).await);
    let existing = create_links(&server, &path, &key, LINKS).await;
    assert_eq!(existing.len(), LINKS);

    let done = Arc::new(AtomicBool::new(false));
    let creation = {
        let (server, path, key, done) = (server.clone(), path.clone(), key.clone(), done.clone());
        tokio::spawn(async move {
            let mut created = 0;
            while !done.load(Ordering::Relaxed) {
                server
                    .post(&path, &key, json!({"name": "Meanwhile"}))
                    .await
                    .expect(201);
                created += 1;
            }
            created
        })
    };
    let seen = read_all(&server, &path, &key, 500).await;
    done.store(true, Ordering::Relaxed);
    let created: usize = creation.await.unwrap();
    assert!(created > 0, "links were created while paging");

    let distinct: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(distinct.len(), seen.len(), "none repeated");
    assert!(existing.is_subset(&distinct), "none skipped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_ten_thousand_links_while_others_are_created_on_sqlite() {
    check_paging_during_creation(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_ten_thousand_links_while_others_are_created_on_postgres() {
    check_paging_during_creation(Engine::Postgres).await;
}

on_both_engines! {
    async fn any_page_size_gives_the_same_list(engine: Engine) {
        let server = Arc::new(TestServer::start(engine).await);
        let key = server.full_key().await;
        let path = format!("{}/links", server.app(&key).await);
        create_links(&server, &path, &key, 23).await;
        let whole = read_all(&server, &path, &key, 500).await;
        assert_eq!(whole.len(), 23);
        for limit in [1, 2, 7, 22, 23, 24] {
            assert_eq!(read_all(&server, &path, &key, limit).await, whole, "limit {limit}");
        }
    }

    async fn the_limit_has_bounds_and_a_default(engine: Engine) {
        let server = Arc::new(TestServer::start(engine).await);
        let key = server.full_key().await;
        let path = format!("{}/links", server.app(&key).await);
        create_links(&server, &path, &key, 51).await;
        let default = server.get(&path, &key).await.expect(200).json();
        assert_eq!(default["data"].as_array().unwrap().len(), 50);
        assert_eq!(default["meta"]["hasMore"], true);
        for limit in ["0", "501", "-1", "abc", "", "1.5", "99999999999999999999", "5%00"] {
            let answer = server.get(&format!("{path}?limit={limit}"), &key).await.expect(422);
            assert_eq!(answer.code(), "validation_failed", "{limit}");
            assert_eq!(answer.faults()[0].0, "limit");
        }
    }

    async fn a_cursor_is_valid_for_one_list_only(engine: Engine) {
        let server = Arc::new(TestServer::start(engine).await);
        let key = server.full_key().await;
        let (one, other) = (RouteFixture::new(&server, &key).await, RouteFixture::new(&server, &key).await);
        let links = |fixture: &RouteFixture| format!("/api/v1/apps/{}/links", fixture.app);
        create_links(&server, &links(&one), &key, 3).await;
        create_links(&server, &links(&other), &key, 3).await;
        let page = server.get(&format!("{}?limit=1", links(&one)), &key).await.expect(200).json();
        let cursor = page["meta"]["cursor"].as_str().unwrap().to_owned();
        let same = |path: String| format!("{path}?limit=1&cursor={cursor}");

        let again = server.get(&same(links(&one)), &key).await.expect(200);
        assert_eq!(again.text, server.get(&same(links(&one)), &key).await.expect(200).text);
        for path in [links(&other), "/api/v1/apps".to_owned(), "/api/v1/audit-log".to_owned()] {
            let answer = server.get(&same(path), &key).await.expect(422);
            assert_eq!(answer.code(), "invalid_cursor");
        }
        let mut changed = cursor.clone().into_bytes();
        changed[10] = if changed[10] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        for cursor in [changed.as_str(), "x", "", "AAAA", "%00", &"A".repeat(3_000)] {
            let path = format!("{}?cursor={cursor}", links(&one));
            assert_eq!(server.get(&path, &key).await.expect(422).code(), "invalid_cursor");
        }
    }
}
