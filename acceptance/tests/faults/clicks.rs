//! Redirects hold their order: the click is on disk before the 302 that names it.
//!
//! Fifty thousand taps with a SIGKILL in the middle. Every click id that a 302 carried must be stored, and
//! nothing may be stored that nobody tapped.

use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tributary_domain::click::token::ClickTokens;
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// Taps that are answered in all.
const TAPS: u64 = 50_000;
/// People who tap at a time.
const PEOPLE: u64 = 32;
/// A browser, so that the taps are a person's.
const AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
                     (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";

/// What the people know at the end.
#[derive(Default)]
struct Account {
    /// The click ids that they were sent on with.
    carried: BTreeSet<String>,
    /// Taps without an answer.
    unanswered: u64,
    /// Redirects without a click id.
    without_id: u64,
}

async fn tap_until_over(url: String, answered: Arc<AtomicU64>, over: Arc<AtomicBool>) -> Account {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(AGENT)
        .build()
        .unwrap();
    let mut account = Account::default();
    while !over.load(Ordering::Relaxed) {
        let Ok(answer) = client.get(&url).send().await else {
            account.unanswered += 1;
            continue;
        };
        assert_eq!(answer.status(), 302);
        answered.fetch_add(1, Ordering::Relaxed);
        let location = answer.headers()["location"].to_str().unwrap();
        if let Some(id) = location.split("ar_click_id=").nth(1) {
            let id = id.split('&').next().unwrap();
            account.carried.insert(id.to_owned());
        } else {
            account.without_id += 1;
        }
    }
    account
}

/// Taps until so many were answered in all; then the server is killed while the people go on.
async fn tap_and_kill(
    server: &ServerProcess,
    slug: &str,
    answered: &Arc<AtomicU64>,
    limit: u64,
) -> Account {
    let over = Arc::new(AtomicBool::new(false));
    let url = format!("{}/w/{slug}?fbclid=abc&campaign_id=1", server.base_url());
    let people: Vec<_> = (0..PEOPLE)
        .map(|_| tokio::spawn(tap_until_over(url.clone(), answered.clone(), over.clone())))
        .collect();
    while answered.load(Ordering::Relaxed) < limit {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.kill_now();
    over.store(true, Ordering::Relaxed);
    let mut total = Account::default();
    for person in people {
        let account = person.await.unwrap();
        total.carried.extend(account.carried);
        total.unanswered += account.unanswered;
        total.without_id += account.without_id;
    }
    total
}

on_both_engines! {
    async fn every_click_id_that_was_handed_out_is_stored(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let answered = Arc::new(AtomicU64::new(0));
        let mut carried = BTreeSet::new();
        let (mut unanswered, mut without_id) = (0, 0);
        let slug = "spring-sale";
        for (round, limit) in [TAPS / 2, TAPS].into_iter().enumerate() {
            let server = ServerProcess::start(&database).await;
            if round == 0 {
                let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "A"}))).await.expect(201);
                let path = format!("/api/v1/apps/{}/links", app.data()["id"].as_str().unwrap());
                let link = json!({"name": "L", "slug": slug, "type": "web_funnel", "destinationUrl": "https://shop.example.com/x"});
                server.call("POST", &path, &key, Some(link)).await.expect(201);
            }
            let account = tap_and_kill(&server, slug, &answered, limit).await;
            carried.extend(account.carried);
            unanswered += account.unanswered;
            without_id += account.without_id;
        }
        // A start after the kill, as an operator would have it, before the disk is looked at.
        let server = ServerProcess::start(&database).await;
        let stored = database.ids("clicks", "click_id").await;
        drop(server);
        let tokens = ClickTokens::new(&ServerProcess::keyring());
        let ids: BTreeSet<[u8; 16]> = carried.iter().map(|text| *tokens.verify(text).unwrap().click.as_bytes()).collect();
        let lost = ids.difference(&stored).count();
        let answered = answered.load(Ordering::Relaxed);
        println!(
            "{engine:?}: answered {answered}, with a click id {}, without {without_id}, unanswered {unanswered}, \
             stored {}, lost {lost}",
            ids.len(), stored.len()
        );
        assert!(answered >= TAPS && ids.len() as u64 + without_id == answered, "every id is its own");
        assert!(unanswered > 0, "the kills came while people tapped");
        assert_eq!(lost, 0);
        let known = answered + unanswered;
        assert!(stored.len() as u64 <= known, "nothing is stored that nobody tapped");
    }
}
