//! Planning the deliveries of many events at once.

use super::database::{Schema, number};
use super::web_site::{Site, accepted};
use std::sync::Arc;
use tokio_postgres::Client;
use tributary_domain::forwarding::SkipReason;
use tributary_domain::integration::{IntegrationChange, Network, SettingValue};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::contract::fixtures::{SharedStore, at, join_all, origin};
use tributary_store::contract::outbox_fixtures::{LEASE, connected, forwarding_app};
use tributary_store::contract::sdk_fixtures::{Tenant, event, payment, tenant};
use tributary_store::{Events, Integrations};

/// Devices per app.
const DEVICES: i64 = 5;
/// Event name, network, delivery status and reason.
type DeliveryLine = (String, String, String, Option<String>);

/// Requests per app.
const REQUESTS: i64 = 60;

async fn rows_of(client: &Client, tenant: &Tenant) -> i64 {
    let sql = "select count(*) from outbox where app_id = $1";
    let app = uuid::Uuid::from_bytes(*tenant.app.id.as_bytes());
    let row = client.query_one(sql, &[&app]).await.expect("a row");
    row.get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_several_apps_are_planned_together() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let (one, two) = (forwarding_app(&shared).await, forwarding_app(&shared).await);
    // The second app also sends to another network, to which none of its installs is credited.
    two.change(Network::C, connected(Network::C), 4).await;
    let silent = tenant(&shared).await;
    let tenants = [&one.tenant, &two.tenant, &silent];
    for tenant in tenants {
        for device in 0..DEVICES {
            let click = tenant.record_click(9).await;
            let command = tenant.configure_with_click(&format!("device-{device}"), &click, 10);
            tenant.call_configure(command).await;
        }
    }
    let client = schema.client().await;
    let installs = "select count(*) from outbox";
    assert_eq!(number(&client, installs).await, 2 * DEVICES);

    let send = |index: i64| {
        let tenant = tenants[usize::try_from(index % 3).expect("small")];
        // One device is unknown, so its events are not attributed.
        let device = format!("device-{}", index / 3 % (DEVICES + 1));
        let events = vec![
            event(&format!("{index}-mapped"), "sign_up", 20),
            event(&format!("{index}-not"), "boss_defeated", 20),
            payment(&format!("{index}-paid"), "3", "USD", 20),
            payment(&format!("{index}-too-much"), "3000", "USD", 20),
        ];
        store.accept_sdk_events(tenant.arrival(&device, 21), events)
    };
    let outcomes = join_all((0..REQUESTS * 3).map(send).collect()).await;
    assert!(outcomes.iter().all(Result::is_ok));

    let of_known = REQUESTS * DEVICES / (DEVICES + 1);
    for tenant in [&one.tenant, &two.tenant] {
        assert_eq!(rows_of(&client, tenant).await, DEVICES + of_known * 2);
    }
    assert_eq!(rows_of(&client, &silent).await, 0);
    // Every row records the transaction and statement that wrote it.
    let by_events = "from outbox where planned_at > (select min(planned_at) from outbox)";
    let statements = format!("select count(distinct (xmin::text, cmin::text)) {by_events}");
    let commits = format!("select count(distinct xmin::text) {by_events}");
    let commits = number(&client, &commits).await;
    assert_eq!(number(&client, &statements).await, commits);
    assert!(commits <= 20, "{commits}");
    // Events record why networks were skipped.
    for (name, skipped, apps) in [
        ("sign_up", r#"{"network_a":"not_attributed"}"#, 1),
        ("boss_defeated", r#"{"network_a":"not_mapped"}"#, 1),
        ("sign_up", r#"{"network_c":"not_attributed"}"#, 1),
        ("sign_up", r#"{"network_a":"integration_disabled"}"#, 1),
    ] {
        let sql = "select count(distinct app_id) from events where name = $1 and skipped = $2";
        let row = client.query_one(sql, &[&name, &skipped]).await;
        let found: i64 = row.expect("a row").get(0);
        assert_eq!(found, apps, "{name} {skipped}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reattributed_events_are_planned_again() {
    let schema = Schema::create().await;
    let shared: SharedStore = Arc::new(schema.open().await);
    let one = forwarding_app(&shared).await;
    let probabilistic = IntegrationChange {
        settings: [(
            "forwardProbabilistic",
            Change::Set(SettingValue::Flag(true)),
        )]
        .into(),
        ..IntegrationChange::default()
    };
    one.change(Network::A, probabilistic, 5).await;
    one.change(Network::C, connected(Network::C), 5).await;
    one.tenant.record_click(10).await;
    let mut right = one.tenant.click(20);
    (right.network, right.address_hash) = (Some(Network::C), None);
    let recorded = shared.record_click(right.clone()).await;
    recorded.expect("click is recorded");
    let command = one.tenant.configure_from_address("phone", 60);
    one.tenant.call_configure(command).await;
    one.send_events("phone", &["s1", "s2"], "sign_up", 70).await;
    let pending = |id: &str| (id.to_owned(), "pending", None);
    let all = ["install", "s1", "s2"].map(pending);
    assert_eq!(one.delivery_statuses().await, all);
    // One delivery is being sent, so the network may already have received it.
    one.lease(LEASE, 71, 200).await.expect("a lease");
    let revision = one
        .change(Network::A, IntegrationChange::default(), 71)
        .await;
    let revision = revision.revision.number();
    let due = shared.due_deliveries(one.queue, LEASE, revision, at(71), 1);
    let due = due.await.expect("the call succeeds").expect("deliveries");
    let taken = shared.begin_sending(one.queue, LEASE, vec![due[0].id], at(71));
    assert_eq!(
        taken
            .await
            .expect("the call succeeds")
            .map(|taken| taken.len()),
        Some(1)
    );

    let command = one.tenant.configure_with_click("phone", &right, 80);
    one.tenant.call_configure(command).await;
    let client = schema.client().await;
    let rows = client
        .query(
            "select events.name, all_of.network, all_of.status, all_of.reason
             from (select event_id, network, 'pending' as status, null as reason from outbox
                   union all
                   select event_id, network, status, reason from deliveries) as all_of
             join events using (event_id) order by 1, 2, 3",
            &[],
        )
        .await
        .expect("rows");
    let lines: Vec<DeliveryLine> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect();
    let line = |name: &str, network: &str, status: &str, reason: Option<&str>| -> DeliveryLine {
        let [name, network, status] = [name, network, status].map(str::to_owned);
        (name, network, status, reason.map(str::to_owned))
    };
    let changed = Some("attribution_changed");
    assert_eq!(
        lines,
        [
            line("install", "network_a", "pending", None),
            line("install", "network_c", "pending", None),
            line("sign_up", "network_a", "cancelled", changed),
            line("sign_up", "network_a", "cancelled", changed),
            line("sign_up", "network_c", "pending", None),
            line("sign_up", "network_c", "pending", None),
        ]
    );
    let counted = "select sum(cancelled)::bigint from delivery_hours where network = 'network_a'";
    assert_eq!(number(&client, counted).await, 2);
    for event in one.log().await {
        assert_eq!(event.skipped, [(Network::A, SkipReason::NotAttributed)]);
    }
}

/// The history has more events than one page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_is_planned_again_page_by_page() {
    const EVENTS: i64 = 2_500;
    let schema = Schema::create().await;
    let shared: SharedStore = Arc::new(schema.open().await);
    let one = forwarding_app(&shared).await;
    for hundred in 0..EVENTS / 100 {
        let ids: Vec<String> = (0..100).map(|id| format!("{hundred}-{id}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        one.send_events("phone", &ids, "sign_up", 8).await;
    }
    let client = schema.client().await;
    let waiting = "select count(*) from outbox";
    assert_eq!(number(&client, waiting).await, 0);
    one.attribute_install("phone", 10).await;
    assert_eq!(number(&client, waiting).await, EVENTS + 1);
    let skipped = "select count(*) from events where skipped is not null";
    assert_eq!(number(&client, skipped).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_events_are_planned_together() {
    const POSTS: usize = 40;
    let site = Site::start().await;
    let (writer, app) = (&site.tenant.writer, site.click.app);
    let (change, any) = (connected(Network::A), Precondition::None);
    let connected =
        site.nodes[0].update_integration(writer, app, Network::A, change, any, origin(6));
    connected.await.expect("integration is updated");
    let purchases = (0..POSTS).map(|index| site.purchase(&format!("p{index}"), 3, "payer"));
    let refunds = (0..POSTS).map(|index| site.refund(&format!("f{index}"), 1, "p0", "payer"));
    assert_eq!(accepted(&site.send(purchases.clone()).await), POSTS);
    assert_eq!(accepted(&site.send(purchases).await), 0, "as before");
    site.send(refunds).await;
    let client = site.schema.client().await;
    let planned = "select count(*) from outbox join events using (app_id, event_id)
                   where events.name = 'purchase' and outbox.network = 'network_a'
                     and outbox.planned_at = events.received_at and events.skipped is null";
    let posts = i64::try_from(POSTS).expect("small");
    assert_eq!(number(&client, planned).await, posts);
    assert_eq!(number(&client, "select count(*) from outbox").await, posts);
    let refunds = r#"select count(*) from events
                     where name = 'refund' and skipped <> '{"network_a":"reporting_only"}'"#;
    assert_eq!(number(&client, refunds).await, 0);
    let statements = "select count(distinct (xmin::text, cmin::text))
                             - count(distinct xmin::text) from outbox";
    assert_eq!(number(&client, statements).await, 0);
}
