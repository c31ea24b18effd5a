//! Batches of events, on one or two nodes, have the same result as single requests.

use super::database::{Schema, number};
use super::races::{CALLERS, Nodes};
use crate::PostgresStore;
use std::sync::Arc;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequestContext};
use tributary_store::contract::fixtures::{SharedStore, join_all};
use tributary_store::contract::sdk_fixtures::{Tenant, event, payment, tenant};
use tributary_store::{Devices, Events, Instance, StoreError, StoreResult};

type SentRequest = (SdkRequestContext, Vec<SdkEvent>);

/// Repetitions with two nodes.
const ROUNDS: usize = 6;
/// Requests per round.
const REQUESTS: usize = 300;
/// Enough devices for two batches to lock some of them at the same time.
const DEVICES: usize = 150;
/// Number of configured devices; the last one is configured during the race.
const CONFIGURED: usize = 7;

/// Opens a store that fails on a deadlock. PostgreSQL would detect a deadlock after a second, and
/// the transaction would be retried unnoticed. Here a deadlock runs into the lock timeout, and
/// callers get the error.
pub(super) async fn open_strict(schema: &Schema) -> Arc<PostgresStore> {
    let url = format!("{}%20-cdeadlock_timeout%3D1min", schema.url);
    let store = PostgresStore::connect(&url, super::database::options()).await;
    Arc::new(store.expect("a store"))
}

/// Builds requests from a few devices. Each request has one unique event, one event shared with the
/// neighbouring request, and a payment.
fn requests(tenant: &Tenant, round: usize) -> Vec<SentRequest> {
    let request = |index: usize| {
        let device = format!("device-{}", index % DEVICES);
        let seconds = i64::try_from(round * REQUESTS + index).expect("small");
        let shared = format!("{round}-shared-{}", index / 2);
        let currency = ["USD", "EUR", "GBP"][index % 3];
        let events = vec![
            event(&format!("{round}-own-{index}"), "search", seconds),
            event(&shared, "share", seconds),
            payment(&format!("{round}-paid-{index}"), "2", currency, seconds),
        ];
        (tenant.arrival(&device, seconds), events)
    };
    (0..REQUESTS).map(request).collect()
}

fn accepted(outcomes: Vec<StoreResult<Vec<SdkEventOutcome>>>) -> usize {
    let answers = outcomes.into_iter().flat_map(|outcome| {
        let answers = outcome.expect("events are accepted");
        assert_eq!(answers.len(), 3);
        answers
    });
    answers
        .filter(|answer| *answer == SdkEventOutcome::Accepted)
        .count()
}

/// Checks that every roll-up table agrees with the events.
pub(super) async fn assert_figures_match_events(schema: &Schema) {
    schema.merge_increments().await;
    let client = schema.client().await;
    let of_log = "select row(count(*), coalesce(sum(usd_micros) filter (where usd_micros > 0), 0),
                             coalesce(-sum(usd_micros) filter (where usd_micros < 0), 0),
                             count(*) filter (where first_payment))::text from events";
    let expected: String = client.query_one(of_log, &[]).await.expect("a row").get(0);
    for table in [
        "rollup_networks",
        "rollup_campaigns",
        "rollup_credits",
        "rollup_names",
        "rollup_places",
        "rollup_pivots",
    ] {
        for grain in [15, 60, 1440] {
            let of_table = format!(
                "select row(sum(events)::bigint, sum(revenue_micros), sum(refunded_micros),
                            sum(paying_devices)::bigint)::text
                 from {table} where grain = {grain}"
            );
            let row = client.query_one(&of_table, &[]).await.expect("a row");
            assert_eq!(row.get::<_, String>(0), expected, "{table} {grain}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_on_two_nodes_neither_lose_nor_duplicate_events() {
    let schema = Schema::create().await;
    let nodes = [open_strict(&schema).await, open_strict(&schema).await];
    let shared: SharedStore = nodes[0].clone();
    let tenant = &tenant(&shared).await;
    for index in 0..CONFIGURED - 1 {
        let command = tenant.configure(&format!("device-{index}"), 0);
        tenant.call_configure(command).await;
    }
    let mut taken = 0;
    for round in 0..ROUNDS {
        let sent = requests(tenant, round);
        // The other node gets the same events in reverse order.
        let back = sent.iter().rev().map(|(arrival, events)| {
            let events = events.iter().rev().cloned().collect();
            nodes[1].accept_sdk_events(arrival.clone(), events)
        });
        let there = sent
            .iter()
            .map(|(arrival, events)| nodes[0].accept_sdk_events(arrival.clone(), events.clone()));
        let last = tenant.configure(&format!("device-{}", CONFIGURED - 1), 0);
        let opening = nodes[round % 2].configure(last);
        let (outcomes, opened) = tokio::join!(join_all(there.chain(back).collect()), opening);
        opened.expect("configure succeeds");
        taken += accepted(outcomes);
    }
    // If two requests contain the same event, only one of them records it.
    assert_eq!(taken, ROUNDS * REQUESTS * 5 / 2);
    let client = schema.client().await;
    let expected = i64::try_from(taken + CONFIGURED).expect("small");
    for table in ["events", "event_keys"] {
        let sql = format!("select count(*) from {table} where source = 'sdk'");
        assert_eq!(number(&client, &sql).await, expected, "{table}");
    }
    assert_figures_match_events(&schema).await;
    let first = "select count(distinct device_id) from events where first_payment";
    let noted = "select count(*) from identities join events on event_id = first_payment_id
                 where first_payment and events.device_id = identities.device_id";
    let devices = i64::try_from(DEVICES).expect("small");
    assert_eq!(number(&client, first).await, devices);
    assert_eq!(number(&client, noted).await, devices);
    let commits = "select count(distinct xmin::text) from event_keys";
    let most = i64::try_from(ROUNDS * REQUESTS / 10).expect("small");
    assert!(number(&client, commits).await <= most);
}

/// The nodes share no devices, so only the event ids conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_claim_each_event_id_once() {
    let schema = Schema::create().await;
    let nodes = [open_strict(&schema).await, open_strict(&schema).await];
    let shared: SharedStore = nodes[0].clone();
    let tenant = &tenant(&shared).await;
    for round in 0..ROUNDS {
        let send = |node: usize, index: usize| {
            let arrival = tenant.arrival(&format!("device-{node}-{index}"), 100);
            let ids = (0..3).map(|number| format!("{round}-{}", index * 3 + number));
            let mut events: Vec<_> = ids.map(|id| event(&id, "search", 90)).collect();
            if node == 1 {
                events.reverse();
            }
            nodes[node].accept_sdk_events(arrival, events)
        };
        let there = (0..REQUESTS).map(|index| send(0, index));
        let back = (0..REQUESTS).rev().map(|index| send(1, index));
        let outcomes = join_all(there.chain(back).collect()).await;
        assert_eq!(accepted(outcomes), REQUESTS * 3);
    }
    assert_figures_match_events(&schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_sent_by_all_callers_counts_once() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    tenant.call_configure(tenant.configure("device-1", 0)).await;
    let outcomes = nodes
        .all(|node, number| {
            // One id occurs twice.
            let arrival = tenant.arrival("device-1", 7_200 + number);
            let events = vec![
                payment("paid", "3", "USD", 90),
                event("seen", "search", 91),
                event("seen", "search again", 92),
            ];
            async move { node.accept_sdk_events(arrival, events).await }
        })
        .await;
    let answers: Vec<_> = outcomes.into_iter().flatten().collect();
    let all_new = [
        SdkEventOutcome::Accepted,
        SdkEventOutcome::Accepted,
        SdkEventOutcome::Duplicate,
    ];
    let winners = answers.iter().filter(|answer| **answer == all_new).count();
    let losers = answers
        .iter()
        .filter(|answer| **answer == [SdkEventOutcome::Duplicate; 3])
        .count();
    assert_eq!((winners, losers), (1, answers.len() - 1));
    let client = nodes.schema.client().await;
    assert_figures_match_events(&nodes.schema).await;
    let repeated = "select count(*) from events where name = 'search again'";
    assert_eq!(
        number(&client, repeated).await,
        0,
        "the first event keeps the id"
    );
    // The first request updates `last_seen_at`; later requests do not update it again for an hour.
    let seen = "select (last_seen_at - first_seen_at) / 1000 from devices";
    let seen = number(&client, seen).await;
    assert!((7_200..7_200 + CALLERS).contains(&seen), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_requests_of_a_batch_see_earlier_payments() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = &tenant(&shared).await;
    tenant.call_configure(tenant.configure("device-1", 0)).await;
    let pays = |number: i64| {
        let paid = payment(&format!("p{number}"), "1", "USD", number);
        store.accept_sdk_events(tenant.arrival("device-1", 100), vec![paid])
    };
    let outcomes = join_all((0..100).map(pays).collect()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let client = schema.client().await;
    assert_figures_match_events(&schema).await;
    let first = "select occurred_at from events where first_payment";
    let arrived_first = "select min(occurred_at) from events where name = 'purchase'";
    let arrived_first = number(&client, arrived_first).await;
    assert_eq!(number(&client, first).await, arrived_first);
    let commits = "select count(distinct xmin::text) from events where name = 'purchase'";
    assert!(number(&client, commits).await <= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_request_fails_alone() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = &tenant(&shared).await;
    let send = |index: i64| {
        let mut arrival = tenant.arrival(&format!("device-{index}"), 100);
        if index % 20 == 7 {
            // PostgreSQL text cannot contain a NUL character, and the endpoints reject it.
            arrival.device = DeviceKey::stored("device\0".to_owned());
        }
        let events = (0..3).map(|event_at| event(&format!("{index}-{event_at}"), "search", 90));
        store.accept_sdk_events(arrival, events.collect())
    };
    let outcomes = join_all((0..40).map(send).collect()).await;
    for (index, outcome) in (0..).zip(outcomes) {
        match outcome {
            Ok(answers) => {
                assert_ne!(index % 20, 7);
                assert_eq!(answers, [SdkEventOutcome::Accepted; 3]);
            }
            Err(StoreError::Unavailable { source, .. }) => {
                assert_eq!(index % 20, 7);
                let text = source.to_string();
                assert!(text.contains("encoding"), "{text}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let client = schema.client().await;
    let stored = number(&client, "select count(*) from events").await;
    assert_eq!(stored, 38 * 3);
    assert_figures_match_events(&schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_writes_the_queued_events() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = tenant(&shared).await;
    let send = |number: i64| {
        let (store, arrival) = (store.clone(), tenant.arrival("device-1", 100));
        let sent = vec![event(&format!("e{number}"), "search", 90)];
        tokio::spawn(async move { store.accept_sdk_events(arrival, sent).await })
    };
    let tasks: Vec<_> = (0..50).map(send).collect();
    tokio::task::yield_now().await;
    store.close().await;
    let mut answered = 0;
    for task in tasks {
        answered += i64::from(task.await.expect("no panic").is_ok());
    }
    let client = schema.client().await;
    let stored = number(&client, "select count(*) from events").await;
    assert_eq!(stored, answered);
}
