//! Partitions of the table of clicks: old ones are replaced by the clicks that something refers to.

use super::database::{Schema, number};
use crate::PostgresStore;
use crate::partitions::{CLICKS, catalog, compaction, maintain};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Client;
use tributary_domain::attribution::Rejection;
use tributary_domain::click::Click;
use tributary_store::contract::fixtures::{SharedStore, at};
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};
use tributary_store::{Clicks as _, PartitionReport};

/// In seconds.
const DAY: i64 = 24 * 60 * 60;
const RETENTION: Duration = Duration::from_hours(30 * 24);
const WEEK: i64 = 7 * DAY;

/// A partitioned table of clicks with two weeks after the first partition. The database contains no
/// other schema, whose transactions would delay the compaction.
struct Site {
    schema: Schema,
    node: Arc<PostgresStore>,
    client: Client,
    tenant: Tenant,
    /// End of the first partition, in seconds.
    end: i64,
}

async fn site() -> Site {
    let schema = Schema::create().await;
    let node = Arc::new(schema.open().await);
    let store: SharedStore = node.clone();
    let tenant = tenant(&store).await;
    let client = schema.client().await;
    let partitions = catalog::partitions(&client, CLICKS).await;
    let end = partitions.expect("partitions")[0].range.until;
    let site = Site {
        schema,
        node,
        client,
        tenant,
        end: (end.as_millis() - at(0).as_millis()) / 1_000,
    };
    assert_eq!(site.maintain(site.end - 8 * DAY).await.created, 2);
    site
}

impl Site {
    async fn maintain(&self, now: i64) -> PartitionReport {
        let report = maintain(&self.node.pool, CLICKS, at(now), RETENTION, 0).await;
        report.expect("partitions are maintained")
    }

    /// Records a click and lets a device claim it.
    async fn record_taken(&self, device: &str, seconds: i64) -> Click {
        let click = self.tenant.record_click(seconds).await;
        self.take(device, &click, seconds + 60).await;
        click
    }

    async fn take(&self, device: &str, click: &Click, seconds: i64) {
        let command = self.tenant.configure_with_click(device, click, seconds);
        let outcome = self.tenant.call_configure(command).await;
        assert_eq!(outcome.attribution.decision.click, Some(click.id));
    }

    /// Counts the compacted partitions.
    async fn kept_partitions(&self) -> i64 {
        let kept = format!("{PARTITIONS} and inhrelid::regclass::text like 'clicks_kept_%'");
        self.number(&kept).await
    }

    async fn number(&self, sql: &str) -> i64 {
        number(&self.client, sql).await
    }
}

const PARTITIONS: &str = "select count(*) from pg_inherits where inhparent = 'clicks'::regclass";

/// Tables, functions and triggers of an unfinished copy.
const LEFTOVERS: &str = "
    select (select count(*) from pg_class where relnamespace = current_schema()::regnamespace
              and relname in ('clicks_staying', 'clicks_changed'))
         + (select count(*) from pg_proc where pronamespace = current_schema()::regnamespace)
         + (select count(*) from pg_trigger join pg_class as c on c.oid = tgrelid
            where relnamespace = current_schema()::regnamespace and not tgisinternal)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clicks_that_installs_refer_to_survive_their_partition() {
    let site = site().await;
    let end = site.end;
    let early = site.record_taken("early", end - 40 * DAY).await;
    let taken = site.record_taken("device", end + DAY).await;
    for seconds in 0..20 {
        site.tenant.record_click(end - 40 * DAY + seconds).await;
        site.tenant.record_click(end + seconds).await;
    }
    site.record_taken("later", end + WEEK).await;
    site.tenant.record_click(end + WEEK + 1).await;
    let stored = "select string_agg(clicks::text, ' ' order by click_id) from clicks where kept";
    let row = site.client.query_one(stored, &[]).await.expect("clicks");
    let before: String = row.get(0);

    let report = site.maintain(end + WEEK + 30 * DAY).await;
    assert_eq!(report.dropped, 2);
    assert_eq!(report.compacted_until, Some(at(end + WEEK)));
    assert_eq!(site.kept_partitions().await, 2);
    assert_eq!(site.number("select count(*) from clicks").await, 4);
    let row = site.client.query_one(stored, &[]).await.expect("clicks");
    assert_eq!(row.get::<_, String>(0), before);
    assert_eq!(site.number(LEFTOVERS).await, 0);
    let keys = "select count(*) from pg_constraint where conname = 'clicks_link_fkey'
                  and conrelid in (select inhrelid from pg_inherits
                                   where inhparent = 'clicks'::regclass)";
    assert_eq!(site.number(keys).await, site.number(PARTITIONS).await);
    for (device, click) in [("other-1", early), ("other-2", taken)] {
        let command = site
            .tenant
            .configure_with_click(device, &click, end + 8 * DAY);
        let outcome = site.tenant.call_configure(command).await;
        let rejection = outcome.attribution.decision.candidates[0].rejection;
        assert_eq!(rejection.map(Rejection::as_str), Some("duplicate_click"));
    }
    // The next week is merged with the week before it.
    assert_eq!(site.maintain(end + 2 * WEEK + 30 * DAY).await.dropped, 2);
    assert_eq!(site.kept_partitions().await, 2);
    assert_eq!(site.number("select count(*) from clicks").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_change_while_they_are_copied_are_not_lost() {
    let site = site().await;
    let end = site.end;
    let [kept, claimed, changed, removed] = [1, 2, 3, 4].map(|second| end + second);
    let kept = site.record_taken("kept", kept).await;
    let claimed = site.tenant.record_click(claimed).await;
    let changed = site.record_taken("changed", changed).await;
    let removed = site.record_taken("removed", removed).await;
    site.tenant.record_click(end + 5).await;
    let mut connection = site.node.pool.connection().await.expect("a connection");
    let all = catalog::partitions(&**connection, CLICKS).await;
    let sources = &all.expect("partitions")[1..2];
    let staged = compaction::stage(&mut connection, CLICKS, sources, "kept").await;
    let mut copy = staged.expect("no error").expect("a copy");

    site.take("claimed", &claimed, end + DAY).await;
    let sql = format!(
        "update clicks set taken_by = 'x' where click_id = '{}';
         delete from clicks where click_id = '{}'",
        uuid::Uuid::from_bytes(*changed.id.as_bytes()),
        uuid::Uuid::from_bytes(*removed.id.as_bytes()),
    );
    site.client.batch_execute(&sql).await.expect("changes");
    let new = site.record_taken("new", end + 6).await;

    let finished = compaction::finish(&mut connection, CLICKS, sources, "kept", &mut copy).await;
    assert!(finished.expect("no error"));
    let stored = "select click_id from clicks order by click_id";
    let rows = site.client.query(stored, &[]).await.expect("clicks");
    let ids: Vec<[u8; 16]> = rows
        .iter()
        .map(|row| row.get::<_, uuid::Uuid>(0).into_bytes())
        .collect();
    let expected = [kept, claimed, changed, new].map(|click| *click.id.as_bytes());
    assert_eq!(ids, expected);
    assert_eq!(
        site.number("select count(*) from clicks where taken_by = 'x'")
            .await,
        1
    );
    assert_eq!(site.number(LEFTOVERS).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_copy_is_removed_although_nothing_is_due() {
    let site = site().await;
    let end = site.end;
    site.record_taken("device", end + 1).await;
    let mut connection = site.node.pool.connection().await.expect("a connection");
    let all = catalog::partitions(&**connection, CLICKS).await;
    let sources = &all.expect("partitions")[1..2];
    let staged = compaction::stage(&mut connection, CLICKS, sources, "kept").await;
    assert!(staged.expect("no error").is_some());
    assert!(site.number(LEFTOVERS).await > 0);
    assert_eq!(site.maintain(end).await.dropped, 0);
    assert_eq!(site.number(LEFTOVERS).await, 0);
}

/// Tries to replace partitions until a test fails.
const TRIES_MAX: u32 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_node_leaves_the_copy_of_another_one_alone() {
    let site = site().await;
    let end = site.end;
    site.record_taken("device", end + 1).await;
    site.tenant.record_click(end + 2).await;
    let mut slow = site.node.pool.connection().await.expect("a connection");
    let mut quick = site.node.pool.connection().await.expect("a connection");
    let all = catalog::partitions(&**slow, CLICKS).await;
    let sources = &all.expect("partitions")[1..2];
    let mut tries = 0;
    let mut replaced = loop {
        let staged = compaction::stage(&mut slow, CLICKS, sources, "kept").await;
        let mut replaced = staged.expect("no error").expect("a copy");
        let staged = compaction::stage(&mut quick, CLICKS, sources, "kept").await;
        let mut copy = staged.expect("no error").expect("a copy");

        let finished = compaction::finish(&mut slow, CLICKS, sources, "kept", &mut replaced).await;
        assert!(!finished.expect("no error"));
        let finished = compaction::finish(&mut quick, CLICKS, sources, "kept", &mut copy).await;
        if finished.expect("no error") {
            break replaced;
        }
        // A vacuum of the server may hold a snapshot, or a lock, for a moment.
        tries += 1;
        assert!(tries < TRIES_MAX, "the partitions stay");
    };
    // Nothing is left of either copy.
    let finished = compaction::finish(&mut slow, CLICKS, sources, "kept", &mut replaced).await;
    assert!(!finished.expect("no error"));
    assert_eq!(site.number("select count(*) from clicks").await, 1);
    assert_eq!(site.number(LEFTOVERS).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_stay_while_a_report_may_read_them() {
    let site = site().await;
    let end = site.end;
    site.record_taken("device", end).await;
    site.tenant.record_click(end + 1).await;
    let now = end + WEEK + 30 * DAY;
    // Reads an older snapshot, and later clicks.
    let mut reader = site.schema.client().await;
    let reading = reader.build_transaction();
    let reading = reading
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .start();
    let reading = reading.await.expect("a transaction");
    reading
        .query("select 1 from apps", &[])
        .await
        .expect("apps");
    assert_eq!(site.maintain(now).await.dropped, 0);
    assert_eq!(site.number(LEFTOVERS).await, 0);
    let read = "select 1 from clicks";
    assert_eq!(reading.query(read, &[]).await.expect("clicks").len(), 2);
    // Reads clicks meanwhile: nothing is changed, and clicks are still recorded.
    assert_eq!(site.maintain(now).await.dropped, 0);
    site.tenant.record_click(end + WEEK).await;
    assert_eq!(reading.query(read, &[]).await.expect("clicks").len(), 2);
    reading.commit().await.expect("the end");
    assert_eq!(site.kept_partitions().await, 0);
    assert_eq!(site.maintain(now).await.dropped, 2);
    assert_eq!(site.number("select count(*) from clicks").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clicks_are_recorded_while_their_table_is_converted() {
    let schema = Schema::create_without_tables().await;
    let node = Arc::new(schema.open().await);
    let store: SharedStore = node.clone();
    let tenant = tenant(&store).await;
    let recording = async {
        for seconds in 0..200 {
            let click = tenant.record_click(seconds).await;
            let command = tenant.configure_with_click(&format!("d{seconds}"), &click, 300);
            let outcome = tenant.call_configure(command).await;
            assert_eq!(outcome.attribution.decision.click, Some(click.id));
        }
    };
    let converting = async {
        loop {
            let report = maintain(&node.pool, CLICKS, at(0), RETENTION, 0).await;
            if report.expect("a report").is_partitioned {
                return;
            }
        }
    };
    tokio::join!(recording, converting);
    let client = schema.client().await;
    let taken = "select count(distinct taken_by) from clicks where kept";
    assert_eq!(number(&client, taken).await, 200);
    let forgotten = node.forget_addresses(at(200), at(0), 1_000).await;
    assert_eq!(forgotten.expect("a number"), 200);
}
