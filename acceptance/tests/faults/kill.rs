//! SIGKILL during writes, then a restart: the database opens and every acknowledged write exists.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// How often the server is killed.
const ROUNDS: u64 = 5;
/// Concurrent clients.
const CLIENTS: u64 = 8;
/// Minimum writes before a kill, and the maximum wait for them.
const WRITTEN_MIN: usize = 21;
const WRITTEN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Names of the links by the result of their request.
#[derive(Default)]
struct ClientResults {
    acknowledged: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

async fn write_until_killed(
    server: Arc<ServerProcess>,
    path: String,
    key: String,
    client: String,
    (stopped, written): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> ClientResults {
    let mut results = ClientResults::default();
    for number in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("{client}-{number}");
        let answer = server
            .try_call("POST", &path, &key, Some(json!({"name": name})))
            .await;
        match answer.map(|answer| answer.status.as_u16()) {
            Some(201) => {
                written.fetch_add(1, Ordering::Relaxed);
                results.acknowledged.insert(name)
            }
            _ => results.unknown.insert(name),
        };
    }
    results
}

/// Counts the stored links by name.
async fn stored_links(server: &ServerProcess, path: &str, key: &str) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = server
            .call("GET", &format!("{path}?limit=500{cursor}"), key, None)
            .await
            .expect(200)
            .json();
        for link in page["data"].as_array().unwrap() {
            *names
                .entry(link["name"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

/// Counts the created links in the audit log.
async fn count_audit_entries(server: &ServerProcess, path: &str, key: &str) -> usize {
    let app = path.split('/').nth(4).unwrap();
    let mut entries = 0;
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/audit-log?appId={app}&limit=500{cursor}");
        let page = server
            .call("GET", &path, key, None)
            .await
            .expect(200)
            .json();
        let is_creation = |entry: &&serde_json::Value| entry["action"] == "link.created";
        let page_entries = page["data"].as_array().unwrap().iter();
        entries += page_entries.filter(is_creation).count();
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return entries,
        }
    }
}

on_both_engines! {
    async fn every_acknowledged_write_exists_after_kills(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let mut path = String::new();
        let mut total = ClientResults::default();
        for round in 0..ROUNDS {
            let server = Arc::new(ServerProcess::start(&database).await);
            if path.is_empty() {
                let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "A"}))).await.expect(201);
                path = format!("/api/v1/apps/{}/links", app.data()["id"].as_str().unwrap());
            }
            let (stopped, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let name = format!("r{round}-c{client}");
                    let shared = (stopped.clone(), written.clone());
                    tokio::spawn(write_until_killed(server.clone(), path.clone(), key.clone(), name, shared))
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(300 + 170 * round)).await;
            let begun = Instant::now();
            while written.load(Ordering::Relaxed) < WRITTEN_MIN && begun.elapsed() < WRITTEN_WAIT_MAX {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(written.load(Ordering::Relaxed) >= WRITTEN_MIN, "too few writes in round {round}");
            server.kill_now();
            stopped.store(true, Ordering::Relaxed);
            for client in clients {
                let results = client.await.unwrap();
                total.acknowledged.extend(results.acknowledged);
                total.unknown.extend(results.unknown);
            }
        }
        let server = ServerProcess::start(&database).await;
        let stored = stored_links(&server, &path, &key).await;
        let lost: Vec<_> = total.acknowledged.iter().filter(|name| !stored.contains_key(*name)).collect();
        let phantom: Vec<_> = stored
            .keys()
            .filter(|name| !total.acknowledged.contains(*name) && !total.unknown.contains(*name))
            .collect();
        let duplicated = stored.values().filter(|count| **count > 1).count();
        println!(
            "{engine:?}: acknowledged {}, unknown {}, stored {}, lost {}, phantom {}, duplicated {duplicated}",
            total.acknowledged.len(), total.unknown.len(), stored.len(), lost.len(), phantom.len()
        );
        assert!(!total.unknown.is_empty(), "no write was interrupted by a kill");
        assert!(lost.is_empty() && phantom.is_empty() && duplicated == 0, "lost {lost:?}, phantom {phantom:?}");
        let entries = count_audit_entries(&server, &path, &key).await;
        assert_eq!(entries, stored.len(), "a link and its audit entry commit together");
    }
}
