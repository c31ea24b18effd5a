//! Converting and opening a distributed database, with a stand-in for Citus that refuses the same
//! things.

use super::database::{Schema, client, number, options};
use crate::migrate::MIGRATIONS;
use crate::{PostgresOpenError, PostgresStore};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_postgres::Client;
use tributary_domain::integration::Network;
use tributary_store::contract::fixtures::{SharedStore, at};
use tributary_store::contract::outbox_fixtures::forwarding_app;
use tributary_store::contract::sdk_fixtures::tenant;
use tributary_store::{Instance, Outbox, QueueRef};

/// Tables with an `app_id` that stay on the coordinator, because their rows are found without an
/// app.
const LOCAL_TABLES: [&str; 9] = [
    "app_store_claims",
    "app_store_ids",
    "audit_log",
    "due_work",
    "link_domains",
    "link_slugs",
    "saved_views",
    "sdk_keys",
    "share_links",
];

/// The last migration before databases could be distributed.
const LAST_UNDISTRIBUTED: i64 = 29;

/// The parts of Citus that this crate uses. Tables in `failing` cannot be distributed.
const CITUS: &str = r#"
    create view pg_extension as select 'citus'::name as extname;
    create table pg_dist_partition (logicalrelid regclass, partmethod "char", repmodel "char");
    create table failing (name regclass);
    create table workers (nodename text, nodeport int, success bool, result text);
    create table pg_dist_node (nodename text, nodeport int, groupid int);
    create table pg_dist_placement (shardid bigint, groupid int);
    create function relation_is_a_known_shard(regclass) returns bool language sql as 'select false';
    create function place(name regclass, method "char", model "char") returns void language plpgsql as $$
    begin
        if current_setting('citus.multi_shard_modify_mode', true) is distinct from 'sequential' then
            raise 'not in sequential mode';
        end if;
        if exists (select from failing where failing.name = place.name) then
            raise 'the worker is down';
        end if;
        if exists (select from pg_constraint where contype = 'f' and name in (conrelid, confrelid)) then
            raise 'a foreign key between a local and a distributed table';
        end if;
        insert into pg_dist_partition values (name, method, model);
    end $$;
    create function create_reference_table(name regclass) returns void language sql
        as $$ select place(name, 'n', 't') $$;
    create function create_distributed_table(name regclass, distribution_column text, colocate_with text)
        returns void language plpgsql as $$
    begin
        if distribution_column <> 'app_id' then
            raise 'another column';
        end if;
        if colocate_with <> 'none' and not exists
            (select from pg_dist_partition where logicalrelid = colocate_with::regclass) then
            raise 'not distributed: %', colocate_with;
        end if;
        perform place(name, 'h', 's');
    end $$;
    create function get_shard_id_for_distribution_column(name regclass, app uuid) returns bigint
        language sql as 'select 1::bigint';
    create function truncate_local_data_after_distributing_table(name regclass) returns void
        language plpgsql as $$ begin execute format('truncate %s cascade', name); end $$;
    create function run_command_on_workers(command text, out nodename text, out nodeport int,
                                           out success bool, out result text)
        returns setof record language sql as 'select * from workers';
"#;

const FOREIGN_KEYS: &str = "
    select string_agg(concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)), e'\n'
                      order by conname)
    from pg_constraint
    where contype = 'f' and connamespace = current_schema()::regnamespace
      and conrelid not in (to_regclass('users'), to_regclass('setup_links'), to_regclass('api_keys'),
                           to_regclass('audit_log'))";

/// A migrated schema on a server that pretends to be a coordinator.
struct Coordinator {
    _schema: Schema,
    url: String,
    client: Client,
}

impl Coordinator {
    async fn start() -> Self {
        let schema = Schema::create_without_tables().await;
        let url = format!("{},pg_catalog", schema.url);
        PostgresStore::connect(&schema.url, options())
            .await
            .expect("a store");
        let client = client(&url).await;
        client.batch_execute(CITUS).await.expect("a stand-in");
        let rows = "insert into organizations (organization_id, name, created_at)
                        values (gen_random_uuid(), 'A', 0);
                    insert into apps (app_id, organization_id, name, archived, settings, created_at,
                                      updated_at, revision)
                        select gen_random_uuid(), organization_id, 'A', false, '{}', 0, 0, 0
                        from organizations";
        client.batch_execute(rows).await.expect("rows");
        Self {
            _schema: schema,
            url,
            client,
        }
    }

    async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.expect("a change");
    }

    async fn foreign_keys(&self) -> String {
        let row = self.client.query_one(FOREIGN_KEYS, &[]).await;
        row.expect("a row").get(0)
    }

    /// Distributes the database and returns the reported steps.
    async fn distribute(&self) -> Result<Vec<String>, PostgresOpenError> {
        let steps = Mutex::new(Vec::new());
        let report = |step: &str| steps.lock().expect("a lock").push(step.to_owned());
        PostgresStore::distribute(&self.url, options(), report).await?;
        Ok(steps.into_inner().expect("a lock"))
    }

    async fn names(&self, sql: &str) -> Vec<String> {
        let rows = self.client.query(sql, &[]).await.expect("rows");
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// On a distributed database, a new table is local until the migration has ended, and Citus refuses
/// its foreign key to a distributed one.
#[test]
fn new_migrations_have_no_foreign_key_to_apps() {
    let newer = MIGRATIONS
        .iter()
        .filter(|step| step.number > LAST_UNDISTRIBUTED);
    for step in newer {
        let words: Vec<&str> = step
            .sql
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty())
            .collect();
        let refers = words.windows(2).any(|pair| {
            pair[0].eq_ignore_ascii_case("references") && pair[1].eq_ignore_ascii_case("apps")
        });
        assert!(!refers, "migration {} refers to apps", step.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn distributes_the_tables_of_apps_and_keeps_their_foreign_keys() {
    let coordinator = Coordinator::start().await;
    let foreign_keys = coordinator.foreign_keys().await;
    let steps = coordinator.distribute().await.expect("distributed");
    assert!(steps.contains(&"made organizations a reference table".to_owned()));
    for table in ["apps", "events", "queues"] {
        let step = format!("distributed {table} by app_id in ");
        assert!(steps.iter().any(|reported| reported.starts_with(&step)));
    }
    assert!(steps.contains(&"removed the coordinator's copy of apps".to_owned()));
    assert_eq!(coordinator.foreign_keys().await, foreign_keys);
    let local = "select attrelid::regclass::text from pg_attribute
                 join pg_class as c on c.oid = attrelid and relkind = 'r'
                 where attname = 'app_id' and relnamespace = current_schema()::regnamespace
                   and attrelid not in (select logicalrelid from pg_dist_partition) order by 1";
    assert_eq!(coordinator.names(local).await, LOCAL_TABLES);
    let references = "select logicalrelid::text from pg_dist_partition where partmethod <> 'h'";
    assert_eq!(coordinator.names(references).await, ["organizations"]);
    // Nothing is left to do.
    let steps = coordinator.distribute().await.expect("distributed");
    assert!(steps.is_empty(), "{steps:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_conversion_continues() {
    let coordinator = Coordinator::start().await;
    let foreign_keys = coordinator.foreign_keys().await;
    coordinator
        .execute("insert into failing values ('links')")
        .await;
    let error = coordinator.distribute().await.expect_err("interrupted");
    assert!(error.to_string().contains("the worker is down"), "{error}");
    let distributed = "select count(*) from pg_dist_partition";
    assert!(number(&coordinator.client, distributed).await > 0);
    coordinator.execute("delete from failing").await;
    // A node that starts finishes it, too.
    let store = PostgresStore::connect(&coordinator.url, options()).await;
    let store = store.expect("a store");
    assert!(store.pool.is_distributed());
    store.commit_probe(at(1)).await.expect("a commit");
    assert_eq!(coordinator.foreign_keys().await, foreign_keys);
    let kept = "select count(*) from instance where name like 'foreign_key%'";
    assert_eq!(number(&coordinator.client, kept).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_citus_cannot_be_distributed() {
    let schema = Schema::create().await;
    let outcome = PostgresStore::distribute(&schema.url, options(), |_| {}).await;
    let error = outcome.expect_err("no extension");
    assert!(matches!(error, PostgresOpenError::NotCitus), "{error:?}");
    assert!(error.to_string().contains("create extension citus"));
    assert!(!schema.open().await.pool.is_distributed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsafe_worker_stops_the_start_and_a_missing_one_does_not() {
    let coordinator = Coordinator::start().await;
    coordinator.distribute().await.expect("distributed");
    coordinator
        .execute(
            "insert into workers values ('one', 1, true, 'on on'),
                                        ('two', 2, false, 'failed to connect to two:2')",
        )
        .await;
    let store = PostgresStore::connect(&coordinator.url, options()).await;
    let report = store.expect("a store").report().await.expect("a report");
    assert!(report.engine.ends_with("distributed by Citus"));
    let warnings: Vec<&String> = report
        .warnings
        .iter()
        .filter(|warning| warning.contains("worker"))
        .collect();
    assert_eq!(
        warnings,
        ["the worker two:2 does not respond; its apps are unavailable"]
    );
    for (settings, expected) in [("off on", "fsync"), ("on off", "full_page_writes")] {
        let change = format!("update workers set result = '{settings}' where nodename = 'one'");
        coordinator.execute(&change).await;
        let store = PostgresStore::connect(&coordinator.url, options()).await;
        let error = store.err().expect("an unsafe worker");
        assert!(
            matches!(error, PostgresOpenError::Unsafe { setting } if setting == expected),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_merges_the_increments_of_its_apps() {
    let coordinator = Coordinator::start().await;
    coordinator.distribute().await.expect("distributed");
    let store = PostgresStore::connect(&coordinator.url, options()).await;
    let store: SharedStore = Arc::new(store.expect("a store"));
    let tenant = tenant(&store).await;
    let unmerged = "select count(*) from rollup_increments";
    let wait_for = async |left: i64| {
        while number(&coordinator.client, unmerged).await != left {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    store.record_click(tenant.click(1)).await.expect("a click");
    // The first merge includes a search of all shards.
    wait_for(0).await;
    coordinator
        .execute("insert into rollup_increments (app_id, body) values (gen_random_uuid(), '{}')")
        .await;
    // Later ones do not, so the increment of an app that another node counted for is left.
    for click in 2..4 {
        let recorded = store.record_click(tenant.click(click)).await;
        recorded.expect("a click");
        wait_for(1).await;
    }
    assert_eq!(tenant.figures_of("network_a").await.clicks, 3);
}

/// A coordinator with one worker that is up and one that is down. All apps are on the worker of this
/// group.
async fn with_down_worker(group_of_apps: i32) -> Coordinator {
    let coordinator = Coordinator::start().await;
    coordinator.distribute().await.expect("distributed");
    let sql = format!(
        "insert into workers values ('one', 1, true, 'on on'), ('two', 2, false, null);
         insert into pg_dist_node values ('one', 1, 11), ('two', 2, 12);
         insert into pg_dist_placement values (1, {group_of_apps})"
    );
    coordinator.execute(&sql).await;
    coordinator
}

/// Opens a store and waits until it knows the worker that is down.
async fn open_knowing_workers(coordinator: &Coordinator, merges: bool) -> PostgresStore {
    let mut options = options();
    options.merges_increments = merges;
    let store = PostgresStore::connect(&coordinator.url, options).await;
    let store = store.expect("a store");
    while store.unreachable_workers() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.pool.down_workers.groups(), [12]);
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_down_stops_only_its_apps() {
    for (group, is_reachable) in [(11, true), (12, false)] {
        let coordinator = with_down_worker(group).await;
        let merging = open_knowing_workers(&coordinator, true).await;
        let accepting: SharedStore = Arc::new(open_knowing_workers(&coordinator, false).await);
        let one = forwarding_app(&accepting).await;
        one.attribute_install("phone", 10).await;
        // Stores the hints of the accepting node, which has not searched anything.
        let found = accepting.due_queues(Network::A, at(11), 10).await;
        assert_eq!(found.expect("queues").is_empty(), !is_reachable);
        let found = merging.due_queues(Network::A, at(11), 10).await;
        let expected: &[QueueRef] = if is_reachable { &[one.queue] } else { &[] };
        assert_eq!(found.expect("queues"), expected);
        let unmerged = "select count(*) from rollup_increments";
        if is_reachable {
            while number(&coordinator.client, unmerged).await > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let hints = "select count(*) from due_work where kind = 'network_a'";
        assert_eq!(number(&coordinator.client, hints).await, 1);
        // The worker is back.
        coordinator
            .execute("update workers set success = true")
            .await;
        merging.pool.down_workers.check_soon();
        while merging.unreachable_workers() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = merging.due_queues(Network::A, at(11), 10).await;
        assert_eq!(found.expect("queues"), [one.queue]);
        while number(&coordinator.client, unmerged).await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
