//! SIGKILL while writing, then a new start: the database opens, and nothing that was acknowledged is missing.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// How often the server is killed.
const ROUNDS: u64 = 5;
/// Clients that write at a time.
const CLIENTS: u64 = 8;
/// What they must have written before a kill, and how long they may take for it.
const WRITTEN_MIN: usize = 21;
const WRITTEN_WAIT_MAX: Duration = Duration::from_secs(30);

/// What the clients know at the end: names by what became of the request.
#[derive(Default)]
struct Account {
    acknowledged: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

async fn write_until_killed(
    server: Arc<ServerProcess>,
    path: String,
    key: String,
    client: String,
    (stopped, written): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> Account {
    let mut account = Account::default();
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
                account.acknowledged.insert(name)
            }
            _ => account.unknown.insert(name),
        };
    }
    account
}

async fn stored(server: &ServerProcess, path: &str, key: &str) -> BTreeMap<String, usize> {
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

/// How many links the audit log says were made.
async fn count_lines(server: &ServerProcess, path: &str, key: &str) -> usize {
    let app = path.split('/').nth(4).unwrap();
    let mut lines = 0;
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/audit-log?appId={app}&limit=500{cursor}");
        let page = server
            .call("GET", &path, key, None)
            .await
            .expect(200)
            .json();
        let made = |entry: &&serde_json::Value| entry["action"] == "link.created";
        lines += page["data"].as_array().unwrap().iter().filter(made).count();
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return lines,
        }
    }
}

on_both_engines! {
    async fn nothing_acknowledged_is_missing_after_a_kill(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let mut path = String::new();
        let mut total = Account::default();
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
                    let told = (stopped.clone(), written.clone());
                    tokio::spawn(write_until_killed(server.clone(), path.clone(), key.clone(), name, told))
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(300 + 170 * round)).await;
            let begun = Instant::now();
            while written.load(Ordering::Relaxed) < WRITTEN_MIN && begun.elapsed() < WRITTEN_WAIT_MAX {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(written.load(Ordering::Relaxed) >= WRITTEN_MIN, "the clients of round {round} wrote");
            server.kill_now();
            stopped.store(true, Ordering::Relaxed);
            for client in clients {
                let account = client.await.unwrap();
                total.acknowledged.extend(account.acknowledged);
                total.unknown.extend(account.unknown);
            }
        }
        let server = ServerProcess::start(&database).await;
        let stored = stored(&server, &path, &key).await;
        let lost: Vec<_> = total.acknowledged.iter().filter(|name| !stored.contains_key(*name)).collect();
        let phantom: Vec<_> = stored
            .keys()
            .filter(|name| !total.acknowledged.contains(*name) && !total.unknown.contains(*name))
            .collect();
        let twice = stored.values().filter(|count| **count > 1).count();
        println!(
            "{engine:?}: acknowledged {}, unknown {}, stored {}, lost {}, phantom {}, twice {twice}",
            total.acknowledged.len(), total.unknown.len(), stored.len(), lost.len(), phantom.len()
        );
        assert!(!total.unknown.is_empty(), "the kills came while they wrote");
        assert!(lost.is_empty() && phantom.is_empty() && twice == 0, "lost {lost:?}, phantom {phantom:?}");
        let lines = count_lines(&server, &path, &key).await;
        assert_eq!(lines, stored.len(), "a link and its line in the audit log commit together");
    }
}
