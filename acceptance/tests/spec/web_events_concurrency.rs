//! Web events from concurrent clients. On PostgreSQL the clients use two server processes with one
//! database, so that locks inside one process cannot help.

use crate::website::{Website, micros, with};
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_testkit::{Engine, ServerProcess, TestDatabase, TestResponse, on_both_engines};

/// Number of concurrent clients.
const CLIENTS: usize = 64;

/// A website, once for each server that it can call.
struct Nodes {
    sites: Vec<Website>,
    /// Dropped after the sites, before the database.
    _servers: Vec<ServerProcess>,
    _database: TestDatabase,
}

impl Nodes {
    async fn start(engine: Engine) -> Self {
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let mut servers = vec![ServerProcess::start(&database).await];
        if engine == Engine::Postgres {
            servers.push(ServerProcess::start(&database).await);
        }
        let site = Website::open_at(servers[0].base_url(), &key)
            .await
            .at_real_time();
        let sites = servers
            .iter()
            .map(|server| site.through(server.base_url()))
            .collect();
        Self {
            sites,
            _servers: servers,
            _database: database,
        }
    }

    /// Sends all events concurrently, spread over the servers.
    async fn send_all(&self, events: Vec<Value>) -> Vec<TestResponse> {
        let sends = events.into_iter().enumerate().map(|(number, event)| {
            let site = self.sites[number % self.sites.len()].clone();
            tokio::spawn(async move { site.send(&event).await })
        });
        let mut answers = Vec::new();
        for send in sends.collect::<Vec<_>>() {
            answers.push(send.await.unwrap());
        }
        answers
    }
}

/// Changes the device of an event. The server may serialise the requests of one device, which would
/// hide a race.
fn from_device(event: &Value, number: usize) -> Value {
    with(event, "deviceId", format!("visitor-{number}"))
}

/// Counts the outcomes: `accepted`, `duplicate`, or an error code.
fn tally(answers: &[TestResponse]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for answer in answers {
        let outcome = match answer.status.as_u16() {
            202 if answer.data()["duplicate"] == true => "duplicate".to_owned(),
            202 => "accepted".to_owned(),
            _ => answer.code(),
        };
        *tally.entry(outcome).or_default() += 1;
    }
    tally
}

fn outcomes(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

on_both_engines! {
    async fn concurrent_refunds_never_exceed_their_payment(engine: Engine) {
        let nodes = Nodes::start(engine).await;
        let site = &nodes.sites[0];
        for payment in ["order-1", "order-2", "order-3"] {
            site.send_accepted(&site.purchase(payment, "100.00")).await;
            let refund = |number| site.refund(&format!("{payment}-{number}"), "-10.00", payment);
            let refunds: Vec<Value> = (0..CLIENTS).map(|number| from_device(&refund(number), number)).collect();
            let answers = nodes.send_all(refunds.clone()).await;
            let found = tally(&answers);
            println!("{engine:?}, {} servers: {CLIENTS} refunds of 10.00 against 100.00: {found:?}", nodes.sites.len());
            assert_eq!(found, outcomes(&[("accepted", 10), ("refund_exceeds_payment", CLIENTS - 10)]));
            let log = site.log().await;
            let stored = log.iter().filter(|event| event["eventId"].as_str().unwrap().starts_with(&format!("{payment}-")));
            assert_eq!(stored.count(), 10);
            // Repeats: accepted refunds are duplicates now, the others are rejected again.
            let again = tally(&nodes.send_all(refunds).await);
            assert_eq!(again, outcomes(&[("duplicate", 10), ("refund_exceeds_payment", CLIENTS - 10)]));
        }
    }

    async fn identical_concurrent_posts_are_stored_once_and_all_return_202(engine: Engine) {
        let nodes = Nodes::start(engine).await;
        let site = &nodes.sites[0];
        site.send_accepted(&site.purchase("paid", "100")).await;
        for event in [
            site.purchase("order", "100"), site.refund("refund", "-60", "paid"), site.event("signed-up", "sign_up"),
        ] {
            let answers = nodes.send_all(vec![event.clone(); CLIENTS]).await;
            let found = tally(&answers);
            println!("{engine:?}, {} servers: {CLIENTS} identical {}: {found:?}", nodes.sites.len(), event["eventType"]);
            assert_eq!(found, outcomes(&[("accepted", 1), ("duplicate", CLIENTS - 1)]));
            let received: std::collections::BTreeSet<String> =
                answers.iter().map(|answer| answer.data()["receivedAt"].to_string()).collect();
            assert_eq!(received.len(), 1, "all responses have the same receivedAt");
            site.logged_event(event["eventId"].as_str().unwrap()).await;
        }
        site.send_accepted(&site.refund("rest", "-40", "paid")).await;
    }

    async fn of_conflicting_concurrent_posts_one_returns_202_and_the_others_422(engine: Engine) {
        let nodes = Nodes::start(engine).await;
        let site = &nodes.sites[0];
        site.send_accepted(&site.purchase("paid", "100")).await;
        // First all from one device, then each from its own device.
        for devices in [1, CLIENTS] {
            let purchase = |cents| site.purchase(&format!("order-{devices}"), &format!("0.{cents:02}"));
            let refund = |cents| site.refund(&format!("refund-{devices}"), &format!("-0.{cents:02}"), "paid");
            let purchases = (1..=CLIENTS).map(|cents| from_device(&purchase(cents), cents % devices));
            let refunds = (1..=CLIENTS).map(|cents| from_device(&refund(cents), cents % devices));
            for events in [purchases.collect::<Vec<_>>(), refunds.collect()] {
                let answers = nodes.send_all(events.clone()).await;
                let found = tally(&answers);
                println!("{engine:?}, {} servers: {CLIENTS} conflicting: {found:?}", nodes.sites.len());
                assert_eq!(found, outcomes(&[("accepted", 1), ("event_id_conflict", CLIENTS - 1)]));
                let winner = answers.iter().position(|answer| answer.status.as_u16() == 202).unwrap();
                let stored = site.logged_event(events[winner]["eventId"].as_str().unwrap()).await;
                let expected = micros(&events[winner]["revenue"]);
                assert_eq!(micros(&stored["revenue"]["amount"]), expected, "the accepted post is stored");
            }
        }
    }

    async fn concurrent_parents_and_children_succeed_with_retries(engine: Engine) {
        let nodes = Nodes::start(engine).await;
        let site = &nodes.sites[0];
        let mut events = Vec::new();
        for number in 0..CLIENTS / 4 {
            let (order, renewal) = (format!("order-{number}"), format!("renewal-{number}"));
            events.push(site.refund(&format!("refund-{number}"), "-5", &renewal));
            events.push(site.child(&renewal, "renewal", "5", &order));
            events.push(site.purchase(&order, "5"));
            events.push(site.refund(&format!("return-{number}"), "-5", &order));
        }
        let events: Vec<Value> = events.iter().enumerate().map(|(number, event)| from_device(event, number)).collect();
        let mut waiting = events.clone();
        for _ in 0..4 {
            let answers = nodes.send_all(waiting.clone()).await;
            let mut late = Vec::new();
            for (event, answer) in waiting.into_iter().zip(&answers) {
                if answer.status.as_u16() != 202 {
                    assert_eq!(answer.code(), "original_transaction_unavailable", "{event}: {answer:?}");
                    late.push(event);
                }
            }
            waiting = late;
        }
        assert_eq!(waiting, Vec::<Value>::new());
        let log = site.log().await;
        assert_eq!(log.len(), events.len());
        let net: i64 = log.iter().map(|event| micros(&event["revenue"]["usd"])).sum();
        assert_eq!(net, 0);
    }
}
