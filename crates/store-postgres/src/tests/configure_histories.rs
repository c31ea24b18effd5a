//! Batches of `configure` calls have the same result as single calls.

use super::configure_batches::in_batches;
use super::database::Schema;
use super::event_batches::assert_figures_match_events;
use crate::PostgresStore;
use crate::rollups::store_increments;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Client;
use tributary_domain::access::Environment;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim, Subscriber};
use tributary_domain::click::Click;
use tributary_domain::device::{
    AdvertisingId, ClaimProof, IdentityClaim, IdentityMode, Platform, Traits,
};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::ClickId;
use tributary_store::ConfigureOutcome;
use tributary_store::contract::erasure_fixtures::{billing_notification, device, person};
use tributary_store::contract::fixtures::SharedStore;
use tributary_store::contract::outbox_fixtures::{ForwardingApp, forwarding_app};
use tributary_store::contract::sdk_fixtures::{Tenant, address_hash, event};

/// Random histories that are compared.
const HISTORIES: u32 = 6;
/// Calls per history.
const CALLS: i64 = 50;
/// Clicks per app that the calls of a history compete for.
const CLICKS: i64 = 8;

/// A small random number generator with a fixed sequence per seed.
struct Dice(u32);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % sides
    }

    /// Returns true in one of this many cases.
    fn one_in(&mut self, sides: u32) -> bool {
        self.roll(sides) == 0
    }

    fn address(&mut self) -> Digest {
        address_hash(u8::try_from(self.roll(4)).expect("small"))
    }
}

/// Records the clicks that a history's calls compete for. They come from four addresses.
async fn record_clicks(tenant: &Tenant, dice: &mut Dice) -> Vec<Click> {
    let mut clicks = Vec::new();
    for second in 0..CLICKS {
        let mut click = tenant.click(second);
        click.address_hash = Some(dice.address());
        click.advertising_hash = dice.one_in(2).then(|| Digest::of(b"advertising"));
        click.environment = dice.one_in(8).then_some(Environment::Test);
        let recorded = tenant.store.record_click(click.clone()).await;
        recorded.expect("a click is recorded");
        clicks.push(click);
    }
    clicks
}

/// Stores subscriptions that wait for a user or a device.
async fn subscribe(tenant: &Tenant) {
    let of_user = |name| Subscriber {
        people: vec![person(name)],
        ..Subscriber::default()
    };
    let of_device = Subscriber {
        device: Some(device("device-3")),
        ..Subscriber::default()
    };
    let subscribers = [
        (Environment::Live, of_user("user-0")),
        (Environment::Live, of_device),
        (Environment::Test, of_user("user-1")),
    ];
    for (number, (environment, subscriber)) in (0..).zip(subscribers) {
        let (id, chain) = (format!("paid-{number}"), format!("subscription-{number}"));
        let meaning = NotificationMeaning::Payment(PaymentClaim::Start);
        let mut paid = billing_notification(tenant, &id, &chain, 5 + number, meaning);
        paid.content.environment = environment;
        paid.content.subscriber = subscriber;
        let accepted = tenant.store.accept_notification(paid).await;
        accepted.expect("a notification is stored");
    }
}

/// Builds a random call: from one of a few devices, with any kind of evidence.
fn random_call(tenant: &Tenant, clicks: &[Click], dice: &mut Dice, index: i64) -> ConfigureCommand {
    let device = format!("device-{}", dice.roll(20));
    let second = 20 + index;
    let click = &clicks[usize::try_from(dice.roll(8)).expect("small")];
    let mut command = match dice.roll(4) {
        0 => tenant.configure(&device, second),
        1 => tenant.configure_with_click(&device, click, second),
        _ => {
            let (today, yesterday) = (dice.address(), dice.address());
            ConfigureCommand {
                address_hash: Some(today),
                address_hashes: vec![today, yesterday],
                ..tenant.configure(&device, second)
            }
        }
    };
    if dice.one_in(6) {
        command.environment = Environment::Test;
    }
    if dice.one_in(4) {
        command.advertising_id = AdvertisingId::parse("38400000-8cf0-11bd-b23e-10b96e40000d");
        command.advertising_hash = Some(Digest::of(b"advertising"));
    }
    if dice.one_in(3) {
        command.identity = random_claim(dice);
    }
    match dice.roll(8) {
        0 => {
            command.traits = Traits::of(Platform::Ios);
            command.ad_services_token = Some(format!("token-{index}"));
        }
        1 => {
            let mut click = tenant.click(second);
            click.address_hash = Some(dice.address());
            click.environment = Some(command.environment);
            command.app_link_click = Some(click);
        }
        2 => command.country = Some("FR".to_owned()),
        3 => command.consent.ad_user_data = Some(dice.one_in(2)),
        _ => {}
    }
    command
}

/// Builds a claim of one of a few users.
fn random_claim(dice: &mut Dice) -> IdentityClaim {
    IdentityClaim {
        user: Some(person(&format!("user-{}", dice.roll(5)))),
        address_hash: Some(dice.address()),
        proof: match dice.roll(4) {
            0 => ClaimProof::Signed,
            1 => ClaimProof::Wrong,
            _ => ClaimProof::Unsigned,
        },
        mode: if dice.one_in(4) {
            IdentityMode::Signed
        } else {
            IdentityMode::Open
        },
        ..IdentityClaim::default()
    }
}

/// Two apps with the same devices, users and addresses.
type Apps = [ForwardingApp; 2];

async fn apps(store: &SharedStore) -> Apps {
    [forwarding_app(store).await, forwarding_app(store).await]
}

/// Builds a history: some devices have sent events before their first call.
async fn history(apps: &Apps, seed: u32) -> (Vec<Click>, Vec<ConfigureCommand>) {
    let mut dice = Dice(seed);
    let mut clicks = Vec::new();
    for ForwardingApp { tenant, .. } in apps {
        clicks.push(record_clicks(tenant, &mut dice).await);
        subscribe(tenant).await;
        for device in 0..3 {
            let events = vec![event(&format!("early-{device}"), "sign_up", 15)];
            let arrival = tenant.arrival(&format!("device-{device}"), 15);
            let accepted = tenant.store.accept_sdk_events(arrival, events).await;
            accepted.expect("events are accepted");
        }
    }
    let call = |index| {
        let app = usize::from(dice.one_in(3));
        random_call(&apps[app].tenant, &clicks[app], &mut dice, index)
    };
    let calls: Vec<_> = (0..CALLS).map(call).collect();
    let mut clicks = clicks.concat();
    let opened = calls.iter().filter_map(|call| call.app_link_click.clone());
    clicks.extend(opened);
    (clicks, calls)
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
            "select row(environment, clicked_at, taken_by, kept)::text from clicks",
        ),
        (
            "devices",
            "select row(environment, device_id, platform, country, advertising_id, network, link_id is null,
                        attribution_revision, last_seen_at, active_at, address_hash)::text
             from devices",
        ),
        (
            "identities",
            "select row(environment, device_id, user_id, matching, updated_at)::text
             from identities",
        ),
        (
            "user_links",
            "select row(environment, device_id, user_id, linked_at, first_linked_at, is_used, is_signed,
                        address_hash)::text from user_links",
        ),
        (
            "tokens",
            "select row(environment, device_id, token, received_at, due_at)::text
             from ad_services_tokens",
        ),
        (
            "events",
            "select row(environment, source, device_id, name, occurred_at, user_id, country,
                        network, match_type, first_payment, skipped)::text from events",
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
        let (batched, single) = (apps(&shared).await, apps(&shared).await);
        let (clicks, calls) = history(&batched, seed).await;
        let (outcomes, batches) = in_batches(&store, &calls).await;
        let (other_clicks, calls) = history(&single, seed).await;
        let expected = one_by_one(&store, &calls).await;
        let outcomes = described(&clicks, &outcomes);
        assert_eq!(outcomes, described(&other_clicks, &expected), "seed {seed}");
        for (batched, single) in batched.iter().zip(&single) {
            let rows = stored(&client, &batched.tenant).await;
            assert_eq!(rows, stored(&client, &single.tenant).await, "seed {seed}");
            let figures = batched.tenant.figures().await;
            assert_eq!(figures, single.tenant.figures().await, "seed {seed}");
        }
        transactions += batches;
    }
    let calls = usize::try_from(CALLS).expect("small") * HISTORIES as usize;
    assert!(transactions < calls / 2, "{transactions} for {calls} calls");
    assert_figures_match_events(&schema).await;
}
