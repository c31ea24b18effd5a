//! Devices and events on two nodes at once: one install per device, one owner per click, one event
//! per id, and no event missed between transactions.

use super::database::number;
use super::races::{CALLERS, Nodes};
use crate::PostgresStore;
use std::collections::BTreeSet;
use std::pin::Pin;
use tributary_domain::access::Environment;
use tributary_domain::attribution::MatchState;
use tributary_domain::device::{ContactHashes, DeviceKey, IdentityClaim, Platform, UserKey};
use tributary_domain::event::sdk::SdkEventOutcome;
use tributary_domain::install::ConfigureCommand;
use tributary_store::contract::fixtures::{SharedStore, at, join_all, join3};
use tributary_store::contract::sdk_fixtures::{Tenant, event, payment, tenant};
use tributary_store::contract::{billing_duplicates, billing_websites, duplicates};
use tributary_store::{Devices, Events, StoreResult, TokenOutcome};

type Racer<'a> = Pin<Box<dyn Future<Output = StoreResult<()>> + 'a>>;

/// Repetitions of each race.
const ROUNDS: i64 = 50;

fn nodes_in_turn(nodes: &Nodes, number: i64) -> &PostgresStore {
    &nodes.nodes[usize::try_from(number).expect("small") % 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identical_configure_calls_make_one_install() {
    let nodes = Nodes::start().await;
    let tenant = tenant(&nodes.shared()).await;
    for round in 0..ROUNDS {
        let key = format!("device-{round}");
        let command = ConfigureCommand {
            identity: IdentityClaim {
                user: UserKey::parse("user").ok(),
                ..IdentityClaim::default()
            },
            ..tenant.configure_with_click(&key, &tenant.record_click(10).await, 60)
        };
        let call = |number| nodes_in_turn(&nodes, number).configure(command.clone());
        let outcomes = join3(call(0), call(1), call(2)).await;
        let calls = outcomes.map(|outcome| outcome.expect("configure succeeds"));
        assert_eq!(calls.iter().filter(|call| call.is_first_open).count(), 1);
        assert!(
            calls
                .iter()
                .all(|call| call.attribution == calls[0].attribution)
        );
    }
    let figures = tenant.figures_of("network_a").await;
    assert_eq!((figures.installs, figures.events), (ROUNDS, ROUNDS));
    let client = nodes.schema.client().await;
    let keys = number(&client, "select count(*) from event_keys").await;
    assert_eq!(keys, ROUNDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_devices_claims_the_click() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    for round in 0..ROUNDS / 5 {
        let click = &tenant.record_click(10).await;
        let outcomes = nodes
            .all(|node, number| {
                let command =
                    tenant.configure_with_click(&format!("device-{round}-{number}"), click, 60);
                async move { node.configure(command).await }
            })
            .await;
        let states: Vec<MatchState> = outcomes
            .into_iter()
            .map(|call| call.expect("configure succeeds").attribution.decision.state)
            .collect();
        let count = |wanted| states.iter().filter(|state| **state == wanted).count();
        assert_eq!(count(MatchState::Attributed), 1);
        assert_eq!(count(MatchState::DuplicateClick), states.len() - 1);
    }
    let client = nodes.schema.client().await;
    let taken = number(
        &client,
        "select count(*) from clicks where taken_by is not null",
    )
    .await;
    assert_eq!(taken, ROUNDS / 5);
}

/// Several installs from one address: an install that does not get its click may still get another
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_losing_install_may_get_another_click() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    for round in 0..ROUNDS / 5 {
        let seconds = round * 100_000;
        tenant.record_click(seconds).await;
        let outcomes = nodes
            .all(|node, number| {
                let key = format!("device-{round}-{number}");
                let command = tenant.configure_from_address(&key, seconds + 60);
                async move { node.configure(command).await }
            })
            .await;
        let clicks: Vec<_> = outcomes
            .into_iter()
            .filter_map(|call| call.expect("configure succeeds").attribution.decision.click)
            .collect();
        let different: BTreeSet<_> = clicks.iter().collect();
        assert_eq!(different.len(), clicks.len(), "each click is claimed once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_with_the_same_id_are_recorded_once() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    let ids: Vec<String> = (0..20).map(|number| format!("id-{number}")).collect();
    for round in 0..ROUNDS / 5 {
        let ids: Vec<String> = ids.iter().map(|id| format!("{round}-{id}")).collect();
        let outcomes = nodes
            .all(|node, number| {
                // Different devices, so that only the ids conflict.
                let arrival = tenant.arrival(&format!("device-{number}"), 100);
                let mut events: Vec<_> = ids.iter().map(|id| event(id, "search", 90)).collect();
                events.push(event(&ids[0], "again", 91));
                if number % 3 == 0 {
                    events.reverse();
                }
                async move { node.accept_sdk_events(arrival, events).await }
            })
            .await;
        let accepted = outcomes
            .into_iter()
            .flat_map(|outcome| outcome.expect("events are accepted"))
            .filter(|acceptance| *acceptance == SdkEventOutcome::Accepted)
            .count();
        assert_eq!(accepted, ids.len());
    }
    let client = nodes.schema.client().await;
    let stored = number(&client, "select count(*) from events").await;
    assert_eq!(stored, ROUNDS / 5 * 20);
    nodes.schema.merge_increments().await;
    let counted = "select sum(events)::bigint from rollup_names where grain = 15";
    assert_eq!(number(&client, counted).await, stored);
}

/// An event that arrives during `configure` is credited, whichever commits first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_is_credited_by_the_first_configure() {
    let nodes = Nodes::start().await;
    let tenant = tenant(&nodes.shared()).await;
    for round in 0..ROUNDS {
        let key = format!("device-{round}");
        let command = tenant.configure_with_click(&key, &tenant.record_click(10).await, 60);
        let sends = |number: i64| {
            let arrival = tenant.arrival(&key, 50 + number);
            let events = vec![event(&format!("{round}-{number}"), "search", 50)];
            let node = nodes_in_turn(&nodes, number);
            async move { node.accept_sdk_events(arrival, events).await.map(drop) }
        };
        let opens = async || nodes.nodes[0].configure(command.clone()).await.map(drop);
        let racers: Vec<Racer<'_>> = vec![
            Box::pin(sends(1)),
            Box::pin(opens()),
            Box::pin(sends(2)),
            Box::pin(sends(3)),
        ];
        for outcome in join_all(racers).await {
            outcome.expect("all requests succeed");
        }
        let log = tenant.log(&key).await;
        assert_eq!(log.len(), 4);
        let credited = |(_, network): &(String, Option<String>)| network.is_some();
        assert!(log.iter().all(credited), "{log:?}");
    }
    let figures = tenant.figures_of("network_a").await;
    assert_eq!((figures.installs, figures.events), (ROUNDS, 4 * ROUNDS));
    assert_eq!(tenant.figures_of("").await.events, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_has_one_first_payment() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    tenant
        .call_configure(tenant.configure("device-1", 10))
        .await;
    let outcomes = nodes
        .all(|node, number| {
            let arrival = tenant.arrival("device-1", 100);
            let events = vec![payment(&format!("p{number}"), "1", "USD", 90)];
            async move { node.accept_sdk_events(arrival, events).await }
        })
        .await;
    assert!(outcomes.iter().all(Result::is_ok));
    let figures = tenant.figures_of("organic").await;
    assert_eq!((figures.paying_devices, figures.purchases), (1, CALLERS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_identify_calls_are_merged() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    let key = DeviceKey::parse("device-1").expect("a device id");
    let learned = |number: i64| {
        let mut matching = ContactHashes::default();
        let field = match number % 4 {
            0 => &mut matching.email,
            1 => &mut matching.email_google,
            2 => &mut matching.phone,
            _ => &mut matching.phone_e164,
        };
        *field = Some("a".repeat(64));
        IdentityClaim {
            user: None,
            contact_hashes: matching,
            ..IdentityClaim::default()
        }
    };
    let (app, live) = (tenant.app.id, Environment::Live);
    let outcomes = nodes
        .all(|node, number| {
            let (key, identity) = (key.clone(), learned(number));
            async move { node.identify(app, live, key, identity, at(10)).await }
        })
        .await;
    assert!(outcomes.iter().all(Result::is_ok));
    let story = nodes.nodes[0].device(&tenant.reader, app, key).await;
    let known = story
        .expect("device is found")
        .state
        .identity
        .contact_hashes;
    let all = [
        known.email,
        known.email_google,
        known.phone,
        known.phone_e164,
    ];
    assert!(all.iter().all(Option::is_some));
}

async fn with_tokens(tenant: &Tenant, devices: i64) {
    for number in 0..devices {
        let mut command = tenant.configure(&format!("device-{number}"), 10 + number);
        command.traits.platform = Platform::Ios;
        command.ad_services_token = Some(format!("token-{number}"));
        tenant.call_configure(command).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_leased_and_settled_once() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    with_tokens(tenant, 30).await;
    let outcomes = nodes
        .all(|node, number| async move {
            let until = at(1_000 + number);
            node.lease_ad_services_tokens(at(900), until, 5).await
        })
        .await;
    let leased: Vec<_> = outcomes
        .into_iter()
        .flat_map(|tokens| tokens.expect("leased tokens"))
        .collect();
    let tokens: BTreeSet<&str> = leased.iter().map(|lease| lease.token.as_str()).collect();
    assert_eq!(tokens.len(), leased.len(), "each token is leased once");
    assert!(leased.iter().all(|lease| lease.attempts == 0));
    let lease = &leased[0];
    let outcomes = nodes
        .all(|node, number| {
            let outcome = TokenOutcome::RetryAt(at(5_000 + number));
            async move {
                node.settle_ad_services_token(lease.clone(), outcome, at(950))
                    .await
            }
        })
        .await;
    assert_eq!(outcomes.iter().filter(|one| **one == Ok(true)).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_count_a_payment_reported_by_app_and_provider_once() {
    let nodes = Nodes::start().await;
    let [one, other] = nodes.nodes.clone();
    let (one, other): (SharedStore, SharedStore) = (one, other);
    billing_duplicates::nodes_at_once_count_once(&one, &other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_count_a_payment_reported_by_website_and_stripe_once() {
    let nodes = Nodes::start().await;
    let [one, other] = nodes.nodes.clone();
    let (one, other): (SharedStore, SharedStore) = (one, other);
    billing_websites::nodes_at_once_count_once(&one, &other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_leave_a_device_one_first_payment() {
    let nodes = Nodes::start().await;
    let [one, other] = nodes.nodes.clone();
    let (one, other): (SharedStore, SharedStore) = (one, other);
    duplicates::nodes_leave_one_first_payment(&one, &other).await;
}
