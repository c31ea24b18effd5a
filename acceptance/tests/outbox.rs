//! Settles deliveries as the forwarder would, without a network.

use crate::website::Website;
use serde_json::json;
use std::time::Duration;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryAttempt, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{DeliverySettlement, LeaseId, QueueRef, SettledDelivery};
use tributary_testkit::TestServer;

/// Batch size, larger than the number of deliveries in any test.
const ALL: u32 = 1_000;
const LEASE: LeaseId = LeaseId([7; 16]);

/// Connects `network_a` with a test event code.
pub(crate) async fn connect(site: &Website) {
    let change = json!({
        "enabled": true,
        "settings": {"pixelId": "1234567890", "testEventCode": "TEST1"},
        "credentials": {"accessToken": "EAAB0123456789abcdef"},
    });
    let path = "/integrations/network_a";
    site.call("PATCH", path, change).await.expect(200);
}

/// Result of an attempt.
pub(crate) struct Outcome {
    pub(crate) verdict: AttemptVerdict,
    /// Final status and reason. `None`: the deliveries wait for a minute.
    pub(crate) end: Option<(DeliveryStatus, Option<&'static str>)>,
    /// Returns the changes to the state of the queue.
    pub(crate) changes: fn(Timestamp) -> Vec<QueueChange>,
}

impl Outcome {
    /// The network accepted the events.
    pub(crate) const DELIVERED: Self = Self {
        verdict: AttemptVerdict::Delivered,
        end: Some((DeliveryStatus::Delivered, None)),
        changes: |at| vec![QueueChange::Accepted { at }],
    };
    /// The network rejected the events for good.
    pub(crate) const FAILED: Self = Self {
        verdict: AttemptVerdict::Terminal,
        end: Some((DeliveryStatus::Failed, Some("2804003"))),
        changes: |_| Vec::new(),
    };
}

/// Settles one attempt for every delivery of an app that is due at `network_a`. Returns their ids.
pub(crate) async fn settle(server: &TestServer, app: &str, outcome: &Outcome) -> Vec<String> {
    let queue = QueueRef {
        app: AppId::parse(app.rsplit('/').next().unwrap()).unwrap(),
        network: Network::A,
    };
    let store = &server.store;
    let now = server.clock.now();
    let until = now.plus(Duration::from_mins(1));
    let request = queue.lease_request(LEASE, now, until);
    let leased = store.lease_queue(queue, request).await.unwrap();
    let leased = leased.expect("the queue is not leased");
    let revision = leased.integration.revision.number();
    let due = store.due_deliveries(queue, LEASE, revision, now, ALL).await;
    let taken = due.unwrap().expect("the lease is valid");
    let begun = taken.iter().map(|pending| pending.id).collect();
    store.begin_sending(queue, LEASE, begun, now).await.unwrap();
    let ids = taken.iter().map(|pending| pending.id.to_string()).collect();
    let next = || match outcome.end {
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
        answer: Some("text".to_owned()),
        refusal: Some("100".to_owned()),
    };
    let settled = taken.into_iter().map(|pending| SettledDelivery {
        id: pending.id,
        attempts_made: pending.attempts_made + 1,
        attempts: [pending.attempts, vec![attempt.clone()]].concat(),
        next: next(),
    });
    let settlement = DeliverySettlement {
        at: now,
        begun_at: now,
        changes: (outcome.changes)(now),
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
            .is_some()
    );
    store.release_queue(queue, LEASE, now).await.unwrap();
    ids
}
