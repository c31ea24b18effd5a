//! The outbox on two nodes at once: a queue has one lease holder, a node with an outdated lease
//! writes nothing, and a delivery is in only one table.

use super::database::{Schema, number};
use super::event_batches::open_strict;
use super::races::Nodes;
use tokio_postgres::Client;
use tributary_domain::app::AppChange;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::integration::{EventScope, IntegrationChange, Network};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::contract::fixtures::{SharedStore, at, origin};
use tributary_store::contract::outbox_fixtures::{
    ForwardingApp, LEASE, OTHER_LEASE, connected, ends_with, expired_credential, forwarding_app,
    settled,
};
use tributary_store::{
    Alerts, Apps, CheckOutcome, Deliveries, Devices, Integrations, LeaseId, Outbox,
};
use tributary_store::{DeliverySettlement, PendingDelivery, QueueRef, StatusCheck};

/// Repetitions of each race.
const ROUNDS: i64 = 20;

/// Dumps all tables that a settlement could change.
async fn dump_tables(client: &Client) -> String {
    let mut all = String::new();
    for table in [
        "outbox",
        "deliveries",
        "delivery_hours",
        "queues",
        "queue_parts",
        "status_checks",
        "alerts",
    ] {
        let sql = format!(
            "select coalesce(string_agg(t::text, ';' order by t::text), '') from {table} t"
        );
        let row = client.query_one(&sql, &[]).await.expect("a row");
        all.push_str(row.get(0));
        all.push('\n');
    }
    all
}

/// Settles half of the deliveries as delivered and half as retried.
fn outcomes(one: &ForwardingApp, taken: &[PendingDelivery], seconds: i64) -> DeliverySettlement {
    let outcome = |(index, pending): (usize, &PendingDelivery)| {
        let waits = NextStep::Wait {
            due_at: at(seconds + 1),
            ambiguous_since: None,
        };
        if index % 2 == 0 {
            let delivered = ends_with(DeliveryStatus::Delivered);
            settled(pending, AttemptVerdict::Delivered, delivered, at(seconds))
        } else {
            settled(pending, AttemptVerdict::Retry, waits, at(seconds))
        }
    };
    let settled = taken.iter().enumerate().map(outcome).collect();
    one.settlement(settled, seconds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_callers_leases_the_queue() {
    let nodes = Nodes::start().await;
    let one = &forwarding_app(&nodes.shared()).await;
    // As on a new installation: no queue row exists.
    let client = nodes.schema.client().await;
    let sql = "delete from queues";
    client.batch_execute(sql).await.expect("delete queues");
    for round in 0..ROUNDS {
        let (now, until) = (at(100 + round * 60), at(160 + round * 60));
        let outcomes = nodes
            .all(|node, number| {
                let lease = LeaseId([u8::try_from(number).expect("small"); 16]);
                let request = one.queue.lease_request(lease, now, until);
                async move { node.lease_queue(one.queue, request).await }
            })
            .await;
        let holders: Vec<u8> = (0..)
            .zip(&outcomes)
            .filter(|(_, outcome)| matches!(outcome, Ok(Some(_))))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(holders.len(), 1, "{holders:?}");
        let held = "select get_byte(uuid_send(lease_id), 0)::bigint from queues";
        assert_eq!(number(&client, held).await, i64::from(holders[0]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outdated_lease_writes_nothing() {
    let nodes = Nodes::start().await;
    let one = forwarding_app(&nodes.shared()).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1", "s2", "s3"], "sign_up", 11)
        .await;
    one.lease(LEASE, 12, 20).await.expect("a lease");
    let taken = one.take_due(LEASE, 12).await.expect("deliveries");
    let request = one.queue.lease_request(OTHER_LEASE, at(20), at(80));
    let late = nodes.nodes[1].lease_queue(one.queue, request);
    late.await.expect("the call succeeds").expect("a lease");
    let client = nodes.schema.client().await;
    let before = dump_tables(&client).await;
    let mut settlement = outcomes(&one, &taken, 21);
    settlement.changes.push(expired_credential(21));
    settlement.pause_alert = Some(one.alert(AlertKind::IntegrationPaused, 21));
    settlement.checks.push(StatusCheck {
        request: "r1".to_owned(),
        sent_at: at(21),
        step: 0,
        due_at: at(22),
        deliveries: vec![taken[0].id],
    });
    assert!(!one.settle(LEASE, settlement.clone()).await);
    assert_eq!(one.take_due(LEASE, 22).await, None);
    let node = &nodes.nodes[0];
    let renewed = node.renew_lease(one.queue, LEASE, at(500)).await;
    assert!(!renewed.expect("the call succeeds"));
    let released = node.release_queue(one.queue, LEASE, at(23)).await;
    released.expect("the call succeeds");
    let outcome = CheckOutcome::Done { note: None };
    let checked = node.settle_status_check(one.queue, LEASE, "r1".to_owned(), outcome, at(23));
    assert!(!checked.await.expect("the call succeeds"));
    assert_eq!(dump_tables(&client).await, before);
    // The new holder finds the deliveries that the old holder had begun to send.
    let again = one.take_due_via(&*nodes.nodes[1], Network::A, OTHER_LEASE, 24);
    let again = again.await.expect("deliveries");
    assert_eq!(again.len(), 4);
    assert!(again.iter().all(|one| one.interrupted_at == Some(at(12))));
    assert!(one.settle(OTHER_LEASE, settlement).await);
    assert_ne!(dump_tables(&client).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_commits_before_the_next_lease_or_not_at_all() {
    let nodes = Nodes::start().await;
    let one = forwarding_app(&nodes.shared()).await;
    let (first, second) = (&nodes.nodes[0], &nodes.nodes[1]);
    one.attribute_install("phone", 10).await;
    let ids: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.send_events("phone", &ids, "sign_up", 11).await;
    let client = nodes.schema.client().await;
    for round in 0..ROUNDS {
        let now = 100 + round * 100;
        let request = one.queue.lease_request(LEASE, at(now), at(now + 10));
        let leased = first.lease_queue(one.queue, request);
        leased.await.expect("the call succeeds").expect("a lease");
        let taken = one.take_due(LEASE, now).await.expect("deliveries");
        let waiting = i64::try_from(taken.len()).expect("small");
        let settling = first.settle_deliveries(one.queue, LEASE, outcomes(&one, &taken, now + 10));
        let taking = async {
            let request = one
                .queue
                .lease_request(OTHER_LEASE, at(now + 10), at(now + 50));
            let lease = second.lease_queue(one.queue, request);
            lease.await.expect("the call succeeds").expect("a lease");
            one.take_due_via(&**second, Network::A, OTHER_LEASE, now + 20)
                .await
        };
        let (written, found) = tokio::join!(settling, taking);
        let found = found.expect("deliveries");
        let found = i64::try_from(found.len()).expect("small");
        if written.expect("the call succeeds").is_some() {
            assert_eq!(found, waiting / 2, "the retried deliveries");
        } else {
            assert_eq!(found, waiting, "all deliveries");
        }
        let left = number(&client, "select count(*) from outbox").await;
        assert_eq!(left, found);
        let released = second.release_queue(one.queue, OTHER_LEASE, at(now + 21));
        released.await.expect("the call succeeds");
    }
    assert_no_delivery_twice(&client).await;
}

async fn assert_no_delivery_twice(client: &Client) {
    let twice = "select count(*) from outbox join deliveries using (app_id, delivery_id)";
    assert_eq!(number(client, twice).await, 0);
}

/// When a device's events are planned again while their deliveries are settled, no delivery is
/// duplicated and nothing deadlocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_either_planned_again_or_settled() {
    let schema = Schema::create().await;
    let nodes = [open_strict(&schema).await, open_strict(&schema).await];
    let shared: SharedStore = nodes[0].clone();
    let one = forwarding_app(&shared).await;
    let everybody = IntegrationChange {
        scope: Change::Set(EventScope::All),
        ..connected(Network::D)
    };
    one.change(Network::D, everybody, 4).await;
    let queue = QueueRef {
        network: Network::D,
        ..one.queue
    };
    let client = schema.client().await;
    let ids: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    for round in 0..ROUNDS {
        let (now, device) = (100 + round * 100, format!("device-{round}"));
        one.tenant
            .call_configure(one.tenant.configure(&device, now))
            .await;
        let ids: Vec<String> = ids.iter().map(|id| format!("{round}-{id}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        one.send_events(&device, &ids, "sign_up", now + 1).await;
        let request = queue.lease_request(LEASE, at(now + 2), at(now + 50));
        let leased = nodes[0].lease_queue(queue, request);
        leased.await.expect("the call succeeds").expect("a lease");
        let taken = one.take_due_via(&*nodes[0], queue.network, LEASE, now + 2);
        let taken = taken.await.expect("deliveries");
        assert!(taken.len() >= 30);
        let settling = nodes[0].settle_deliveries(queue, LEASE, outcomes(&one, &taken, now + 3));
        let click = one.tenant.record_click(now).await;
        let improving =
            nodes[1].configure(one.tenant.configure_with_click(&device, &click, now + 4));
        let (written, improved) = tokio::join!(settling, improving);
        assert!(written.expect("the call succeeds").is_some());
        let improved = improved.expect("configure succeeds").attribution;
        assert_eq!(improved.decision.click, Some(click.id));
        assert_no_delivery_twice(&client).await;
        let delivered = format!(
            "select count(*) from deliveries where status = 'delivered' and settled_at = {}",
            at(now + 3).as_millis()
        );
        let half = i64::try_from(taken.len().div_ceil(2)).expect("small");
        assert_eq!(number(&client, &delivered).await, half);
        let released = nodes[0].release_queue(queue, LEASE, at(now + 5));
        released.await.expect("the call succeeds");
    }
    // OpenAI Ads (`network_d`) gets all events from the start. Meta (`network_a`) gets them after
    // the attribution, including the install.
    let sql = "select count(*) from (select delivery_id from outbox
                                     union all select delivery_id from deliveries) as one";
    assert_eq!(number(&client, sql).await, ROUNDS * (30 + 31));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_does_not_overwrite_a_fixed_integration() {
    let nodes = Nodes::start().await;
    let one = &forwarding_app(&nodes.shared()).await;
    let client = nodes.schema.client().await;
    for round in 0..ROUNDS {
        let now = 100 + round * 100;
        let revision = one
            .lease(LEASE, now, now + 50)
            .await
            .expect("the queue is not paused")
            .integration
            .revision
            .number();
        let mut settlement = DeliverySettlement {
            revision,
            ..one.settlement(Vec::new(), now + 1)
        };
        settlement.changes.push(expired_credential(now + 1));
        settlement.pause_alert = Some(one.alert(AlertKind::IntegrationPaused, now + 1));
        let mends = IntegrationChange {
            credentials: connected(Network::A).credentials,
            ..IntegrationChange::default()
        };
        let mending = nodes.nodes[1].update_integration(
            &one.tenant.writer,
            one.queue.app,
            Network::A,
            mends,
            Precondition::None,
            origin(now + 1),
        );
        let settling = nodes.nodes[0].settle_deliveries(one.queue, LEASE, settlement);
        let (mended, settled) = tokio::join!(mending, settling);
        mended.expect("integration is updated");
        assert!(settled.expect("the call succeeds").is_some());
        let paused = "select count(*) from queues where paused_at is not null";
        assert_eq!(number(&client, paused).await, 0);
        let released = nodes.nodes[0].release_queue(one.queue, LEASE, at(now + 2));
        released.await.expect("the call succeeds");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_leased_once() {
    let nodes = Nodes::start().await;
    let one = forwarding_app(&nodes.shared()).await;
    one.lease(LEASE, 10, 60).await.expect("a lease");
    for second in 0..4 {
        let mut settlement = one.settlement(Vec::new(), 20 + second);
        settlement.changes.push(expired_credential(20));
        settlement.pause_alert = Some(one.alert(AlertKind::IntegrationPaused, 20));
        assert!(one.settle(LEASE, settlement).await);
        let (writer, app) = (&one.tenant.writer, one.queue.app);
        let (origin, any) = (origin(20 + second), Precondition::None);
        let resumed = nodes.nodes[0].resume_integration(writer, app, Network::A, any, origin);
        resumed.await.expect("the queue is resumed");
    }
    let outcomes = nodes
        .all(|node, _| async move { node.lease_alerts(at(30), at(60), 10).await })
        .await;
    let leased: Vec<_> = outcomes
        .into_iter()
        .flat_map(|outcome| outcome.expect("alerts"))
        .collect();
    assert_eq!(leased.len(), 4);
    assert!(leased.iter().all(|one| one.attempts == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_alerts_are_raised_once() {
    let nodes = Nodes::start().await;
    let one = forwarding_app(&nodes.shared()).await;
    let listens = AppChange {
        alert_webhook_url: Change::Set(HttpsUrl::parse("https://a.example/alerts").expect("a URL")),
        ..AppChange::default()
    };
    let (writer, app) = (&one.tenant.writer, one.queue.app);
    let changed = nodes.nodes[0].update_app(writer, app, listens, Precondition::None, origin(5));
    changed.await.expect("a change");
    for round in 0..ROUNDS {
        let now = 100 + round * 100;
        let outcomes = nodes
            .all(|node, number| {
                let random = [u8::try_from(number).expect("small"); 8];
                let message = "There are no new rates.".to_owned();
                let (kind, since) = (AlertKind::RatesStale, at(now - 50));
                async move {
                    node.raise_alert_everywhere(kind, message, since, at(now), random)
                        .await
                }
            })
            .await;
        let raised: u64 = outcomes.into_iter().map(|one| one.expect("a number")).sum();
        assert_eq!(raised, 1);
    }
}
