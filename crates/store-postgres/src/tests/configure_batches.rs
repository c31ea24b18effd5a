//! Batches of `configure` calls have the same result as single calls.

use super::database::{Schema, number};
use super::event_batches::{assert_figures_match_events, open_strict};
use crate::rollups::store_increments;
use crate::{PostgresStore, configure};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Client;
use tributary_domain::click::Click;
use tributary_domain::device::{
    AdvertisingId, DeviceKey, IdentityClaim, Platform, Traits, UserKey,
};
use tributary_domain::install::{ClaimedClick, ConfigureCommand};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::ClickId;
use tributary_recording::BatchedCall;
use tributary_store::contract::fixtures::{SharedStore, join_all};
use tributary_store::contract::outbox_fixtures::{ForwardingApp, forwarding_app};
use tributary_store::contract::sdk_fixtures::{Tenant, address_hash, event, tenant};
use tributary_store::{ADDRESS_CLICKS_SCANNED_MAX, ConfigureOutcome, Devices, StoreError};

/// Random histories that are compared.
const HISTORIES: u32 = 12;
/// Calls per history.
const CALLS: i64 = 40;
/// Clicks that the calls of a history compete for.
const CLICKS: i64 = 8;

/// A small random number generator with a fixed sequence per seed.
struct Dice(u32);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % sides
    }

    fn address(&mut self) -> Digest {
        address_hash(u8::try_from(self.roll(4)).expect("small"))
    }
}

/// Records the clicks that a history's calls compete for. They come from three addresses.
async fn record_clicks(tenant: &Tenant, dice: &mut Dice) -> Vec<Click> {
    let mut clicks = Vec::new();
    for second in 0..CLICKS {
        let mut click = tenant.click(second);
        click.address_hash = Some(dice.address());
        click.advertising_hash = (dice.roll(2) == 0).then(|| Digest::of(b"advertising"));
        let recorded = tenant.store.record_click(click.clone()).await;
        recorded.expect("a click is recorded");
        clicks.push(click);
    }
    clicks
}

/// Builds a random call: from one of a few devices, with any kind of evidence.
fn random_call(tenant: &Tenant, clicks: &[Click], dice: &mut Dice, index: i64) -> ConfigureCommand {
    let device = format!("device-{}", dice.roll(25));
    let second = 20 + index;
    let click = &clicks[usize::try_from(dice.roll(8)).expect("small")];
    let mut command = match dice.roll(4) {
        0 => tenant.configure(&device, second),
        1 => tenant.configure_with_click(&device, click, second),
        _ => {
            let address = dice.address();
            ConfigureCommand {
                address_hash: Some(address),
                address_hashes: vec![address],
                ..tenant.configure(&device, second)
            }
        }
    };
    if dice.roll(4) == 0 {
        command.advertising_id = AdvertisingId::parse("38400000-8cf0-11bd-b23e-10b96e40000d");
        command.advertising_hash = Some(Digest::of(b"advertising"));
    }
    if dice.roll(3) == 0 {
        command.identity = IdentityClaim {
            user: UserKey::parse(&format!("user-{}", dice.roll(3))).ok(),
            address_hash: Some(dice.address()),
            ..IdentityClaim::default()
        };
    }
    match dice.roll(8) {
        0 => {
            command.traits = Traits::of(Platform::Ios);
            command.ad_services_token = Some(format!("token-{index}"));
        }
        1 => {
            let mut click = tenant.click(second);
            click.address_hash = Some(dice.address());
            command.app_link_click = Some(click);
        }
        2 => command.country = Some("FR".to_owned()),
        _ => {}
    }
    command
}

/// Builds a history: some devices have sent events before their first call.
async fn history(app: &ForwardingApp, seed: u32) -> (Vec<Click>, Vec<ConfigureCommand>) {
    let mut dice = Dice(seed);
    let tenant = &app.tenant;
    let mut clicks = record_clicks(tenant, &mut dice).await;
    for device in 0..3 {
        let events = vec![event(&format!("early-{device}"), "sign_up", 15)];
        let arrival = tenant.arrival(&format!("device-{device}"), 15);
        let accepted = tenant.store.accept_sdk_events(arrival, events).await;
        accepted.expect("events are accepted");
    }
    let calls: Vec<_> = (0..CALLS)
        .map(|index| random_call(tenant, &clicks, &mut dice, index))
        .collect();
    let opened = calls.iter().filter_map(|call| call.app_link_click.clone());
    clicks.extend(opened);
    (clicks, calls)
}

/// Calls `configure` for all calls, as the batch writer and its callers do. Returns the number of
/// batches.
async fn in_batches(
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

/// Calls `configure` for each call, without a batch.
async fn one_by_one(store: &PostgresStore, calls: &[ConfigureCommand]) -> Vec<ConfigureOutcome> {
    let mut outcomes = Vec::new();
    for call in calls {
        let recorded = store.run_write(async |tx| {
            // Boxed because the future is large.
            let recorded = Box::pin(tributary_recording::configure(tx, call));
            let (outcome, increments) = recorded.await?;
            store_increments(tx, &increments).await?;
            Ok(outcome)
        });
        outcomes.push(recorded.await.expect("a call is recorded"));
    }
    outcomes
}

/// Describes outcomes without ids, which differ between apps. Clicks are named by their numbers.
fn described(clicks: &[Click], outcomes: &[ConfigureOutcome]) -> Vec<String> {
    let names: BTreeMap<ClickId, usize> = (0..).zip(clicks).map(|(n, one)| (one.id, n)).collect();
    let name = |click: Option<ClickId>| click.map(|click| names[&click]);
    let describe = |outcome: &ConfigureOutcome| {
        let attribution = &outcome.attribution;
        let decision = &attribution.decision;
        let candidates: Vec<_> = decision
            .candidates
            .iter()
            .map(|one| (name(one.click), one.method, one.score, one.rejection))
            .collect();
        format!(
            "{} {} {:?} {:?} {:?} {:?} {:?} {candidates:?} {}",
            outcome.is_first_open,
            attribution.revision,
            decision.state,
            decision.match_type,
            decision.confidence,
            name(decision.click),
            decision.flags,
            decision.reason,
        )
    };
    outcomes.iter().map(describe).collect()
}

/// Reads an app's rows without ids.
async fn stored(client: &Client, tenant: &Tenant) -> BTreeMap<&'static str, Vec<String>> {
    let app = uuid::Uuid::from_bytes(*tenant.app.id.as_bytes());
    let tables = [
        (
            "clicks",
            "select row(clicked_at, taken_by, kept)::text from clicks",
        ),
        (
            "devices",
            "select row(device_id, platform, country, advertising_id, network, link_id is null,
                        attribution_revision, last_seen_at, active_at, address_hash)::text
             from devices",
        ),
        (
            "identities",
            "select row(device_id, user_id, matching, updated_at)::text from identities",
        ),
        (
            "user_links",
            "select row(device_id, user_id, linked_at, first_linked_at, is_used, is_signed,
                        address_hash)::text from user_links",
        ),
        (
            "tokens",
            "select row(device_id, token, received_at, due_at)::text from ad_services_tokens",
        ),
        (
            "events",
            "select row(device_id, name, occurred_at, user_id, country, network, match_type,
                        skipped)::text from events",
        ),
        (
            "outbox",
            "select row(network, network_event, planned_at, due_at)::text from outbox",
        ),
    ];
    let mut rows = BTreeMap::new();
    for (table, sql) in tables {
        let sql = format!("{sql} where app_id = $1 order by 1");
        let found = client.query(&sql, &[&app]).await.expect("rows");
        rows.insert(table, found.iter().map(|row| row.get(0)).collect());
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_has_the_result_of_single_calls() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let client = schema.client().await;
    let mut transactions = 0;
    for seed in 0..HISTORIES {
        let (batched, single) = (forwarding_app(&shared).await, forwarding_app(&shared).await);
        let (clicks, calls) = history(&batched, seed).await;
        let (outcomes, batches) = in_batches(&store, &calls).await;
        let (other_clicks, calls) = history(&single, seed).await;
        let expected = one_by_one(&store, &calls).await;
        let outcomes = described(&clicks, &outcomes);
        assert_eq!(outcomes, described(&other_clicks, &expected), "seed {seed}");
        let rows = stored(&client, &batched.tenant).await;
        assert_eq!(rows, stored(&client, &single.tenant).await, "seed {seed}");
        let figures = batched.tenant.figures().await;
        assert_eq!(figures, single.tenant.figures().await, "seed {seed}");
        transactions += batches;
    }
    let calls = usize::try_from(CALLS).expect("small") * HISTORIES as usize;
    assert!(transactions < calls / 2, "{transactions} for {calls} calls");
    assert_figures_match_events(&schema).await;
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
        let is_recorded =
            |one: &Option<BatchedCall>| matches!(one, Some(BatchedCall::Recorded(_)));
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
