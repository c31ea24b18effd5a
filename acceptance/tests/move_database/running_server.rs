//! A move while a server accepts events: nothing acknowledged is lost, and keys, links, cursors and
//! sessions work on the new server.

use super::run_move;
use crate::website::{BROWSER, Website};
use reqwest::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Concurrent clients.
const CLIENTS: usize = 4;
/// Acknowledged events before the move starts, and between its two steps.
const EVENTS: usize = 100;
/// Pause of a client after an event was not accepted.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Sends purchases until the task is aborted and records which were acknowledged.
async fn send(site: Website, client: usize, acknowledged: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let id = format!("order-{client}-{number}");
        let event = site.purchase(&id, "9.99");
        while site.send(&event).await.status != 202 {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        acknowledged.lock().unwrap().push(id);
    }
}

async fn wait_for_events(acknowledged: &Mutex<Vec<String>>, count: usize) {
    while acknowledged.lock().unwrap().len() < count {
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Creates the first account. Returns its session cookie.
async fn sign_in(server: &ServerProcess) -> String {
    let output = server.output();
    let link = output
        .split_whitespace()
        .find(|word| word.contains("/setup/setup_"));
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(link.expect("the first start prints a link"))
        .header("origin", server.base_url())
        .header("content-type", "application/x-www-form-urlencoded")
        .body("email=you%40example.com&password=a+long+enough+password");
    let response = request.send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// Reads the first page of the event log. Returns the path of the second.
async fn second_page(site: &Website) -> String {
    let page = site.call("GET", "/events?limit=5", Value::Null).await;
    let cursor = page.expect(200).json()["meta"]["cursor"].clone();
    format!("/events?limit=5&cursor={}", cursor.as_str().unwrap())
}

/// Taps the website's link. Returns whether the click was recorded.
async fn tap_is_recorded(site: &Website) -> bool {
    let tap = site
        .client
        .get(format!("{}/w/{}?fbclid=f2", site.base, site.link))
        .header("user-agent", BROWSER);
    let response = tap.send().await.unwrap();
    assert_eq!(response.status(), 302);
    let location = response.headers()["location"].to_str().unwrap();
    location.contains("ar_click_id=")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_under_load_loses_nothing_and_keeps_keys_links_cursors_and_sessions() {
    let sqlite = TestDatabase::new(Engine::Sqlite).await;
    let server = ServerProcess::start(&sqlite).await;
    let cookie = sign_in(&server).await;
    let list = ["admin", "organization", "list"];
    let organizations = ServerProcess::run(&sqlite, &list).unwrap();
    let key = ServerProcess::full_key(&sqlite);
    let site = Website::open_at(server.base_url(), &key)
        .await
        .at_real_time();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(send(site.clone(), client, acknowledged.clone()));
    }
    wait_for_events(&acknowledged, EVENTS).await;
    let second_page = second_page(&site).await;

    let postgres = TestDatabase::new(Engine::Postgres).await;
    let to = postgres.url();
    run_move(&sqlite, &["--to", &to]).unwrap();
    let count = acknowledged.lock().unwrap().len();
    wait_for_events(&acknowledged, count + EVENTS).await;
    let printed = run_move(&sqlite, &["--to", &to, "--cut-over"]).unwrap();
    println!("{printed}");

    // The old server accepts nothing more.
    let refused = site
        .send(&site.purchase("order-late", "9.99"))
        .await
        .expect(503);
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    clients.shutdown().await;
    assert!(!tap_is_recorded(&site).await);
    let metrics = reqwest::get(format!("{}/metrics", site.base))
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    let not_recorded = "tributary_clicks_total{outcome=\"not_recorded\"} 1";
    assert!(metrics.contains(not_recorded), "{metrics}");
    site.call("GET", "", Value::Null).await.expect(200);
    assert!(server.terminate().success());

    let moved = ServerProcess::start(&postgres).await;
    let listed = ServerProcess::run(&postgres, &list).unwrap();
    assert_eq!(listed, organizations, "the first start created nothing");
    let site = site.through(moved.base_url());
    let mut counts = BTreeMap::<String, usize>::new();
    for event in site.log().await {
        *counts
            .entry(event["eventId"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert!(acknowledged.iter().all(|id| counts.contains_key(id)));
    assert!(counts.values().all(|count| *count == 1));
    let again = site.send(&site.purchase(&acknowledged[0], "9.99")).await;
    assert_eq!(again.expect(202).data()["duplicate"], true);
    site.send_accepted(&site.purchase("order-after", "9.99"))
        .await;
    assert!(tap_is_recorded(&site).await);
    let page = site
        .call("GET", &second_page, Value::Null)
        .await
        .expect(200);
    assert_eq!(page.data().as_array().unwrap().len(), 5);
    let account = site.client.get(format!("{}/account", site.base));
    let account = account.header("cookie", &cookie).send().await.unwrap();
    assert_eq!(account.status(), 200);
    let rebuilt = ServerProcess::run(&postgres, &["rollups", "rebuild"]).unwrap();
    assert!(rebuilt.ends_with("0 were corrected."), "{rebuilt}");
}
