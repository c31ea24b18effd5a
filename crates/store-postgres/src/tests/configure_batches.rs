//! Batches of `configure` calls.

use super::database::{Schema, number};
use super::event_batches::{assert_figures_match_events, open_strict};
use crate::rollups::store_increments;
use crate::{PostgresStore, configure};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::device::{AdvertisingId, DeviceKey, IdentityClaim, Platform, UserKey};
use tributary_domain::install::{ClaimedClick, ConfigureCommand};
use tributary_domain::vocabulary::digest::Digest;
use tributary_recording::BatchedCall;
use tributary_store::contract::fixtures::{SharedStore, join_all};
use tributary_store::contract::outbox_fixtures::forwarding_app;
use tributary_store::contract::sdk_fixtures::{Tenant, address_hash, tenant};
use tributary_store::{ADDRESS_CLICKS_SCANNED_MAX, ConfigureOutcome, Devices, StoreError};

/// Calls `configure` for all calls, as the batch writer and its callers do. Returns the number of
/// batches.
pub(super) async fn in_batches(
    store: &PostgresStore,
    calls: &[ConfigureCommand],
) -> (Vec<ConfigureOutcome>, usize) {
    let (mut outcomes, mut batches) = (BTreeMap::new(), 0);
    while outcomes.len() < calls.len() {
        let rest = (0..calls.len()).filter(|index| !outcomes.contains_key(index));
        let rest: Vec<usize> = rest.collect();
        let batch = rest.iter().map(|index| calls[*index].clone()).collect();
        let results = configure::record_batch(&store.pool, batch).await;
        for (index, result) in rest.into_iter().zip(results.expect("calls are recorded")) {
            let outcome = match result {
                Some(BatchedCall::Recorded(outcome)) => *outcome,
                Some(BatchedCall::Alone) => {
                    let recorded = configure::record_alone(&store.pool, calls[index].clone());
                    recorded.await.expect("a call is recorded alone")
                }
                None => continue,
            };
            outcomes.insert(index, outcome);
        }
        batches += 1;
    }
    (outcomes.into_values().collect(), batches)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_faulty_call_fails_alone() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = &tenant(&shared).await;
    let call = |index: i64| {
        let mut command = tenant.configure(&format!("device-{index}"), 100);
        if index % 20 == 7 {
            // PostgreSQL text cannot contain a NUL character, and the endpoints reject it.
            command.device = DeviceKey::stored("device\0".to_owned());
        }
        store.configure(command)
    };
    let outcomes = join_all((0..40).map(call).collect()).await;
    for (index, outcome) in (0..).zip(outcomes) {
        match outcome {
            Ok(configured) => {
                assert_ne!(index % 20, 7);
                assert!(configured.is_first_open);
            }
            Err(StoreError::Unavailable { source, .. }) => {
                assert_eq!(index % 20, 7);
                assert!(source.to_string().contains("encoding"), "{source}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let client = schema.client().await;
    assert_eq!(number(&client, "select count(*) from devices").await, 38);
    assert_figures_match_events(&schema).await;
}

/// Both nodes get the calls of the same devices, in opposite orders. Two devices each compete for a
/// click.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_on_two_nodes_record_each_install_once() {
    const DEVICES: i64 = 120;
    let schema = Schema::create().await;
    let nodes = [open_strict(&schema).await, open_strict(&schema).await];
    let shared: SharedStore = nodes[0].clone();
    let tenant = &tenant(&shared).await;
    let clicks = join_all((0..DEVICES / 2).map(|_| tenant.record_click(10)).collect()).await;
    let call = |index: i64| {
        let click = &clicks[usize::try_from(index).expect("small") % clicks.len()];
        let key = format!("device-{index}");
        tenant.configure_with_click(&key, click, 60)
    };
    let there = (0..DEVICES).map(|index| nodes[0].configure(call(index)));
    let back = (0..DEVICES)
        .rev()
        .map(|index| nodes[1].configure(call(index)));
    let outcomes = join_all(there.chain(back).collect()).await;
    let outcomes = outcomes.into_iter().map(|one| one.expect("recorded"));
    let first = outcomes.filter(|outcome| outcome.is_first_open).count();
    assert_eq!(i64::try_from(first), Ok(DEVICES));
    let client = schema.client().await;
    let taken = "select count(distinct taken_by) from clicks";
    assert_eq!(number(&client, taken).await, DEVICES / 2);
    let events = number(&client, "select count(*) from events").await;
    assert_eq!(events, DEVICES);
    let commits = "select count(distinct xmin::text) from events";
    let commits = number(&client, commits).await;
    assert!(
        commits <= DEVICES / 3,
        "{commits} commits for {events} installs"
    );
    assert_figures_match_events(&schema).await;
}

/// Records a click that can win, and then other clicks from the same address that cannot.
async fn flood(tenant: &Tenant, address: u8, others: usize) -> Click {
    let click = |index: usize| {
        let mut click = tenant.click(if index == 0 { 10 } else { 11 });
        click.address_hash = Some(address_hash(address));
        if index > 0 {
            click.agent.platform = Platform::Ios;
        }
        click
    };
    let clicks: Vec<Click> = (0..=others).map(click).collect();
    let record = |click: &Click| tenant.store.record_click(click.clone());
    for outcome in join_all(clicks.iter().map(record).collect()).await {
        outcome.expect("a click is recorded");
    }
    clicks[0].clone()
}

/// Clicks that cannot win crowd out the others only if there are more than the store reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_clicks_of_each_address_are_read() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = &tenant(&shared).await;
    let winner = flood(tenant, 1, ADDRESS_CLICKS_SCANNED_MAX - 1).await;
    flood(tenant, 2, ADDRESS_CLICKS_SCANNED_MAX).await;
    let calls = [1, 2].map(|address| ConfigureCommand {
        address_hash: Some(address_hash(address)),
        address_hashes: vec![address_hash(address)],
        ..tenant.configure(&format!("device-{address}"), 60)
    });
    let (outcomes, batches) = in_batches(&store, &calls).await;
    let clicks: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.attribution.decision.click)
        .collect();
    assert_eq!(clicks, [Some(winner.id), None]);
    assert_eq!(batches, 1);
}

/// Counts the statements of a batch of first opens with clicks, users and advertising ids.
async fn statements(store: &PostgresStore, tenant: &Tenant, calls: i64) -> u64 {
    let clicks = join_all((0..calls).map(|_| tenant.record_click(10)).collect()).await;
    let command = |index: i64| {
        let click = &clicks[usize::try_from(index).expect("small")];
        let hash = Digest::of(format!("{calls}-{index}").as_bytes());
        let command = tenant.configure_with_click(&format!("{calls}-{index}"), click, 60);
        assert_eq!(command.claims[0].click, ClaimedClick::Authentic(click.id));
        ConfigureCommand {
            address_hash: Some(hash),
            address_hashes: vec![hash],
            advertising_hash: Some(hash),
            advertising_id: AdvertisingId::parse(&format!(
                "{index:08}-8cf0-11bd-b23e-10b96e40000d"
            )),
            identity: IdentityClaim {
                user: UserKey::parse(&format!("{calls}-{index}")).ok(),
                address_hash: Some(hash),
                ..IdentityClaim::default()
            },
            ..command
        }
    };
    let commands: Vec<_> = (0..calls).map(command).collect();
    let sent = store.run_write(async |tx| {
        // Boxed because the future is large.
        let recorded = Box::pin(tributary_recording::configure_batch(tx, &commands));
        let (results, increments) = recorded.await?;
        let is_recorded = |one: &Option<BatchedCall>| matches!(one, Some(BatchedCall::Recorded(_)));
        assert!(results.iter().all(is_recorded));
        store_increments(tx, &increments).await?;
        Ok(*tx.turn.lock().await)
    });
    sent.await.expect("calls are recorded")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_statements_does_not_depend_on_the_number_of_calls() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let app = forwarding_app(&shared).await;
    let few = statements(&store, &app.tenant, 2).await;
    let many = statements(&store, &app.tenant, 200).await;
    assert_eq!((few, many), (many, few));
    assert!(few <= 25, "{few} statements");
}

/// Calls of one device depend on each other. Calls of other apps do not wait for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependent_calls_delay_only_their_own_app() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let (one, other) = (tenant(&shared).await, tenant(&shared).await);
    let calls = [
        one.configure("device-1", 60),
        one.configure("device-1", 61),
        other.configure("device-1", 62),
        one.configure("device-2", 63),
        other.configure("device-2", 64),
    ];
    let results = configure::record_batch(&store.pool, Arc::new(calls)).await;
    let results = results.expect("calls are recorded");
    let is_recorded: Vec<bool> = results.iter().map(Option::is_some).collect();
    assert_eq!(is_recorded, [true, false, true, false, true]);
}
