//! Partitions of the table of finished deliveries.

use super::database::{Schema, number};
use crate::PostgresStore;
use crate::partitions::{DELIVERIES, constraints, maintain};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::Client;
use tributary_domain::partitioning::PartitionRange;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Instance as _, LargeTable, Outbox as _, PartitionReport};
use uuid::Uuid;

const DAY: i64 = 24 * 60 * 60 * 1000;
/// A Monday.
const NOW: i64 = 2_976 * 7 * DAY + 4 * DAY;
const RETENTION: Duration = Duration::from_hours(30 * 24);
/// The first partition ends five weeks after the conversion.
const END: i64 = NOW + 35 * DAY;

/// Creates a table that is not partitioned yet.
async fn plain() -> (Schema, PostgresStore, Client) {
    let schema = Schema::create_without_tables().await;
    let store = schema.open().await;
    let client = schema.client().await;
    (schema, store, client)
}

/// Maintains the partitions at a time.
async fn maintain_at(store: &PostgresStore, now: i64) -> PartitionReport {
    let now = Timestamp::from_millis(now);
    let report = maintain(&store.pool, DELIVERIES, now, RETENTION, 0).await;
    report.expect("partitions are maintained")
}

/// Returns a statement that inserts deliveries with the time in their ids, settled at another time.
fn insert(count: u32, at: i64, settled_at: i64) -> String {
    format!(
        "insert into deliveries (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                 planned_at, expires_at, settled_at, status, attempts_made, attempts)
         select md5('app')::uuid, (lpad(to_hex({at}), 12, '0') || substr(md5(random()::text), 1, 20))::uuid,
                'a', md5('event')::uuid, 'e', 'd', 0, 0, {settled_at}, 'failed', 1, '[]'
         from generate_series(1, {count})
         on conflict (app_id, delivery_id) do nothing"
    )
}

async fn add(client: &Client, count: u32, at: i64, settled_at: i64) {
    let added = client.batch_execute(&insert(count, at, settled_at)).await;
    added.expect("deliveries");
}

fn first_id(at: i64) -> Uuid {
    Uuid::from_bytes(*DeliveryId::first_at(Timestamp::from_millis(at)).as_bytes())
}

/// Lists the partitions.
async fn names(client: &Client) -> Vec<String> {
    let sql = "select inhrelid::regclass::text from pg_inherits
               where inhparent = 'deliveries'::regclass order by 1";
    let rows = client.query(sql, &[]).await.expect("partitions");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn count(client: &Client) -> i64 {
    number(client, "select count(*) from deliveries").await
}

async fn is_partitioned(client: &Client) -> bool {
    let sql = "select count(*) from pg_class
               where oid = 'deliveries'::regclass and relkind = 'p'";
    number(client, sql).await == 1
}

/// Converts the table and makes the first partitions, three weeks before the end of the first one.
async fn partitioned() -> (Schema, PostgresStore, Client) {
    let (schema, store, client) = plain().await;
    assert!(maintain_at(&store, NOW).await.is_partitioned);
    let report = maintain_at(&store, END - 14 * DAY).await;
    assert_eq!(report.created, 1);
    (schema, store, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn converts_a_table_while_nodes_write_to_it() {
    let (schema, store, client) = plain().await;
    add(&client, 20_000, NOW - DAY, NOW).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for is_prepared in [true, false] {
        let (client, is_done) = (schema.client().await, is_done.clone());
        let sql = insert(10, NOW, NOW);
        writers.push(tokio::spawn(async move {
            // As nodes do: the statement was planned before the conversion and runs after it.
            let prepared = client.prepare(&sql).await.expect("a statement");
            let mut written = 0;
            let mut runs_left = 20;
            while runs_left > 0 {
                written += if is_prepared {
                    client.execute(&prepared, &[]).await.expect("no error")
                } else {
                    client.execute_typed(&sql, &[]).await.expect("no error")
                };
                if is_done.load(Ordering::SeqCst) {
                    runs_left -= 1;
                }
            }
            written
        }));
    }
    let mut report = PartitionReport::default();
    while !report.is_partitioned {
        report = maintain_at(&store, NOW).await;
    }
    is_done.store(true, Ordering::SeqCst);
    let mut written = 20_000;
    for writer in writers {
        written += i64::try_from(writer.await.expect("no panic")).expect("small");
    }
    assert_eq!(count(&client).await, written);
    assert!(is_partitioned(&client).await);
    // Everything is in the former table, which has its indexes under other names.
    let label = &names(&client).await[1];
    let sql = format!("select count(*) from {label}");
    assert_eq!(number(&client, &sql).await, written);
    let indexes = "select count(*) from pg_inherits join pg_index on indexrelid = inhparent
                   where indrelid = 'deliveries'::regclass and indisvalid";
    assert_eq!(number(&client, indexes).await, 3 * 2);
    let constraints = "select count(*) from pg_constraint where conname = 'deliveries_conversion'
                       and connamespace = current_schema()::regnamespace";
    assert_eq!(number(&client, constraints).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_table_is_not_partitioned() {
    let (_schema, store, client) = plain().await;
    add(&client, 1_000, NOW, NOW).await;
    client
        .batch_execute("analyze deliveries")
        .await
        .expect("statistics");
    let now = Timestamp::from_millis(NOW);
    for (rows_min, expected) in [(1_001, false), (1_000, true)] {
        let report = maintain(&store.pool, DELIVERIES, now, RETENTION, rows_min).await;
        assert_eq!(report.expect("a report").is_partitioned, expected);
        assert_eq!(is_partitioned(&client).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_conversion_continues_or_begins_again() {
    for (end, expected) in [(END - 7 * DAY, END - 7 * DAY), (NOW + 14 * DAY, END)] {
        let (_schema, store, client) = plain().await;
        let begun = format!(
            "alter table deliveries add constraint deliveries_conversion
             check (delivery_id < '{}') not valid",
            first_id(end)
        );
        client.batch_execute(&begun).await.expect("a constraint");
        assert!(maintain_at(&store, NOW).await.is_partitioned);
        let bound = format!(
            "select count(*) from pg_class where relispartition
             and relnamespace = current_schema()::regnamespace and pg_get_expr(relpartbound, oid) like '%TO (''{}'')'",
            first_id(expected)
        );
        assert_eq!(number(&client, &bound).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_ids_far_ahead_stays_as_it_is() {
    let (_schema, store, client) = plain().await;
    add(&client, 1, END, NOW).await;
    assert_eq!(maintain_at(&store, NOW).await, PartitionReport::default());
    assert!(!is_partitioned(&client).await);
    add(&client, 1, END, NOW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_drops_whole_partitions() {
    let (_schema, store, client) = partitioned().await;
    let former = names(&client).await[2].clone();
    assert!(former.starts_with("deliveries_until_"), "{former}");
    add(&client, 300, NOW, NOW).await;
    add(&client, 400, END, END + DAY).await;
    assert_eq!(names(&client).await.len(), 3);
    // One of the later deliveries is retried by hand and finishes weeks later.
    add(&client, 1, END + 2 * DAY, END + 20 * DAY).await;
    let retention = 30 * DAY;

    // The former table is dropped as soon as all ids in it are old enough.
    assert_eq!(maintain_at(&store, END + retention - 1).await.dropped, 0);
    assert_eq!(maintain_at(&store, END + retention).await.dropped, 1);
    assert!(!names(&client).await.contains(&former));
    assert_eq!(count(&client).await, 401);

    // The next one waits for the late delivery. Its other rows are then removed one by one.
    let partition = names(&client).await[0].clone();
    let end = END + 20 * DAY + retention;
    assert_eq!(maintain_at(&store, end).await.dropped, 0);
    let before = Timestamp::from_millis(END + 2 * DAY);
    let removed = store.remove_deliveries(before, 1_000).await;
    assert_eq!(removed.expect("a number"), 400);
    assert_eq!(maintain_at(&store, end + 1).await.dropped, 1);
    assert!(!names(&client).await.contains(&partition));
    assert_eq!(count(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_without_a_partition_is_stored_in_the_default_one() {
    let (_schema, store, client) = partitioned().await;
    let stored = "select count(*) from deliveries_other";
    // No node has made partitions for months.
    let late = END + 70 * DAY;
    add(&client, 5, late, late).await;
    assert_eq!(number(&client, stored).await, 5);
    assert!(maintain_at(&store, late).await.created > 0);
    assert_eq!(number(&client, stored).await, 5);
    // A clock was weeks ahead. No partition is made for these rows, but for later ones.
    let ahead = late + 30 * DAY;
    add(&client, 6, ahead, ahead).await;
    assert!(maintain_at(&store, late + 30 * DAY).await.created > 0);
    assert_eq!(number(&client, stored).await, 11);
    let removed = store.remove_deliveries(Timestamp::from_millis(ahead + 1), 1_000);
    assert_eq!(removed.await.expect("a number"), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_constraint_makes_reading_the_default_partition_unnecessary() {
    let (_schema, store, client) = partitioned().await;
    let late = END + 70 * DAY;
    let week = |from: i64| PartitionRange {
        from: Some(Timestamp::from_millis(from)),
        until: Timestamp::from_millis(from + 7 * DAY),
    };
    let mut connection = store.pool.connection().await.expect("a connection");
    let validated = "select count(*) from pg_constraint
                     where conname = 'deliveries_other_range' and convalidated
                       and conrelid = 'deliveries_other'::regclass";
    // An empty partition needs none.
    let mut exclude = async |range| {
        let excluded = constraints::exclude(&mut connection, DELIVERIES, range).await;
        let is_excluded = excluded.expect("no error").expect("no other node");
        (is_excluded, number(&client, validated).await)
    };
    assert_eq!(exclude(week(late)).await, (true, 0));
    add(&client, 5, late, late).await;
    assert_eq!(exclude(week(late)).await, (false, 0));
    assert_eq!(exclude(week(late + 7 * DAY)).await, (true, 1));
    // The node has ended. The next run removes the constraint.
    assert!(maintain_at(&store, late).await.created > 0);
    assert_eq!(number(&client, validated).await, 0);
    add(&client, 1, late + 60 * DAY, late).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_removes_an_expired_constraint() {
    let (schema, store, client) = plain().await;
    let begun = "alter table deliveries add constraint deliveries_conversion check
                 (delivery_id < '01000000-0000-0000-0000-000000000000') not valid";
    client.batch_execute(begun).await.expect("a constraint");
    schema.open().await;
    add(&client, 1, NOW, NOW).await;
    let again = format!("delete from deliveries; {begun}; create table move_source ()");
    client.batch_execute(&again).await.expect("a move");
    assert!(!maintain_at(&store, NOW).await.is_partitioned);
    add(&client, 1, NOW, NOW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_wrong_clock_changes_nothing() {
    let (_schema, store, client) = plain().await;
    let now = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
    let now = Timestamp::from_millis(number(&client, now).await);
    let week = Duration::from_hours(7 * 24);
    let maintain = async |now| {
        let maintained = store.maintain_partitions(LargeTable::Deliveries, now, RETENTION);
        maintained.await.is_ok()
    };
    assert!(maintain(now).await);
    assert!(!maintain(now.plus(week)).await);
    assert!(!maintain(now.minus(week)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_converted_table_has_statistics() {
    let (_schema, store, client) = plain().await;
    assert_eq!(maintain_at(&store, NOW).await.created, 0);
    let analyzed = "select count(*) from pg_class
                    where oid = 'deliveries'::regclass and reltuples >= 0";
    assert_eq!(number(&client, analyzed).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gives_up_while_a_report_reads_and_does_not_block_writes() {
    let (schema, store, client) = partitioned().await;
    add(&client, 10, END, END).await;
    let later = END + 60 * DAY;
    let mut reader = schema.client().await;
    let reading = reader.transaction().await.expect("a transaction");
    let read = "select count(*) from deliveries";
    reading.query(read, &[]).await.expect("a report");
    let before = names(&client).await;
    let report = maintain_at(&store, later).await;
    assert_eq!((report.dropped, report.created), (0, 0));
    assert_eq!(names(&client).await, before);
    // The change waits for the report, and a write behind it, but only for a moment.
    let writer = schema.client().await;
    let timeout = "set statement_timeout = '10s'";
    writer.batch_execute(timeout).await.expect("a limit");
    let maintained = maintain_at(&store, later);
    let (_, ()) = tokio::join!(maintained, add(&writer, 1, later, later));
    reading.query(read, &[]).await.expect("still reading");
    reading.commit().await.expect("the end");
    let report = maintain_at(&store, later).await;
    assert_eq!((report.dropped, report.created > 0), (2, true));
    assert_eq!(count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_in_progress_is_not_disturbed() {
    let (_schema, store, client) = plain().await;
    let begun = client.batch_execute("create table move_source ()").await;
    begun.expect("a table");
    assert!(!maintain_at(&store, NOW).await.is_partitioned);
    let ended = client.batch_execute("drop table move_source").await;
    ended.expect("no table");
    assert!(maintain_at(&store, NOW).await.is_partitioned);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_do_not_disturb_each_other() {
    let (schema, store, client) = plain().await;
    let other = schema.open().await;
    add(&client, 100, NOW, NOW).await;
    for week in 0..12 {
        let now = NOW + week * 7 * DAY;
        let (one, other) = tokio::join!(maintain_at(&store, now), maintain_at(&other, now));
        assert!(one.dropped + other.dropped <= 1);
    }
    assert!(is_partitioned(&client).await);
    assert_eq!(count(&client).await, 0);
}
