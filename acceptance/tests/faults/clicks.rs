//! A click is on disk before the 302 response that contains its id.
//!
//! Clients tap a link fifty thousand times and the server is killed in between. Every click id in a
//! 302 must be stored, and no click may be stored without a tap.

use crate::random::env_number;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tributary_domain::click::token::ClickTokens;
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// Default number of answered taps in total; `TRIBUTARY_KILL_TAPS` changes it.
const TAPS: u64 = 5_000;
/// Concurrent clients.
const CLIENTS: u64 = 32;
/// User agent of a browser, so that the taps are not filtered as bots.
const USER_AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
                     (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";

/// Results of the clients.
#[derive(Default)]
struct ClientTotals {
    /// Click ids in redirects.
    click_ids: BTreeSet<String>,
    /// Taps without a response.
    unanswered: u64,
    /// Redirects without a click id.
    without_id: u64,
}

async fn tap_until_stopped(
    url: String,
    answered: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
) -> ClientTotals {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(USER_AGENT)
        .build()
        .unwrap();
    let mut totals = ClientTotals::default();
    while !stopped.load(Ordering::Relaxed) {
        let Ok(response) = client.get(&url).send().await else {
            totals.unanswered += 1;
            continue;
        };
        assert_eq!(response.status(), 302);
        answered.fetch_add(1, Ordering::Relaxed);
        let location = response.headers()["location"].to_str().unwrap();
        if let Some(id) = location.split("ar_click_id=").nth(1) {
            let id = id.split('&').next().unwrap();
            totals.click_ids.insert(id.to_owned());
        } else {
            totals.without_id += 1;
        }
    }
    totals
}

/// Kills the server after `limit` answered taps in total, while the clients continue.
async fn tap_and_kill(
    server: &ServerProcess,
    slug: &str,
    answered: &Arc<AtomicU64>,
    limit: u64,
) -> ClientTotals {
    let stopped = Arc::new(AtomicBool::new(false));
    let url = format!("{}/w/{slug}?fbclid=abc&campaign_id=1", server.base_url());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            tokio::spawn(tap_until_stopped(
                url.clone(),
                answered.clone(),
                stopped.clone(),
            ))
        })
        .collect();
    while answered.load(Ordering::Relaxed) < limit {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.kill_now();
    stopped.store(true, Ordering::Relaxed);
    let mut total = ClientTotals::default();
    for client in clients {
        let totals = client.await.unwrap();
        total.click_ids.extend(totals.click_ids);
        total.unanswered += totals.unanswered;
        total.without_id += totals.without_id;
    }
    total
}

on_both_engines! {
    async fn every_click_id_in_a_redirect_is_stored(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let answered = Arc::new(AtomicU64::new(0));
        let mut click_ids = BTreeSet::new();
        let (mut unanswered, mut without_id) = (0, 0);
        let slug = "spring-sale";
        let taps = env_number("TRIBUTARY_KILL_TAPS", TAPS);
        for (round, limit) in [taps / 2, taps].into_iter().enumerate() {
            let server = ServerProcess::start(&database).await;
            if round == 0 {
                let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "A"}))).await.expect(201);
                let path = format!("/api/v1/apps/{}/links", app.data()["id"].as_str().unwrap());
                let link = json!({"name": "L", "slug": slug, "type": "web_funnel", "destinationUrl": "https://shop.example.com/x"});
                server.call("POST", &path, &key, Some(link)).await.expect(201);
            }
            let totals = tap_and_kill(&server, slug, &answered, limit).await;
            click_ids.extend(totals.click_ids);
            unanswered += totals.unanswered;
            without_id += totals.without_id;
        }
        // Restart after the kill, as an operator would, before reading the database.
        let server = ServerProcess::start(&database).await;
        let stored = database.ids("clicks", "click_id").await;
        drop(server);
        let tokens = ClickTokens::new(&ServerProcess::keyring());
        let ids: BTreeSet<[u8; 16]> = click_ids.iter().map(|text| *tokens.verify(text).unwrap().click.as_bytes()).collect();
        let lost = ids.difference(&stored).count();
        let answered = answered.load(Ordering::Relaxed);
        println!(
            "{engine:?}: answered {answered}, with a click id {}, without {without_id}, unanswered {unanswered}, \
             stored {}, lost {lost}",
            ids.len(), stored.len()
        );
        assert!(answered >= taps && ids.len() as u64 + without_id == answered, "every click id is unique");
        assert!(unanswered > 0, "no tap was interrupted by a kill");
        assert_eq!(lost, 0);
        let tapped = answered + unanswered;
        assert!(stored.len() as u64 <= tapped, "more clicks are stored than taps were sent");
    }
}
