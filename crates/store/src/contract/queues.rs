//! Queues: leases, pauses and back-off.

use super::fixtures::{SharedStore, at, first_page, is_due, join_all, origin, refusal};
use super::outbox_fixtures::{
    LEASE, OTHER_LEASE, connected, ends_with, expired_credential, forwarding_app, settled,
};
use crate::{DeliverySettlement, QueueRef};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::access::{Actor, Authorized};
use tributary_domain::audit::Action;
use tributary_domain::device::DeviceKey;
use tributary_domain::due_work::WorkKind;
use tributary_domain::erasure::pseudonym;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::quota::TURN_INTERVAL;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::integration::{IntegrationChange, Network};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::revision::Precondition;

/// Nodes that reserve turns of a quota at the same time get different ones.
pub async fn concurrent_nodes_get_different_turns(store: &SharedStore) {
    let quota = Digest::of(b"project");
    let reserve = |_| {
        let store = store.clone();
        async move { store.reserve_turns(quota, at(10)).await.expect("turns") }
    };
    let mut taken = BTreeSet::new();
    let mut count = 0;
    for mut turns in join_all((0..4).map(reserve).collect()).await {
        while let Some(turn) = turns.take(at(10)) {
            taken.insert(turn);
            count += 1;
        }
    }
    assert_eq!(taken.len(), count, "no turn is given twice");
    let interval = i64::try_from(TURN_INTERVAL.as_millis()).expect("a short time");
    let length = i64::try_from(count - 1).expect("a few turns") * interval;
    let last = at(10).as_millis() + length;
    assert_eq!(taken.first(), Some(&at(10)));
    assert_eq!(taken.last().map(|turn| turn.as_millis()), Some(last));
    let other = store.reserve_turns(Digest::of(b"other"), at(10)).await;
    let first = other.expect("turns").take(at(10));
    assert_eq!(first, Some(at(10)), "quotas are independent");
}

/// The kind of work in the app's queue.
const QUEUE: WorkKind = WorkKind::Deliveries(Network::A);

/// A queue has one lease holder until the holder releases it or the lease ends.
pub async fn a_queue_has_one_lease_holder(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let due = |seconds| store.due_queues(Network::A, at(seconds), 10);
    let others = store.due_queues(Network::B, at(11), 10).await;
    assert_eq!(others.expect("queues"), [], "queues are listed per network");
    assert_eq!(due(11).await.expect("queues"), [one.queue]);
    assert!(is_due(store, QUEUE, 11).await);
    assert!(!is_due(store, WorkKind::Deliveries(Network::B), 11).await);
    let tries = (1..=8).map(|number| {
        let (store, queue) = (store.clone(), one.queue);
        async move {
            let lease = crate::LeaseId([number; 16]);
            store
                .lease_queue(queue, queue.lease_request(lease, at(11), at(70)))
                .await
                .expect("a lease")
                .map(|_| lease)
        }
    });
    let got: Vec<_> = join_all(tries.collect())
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(got.len(), 1, "one of eight callers gets it");
    assert_eq!(due(12).await.expect("queues"), [], "the queue is leased");
    assert!(!is_due(store, QUEUE, 12).await);
    assert!(one.lease(OTHER_LEASE, 69, 200).await.is_none());
    assert!(
        one.lease(crate::LeaseId([9; 16]), 70, 200).await.is_some(),
        "the lease has ended"
    );
    assert!(
        !store
            .renew_lease(one.queue, got[0], at(300))
            .await
            .expect("the call succeeds")
    );
    assert!(
        one.take_due(got[0], 71).await.is_none(),
        "the old lease holder gets nothing"
    );
    let late = one.settlement(Vec::new(), 71);
    assert!(!one.settle(got[0], late).await);
    store
        .release_queue(one.queue, crate::LeaseId([9; 16]), at(72))
        .await
        .expect("the queue is released");
    assert_eq!(due(72).await.expect("queues"), [one.queue]);
}

/// Counts the paused integrations of each network.
async fn paused(store: &SharedStore) -> Vec<u64> {
    let counts = store.paused_integrations().await.expect("counts");
    let networks: Vec<Network> = counts.iter().map(|(network, _)| *network).collect();
    assert_eq!(networks, Network::ALL);
    counts.into_iter().map(|(_, count)| count).collect()
}

/// A pause keeps the deliveries and raises an alert. The pause ends when the integration is changed
/// or resumed.
pub async fn a_paused_queue_waits_until_it_is_resumed(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let mut settlement = one.settlement(Vec::new(), 13);
    settlement.changes.push(expired_credential(13));
    settlement.pause_alert = Some(one.alert(AlertKind::IntegrationPaused, 13));
    assert!(one.settle(LEASE, settlement.clone()).await);
    store
        .release_queue(one.queue, LEASE, at(14))
        .await
        .expect("released");
    assert_eq!(
        store
            .due_queues(Network::A, at(20), 10)
            .await
            .expect("queues"),
        []
    );
    assert!(!is_due(store, QUEUE, 20).await);
    assert!(one.lease(OTHER_LEASE, 20, 100).await.is_none());
    assert_eq!(paused(store).await, [1, 0, 0, 0]);
    let alerts = store
        .lease_alerts(at(20), at(80), 10)
        .await
        .expect("alerts");
    assert_eq!(alerts.len(), 1);
    assert_eq!(
        (alerts[0].alert.kind, alerts[0].attempts),
        (AlertKind::IntegrationPaused, 1)
    );
    let writer = &one.tenant.writer;
    let stale = Precondition::AnyOf(vec!["99".to_owned()]);
    let refused = store.resume_integration(writer, one.queue.app, Network::A, stale, origin(21));
    assert_eq!(refusal(refused.await), Refusal::VersionConflict);
    store
        .resume_integration(
            writer,
            one.queue.app,
            Network::A,
            Precondition::None,
            origin(21),
        )
        .await
        .expect("resumed");
    assert_eq!(paused(store).await, [0; 4]);
    let leased = one.lease(OTHER_LEASE, 22, 100).await.expect("a lease");
    assert!(leased.state.is_probing && leased.state.pause.is_none());
    // The network rejected the old credential. This late result must not pause the queue, because
    // the credential has been changed.
    one.change(Network::A, connected(Network::A), 23).await;
    settlement.begun_at = at(22);
    assert!(one.settle(OTHER_LEASE, settlement).await);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(25))
        .await;
    assert_eq!(health.expect("health")[0].1.state.pause, None);
}

/// A queue in back-off is not due until its back-off ends.
pub async fn a_failed_queue_backs_off_as_a_whole(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let mut settlement = one.settlement(Vec::new(), 13);
    settlement.changes.push(QueueChange::Failed {
        at: at(13),
        wait: Some(Duration::from_mins(1)),
        random: 0,
    });
    assert!(one.settle(LEASE, settlement).await);
    store
        .release_queue(one.queue, LEASE, at(14))
        .await
        .expect("released");
    assert_eq!(
        store
            .due_queues(Network::A, at(72), 10)
            .await
            .expect("queues"),
        []
    );
    assert_eq!(
        store
            .due_queues(Network::A, at(73), 10)
            .await
            .expect("queues"),
        [one.queue]
    );
    let state = one
        .lease(OTHER_LEASE, 73, 100)
        .await
        .expect("a lease")
        .state;
    assert_eq!((state.failures, state.is_probing), (1, true));
}

/// Waits that a node has stored while its clock was a day ahead end once the clock is right.
pub async fn a_clock_that_was_ahead_blocks_nothing(store: &SharedStore) {
    const DAY: i64 = 24 * 60 * 60;
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let due = async || {
        store
            .due_queues(Network::A, at(20), 10)
            .await
            .expect("queues")
    };
    let end_waits = async || store.end_mistaken_waits(at(20)).await.expect("it succeeds");
    assert_eq!((due().await, end_waits().await), (vec![one.queue], 0));
    // The node is killed before it releases the lease.
    one.lease(LEASE, DAY + 12, DAY + 40).await.expect("a lease");
    assert_eq!(due().await, [], "leased until tomorrow");
    assert_eq!((end_waits().await, due().await), (1, vec![one.queue]));
    // The network fails tomorrow.
    one.lease(LEASE, DAY + 12, DAY + 40).await.expect("a lease");
    let taken = one.take_due(LEASE, DAY + 12).await.expect("the lease");
    let next = NextStep::Wait {
        due_at: at(DAY + 18),
        ambiguous_since: None,
    };
    let results = taken
        .iter()
        .map(|pending| settled(pending, AttemptVerdict::Retry, next.clone(), at(DAY + 13)));
    let mut settlement = one.settlement(results.collect(), DAY + 13);
    settlement.changes.push(QueueChange::Failed {
        at: at(DAY + 13),
        wait: None,
        random: 0,
    });
    assert!(one.settle(LEASE, settlement).await);
    store
        .release_queue(one.queue, LEASE, at(DAY + 14))
        .await
        .expect("released");
    assert_eq!((due().await, end_waits().await), (vec![], 1));
    assert_eq!((due().await, end_waits().await), (vec![one.queue], 0));
    assert!(is_due(store, QUEUE, 20).await);
    one.lease(OTHER_LEASE, 20, 60).await.expect("a lease");
    let taken = one.take_due(OTHER_LEASE, 20).await.expect("the lease");
    assert_eq!(taken.len(), 1);
    assert_eq!(end_waits().await, 0, "a lease that ends in time stays");
    assert_eq!(due().await, []);
}

/// A settlement changes the state that is stored by then, not the one that its process has read.
pub async fn a_settlement_keeps_what_others_have_stored(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let settle = async |changes| {
        let settlement = DeliverySettlement {
            changes,
            pause_alert: Some(one.alert(AlertKind::IntegrationPaused, 13)),
            ..one.settlement(Vec::new(), 13)
        };
        let settled = store.settle_deliveries(one.queue, LEASE, settlement).await;
        settled.expect("the call succeeds").expect("the lease")
    };
    let failed = QueueChange::Failed {
        at: at(13),
        wait: Some(Duration::from_mins(1)),
        random: 0,
    };
    let first = settle(vec![failed]).await.state;
    assert_eq!((first.failures, first.not_before), (1, Some(at(73))));
    let paused = settle(vec![expired_credential(13)]).await;
    assert!(paused.is_newly_paused);
    assert_eq!(paused.state.not_before, Some(at(73)), "a back-off stays");
    let again = settle(vec![expired_credential(14)]).await;
    assert!(!again.is_newly_paused, "the queue is paused already");
    let last = settle(vec![QueueChange::Accepted { at: at(13) }]).await;
    assert_eq!(last.state.pause.map(|pause| pause.at), Some(at(13)));
    assert_eq!(
        (last.state.failures, last.state.not_before),
        (0, Some(at(73)))
    );
    let alerts = store.lease_alerts(at(20), at(80), 10).await;
    assert_eq!(alerts.expect("alerts").len(), 1, "one pause, one alert");
    let reader = one.tenant.writer.read_access();
    let log = store.audit_log(&reader, Some(one.queue.app), first_page("50"));
    let log = log.await.expect("a log").items;
    let pauses = log
        .iter()
        .filter(|entry| entry.action == Action::IntegrationPaused);
    let pauses: Vec<_> = pauses
        .map(|entry| (&entry.actor, entry.target.as_str()))
        .collect();
    assert_eq!(pauses, [(&Actor::Service, one.queue.network.as_str())]);
}

/// A problem in one app's queue does not affect the others.
pub async fn queues_are_independent(store: &SharedStore) {
    let (one, other) = (forwarding_app(store).await, forwarding_app(store).await);
    one.attribute_install("phone", 10).await;
    other.attribute_install("phone", 10).await;
    let due: BTreeSet<QueueRef> = store
        .due_queues(Network::A, at(11), 10)
        .await
        .expect("queues")
        .into_iter()
        .collect();
    assert_eq!(due, BTreeSet::from([one.queue, other.queue]));
    one.lease(LEASE, 12, 100).await.expect("a lease");
    other.lease(OTHER_LEASE, 12, 100).await.expect("a lease");
    assert!(
        !store
            .renew_lease(one.queue, OTHER_LEASE, at(200))
            .await
            .expect("the call succeeds")
    );
    assert_eq!(one.take_due(LEASE, 13).await.expect("deliveries").len(), 1);
    assert_eq!(other.deliveries(DeliveryFilter::default()).await.len(), 1);
}

/// Deliveries are not sent if their integration was changed or disabled meanwhile.
pub async fn a_changed_integration_sends_nothing_more(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1"], "sign_up", 11).await;
    let leased = one.lease(LEASE, 12, 100).await.expect("a lease");
    let revision = leased.integration.revision.number();
    let due = async |revision| {
        let due = store.due_deliveries(one.queue, LEASE, revision, at(12), 10);
        due.await.expect("the call succeeds").map(|due| due.len())
    };
    assert_eq!(due(revision).await, Some(2));
    assert_eq!(due(revision + 1).await, None, "another revision");
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    let changed = one.change(Network::A, off, 13).await;
    assert_eq!(due(revision).await, None, "switched off");
    assert_eq!(
        due(changed.revision.number()).await,
        None,
        "disabled at any revision"
    );
    let stranger = store.begin_sending(one.queue, OTHER_LEASE, Vec::new(), at(14));
    assert_eq!(
        stranger.await.expect("the call succeeds"),
        None,
        "another lease"
    );
    let gone = tributary_domain::vocabulary::id::DeliveryId::from_bytes([9; 16]);
    let begun = store.begin_sending(one.queue, LEASE, vec![gone], at(14));
    assert_eq!(
        begun.await.expect("the call succeeds"),
        Some(Vec::new()),
        "the delivery no longer exists"
    );
}

/// A queue that cannot send is postponed, unless another process holds it.
pub async fn a_leased_queue_is_not_postponed(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let incomplete = IntegrationChange {
        credentials: BTreeMap::from([("accessToken", Change::Reset)]),
        ..IntegrationChange::default()
    };
    one.change(Network::A, incomplete, 13).await;
    let rests_until = async |seconds| {
        let reader = one.reader();
        let health = store.integration_health(&reader, one.queue.app, at(seconds));
        health.await.expect("health")[0].1.state.not_before
    };
    assert!(one.lease(OTHER_LEASE, 99, 200).await.is_none());
    assert_eq!(rests_until(99).await, None, "the queue is leased");
    assert!(one.lease(OTHER_LEASE, 100, 200).await.is_none());
    assert!(
        rests_until(100).await > Some(at(100)),
        "the lease has ended"
    );
}

/// If a delivery is cancelled while it is being sent, the network's response is still counted, and
/// the delivery stays cancelled.
pub async fn a_settlement_counts_a_cancelled_delivery(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let taken = one.take_due(LEASE, 13).await.expect("deliveries");
    // The lease has ended, so erasing the device cancels the delivery.
    let eraser = Authorized::operator(one.tenant.writer.organization());
    let (phone, name) = (DeviceKey::stored("phone".to_owned()), pseudonym([5; 16]));
    store
        .erase_device(&eraser, one.queue.app, phone, name, origin(150))
        .await
        .expect("a device is erased");
    let delivered = ends_with(DeliveryStatus::Delivered);
    let late = settled(&taken[0], AttemptVerdict::Delivered, delivered, at(160));
    assert!(one.settle(LEASE, one.settlement(vec![late], 160)).await);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(170))
        .await
        .expect("health")[0]
        .1
        .clone();
    assert_eq!(
        (health.pending, health.delivered, health.failed),
        (0, 1, 0),
        "a cancelled delivery is not a failure"
    );
    let all = one.deliveries(DeliveryFilter::default()).await;
    let statuses: Vec<DeliveryStatus> = all.iter().map(|one| one.delivery.status).collect();
    assert_eq!(statuses, [DeliveryStatus::Cancelled]);
}
