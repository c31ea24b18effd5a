//! Deliveries brought to their ends as a worker would, with no network at all.

use crate::website::Website;
use serde_json::json;
use std::time::Duration;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryAttempt, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{DeliverySettlement, LeaseId, QueueRef, SettledDelivery};
use tributary_testkit::TestServer;

/// Deliveries that are taken at once, more than any test makes.
const ALL: u32 = 1_000;
const LEASE: LeaseId = LeaseId([7; 16]);

/// Connects `network_a`; its test events would be seen and not counted.
pub(crate) async fn connect(site: &Website) {
    let change = json!({
        "enabled": true,
        "settings": {"pixelId": "1234567890", "testEventCode": "TEST1"},
        "credentials": {"accessToken": "EAAB0123456789abcdef"},
    });
    let path = "/integrations/network_a";
    site.call("PATCH", path, change).await.expect(200);
}

/// What an attempt came to.
pub(crate) struct Outcome {
    pub(crate) verdict: AttemptVerdict,
    /// How the deliveries end; nothing: they wait a minute.
    pub(crate) ends: Option<(DeliveryStatus, Option<&'static str>)>,
    /// What it does to the queue.
    pub(crate) state: fn(&mut QueueState, Timestamp),
}

impl Outcome {
    /// The network took them.
    pub(crate) const DELIVERED: Self = Self {
        verdict: AttemptVerdict::Delivered,
        ends: Some((DeliveryStatus::Delivered, None)),
        state: |state, at| state.record_success(at),
    };
    /// The network will never take them.
    pub(crate) const FAILED: Self = Self {
        verdict: AttemptVerdict::Terminal,
        ends: Some((DeliveryStatus::Failed, Some("2804003"))),
        state: |_, _| {},
    };
}

/// Makes one attempt at everything of an app that is due at `network_a`; gives the ids.
pub(crate) async fn settle(server: &TestServer, app: &str, outcome: &Outcome) -> Vec<String> {
    let queue = QueueRef {
        app: AppId::parse(app.rsplit('/').next().unwrap()).unwrap(),
        network: Network::A,
    };
    let store = &server.store;
    let now = server.clock.now();
    let until = now.plus(Duration::from_mins(1));
    let leased = store.lease_queue(queue, LEASE, now, until).await.unwrap();
    let leased = leased.expect("the queue is nobody's");
    let revision = leased.integration.revision.number();
    let due = store.due_deliveries(queue, LEASE, revision, now, ALL).await;
    let taken = due.unwrap().expect("the queue is ours");
    let begun = taken.iter().map(|pending| pending.id).collect();
    store.begin_sending(queue, LEASE, begun, now).await.unwrap();
    let ids = taken.iter().map(|pending| pending.id.to_string()).collect();
    let next = || match outcome.ends {
        Some((status, reason)) => NextStep::End {
            status,
            reason: reason.map(str::to_owned),
        },
        None => NextStep::Wait {
            due_at: until,
            ambiguous_since: None,
        },
    };
    let attempt = DeliveryAttempt {
        at: now,
        status: Some(400),
        duration_ms: 180,
        verdict: outcome.verdict,
        answer: Some("words".to_owned()),
        refusal: Some("100".to_owned()),
    };
    let settled = taken.into_iter().map(|pending| SettledDelivery {
        id: pending.id,
        attempts_made: pending.attempts_made + 1,
        attempts: [pending.attempts, vec![attempt.clone()]].concat(),
        next: next(),
    });
    let mut state = leased.state;
    (outcome.state)(&mut state, now);
    let settlement = DeliverySettlement {
        at: now,
        state,
        revision: leased.integration.revision.number(),
        settled: settled.collect(),
        is_test: false,
        checks: Vec::new(),
        pause_alert: None,
        failure_alert: None,
    };
    assert!(
        store
            .settle_deliveries(queue, LEASE, settlement)
            .await
            .unwrap()
    );
    store.release_queue(queue, LEASE, now).await.unwrap();
    ids
}
