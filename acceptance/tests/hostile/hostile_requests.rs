//! Random and hostile requests to the public endpoints of a real server: no 5xx, the process keeps
//! running, memory stays flat, and unverified data does not fill the disk.
//!
//! `TRIBUTARY_HOSTILE_REQUESTS` sets the number of requests, `TRIBUTARY_HOSTILE_SEED` the seed.

use super::connection::HostileConnection;
use super::requests::{PublicFacts, next_request};
use crate::postbacks::APP_STORE_ID;
use crate::random::{SeededRng, env_number};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tributary_testkit::{Engine, ServerProcess, TestDatabase, on_both_engines};

/// Default number of requests.
const REQUESTS: u64 = 10_000;
/// Number of connections.
const CLIENTS: u64 = 16;
/// Memory that the process may gain after the first tenth of the requests: caches and buffers that
/// fill later. A leak of 100 bytes per request exceeds it in a run of a million.
const GROWTH_KIB_MAX: u64 = 64 * 1024;
/// Largest size of the SQLite database with its log.
const DISK_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Quota for unverified writes in total.
const WRITES_MAX: u64 = 100;

/// Statuses of the responses, and the number of requests without a response.
#[derive(Debug, Default)]
struct Tally {
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.unanswered += other.unanswered;
    }
}

async fn run(address: SocketAddr, facts: Arc<PublicFacts>, seed: u64, count: u64) -> Tally {
    let mut connection = HostileConnection::new(address);
    let mut rng = SeededRng(seed);
    let mut tally = Tally::default();
    for number in 0..count {
        let request = next_request(&mut rng, &facts);
        let Some(response) = connection.send(&request).await else {
            tally.unanswered += 1;
            continue;
        };
        assert!(
            response.status < 500,
            "request {number} of seed {seed}: {}\n{}",
            response.text,
            String::from_utf8_lossy(&request.bytes[..request.bytes.len().min(2_000)])
        );
        *tally.statuses.entry(response.status).or_default() += 1;
    }
    tally
}

/// Sends requests over all connections.
async fn send(address: SocketAddr, facts: &Arc<PublicFacts>, seed: u64, count: u64) -> Tally {
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|task| {
            let seed = seed.wrapping_mul(1_000).wrapping_add(task);
            tokio::spawn(run(address, facts.clone(), seed, count / CLIENTS))
        })
        .collect();
    let mut tally = Tally::default();
    for task in tasks {
        tally.add(task.await.expect("no 5xx response"));
    }
    tally
}

/// Creates an app with everything that a stranger can address. Returns what is public about it.
async fn create_app(server: &ServerProcess, key: &str) -> PublicFacts {
    let body = json!({"name": "Runner", "ios": {"appStoreId": APP_STORE_ID.to_string()}});
    let app = server.call("POST", "/api/v1/apps", key, Some(body)).await;
    let app = app.expect(201).data();
    let text = |name: &str| app[name].as_str().unwrap().to_owned();
    let facts = PublicFacts {
        app: text("id"),
        sdk_key: app["sdk"]["liveKey"].as_str().unwrap().to_owned(),
    };
    let path = format!("/api/v1/apps/{}", facts.app);
    let secret = json!({"billing": {"revenuecat": {"secret": "Bearer of a secret, 0123456789"}}});
    server
        .call("PATCH", &path, key, Some(secret))
        .await
        .expect(200);
    facts
}

async fn stored_postbacks(database: &TestDatabase) -> u64 {
    let sql =
        "select (select count(*) from postbacks) + (select count(*) from unclaimed_postbacks)";
    let rows = database.direct_connection().await.rows(sql).await;
    rows[0][0].as_ref().unwrap().parse().unwrap()
}

/// Returns the size of the SQLite database with its log; 0 for PostgreSQL.
fn disk_bytes(database: &TestDatabase) -> u64 {
    let files = std::fs::read_dir(database.folder()).unwrap();
    files
        .map(Result::unwrap)
        .filter(|file| {
            file.file_name()
                .to_string_lossy()
                .starts_with("tributary.db")
        })
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

async fn survive_hostile_requests(engine: Engine) {
    let count = env_number("TRIBUTARY_HOSTILE_REQUESTS", REQUESTS);
    let seed = env_number("TRIBUTARY_HOSTILE_SEED", 1);
    let database = TestDatabase::new(engine).await;
    let per_day = WRITES_MAX.to_string();
    let settings = [
        ("TRIBUTARY_LOG__LEVEL", "error"),
        // The requests claim to come from many addresses.
        ("TRIBUTARY_TRUSTED_PROXIES", "127.0.0.1"),
        (
            "TRIBUTARY_LIMITS__UNVERIFIED_WRITES_PER_DAY",
            per_day.as_str(),
        ),
        (
            "TRIBUTARY_LIMITS__UNVERIFIED_WRITES_PER_DAY_PER_ADDRESS",
            "20",
        ),
    ];
    let mut server = ServerProcess::start_with(&database, &settings).await;
    let key = ServerProcess::full_key(&database);
    let facts = Arc::new(create_app(&server, &key).await);
    let address = server.base_url().strip_prefix("http://").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let started = Instant::now();
    let mut tally = send(address, &facts, seed, count / 10).await;
    let early = server.resident_kib();
    tally.add(send(address, &facts, seed.wrapping_add(1), count - count / 10).await);
    let late = server.resident_kib();
    println!(
        "{count} requests to {engine:?}, seed {seed}, in {:?}: {tally:?}; memory {early} KiB, then {late} KiB",
        started.elapsed()
    );
    assert!(server.is_running());
    let unexpected = server.log();
    assert_eq!(unexpected, "", "no errors are logged");
    assert!(tally.statuses[&200] > 0 && tally.statuses[&400] > 0 && tally.statuses[&401] > 0);
    assert!(tally.unanswered < count / 20, "{tally:?}");
    assert!(
        late < early + GROWTH_KIB_MAX,
        "{early} KiB, then {late} KiB"
    );
    let stored = stored_postbacks(&database).await;
    assert!((1..=WRITES_MAX).contains(&stored), "{stored} postbacks");
    let disk = disk_bytes(&database);
    assert!(disk < DISK_BYTES_MAX, "{disk} bytes on disk");
    server.call("GET", "/readyz", &key, None).await.expect(200);
    assert!(server.terminate().success());
}

on_both_engines! {
    async fn public_endpoints_survive_hostile_requests(engine: Engine) {
        survive_hostile_requests(engine).await;
    }
}
