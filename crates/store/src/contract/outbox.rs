//! The outbox: claiming and settling deliveries.

use super::fixtures::{SharedStore, at, is_due};
use super::outbox_fixtures::{LEASE, ends_with, forwarding_app, settled};
use crate::{CheckOutcome, StatusCheck};
use std::collections::BTreeSet;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::integration::{IntegrationChange, Network};
use tributary_domain::vocabulary::change::Change;

/// Claimed deliveries are marked as in flight, results are stored, and finished deliveries leave
/// the queue.
pub async fn deliveries_are_taken_and_settled(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1", "s2"], "sign_up", 11).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let taken = one.take_due(LEASE, 12).await.expect("deliveries");
    assert_eq!(taken.len(), 3);
    assert!(
        taken
            .iter()
            .all(|one| one.interrupted_at.is_none() && one.attempts_made == 0)
    );
    let later = NextStep::Wait {
        due_at: at(40),
        ambiguous_since: Some(at(12)),
    };
    let outcomes = vec![
        settled(
            &taken[0],
            AttemptVerdict::Delivered,
            ends_with(DeliveryStatus::Delivered),
            at(12),
        ),
        settled(&taken[1], AttemptVerdict::Unknown, later, at(12)),
    ];
    let mut settlement = one.settlement(outcomes, 13);
    settlement
        .changes
        .push(QueueChange::Accepted { at: at(13) });
    assert!(one.settle(LEASE, settlement).await);
    // The third delivery was marked as in flight but got no result. It is claimed again, as
    // interrupted.
    let again = one.take_due(LEASE, 14).await.expect("deliveries");
    let ids: Vec<_> = again
        .iter()
        .map(|one| (one.id, one.interrupted_at))
        .collect();
    assert_eq!(ids, [(taken[2].id, Some(at(12)))]);
    let third = settled(
        &again[0],
        AttemptVerdict::Terminal,
        ends_with(DeliveryStatus::Failed),
        at(14),
    );
    assert!(one.settle(LEASE, one.settlement(vec![third], 15)).await);
    assert_eq!(one.take_due(LEASE, 39).await.expect("deliveries"), []);
    let second = one.take_due(LEASE, 40).await.expect("deliveries");
    assert_eq!(second.len(), 1);
    assert_eq!(
        (second[0].ambiguous_since, second[0].attempts_made),
        (Some(at(12)), 1)
    );
    assert_eq!(second[0].attempts.len(), 1);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(50))
        .await
        .expect("health");
    let (_, health) = &health[0];
    assert_eq!((health.pending, health.delivered, health.failed), (1, 1, 1));
}

/// The data to send is read at the time of sending.
pub async fn conversions_are_gathered(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1"], "sign_up", 11).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let taken = one.take_due(LEASE, 12).await.expect("deliveries");
    let order: Vec<_> = taken.iter().map(|one| one.id).collect();
    let gathered = store
        .gather_conversions(one.queue, taken)
        .await
        .expect("conversions");
    assert_eq!(
        gathered
            .iter()
            .map(|one| one.pending.id)
            .collect::<Vec<_>>(),
        order
    );
    let names: BTreeSet<String> = gathered
        .into_iter()
        .map(|one| {
            let conversion = one.conversion.expect("its event exists");
            assert_eq!(
                one.link.map(|link| link.id),
                conversion
                    .event
                    .credit
                    .as_ref()
                    .and_then(|credit| credit.link)
            );
            assert!(
                conversion
                    .click
                    .is_some_and(|click| click.user_agent.is_some())
            );
            assert!(conversion.device.is_some() && conversion.page_url.is_none());
            conversion.network_event
        })
        .collect();
    let expected = ["CompleteRegistration", "Lead"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
}

/// A request's status is checked until the network reports the outcome. Its deliveries are sent
/// again if the outcome requires it.
pub async fn status_checks_are_settled(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1"], "sign_up", 11).await;
    one.lease(LEASE, 12, 10_000).await.expect("a lease");
    let taken = one.take_due(LEASE, 12).await.expect("deliveries");
    let delivered = |pending| {
        settled(
            pending,
            AttemptVerdict::Delivered,
            ends_with(DeliveryStatus::Delivered),
            at(12),
        )
    };
    let mut settlement = one.settlement(taken.iter().map(delivered).collect(), 13);
    let check = |request: &str, index: usize| StatusCheck {
        request: request.to_owned(),
        sent_at: at(12),
        step: 0,
        due_at: at(312),
        deliveries: vec![taken[index].id],
    };
    settlement.checks = vec![check("r1", 0), check("r2", 1)];
    assert!(one.settle(LEASE, settlement).await);
    let due = |seconds| store.due_status_checks(one.queue, at(seconds), 10);
    assert_eq!(due(311).await.expect("checks"), []);
    assert_eq!(due(312).await.expect("checks").len(), 2);
    let kind = WorkKind::Deliveries(one.queue.network);
    assert!(is_due(store, kind, 10_000).await, "checks are due");
    let settle = |request: &str, outcome| {
        store.settle_status_check(one.queue, LEASE, request.to_owned(), outcome, at(313))
    };
    let later = CheckOutcome::Later {
        step: 1,
        due_at: at(400),
    };
    assert!(settle("r1", later).await.expect("settled"));
    let again = CheckOutcome::Resend {
        due_at: at(500),
        reason: "TOO_RECENT".to_owned(),
    };
    assert!(settle("r2", again).await.expect("settled"));
    let steps: Vec<u32> = due(400)
        .await
        .expect("checks")
        .iter()
        .map(|check| check.step)
        .collect();
    assert_eq!(steps, [1]);
    let failed = CheckOutcome::Failed {
        reason: "INVALID_GCLID".to_owned(),
    };
    assert!(settle("r1", failed).await.expect("settled"));
    assert_eq!(due(9_000).await.expect("checks"), []);
    assert_eq!(one.take_due(LEASE, 499).await.expect("deliveries"), []);
    let back = one.take_due(LEASE, 500).await.expect("deliveries");
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].id, back[0].attempts_made), (taken[1].id, 1));
    assert_eq!(back[0].dedup_id, taken[1].dedup_id, "the same id");
    let failed = DeliveryFilter {
        status: Some(DeliveryStatus::Failed),
        ..DeliveryFilter::default()
    };
    assert_eq!(one.deliveries(failed).await.len(), 1);
}

/// Deliveries that no worker claims expire. Finished deliveries are removed later.
pub async fn old_deliveries_expire(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 11).await;
    let week = 7 * 86_400;
    assert_eq!(
        store
            .expire_deliveries(at(week - 700), 10)
            .await
            .expect("none"),
        0
    );
    assert_eq!(store.expire_deliveries(at(week), 10).await.expect("one"), 1);
    let expired = ("install".to_owned(), "expired", Some("expired".to_owned()));
    assert_eq!(one.delivery_statuses().await, [expired]);
    assert_eq!(
        store.remove_deliveries(at(week), 10).await.expect("none"),
        0
    );
    assert_eq!(
        store
            .remove_deliveries(at(week + 1), 10)
            .await
            .expect("one"),
        1
    );
    assert_eq!(one.delivery_statuses().await, []);
}

/// A delivery whose sending process disappeared expires, too.
pub async fn interrupted_deliveries_expire_too(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    one.take_due(LEASE, 12).await.expect("deliveries");
    let week = 7 * 86_400;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 13).await;
    store
        .renew_lease(one.queue, LEASE, at(week + 10))
        .await
        .expect("renewed");
    assert_eq!(
        store.expire_deliveries(at(week), 10).await.expect("none"),
        0,
        "the queue is leased"
    );
    assert_eq!(
        store
            .expire_deliveries(at(week + 10), 10)
            .await
            .expect("one"),
        1
    );
    let unknown = (
        "install".to_owned(),
        "unconfirmed",
        Some("outcome_unknown".to_owned()),
    );
    assert_eq!(one.delivery_statuses().await, [unknown]);
}

/// Deliveries settled as test deliveries leave the outbox but are not counted.
pub async fn test_deliveries_are_not_counted(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let taken = one.take_due(LEASE, 12).await.expect("deliveries");
    let delivered = |pending| {
        settled(
            pending,
            AttemptVerdict::Delivered,
            ends_with(DeliveryStatus::Delivered),
            at(12),
        )
    };
    let mut settlement = one.settlement(taken.iter().map(delivered).collect(), 13);
    settlement.is_test = true;
    assert!(one.settle(LEASE, settlement).await);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(14))
        .await
        .expect("health");
    assert_eq!((health[0].1.delivered, health[0].1.pending), (0, 0));
}
