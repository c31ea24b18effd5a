//! Lists: `limit` and `cursor` in, `data`, `meta.hasMore` and `meta.cursor` out.

use crate::routes::Place;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_testkit::{Engine, TestServer, on_both_engines};

/// Links that are there before the reader begins.
const LINKS: usize = 10_000;
/// Requests at a time while they are made.
const MAKERS: usize = 32;

async fn make_links(
    server: &Arc<TestServer>,
    path: &str,
    key: &str,
    count: usize,
) -> BTreeSet<String> {
    let mut makers = tokio::task::JoinSet::new();
    for maker in 0..MAKERS {
        let (server, path, key) = (server.clone(), path.to_owned(), key.to_owned());
        makers.spawn(async move {
            let mut made = Vec::new();
            for number in (maker..count).step_by(MAKERS) {
                let body = json!({"name": format!("Link {number}")});
                let link = server.post(&path, &key, body).await.expect(201).data();
                made.push(link["id"].as_str().unwrap().to_owned());
            }
            made
        });
    }
    makers.join_all().await.into_iter().flatten().collect()
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
            assert!(page["meta"]["cursor"].is_null(), "there is nothing to pass");
            return seen;
        }
        assert_eq!(items.len(), limit, "a page that is not the last is full");
        cursor = format!("&cursor={}", page["meta"]["cursor"].as_str().unwrap());
    }
}

async fn paging_while_others_create(engine: Engine) {
    let server = Arc::new(TestServer::start(engine).await);
    let key = server.full_key().await;
    let path = format!("{}/links", server.app(&key).await);
    let there = make_links(&server, &path, &key, LINKS).await;
    assert_eq!(there.len(), LINKS);

    let done = Arc::new(AtomicBool::new(false));
    let others = {
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
    let created: usize = others.await.unwrap();
    assert!(created > 0, "others were creating");

    let distinct: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(distinct.len(), seen.len(), "none repeated");
    assert!(there.is_subset(&distinct), "none skipped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_links_while_others_create_them_on_sqlite() {
    paging_while_others_create(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_links_while_others_create_them_on_postgres() {
    paging_while_others_create(Engine::Postgres).await;
}

on_both_engines! {
    async fn any_page_size_gives_the_same_list(engine: Engine) {
        let server = Arc::new(TestServer::start(engine).await);
        let key = server.full_key().await;
        let path = format!("{}/links", server.app(&key).await);
        make_links(&server, &path, &key, 23).await;
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
        make_links(&server, &path, &key, 51).await;
        let default = server.get(&path, &key).await.expect(200).json();
        assert_eq!(default["data"].as_array().unwrap().len(), 50);
        assert_eq!(default["meta"]["hasMore"], true);
        for limit in ["0", "501", "-1", "abc", "", "1.5", "99999999999999999999", "5%00"] {
            let answer = server.get(&format!("{path}?limit={limit}"), &key).await.expect(422);
            assert_eq!(answer.code(), "validation_failed", "{limit}");
            assert_eq!(answer.faults()[0].0, "limit");
        }
    }

    async fn a_cursor_is_of_one_list_only(engine: Engine) {
        let server = Arc::new(TestServer::start(engine).await);
        let key = server.full_key().await;
        let (one, other) = (Place::new(&server, &key).await, Place::new(&server, &key).await);
        let links = |place: &Place| format!("/api/v1/apps/{}/links", place.app);
        make_links(&server, &links(&one), &key, 3).await;
        make_links(&server, &links(&other), &key, 3).await;
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
