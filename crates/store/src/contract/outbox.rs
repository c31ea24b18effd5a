//! The outbox: what is planned, taken and settled.

use super::fixtures::{SharedStore, at, join_all, origin, unique};
use super::outbox_fixtures::{Forwarding, ONE, OTHER, connected, ends, forwarding, settled};
use super::sdk_fixtures::payment;
use super::web_events::{post, purchase, shop};
use crate::{CheckOutcome, QueueRef, StatusCheck};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::app::AppChange;
use tributary_domain::event::web::WebEventKind;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::forwarding::course::Next;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::{DeliveryStatus, Skip, Verdict};
use tributary_domain::integration::{IntegrationChange, Network, SettingValue};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// What is mapped and credited is planned with its event; what is not leaves a word on the event, and no row.
pub async fn a_delivery_is_planned_with_its_event(store: &SharedStore) {
    let one = forwarding(store).await;
    one.change(Network::C, connected(Network::C), 4).await;
    one.attributed("phone", 10).await;
    one.sends("phone", &["s1"], "sign_up", 11).await;
    one.sends("phone", &["b1"], "boss_defeated", 12).await;
    one.sends("stranger", &["s2"], "sign_up", 13).await;
    let standing = one.standing().await;
    let planned = |id: &str| (id.to_owned(), "pending", None);
    assert_eq!(standing, [planned("install"), planned("s1")]);
    let skipped = |id: &str, log: &[tributary_domain::event::Event]| {
        let found = log.iter().find(|event| event.given_id == id);
        found.expect("an event").skipped.clone()
    };
    let log = one.log().await;
    assert_eq!(skipped("s1", &log), [(Network::C, Skip::NotAttributed)]);
    let both = [
        (Network::A, Skip::NotMapped),
        (Network::C, Skip::NotAttributed),
    ];
    assert_eq!(skipped("b1", &log), both);
    let nobodys = [
        (Network::A, Skip::NotAttributed),
        (Network::C, Skip::NotAttributed),
    ];
    assert_eq!(skipped("s2", &log), nobodys);
}

/// A duplicate plans nothing, and money that may not be told keeps a purchase back.
pub async fn a_duplicate_plans_nothing(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    for _ in 0..2 {
        one.sends("phone", &["s1"], "sign_up", 11).await;
    }
    let arrival = one.tenant.arrival("phone", 12);
    let events = vec![
        payment("p1", "10", "USD", 12),
        payment("p2", "2000.01", "USD", 12),
    ];
    store
        .accept_sdk_events(arrival, events)
        .await
        .expect("events are accepted");
    let ids: Vec<String> = one.standing().await.into_iter().map(|one| one.0).collect();
    assert_eq!(ids, ["install", "p1", "s1"]);
}

/// Switching an integration on sends nothing that was there before.
pub async fn history_is_not_replayed(store: &SharedStore) {
    let one = forwarding(store).await;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 5).await;
    one.sends("phone", &["s1"], "sign_up", 6).await;
    let on = IntegrationChange {
        enabled: Change::Set(true),
        ..IntegrationChange::default()
    };
    one.change(Network::A, on, 7).await;
    // The install credits what came before it, and what came before the switch stays where it is.
    one.attributed("phone", 10).await;
    assert_eq!(
        one.standing().await,
        [("install".to_owned(), "pending", None)]
    );
    let log = one.log().await;
    let early = log.iter().find(|event| event.given_id == "s1").expect("it");
    assert_eq!(early.skipped, [(Network::A, Skip::EnabledLater)]);
}

/// Events before the first call are credited with it, and then sent.
pub async fn late_credit_plans_what_is_young_enough(store: &SharedStore) {
    let one = forwarding(store).await;
    one.sends("phone", &["s1"], "sign_up", 8).await;
    assert_eq!(one.standing().await, []);
    one.attributed("phone", 10).await;
    let pending = |id: &str| (id.to_owned(), "pending", None);
    assert_eq!(one.standing().await, [pending("install"), pending("s1")]);
    assert!(one.log().await.iter().all(|event| event.skipped.is_empty()));
}

/// A queue is held by one, until they give it back or are thought dead.
pub async fn a_queue_is_held_by_one(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    let due = |seconds| store.due_queues(Network::A, at(seconds), 10);
    let others = store.due_queues(Network::B, at(11), 10).await;
    assert_eq!(
        others.expect("queues"),
        [],
        "each network is asked for by itself"
    );
    assert_eq!(due(11).await.expect("queues"), [one.queue]);
    let tries = (1..=8).map(|number| {
        let (store, queue) = (store.clone(), one.queue);
        async move {
            let lease = crate::LeaseId([number; 16]);
            store
                .lease_queue(queue, lease, at(11), at(70))
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
    assert_eq!(got.len(), 1, "one of eight gets it");
    assert_eq!(due(12).await.expect("queues"), [], "it is in good hands");
    assert!(one.leases(OTHER, 69, 200).await.is_none());
    assert!(
        one.leases(crate::LeaseId([9; 16]), 70, 200).await.is_some(),
        "thought dead"
    );
    assert!(
        !store
            .renew_lease(one.queue, got[0], at(300))
            .await
            .expect("an answer")
    );
    assert!(
        one.takes(got[0], 71).await.is_none(),
        "and it has nothing to say any more"
    );
    let late = one.settlement(Vec::new(), 71);
    assert!(!one.settles(got[0], late).await);
    store
        .release_queue(one.queue, crate::LeaseId([9; 16]), at(72))
        .await
        .expect("it is given back");
    assert_eq!(due(72).await.expect("queues"), [one.queue]);
}

/// What is taken is noted; what came of it is kept; what ended is out of the queue.
pub async fn deliveries_are_taken_and_settled(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.sends("phone", &["s1", "s2"], "sign_up", 11).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    let taken = one.takes(ONE, 12).await.expect("deliveries");
    assert_eq!(taken.len(), 3);
    assert!(
        taken
            .iter()
            .all(|one| one.interrupted_at.is_none() && one.attempts_made == 0)
    );
    let later = Next::Waits {
        due_at: at(40),
        ambiguous_since: Some(at(12)),
    };
    let outcomes = vec![
        settled(
            &taken[0],
            Verdict::Delivered,
            ends(DeliveryStatus::Delivered),
            at(12),
        ),
        settled(&taken[1], Verdict::Unknown, later, at(12)),
    ];
    let mut settlement = one.settlement(outcomes, 13);
    settlement.state.delivered(at(13));
    assert!(one.settles(ONE, settlement).await);
    // The third was sent by somebody who never said what came of it.
    let again = one.takes(ONE, 14).await.expect("deliveries");
    let ids: Vec<_> = again
        .iter()
        .map(|one| (one.id, one.interrupted_at))
        .collect();
    assert_eq!(ids, [(taken[2].id, Some(at(12)))]);
    let third = settled(
        &again[0],
        Verdict::Terminal,
        ends(DeliveryStatus::Failed),
        at(14),
    );
    assert!(one.settles(ONE, one.settlement(vec![third], 15)).await);
    assert_eq!(one.takes(ONE, 39).await.expect("deliveries"), []);
    let second = one.takes(ONE, 40).await.expect("deliveries");
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

/// What a network may know is gathered as it is now.
pub async fn conversions_are_gathered(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.sends("phone", &["s1"], "sign_up", 11).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    let taken = one.takes(ONE, 12).await.expect("deliveries");
    let order: Vec<_> = taken.iter().map(|one| one.id).collect();
    let gathered = store.gather(one.queue, taken).await.expect("conversions");
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
            let conversion = one.conversion.expect("its event is there");
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

/// A pause keeps the deliveries, tells somebody, and ends with a change or when it is asked for.
pub async fn a_paused_queue_waits_for_somebody(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    let mut settlement = one.settlement(Vec::new(), 13);
    settlement
        .state
        .pause(at(13), "190", Some("expired".to_owned()));
    settlement.paused = Some(one.alert(AlertKind::IntegrationPaused, 13));
    assert!(one.settles(ONE, settlement.clone()).await);
    store
        .release_queue(one.queue, ONE, at(14))
        .await
        .expect("released");
    assert_eq!(
        store
            .due_queues(Network::A, at(20), 10)
            .await
            .expect("queues"),
        []
    );
    assert!(one.leases(OTHER, 20, 100).await.is_none());
    let told = store
        .lease_alerts(at(20), at(80), 10)
        .await
        .expect("alerts");
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].alert.kind, told[0].attempts),
        (AlertKind::IntegrationPaused, 1)
    );
    let writer = &one.tenant.writer;
    store
        .resume_integration(
            writer,
            one.queue.app,
            Network::A,
            super::fixtures::origin(21),
        )
        .await
        .expect("resumed");
    let leased = one.leases(OTHER, 22, 100).await.expect("a lease");
    assert!(leased.state.probing && leased.state.pause.is_none());
    // A verdict about the old credential says nothing about the new one.
    one.change(Network::A, connected(Network::A), 23).await;
    assert!(one.settles(OTHER, settlement).await);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(25))
        .await;
    assert_eq!(health.expect("health")[0].1.state.pause, None);
}

/// A queue that has to wait is nobody's business until then.
pub async fn a_queue_waits_as_a_whole(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    let mut settlement = one.settlement(Vec::new(), 13);
    settlement
        .state
        .failed(at(13), Some(Duration::from_mins(1)), 0);
    assert!(one.settles(ONE, settlement).await);
    store
        .release_queue(one.queue, ONE, at(14))
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
    let state = one.leases(OTHER, 73, 100).await.expect("a lease").state;
    assert_eq!((state.failures, state.probing), (1, true));
}

/// One app's trouble is not another's.
pub async fn queues_are_apart(store: &SharedStore) {
    let (one, other) = (forwarding(store).await, forwarding(store).await);
    one.attributed("phone", 10).await;
    other.attributed("phone", 10).await;
    let due: BTreeSet<QueueRef> = store
        .due_queues(Network::A, at(11), 10)
        .await
        .expect("queues")
        .into_iter()
        .collect();
    assert_eq!(due, BTreeSet::from([one.queue, other.queue]));
    one.leases(ONE, 12, 100).await.expect("a lease");
    other.leases(OTHER, 12, 100).await.expect("a lease");
    assert!(
        !store
            .renew_lease(one.queue, OTHER, at(200))
            .await
            .expect("an answer")
    );
    assert_eq!(one.takes(ONE, 13).await.expect("deliveries").len(), 1);
    assert_eq!(other.deliveries(DeliveryFilter::default()).await.len(), 1);
}

/// A request is asked about until there is an answer; what is to be sent again is.
pub async fn requests_are_asked_about(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.sends("phone", &["s1"], "sign_up", 11).await;
    one.leases(ONE, 12, 10_000).await.expect("a lease");
    let taken = one.takes(ONE, 12).await.expect("deliveries");
    let delivered = |pending| {
        settled(
            pending,
            Verdict::Delivered,
            ends(DeliveryStatus::Delivered),
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
    assert!(one.settles(ONE, settlement).await);
    let due = |seconds| store.due_status_checks(one.queue, at(seconds), 10);
    assert_eq!(due(311).await.expect("checks"), []);
    assert_eq!(due(312).await.expect("checks").len(), 2);
    let settle = |request: &str, outcome| {
        store.settle_status_check(one.queue, ONE, request.to_owned(), outcome, at(313))
    };
    let later = CheckOutcome::Later {
        step: 1,
        due_at: at(400),
    };
    assert!(settle("r1", later).await.expect("settled"));
    let again = CheckOutcome::Again {
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
    assert_eq!(one.takes(ONE, 499).await.expect("deliveries"), []);
    let back = one.takes(ONE, 500).await.expect("deliveries");
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].id, back[0].attempts_made), (taken[1].id, 1));
    assert_eq!(back[0].dedup_id, taken[1].dedup_id, "the same id");
    let failed = DeliveryFilter {
        status: Some(DeliveryStatus::Failed),
        ..DeliveryFilter::default()
    };
    assert_eq!(one.deliveries(failed).await.len(), 1);
}

/// What nobody works on ends when it is too old, and ended ones are dropped after a while.
pub async fn what_is_old_ends(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
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
    assert_eq!(one.standing().await, [expired]);
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
    assert_eq!(one.standing().await, []);
}

/// Many failures within an hour are told once.
pub async fn many_failures_are_told(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    let ids: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.sends("phone", &ids, "sign_up", 11).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    for round in 0..2 {
        let taken = one.takes(ONE, 13).await.expect("deliveries");
        let failed = |pending| {
            settled(
                pending,
                Verdict::Terminal,
                ends(DeliveryStatus::Failed),
                at(13),
            )
        };
        let mut settlement = one.settlement(taken.iter().map(failed).collect(), 14 + round);
        settlement.state = QueueState::default();
        settlement.failing = Some(one.alert(AlertKind::DeliveriesFailing, 14 + round));
        assert!(one.settles(ONE, settlement).await);
    }
    let told = store
        .lease_alerts(at(20), at(80), 10)
        .await
        .expect("alerts");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].url, None, "nobody listens");
    assert_eq!(
        store
            .lease_alerts(at(21), at(80), 10)
            .await
            .expect("alerts"),
        [],
        "leased"
    );
    let alert = &told[0].alert;
    store
        .settle_alert(alert.app, alert.id, Some(at(90)))
        .await
        .expect("settled");
    assert_eq!(
        store
            .lease_alerts(at(90), at(99), 10)
            .await
            .expect("alerts")[0]
            .attempts,
        2
    );
    store
        .settle_alert(alert.app, alert.id, None)
        .await
        .expect("settled");
    assert_eq!(
        store
            .lease_alerts(at(999), at(9_999), 10)
            .await
            .expect("alerts"),
        []
    );
}

/// A website's payment is planned with it, once; what only updates reports is not.
pub async fn website_events_are_planned(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let one = Forwarding {
        queue: QueueRef {
            app: tenant.app.id,
            network: Network::A,
        },
        tenant,
    };
    one.change(Network::A, connected(Network::A), 6).await;
    let renewal = post(&click, WebEventKind::Renewal, "r1", "5", Some("p1"));
    for posted in [
        purchase(&click, "p1", "10"),
        purchase(&click, "p1", "10"),
        renewal,
        purchase(&click, "p2", "2000.01"),
    ] {
        store
            .accept_web_event(posted)
            .await
            .expect("an event is accepted");
    }
    assert_eq!(one.standing().await, [("p1".to_owned(), "pending", None)]);
    let log = one.log().await;
    let skipped = |id: &str| {
        let found = log.iter().find(|event| event.given_id == id);
        found.expect("an event").skipped.clone()
    };
    assert_eq!(skipped("p1"), []);
    assert_eq!(skipped("r1"), [(Network::A, Skip::ReportingOnly)]);
    assert_eq!(skipped("p2"), [(Network::A, Skip::AmountNotForwardable)]);
    one.leases(ONE, 200, 300).await.expect("a lease");
    let taken = one.takes(ONE, 200).await.expect("deliveries");
    let gathered = store.gather(one.queue, taken).await.expect("conversions");
    let conversion = gathered[0].conversion.clone().expect("its event is there");
    assert_eq!(
        conversion.page_url.as_deref(),
        Some("https://shop.example.com/paid")
    );
    assert_eq!(conversion.matching.email, Some("ab".repeat(32)));
}

/// What waits for a network that an event no longer belongs to is cancelled; the other one hears of it.
pub async fn moved_credit_moves_deliveries(store: &SharedStore) {
    let one = forwarding(store).await;
    one.change(Network::C, connected(Network::C), 4).await;
    let wants_likeness = IntegrationChange {
        settings: BTreeMap::from([(
            "forwardProbabilistic",
            Change::Set(SettingValue::Flag(true)),
        )]),
        ..IntegrationChange::default()
    };
    one.change(Network::A, wants_likeness, 5).await;
    one.tenant.clicked(10).await;
    let mut right = one.tenant.click(20);
    right.network = Some(Network::C);
    right.address_hash = None;
    store.record_click(right.clone()).await.expect("a click");
    let first = one.tenant.from_address("phone", 60);
    one.tenant.configured(first).await;
    one.sends("phone", &["s1"], "sign_up", 61).await;
    let networks = async || {
        let all = one.deliveries(DeliveryFilter::default()).await;
        let mut all: Vec<_> = all
            .iter()
            .map(|one| (one.delivery.network.as_str(), one.delivery.status.as_str()))
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(networks().await, [("network_a", "pending"); 2]);
    let better = one.tenant.claims("phone", &right, 80);
    one.tenant.configured(better).await;
    let cancelled = ("network_a", "cancelled");
    let pending = ("network_c", "pending");
    assert_eq!(networks().await, [cancelled, cancelled, pending, pending]);
    for event in one.log().await {
        assert_eq!(event.skipped, [(Network::A, Skip::NotAttributed)]);
    }
}

/// Everybody who listens is told, and not again for a while.
pub async fn alerts_reach_every_app_that_listens(store: &SharedStore) {
    let (one, other) = (forwarding(store).await, forwarding(store).await);
    let change = AppChange {
        alert_webhook_url: Change::Set(
            HttpsUrl::parse("https://alerts.example.com").expect("a URL"),
        ),
        ..AppChange::default()
    };
    let (writer, app) = (&one.tenant.writer, one.queue.app);
    let changed = store.update_app(writer, app, change, Precondition::None, origin(5));
    changed.await.expect("the app is changed");
    let raise = async |since, now| {
        let message = "The rates are old.".to_owned();
        let kind = AlertKind::RatesStale;
        store
            .raise_alert_everywhere(
                kind,
                message,
                at(since),
                at(now),
                unique()[..8].try_into().expect("eight"),
            )
            .await
            .expect("raised")
    };
    assert_eq!(raise(0, 10).await, 1, "the other one does not listen");
    assert_eq!(raise(5, 11).await, 0, "told a moment ago");
    assert_eq!(raise(11, 100).await, 1, "a while later");
    let told = store
        .lease_alerts(at(101), at(200), 10)
        .await
        .expect("alerts");
    assert_eq!(told.len(), 2);
    for one in told {
        assert_eq!(
            (one.alert.app, one.alert.kind),
            (app, AlertKind::RatesStale)
        );
        assert!(one.url.is_some() && one.alert.app != other.queue.app);
    }
}

/// What somebody took is seen to be taken; what is changed or switched off meanwhile is not sent.
pub async fn a_changed_integration_sends_nothing_more(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.sends("phone", &["s1"], "sign_up", 11).await;
    let leased = one.leases(ONE, 12, 100).await.expect("a lease");
    let revision = leased.integration.revision.number();
    let due = async |revision| {
        let due = store.due_deliveries(one.queue, ONE, revision, at(12), 10);
        due.await.expect("an answer").map(|due| due.len())
    };
    assert_eq!(due(revision).await, Some(2));
    assert_eq!(due(revision + 1).await, None, "another revision");
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    let changed = one.change(Network::A, off, 13).await;
    assert_eq!(due(revision).await, None, "switched off");
    assert_eq!(due(changed.revision.number()).await, None, "whoever asks");
    let stranger = store.begin_sending(one.queue, OTHER, Vec::new(), at(14));
    assert_eq!(stranger.await.expect("an answer"), None, "not theirs");
    let gone = tributary_domain::vocabulary::id::DeliveryId::from_bytes([9; 16]);
    let begun = store.begin_sending(one.queue, ONE, vec![gone], at(14));
    assert_eq!(
        begun.await.expect("an answer"),
        Some(Vec::new()),
        "it is not there any more"
    );
}

/// Somebody who took a delivery and never spoke of it again keeps nobody from ending it.
pub async fn what_was_interrupted_ends_too(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    one.takes(ONE, 12).await.expect("deliveries");
    let week = 7 * 86_400;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 13).await;
    store
        .renew_lease(one.queue, ONE, at(week + 10))
        .await
        .expect("held");
    assert_eq!(
        store.expire_deliveries(at(week), 10).await.expect("none"),
        0,
        "it is in good hands"
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
    assert_eq!(one.standing().await, [unknown]);
}

/// Tests are told to the network and counted nowhere.
pub async fn tests_count_nowhere(store: &SharedStore) {
    let one = forwarding(store).await;
    one.attributed("phone", 10).await;
    one.leases(ONE, 12, 100).await.expect("a lease");
    let taken = one.takes(ONE, 12).await.expect("deliveries");
    let delivered = |pending| {
        settled(
            pending,
            Verdict::Delivered,
            ends(DeliveryStatus::Delivered),
            at(12),
        )
    };
    let mut settlement = one.settlement(taken.iter().map(delivered).collect(), 13);
    settlement.is_test = true;
    assert!(one.settles(ONE, settlement).await);
    let health = store
        .integration_health(&one.reader(), one.queue.app, at(14))
        .await
        .expect("health");
    assert_eq!((health[0].1.delivered, health[0].1.pending), (0, 0));
}
