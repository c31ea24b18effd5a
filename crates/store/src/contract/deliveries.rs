//! Deliveries, as the API and the dashboard show them.

use super::fixtures::{SharedStore, at, first_page, organization, origin, refusal};
use super::outbox_fixtures::{ForwardingApp, LEASE, ends_with, forwarding_app, settled};
use crate::{IntegrationHealth, SettledDelivery};
use tributary_domain::access::Environment;
use tributary_domain::event::EventFilter;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_id};
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::undelivered::{
    UndeliveredGroup, UndeliveredQuery, UndeliveredReason,
};
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus, SkipReason};
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::revision::Precondition;

/// Creates three deliveries with different final statuses, and a pending one.
async fn varied(store: &SharedStore) -> ForwardingApp {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1", "s2"], "sign_up", 11).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    let mut taken = one.take_due(LEASE, 12).await.expect("deliveries");
    taken.sort_by_key(|pending| pending.event);
    let outcomes = [
        DeliveryStatus::Delivered,
        DeliveryStatus::Failed,
        DeliveryStatus::Unconfirmed,
    ];
    let settled = taken
        .iter()
        .zip(outcomes)
        .map(|(pending, status)| {
            settled(pending, AttemptVerdict::Unknown, ends_with(status), at(12))
        })
        .collect();
    assert!(one.settle(LEASE, one.settlement(settled, 13)).await);
    one.send_events("phone", &["s3"], "sign_up", 14).await;
    one
}

/// Lists can be filtered by status, network, event and time, and are paged.
pub async fn deliveries_are_listed(store: &SharedStore) {
    let one = varied(store).await;
    let count = async |filter| one.deliveries(filter).await.len();
    let all = one.deliveries(DeliveryFilter::default()).await;
    assert_eq!(all.len(), 4);
    assert!(all.is_sorted_by(|newer, older| newer.delivery.id > older.delivery.id));
    for status in [
        DeliveryStatus::Pending,
        DeliveryStatus::Delivered,
        DeliveryStatus::Failed,
        DeliveryStatus::Unconfirmed,
    ] {
        let filter = DeliveryFilter {
            status: Some(status),
            ..DeliveryFilter::default()
        };
        let found = one.deliveries(filter).await;
        assert!(found.len() == 1 && found[0].delivery.status == status);
    }
    let network = |network| DeliveryFilter {
        network: Some(network),
        ..DeliveryFilter::default()
    };
    assert_eq!(
        (
            count(network(Network::A)).await,
            count(network(Network::C)).await
        ),
        (4, 0)
    );
    let of_event = DeliveryFilter {
        external_id: Some("s3".to_owned()),
        ..DeliveryFilter::default()
    };
    assert_eq!(count(of_event).await, 1);
    let unknown = DeliveryFilter {
        external_id: Some("unknown".to_owned()),
        ..DeliveryFilter::default()
    };
    assert_eq!(count(unknown).await, 0);
    let named = |name: &str| DeliveryFilter {
        event_name: Some(name.to_owned()),
        ..DeliveryFilter::default()
    };
    assert_eq!(
        (
            count(named("sign_up")).await,
            count(named("install")).await,
            count(named("purchase")).await
        ),
        (3, 1, 0)
    );
    let between = DeliveryFilter {
        from: Some(at(11)),
        until: Some(at(14)),
        ..DeliveryFilter::default()
    };
    assert_eq!(count(between).await, 2);
    let (reader, app) = (one.reader(), one.queue.app);
    let page = store.deliveries(&reader, app, DeliveryFilter::default(), first_page("3"));
    let page = page.await.expect("a page");
    assert_eq!((page.items.len(), page.has_more), (3, true));
}

/// Deliveries are found by their events.
pub async fn deliveries_are_found_by_their_event(store: &SharedStore) {
    let one = varied(store).await;
    let log = one.log().await;
    let ids = log.iter().map(|event| event.id).collect();
    let found = store
        .deliveries_of(one.queue.app, ids)
        .await
        .expect("deliveries");
    assert_eq!(found.len(), 4);
    for event in log {
        let id = delivery_id(event.id, Network::A);
        assert!(
            found
                .iter()
                .any(|delivery| delivery.id == id && delivery.event == event.id)
        );
    }
}

/// Conversions of the last week that were not sent to a network are counted by reason: skipped
/// conversions, and conversions that could not be sent.
pub async fn skipped_conversions_are_counted(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let tenant = &one.tenant;
    let mut without_agent = tenant.click(9);
    without_agent.user_agent = None;
    store
        .record_click(without_agent.clone())
        .await
        .expect("a click is recorded");
    // The install and the event lack a user agent. The unmapped event name is not counted, because
    // leaving events unmapped is intended.
    tenant
        .call_configure(tenant.configure_with_click("silent", &without_agent, 10))
        .await;
    one.send_events("silent", &["s1"], "sign_up", 11).await;
    one.send_events("silent", &["b1"], "boss_defeated", 11)
        .await;
    // A conversion that the network rejected is not counted; a conversion that could not be sent
    // is.
    one.attribute_install("phone", 20).await;
    one.send_events("phone", &["s2"], "sign_up", 21).await;
    one.lease(LEASE, 30, 100).await.expect("a lease");
    let mut taken = one.take_due(LEASE, 30).await.expect("deliveries");
    taken.sort_by_key(|pending| pending.event);
    let failed = |reason: &str| NextStep::End {
        status: DeliveryStatus::Failed,
        reason: Some(reason.to_owned()),
    };
    let tried = settled(&taken[0], AttemptVerdict::Terminal, failed("100"), at(30));
    let untried = SettledDelivery {
        id: taken[1].id,
        attempts_made: 0,
        attempts: Vec::new(),
        next: failed("no_source_url"),
    };
    let settlement = one.settlement(vec![tried, untried], 31);
    assert!(one.settle(LEASE, settlement).await);
    let skipped = async |seconds| {
        let reader = one.reader();
        let health = store.integration_health(&reader, one.queue.app, at(seconds));
        let health = health.await.expect("health is read");
        assert!(health.iter().all(|(_, one)| !one.skipped.stopped_early));
        let of = |(network, one): (Network, IntegrationHealth)| {
            Some(one.skipped.by_reason).filter(|_| network == Network::A)
        };
        let found = health.into_iter().find_map(of).expect("network_a");
        let counts = found.into_iter().map(|one| (one.reason, one.count));
        counts.collect::<Vec<(String, u64)>>()
    };
    let counted = |counts: &[(&str, u64)]| -> Vec<(String, u64)> {
        let owned = |(reason, count): &(&str, u64)| ((*reason).to_owned(), *count);
        counts.iter().map(owned).collect()
    };
    let expected = counted(&[("insufficient_identity", 2), ("no_source_url", 1)]);
    assert_eq!(skipped(40).await, expected);
    let week = 7 * 24 * 60 * 60;
    assert_eq!(skipped(week + 15).await, counted(&[("no_source_url", 1)]));
    assert_eq!(skipped(week + 22).await, counted(&[]));
}

/// Counts the undelivered events of a store with deliveries in every state.
async fn undelivered_groups(
    store: &SharedStore,
    one: &ForwardingApp,
    since: i64,
    (network, event): (Option<Network>, Option<&str>),
) -> Vec<UndeliveredGroup> {
    let query = UndeliveredQuery {
        since: at(since),
        network,
        event: event.map(str::to_owned),
    };
    let (reader, app) = (one.reader(), one.queue.app);
    let counts = store.undelivered(&reader, app, query);
    let counts = counts.await.expect("undelivered events are counted");
    assert_eq!(counts.complete_since(), None);
    counts.groups()
}

/// The filters of undelivered events choose from what is counted without them.
pub async fn undelivered_events_are_filtered(store: &SharedStore) {
    let one = varied(store).await;
    one.send_events("phone", &["b1", "b2"], "boss_defeated", 15)
        .await;
    let counted = async |network, event| undelivered_groups(store, &one, 0, (network, event)).await;
    let everything = counted(None, None).await;
    let name = Some("boss_defeated".to_owned());
    for network in Network::ALL {
        let mut of_network = everything.clone();
        of_network.retain(|group| group.network == network);
        assert_eq!(counted(Some(network), None).await, of_network);
        let named = of_network.iter().filter_map(|group| {
            let (_, count) = group.events.iter().find(|(event, _)| *event == name)?;
            Some((group.reason.clone(), *count))
        });
        let mut named: Vec<_> = named.collect();
        named.sort();
        let found = counted(Some(network), name.as_deref()).await;
        assert!(found.iter().all(|group| group.events.len() == 1));
        let found = found.into_iter().map(|group| (group.reason, group.count));
        let mut found: Vec<_> = found.collect();
        found.sort();
        assert_eq!(found, named);
    }
    assert_eq!(counted(None, Some("no_such_event")).await, []);
    let later = undelivered_groups(store, &one, 1_000, (None, None)).await;
    assert_eq!(later, [], "only events since that time");
}

/// Undelivered events are counted by network and reason, and each count leads to its deliveries.
pub async fn undelivered_counts_lead_to_deliveries(store: &SharedStore) {
    let one = varied(store).await;
    let groups = undelivered_groups(store, &one, 0, (Some(Network::A), None)).await;
    let ended = |status| {
        groups.iter().find(
            |group| matches!(&group.reason, UndeliveredReason::Ended(found, _) if *found == status),
        )
    };
    for status in [DeliveryStatus::Failed, DeliveryStatus::Unconfirmed] {
        let group = ended(status).expect("a count");
        let UndeliveredReason::Ended(_, reason) = &group.reason else {
            unreachable!("an ended delivery");
        };
        let filter = |reason: Option<&str>| DeliveryFilter {
            status: Some(status),
            network: Some(Network::A),
            reason: reason.map(str::to_owned),
            ..DeliveryFilter::default()
        };
        let listed = one.deliveries(filter(reason.as_deref())).await;
        assert_eq!(listed.len() as u64, group.count);
        assert_eq!(one.deliveries(filter(Some("another"))).await.len(), 0);
    }
    assert!(ended(DeliveryStatus::Delivered).is_none());
    let any = DeliveryFilter {
        reason: Some("another".to_owned()),
        ..DeliveryFilter::default()
    };
    let listed = one.deliveries(any).await;
    assert_eq!(listed.len(), 0, "pending ones have no reason");
}

/// Skipped events are counted by name, and each count leads to its events.
pub async fn undelivered_counts_lead_to_events(store: &SharedStore) {
    let one = varied(store).await;
    one.send_events("phone", &["b1", "b2"], "boss_defeated", 15)
        .await;
    let groups = undelivered_groups(store, &one, 0, (Some(Network::A), None)).await;
    let not_mapped = UndeliveredReason::Skipped(SkipReason::NotMapped);
    let group = groups.iter().find(|group| group.reason == not_mapped);
    let group = group.expect("events without a mapping");
    let name = Some("boss_defeated".to_owned());
    assert!(group.events.contains(&(name, 2)), "{groups:?}");
    let log = async |reason| {
        let filter = EventFilter {
            not_sent: Some((Network::A, reason)),
            ..EventFilter::default()
        };
        let (reader, app) = (&one.tenant.reader, one.queue.app);
        let page = store.events(reader, app, filter, first_page("50"));
        let items = page.await.expect("a page").items.into_iter();
        items.map(|event| event.name).collect::<Vec<_>>()
    };
    let names = log(SkipReason::NotMapped).await;
    let count = names.iter().filter(|name| *name == "boss_defeated").count();
    assert_eq!(count, 2, "{names:?}");
    assert!(log(SkipReason::Consent).await.is_empty());
}

/// Failed deliveries can be retried, individually or by filter; successful deliveries cannot.
pub async fn failed_deliveries_can_be_retried(store: &SharedStore) {
    let one = varied(store).await;
    let (writer, app) = (&one.tenant.writer, one.queue.app);
    let by = |status| DeliveryFilter {
        status: Some(status),
        ..DeliveryFilter::default()
    };
    let failed = one.deliveries(by(DeliveryStatus::Failed)).await[0]
        .delivery
        .clone();
    let back = store
        .retry_delivery(writer, app, failed.id, origin(20))
        .await
        .expect("retried");
    assert_eq!(back.delivery.status, DeliveryStatus::Pending);
    assert_eq!(back.delivery.dedup_id, failed.dedup_id);
    assert_eq!(back.delivery.next_attempt_at, Some(at(20)));
    assert_eq!(back.delivery.attempts, failed.attempts, "attempts are kept");
    let delivered = one.deliveries(by(DeliveryStatus::Delivered)).await[0]
        .delivery
        .id;
    for id in [delivered, failed.id] {
        let refused = store.retry_delivery(writer, app, id, origin(21)).await;
        assert_eq!(refusal(refused), Refusal::DeliveryNotRetryable);
    }
    let everything = store.retry_deliveries(writer, app, DeliveryFilter::default(), origin(22));
    assert_eq!(
        everything.await.expect("retried"),
        1,
        "the unconfirmed delivery"
    );
    let nothing = store.retry_deliveries(writer, app, by(DeliveryStatus::Delivered), origin(23));
    assert_eq!(nothing.await.expect("none"), 0);
    assert_eq!(one.deliveries(by(DeliveryStatus::Pending)).await.len(), 3);
}

/// Other organizations find no deliveries, and neither does a test key.
pub async fn another_organization_finds_no_delivery(store: &SharedStore) {
    let one = varied(store).await;
    let stranger = organization(store).await;
    let app = one.queue.app;
    let id = one.deliveries(DeliveryFilter::default()).await[0]
        .delivery
        .id;
    let reader = stranger.read_access();
    let list = store.deliveries(&reader, app, DeliveryFilter::default(), first_page("5"));
    assert_eq!(refusal(list.await), Refusal::AppNotFound);
    assert_eq!(
        refusal(store.delivery(&reader, app, id).await),
        Refusal::AppNotFound
    );
    let retried = store.retry_delivery(&stranger, app, id, origin(30)).await;
    assert_eq!(refusal(retried), Refusal::AppNotFound);
    let filter = DeliveryFilter::default();
    let retried = store
        .retry_deliveries(&stranger, app, filter.clone(), origin(30))
        .await;
    assert_eq!(refusal(retried), Refusal::AppNotFound);
    let health = store.integration_health(&reader, app, at(30)).await;
    assert_eq!(refusal(health), Refusal::AppNotFound);
    let resumed = store
        .resume_integration(&stranger, app, Network::A, Precondition::None, origin(30))
        .await;
    assert_eq!(refusal(resumed), Refusal::AppNotFound);
    let mut key = super::fixtures::new_key(one.tenant.writer.organization()).key;
    key.environment = Environment::Test;
    let in_test = tributary_domain::access::authorize(&key, super::fixtures::CLIENT)
        .expect("a test key reads apps");
    let list = store
        .deliveries(&in_test, app, filter, first_page("5"))
        .await;
    assert_eq!(list.expect("an empty list").items.len(), 0);
    assert_eq!(
        refusal(store.delivery(&in_test, app, id).await),
        Refusal::DeliveryNotFound
    );
}
