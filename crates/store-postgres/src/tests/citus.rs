//! Tests on a Citus cluster. They run only if `TEST_CITUS_URL` names a database on its coordinator.

use super::database::{client, number, options, with_setting};
use crate::PostgresStore;
use crate::background_task::BackgroundTask;
use crate::distributed::find_on_down_workers;
use crate::testing::schema_version;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Once};
use tokio_postgres::Client;
use tributary_domain::integration::Network;
use tributary_store::contract::fixtures::{SharedStore, at};
use tributary_store::contract::outbox_fixtures::forwarding_app;
use tributary_store::{Outbox, Store};

/// Maximum number of schemas, above the number of tests that run at the same time.
const SCHEMAS_MAX: i32 = 64;

/// Says once that the tests did not run.
static SAY_NOT_RUN: Once = Once::new();

/// Deletes all rows, referencing tables first.
const EMPTY: &str = "
    set citus.multi_shard_modify_mode = 'sequential';
    do $$
    declare sql text;
    begin
        for sql in
            with recursive reference as (
                select distinct conrelid, confrelid from pg_constraint
                where contype = 'f' and conrelid <> confrelid and connamespace = current_schema()::regnamespace
            ), level (oid, height) as (
                select oid, 0 from pg_class
                where relkind = 'r' and relnamespace = current_schema()::regnamespace
                  and relname <> 'schema_migrations' and not relation_is_a_known_shard(oid)
                union all
                select conrelid, height + 1 from reference join level on oid = confrelid
            )
            select format('delete from %s', oid::regclass) from level group by oid order by max(height) desc
        loop
            execute sql;
        end loop;
    end $$";

/// A distributed schema without rows, which belongs to one test.
struct CitusSchema {
    url: String,
    /// Session that holds the lock. When it ends, another test may take the schema.
    _lock: Client,
}

impl CitusSchema {
    /// Takes a schema, or creates one. Returns `None` without a cluster.
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller of the tests passes the URL"
    )]
    async fn take() -> Option<Self> {
        let Ok(server) = std::env::var("TEST_CITUS_URL") else {
            SAY_NOT_RUN.call_once(|| {
                // Not `eprintln!`, whose output is hidden when the test passes.
                let _written = writeln!(
                    std::io::stderr(),
                    "NOT RUN: all tests of tests::citus; TEST_CITUS_URL names no Citus cluster"
                );
            });
            return None;
        };
        let lock = client(&server).await;
        let sql = "select number from generate_series(0, $2 - 1) as number
                   where pg_try_advisory_lock($1, number) limit 1";
        let row = lock
            .query_one(sql, &[&schema_version(), &SCHEMAS_MAX])
            .await;
        let number: i32 = row.expect("a schema that no test is using").get(0);
        let name = format!("citus_{:08x}_{number}", schema_version());
        let setting = format!("options=-csearch_path%3D{name}%20-ccitus.shard_count%3D4");
        let url = with_setting(&server, &setting);
        let created = format!("create schema if not exists {name}");
        lock.batch_execute(&created).await.expect("a schema");
        PostgresStore::distribute(&url, options(), |_| {})
            .await
            .expect("a distributed schema");
        let emptied = client(&url).await.batch_execute(EMPTY).await;
        emptied.expect("delete rows");
        Some(Self { url, _lock: lock })
    }

    async fn open(&self) -> PostgresStore {
        PostgresStore::connect(&self.url, options())
            .await
            .expect("a store")
    }
}

async fn open() -> Option<(Arc<dyn Store>, CitusSchema)> {
    let schema = CitusSchema::take().await?;
    let store = schema.open().await;
    Some((Arc::new(store), schema))
}

tributary_store::contract_suite!(super::open);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_use_the_settings_of_the_transaction() {
    let Some(schema) = CitusSchema::take().await else {
        return;
    };
    let store = schema.open().await;
    assert!(store.pool.is_distributed());
    let settings = store
        .run_write(async |tx| {
            // Runs on a worker, because the filter names one app.
            let sql = "select current_setting('synchronous_commit'), current_setting('jit'),
                              current_setting('enable_seqscan'), current_setting('lock_timeout'),
                              count(*)
                       from apps where app_id = $1";
            let row = tx.query_one(sql, &[&uuid::Uuid::nil()]).await?;
            let text = |column| row.try_get::<_, String>(column);
            Ok([text(0)?, text(1)?, text(2)?, text(3)?])
        })
        .await;
    assert_eq!(settings.expect("settings"), ["on", "off", "off", "5s"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_insert_commits_in_one_phase() {
    let Some(schema) = CitusSchema::take().await else {
        return;
    };
    let store = schema.open().await;
    let client = client(&schema.url).await;
    for (rows, phases) in [(20_usize, 1), (500, 2)] {
        let session = store.run_write(async |tx| {
            let (apps, bodies) = (vec![uuid::Uuid::nil(); rows], vec!["{}"; rows]);
            let sql = "insert into rollup_increments (app_id, body) select * from unnest($1, $2)";
            tx.execute(sql, &[&apps, &bodies]).await?;
            let row = tx.query_one("select pg_backend_pid()::bigint", &[]).await?;
            Ok(row.try_get::<_, i64>(0)?)
        });
        let session = session.await.expect("rows");
        // Citus records a transaction with a second phase until it has checked it.
        let recorded = format!(
            "select count(*) from pg_dist_transaction where gid like 'citus\\_%\\_{session}\\_%'"
        );
        assert_eq!(number(&client, &recorded).await, phases - 1, "{rows} rows");
    }
    let stored = number(&client, "select count(*) from rollup_increments").await;
    assert_eq!(stored, 520);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_apps_are_in_the_same_shards() {
    let Some(schema) = CitusSchema::take().await else {
        return;
    };
    let client = client(&schema.url).await;
    let groups = "select count(distinct colocationid) from pg_dist_partition
                  join pg_class as c on c.oid = logicalrelid
                  where relnamespace = current_schema()::regnamespace and partmethod = 'h'";
    assert_eq!(number(&client, groups).await, 1);
    let foreign_keys = "select count(*) from pg_constraint
                        where conname in ('clicks_link_fkey', 'links_app_fkey', 'apps_organization_fkey')
                          and connamespace = current_schema()::regnamespace";
    assert_eq!(number(&client, foreign_keys).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apps_of_a_worker_that_is_down_are_left_alone() {
    let Some(schema) = CitusSchema::take().await else {
        return;
    };
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    // Searches once, and finds nothing.
    let found = store.due_queues(Network::A, at(9), 100).await;
    assert_eq!(found.expect("queues"), []);
    let mut apps = BTreeMap::new();
    for _ in 0..16 {
        let app = forwarding_app(&shared).await;
        app.attribute_install("phone", 10).await;
        apps.insert(app.queue, app);
    }
    store.watching_workers.iter().for_each(BackgroundTask::stop);
    let client = client(&schema.url).await;
    let groups = "select groupid from pg_dist_node where groupid <> 0 order by 1";
    let groups = client.query(groups, &[]).await.expect("workers");
    let mut found = BTreeSet::new();
    for row in &groups {
        let group: i32 = row.get(0);
        store.pool.down_workers.assume_down(group);
        let due = store.due_queues(Network::A, at(10), 100).await;
        for queue in due.expect("queues") {
            let place = "select groupid from pg_dist_placement where shardid =
                         get_shard_id_for_distribution_column('apps', $1::uuid)";
            let app = uuid::Uuid::from_bytes(*queue.app.as_bytes());
            let place = client.query_one(place, &[&app]).await.expect("a shard");
            assert_ne!(place.get::<_, i32>(0), group);
            found.insert(queue);
        }
        let all: BTreeSet<_> = apps.keys().map(|queue| queue.app).collect();
        let left = find_on_down_workers(&store.pool, &all).await.expect("apps");
        assert!(
            left.len() < all.len(),
            "all apps are on one of {} workers",
            groups.len()
        );
    }
    assert!(groups.len() > 1, "the cluster has one worker");
    assert!(found.iter().eq(apps.keys()), "{found:?}");
}
