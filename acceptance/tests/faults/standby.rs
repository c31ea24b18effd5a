//! Reports from a PostgreSQL standby, over HTTP.

use reqwest::StatusCode;
use serde_json::json;
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, ServerPair, ServerProcess, TestDatabase};

/// How long a test waits for a state that is reached within milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Longer than a node trusts cached API keys without asking the database.
const OUTAGE: Duration = Duration::from_secs(3);

async fn run_on_standby(pair: &ServerPair, sql: &str) {
    let client = pair.standby.client().await;
    client.batch_execute(sql).await.expect(sql);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_serves_reports_and_outlives_the_primary() {
    let pair = tokio::task::spawn_blocking(ServerPair::start)
        .await
        .unwrap();
    // Only its folder is used.
    let database = TestDatabase::new(Engine::Sqlite).await;
    let (primary, standby) = (pair.primary.url(), pair.standby.url());
    let settings = [
        ("TRIBUTARY_DATABASE_URL", primary.as_str()),
        ("TRIBUTARY_DATABASE_READ_URL", standby.as_str()),
        // Replay is paused for a moment, however long that takes here.
        ("TRIBUTARY_POSTGRES__STANDBY_LAG_MAX_SECONDS", "600"),
    ];
    let server = ServerProcess::start_with(&database, &settings).await;
    let create_key = || {
        let command = ["admin", "key", "create", "--permission", "full"];
        ServerProcess::run_with(&database, &settings, &command).expect("a key")
    };
    let (writer, reader) = (create_key(), create_key());
    let created = server.call(
        "POST",
        "/api/v1/apps",
        &writer,
        Some(json!({"name": "Runner"})),
    );
    let app = created.await.expect(201).data()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let costs = format!("/api/v1/apps/{app}/costs");
    let listed = async |key: &str| {
        let answer = server.call("GET", &costs, key, None).await.expect(200);
        answer.data().as_array().unwrap().len()
    };
    wait_until(async || listed(&reader).await == 0).await;

    run_on_standby(&pair, "select pg_wal_replay_pause()").await;
    let cost = json!({"costs": [{"day": "2026-03-20", "network": "network_a", "amount": 80}]});
    server
        .call("PUT", &costs, &writer, Some(cost))
        .await
        .expect(200);
    assert_eq!(listed(&writer).await, 1, "a caller sees its change");
    assert_eq!(listed(&reader).await, 0, "the standby serves other callers");
    run_on_standby(&pair, "select pg_wal_replay_resume()").await;
    wait_until(async || listed(&reader).await == 1).await;
    let metrics = server.call("GET", "/metrics", "", None).await.text;
    assert!(
        metrics.contains("\ntributary_standby_usable 1"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\ntributary_standby_reads_total{outcome=\"own_change\"} 1"),
        "{metrics}"
    );

    pair.primary.freeze();
    let frozen = Instant::now();
    while frozen.elapsed() < OUTAGE {
        assert_eq!(listed(&reader).await, 1, "the primary is frozen");
        let stats = format!("/api/v1/apps/{app}/stats");
        server.call("GET", &stats, &reader, None).await.expect(200);
    }
    pair.primary.thaw();
    let archived = json!({"name": "Walker"});
    let app = format!("/api/v1/apps/{app}");
    wait_until(async || {
        let changed = server
            .call("PATCH", &app, &writer, Some(archived.clone()))
            .await;
        changed.status == StatusCode::OK
    })
    .await;
}

async fn wait_until(is_reached: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_reached().await {
        assert!(begun.elapsed() < WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
