//! Pending increments from several nodes, including one that has shut down.

use super::database::{Schema, number, options};
use crate::PostgresOptions;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::contract::fixtures::{SharedStore, at, join_all};
use tributary_store::contract::reports::all_answers;
use tributary_store::contract::sdk_fixtures::{event, payment, tenant};
use tributary_store::{Clicks, Reports, StoreError};

const UNMERGED: &str = "select count(*) from rollup_increments";
/// Time limit for a search and a merge on a slow machine.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Waits until all increments are merged.
async fn wait_until_merged(client: &tokio_postgres::Client) {
    let merging = async {
        while number(client, UNMERGED).await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(WAIT_MAX, merging).await;
    in_time.expect("all increments are merged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_include_increments_of_a_stopped_node() {
    let schema = Schema::create().await;
    let other: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&other).await;
    let gone = schema.open().await;
    gone.record_click(tenant.click(1)).await.expect("a click");
    drop(gone);
    assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
    let client = schema.client().await;
    assert_eq!(
        number(&client, UNMERGED).await,
        1,
        "a report changes nothing"
    );
    let _next = schema.open().await;
    wait_until_merged(&client).await;
    assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_on_a_read_only_server_include_pending_increments() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    tenant
        .call_configure(tenant.configure("device-1", 20))
        .await;
    let sent = vec![payment("e1", "5", "USD", 90)];
    let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
    taken.await.expect("event is accepted");
    let before = all_answers(&tenant).await;
    schema.refuse_writes().await;
    assert_eq!(all_answers(&tenant).await, before);
    assert_eq!(before[0].figures.revenue_micros, 5_000_000);
    let refused = store.record_click(tenant.click(1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_merges_a_while_after_counting() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    store.record_click(tenant.click(1)).await.expect("a click");
    let client = schema.client().await;
    wait_until_merged(&client).await;
    let counted = "select sum(clicks)::bigint from rollup_networks where grain = 15";
    assert_eq!(number(&client, counted).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_node_merges_for_a_node_that_does_not() {
    let schema = Schema::create().await;
    let without_merging = PostgresOptions {
        merges_increments: false,
        ..options()
    };
    let accepting = schema.open_with(without_merging).await;
    assert!(accepting.merging.is_none());
    let merging: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&merging).await;
    let client = schema.client().await;
    let recorded = accepting.record_click(tenant.click(1)).await;
    recorded.expect("a click");
    wait_until_merged(&client).await;
    let counted = "select sum(clicks)::bigint from rollup_networks where grain = 15";
    assert_eq!(number(&client, counted).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_during_merges_count_everything_once() {
    let schema = Schema::create().await;
    let nodes = [schema.open().await, schema.open().await];
    let shared: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&shared).await;
    for round in 0..10 {
        let record = |index: usize| nodes[index % 2].record_click(tenant.click(round));
        for recorded in join_all((0..20).map(record).collect()).await {
            recorded.expect("click is recorded");
        }
        let read = |index: usize| {
            let (from, until) = (at(-1_000_000), at(10_000_000));
            nodes[index % 2].figures_by_network(&tenant.reader, tenant.app.id, (from, until))
        };
        for figures in join_all((0..6).map(read).collect()).await {
            let figures = figures.expect("figures");
            assert_eq!(figures[0].1.clicks, 20 * (round + 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_increment_fails_only_the_reports_of_its_app() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    let client = schema.client().await;
    client
        .batch_execute("insert into rollup_increments (app_id, body) select app_id, '{' from apps")
        .await
        .expect("a row");
    store.record_click(tenant.click(1)).await.expect("a click");
    let (from, until) = (at(-1_000_000), at(10_000_000));
    let read = || store.figures_by_network(&tenant.reader, tenant.app.id, (from, until));
    let outcome = read().await;
    assert!(
        matches!(outcome, Err(StoreError::Corrupt { .. })),
        "{outcome:?}"
    );
    store.record_click(tenant.click(2)).await.expect("a click");
    // Other apps' reports are not affected.
    let other = self::tenant(&store).await;
    store.record_click(other.click(1)).await.expect("a click");
    assert_eq!(other.figures_of("network_a").await.clicks, 1);
    client
        .batch_execute("delete from rollup_increments where body = '{'")
        .await
        .expect("delete increments");
    assert_eq!(read().await.expect("figures")[0].1.clicks, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_drops_an_unreadable_increment() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    let sent = vec![event("e1", "search", 90)];
    let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
    taken.await.expect("event is accepted");
    let client = schema.client().await;
    client
        .batch_execute("update rollup_increments set body = '{'")
        .await
        .expect("a text");
    for day in store.rollup_days().await.expect("days") {
        store.rebuild_rollups(day).await.expect("rebuild succeeds");
    }
    assert_eq!(number(&client, UNMERGED).await, 0);
    assert_eq!(tenant.figures().await[0].1.events, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_cohort_device_does_not_stop_reports_and_is_rebuilt() {
    const UNREADABLE: &str = "select count(*) from cohort_devices where network = 'x'";
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    tenant
        .call_configure(tenant.configure("device-1", 20))
        .await;
    assert_eq!(tenant.figures().await[0].1.installs, 1);
    schema.merge_increments().await;
    let client = schema.client().await;
    client
        .batch_execute("update cohort_devices set network = 'x'")
        .await
        .expect("a row");
    let sent = vec![event("e1", "search", 90)];
    let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
    taken.await.expect("event is accepted");
    assert_eq!(tenant.figures().await[0].1.events, 2);
    assert_eq!(number(&client, UNREADABLE).await, 1);
    for day in store.rollup_days().await.expect("days") {
        store.rebuild_rollups(day).await.expect("rebuild succeeds");
    }
    assert_eq!(number(&client, UNREADABLE).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_many_increments_in_chunks_despite_outdated_statistics() {
    const TEXTS: i64 = 3_000;
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    let client = schema.client().await;
    client
        .batch_execute("analyze rollup_increments")
        .await
        .expect("analyzed");
    let body = r#"{"credits":[[["live",0],"network_a",null,"","","",[1]]],"names":[],"places":[],"cohorts":[]}"#;
    let sql = "insert into rollup_increments (app_id, body)
               select app_id, $1 from apps, generate_series(1, $2::bigint)";
    let inserted = client.execute(sql, &[&body, &TEXTS]).await.expect("texts");
    assert_eq!(i64::try_from(inserted), Ok(TEXTS));
    let (from, until) = (Timestamp::from_millis(0), at(0));
    let read = store.figures_by_network(&tenant.reader, tenant.app.id, (from, until));
    let figures = read.await.expect("figures");
    assert_eq!(figures[0].1.clicks, TEXTS);
    schema.merge_increments().await;
    assert_eq!(number(&client, UNMERGED).await, 0);
    let read = store.figures_by_network(&tenant.reader, tenant.app.id, (from, until));
    assert_eq!(read.await.expect("figures")[0].1.clicks, TEXTS);
}
