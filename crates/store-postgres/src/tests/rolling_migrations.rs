//! Migrations while nodes of the previous version run.

use super::database::{Schema, number, options};
use crate::PostgresStore;
use crate::migrate::{MIGRATIONS, migrate_to};
use crate::pool::{Pool, PostgresOpenError};
use std::time::Duration;
use tokio::sync::Mutex;
use tributary_store::Instance as _;
use tributary_store::contract::fixtures::at;
use tributary_store::migration::{Migration, MigrationRefusal, undeclared_after};

/// The last migration of the versions that did not declare their compatibility.
const LAST_UNDECLARED: i64 = 28;
/// Number of the added migration. Other migrations may be released before it.
const NUMBER: i64 = 900;

/// Taken by each test: an index that is built concurrently waits for all transactions in the database,
/// also for one that a test holds while its migration waits for the lock of the index's migration.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Returns all migrations and another one.
fn with_another(sql: String) -> Vec<Migration> {
    let another = Migration {
        number: NUMBER,
        name: "another",
        sql: sql.leak(),
    };
    [MIGRATIONS, &[another]].concat()
}

fn newest() -> i64 {
    MIGRATIONS.last().expect("a migration").number
}

/// Migrates as a program with these migrations does when it starts.
async fn start_with(url: &str, migrations: &[Migration]) -> Result<(), PostgresOpenError> {
    let pool = Pool::open(url, options())?;
    let mut connection = pool.first_connection().await?;
    migrate_to(&pool, &mut connection, migrations).await
}

#[test]
fn new_migrations_declare_which_programs_work_with_them() {
    let undeclared = undeclared_after(MIGRATIONS, LAST_UNDECLARED);
    assert_eq!(undeclared, None, "add `-- Compatible from: …` to its file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_waits_for_a_lock_without_blocking_running_nodes() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let schema = Schema::create_without_tables().await;
    let running = schema.open().await;
    let mut holder = schema.client().await;
    let holding = holder.transaction().await.expect("a transaction");
    let read = "select count(*) from costs";
    holding.query(read, &[]).await.expect("a lock on the table");
    let url = schema.url.clone();
    let sql = format!(
        "-- Compatible from: {}\nalter table costs add column added bigint;",
        newest()
    );
    let migrating = tokio::spawn(async move { start_with(&url, &with_another(sql)).await });
    let waiting = "select count(*) from pg_locks where not granted and mode = 'AccessExclusiveLock'
                     and relation = 'costs'::regclass";
    let watcher = schema.client().await;
    // Twice, so that the migration has given up at least once.
    for is_waiting in [true, false, true] {
        while (number(&watcher, waiting).await > 0) != is_waiting {
            assert!(!migrating.is_finished(), "the migration did not wait");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    // A statement of the running node gets its lock although the migration wants the table.
    let queried = running.run_write(async |tx| Ok(tx.query_one(read, &[]).await?.try_get(0)?));
    assert_eq!(queried.await.ok(), Some(0_i64));
    holding.rollback().await.expect("the end");
    migrating.await.expect("no panic").expect("migrated");
    running.commit_probe(at(1)).await.expect("still running");
    let restarted = PostgresStore::connect(&schema.url, options()).await;
    restarted.expect("the previous version starts on the newer schema");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_built_outside_a_transaction() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let sql = format!(
        "-- Compatible from: {}\n-- Outside a transaction\n\
         drop index concurrently if exists costs_again;\n\
         create index concurrently costs_again on costs (app_id);\n",
        newest()
    );
    let valid = "select count(*) from pg_index
                 where indexrelid = to_regclass('costs_again') and indisvalid";
    for has_rows in [true, false] {
        let schema = Schema::create_without_tables().await;
        if has_rows {
            drop(schema.open().await);
        }
        let (one, other) = (schema.url.clone(), schema.url.clone());
        let (here, there) = (with_another(sql.clone()), with_another(sql.clone()));
        let other = tokio::spawn(async move { start_with(&other, &there).await });
        start_with(&one, &here).await.expect("migrated");
        other.await.expect("no panic").expect("migrated");
        assert_eq!(number(&schema.client().await, valid).await, 1);
    }
}

/// How the building of an index ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    /// The server ends the session.
    Session,
    /// The program ends, and its session builds on.
    Program,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_build_was_interrupted_is_built_again() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let sql = format!(
        "-- Compatible from: {}\n-- Outside a transaction\n\
         drop index concurrently if exists costs_interrupted;\n\
         create index concurrently costs_interrupted on costs (app_id);\n",
        newest()
    );
    let count = |filter: &str| {
        format!(
            "select count(*) from pg_index
             where indexrelid = to_regclass('costs_interrupted') and {filter}"
        )
    };
    let (invalid, valid) = (count("not indisvalid"), count("indisvalid"));
    for interruption in [Interruption::Session, Interruption::Program] {
        let schema = Schema::create_without_tables().await;
        drop(schema.open().await);
        let mut writer = schema.client().await;
        let writing = writer.transaction().await.expect("a transaction");
        // The build waits for transactions that write to the table.
        let write = "lock table costs in row exclusive mode";
        writing.batch_execute(write).await.expect("a lock");
        let (url, migrations) = (schema.url.clone(), with_another(sql.clone()));
        let migrating = tokio::spawn(async move { start_with(&url, &migrations).await });
        let watcher = schema.client().await;
        while number(&watcher, &invalid).await == 0 {
            assert!(!migrating.is_finished(), "the build did not wait");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        match interruption {
            Interruption::Session => {
                let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                           where query like 'create index concurrently costs_interrupted%'";
                assert_eq!(number(&watcher, end).await, 1);
                let ended = migrating.await.expect("no panic");
                assert!(matches!(ended, Err(PostgresOpenError::Statement(_))));
            }
            Interruption::Program => migrating.abort(),
        }
        assert_eq!(number(&watcher, &invalid).await, 1, "{interruption:?}");
        let (url, migrations) = (schema.url.clone(), with_another(sql.clone()));
        let next = tokio::spawn(async move { start_with(&url, &migrations).await });
        writing.rollback().await.expect("the end");
        next.await.expect("no panic").expect("migrated");
        assert_eq!(number(&watcher, &valid).await, 1, "{interruption:?}");
        let recorded = format!("select count(*) from schema_migrations where number = {NUMBER}");
        assert_eq!(number(&watcher, &recorded).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_outside_a_transaction_does_not_wait_for_ever_for_a_lock() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let sql = format!(
        "-- Compatible from: {}\n-- Outside a transaction\n\
         drop index concurrently if exists costs_given_up;\n\
         create index concurrently costs_given_up on costs (app_id);\n",
        newest()
    );
    let schema = Schema::create_without_tables().await;
    drop(schema.open().await);
    let watcher = schema.client().await;
    let index = "create index costs_given_up on costs (network)";
    watcher.batch_execute(index).await.expect("an index");
    let mut builder = schema.client().await;
    let building = builder.transaction().await.expect("a transaction");
    // The lock of a build that waits for the transaction of the migration.
    let lock = "lock table costs in share update exclusive mode";
    building.batch_execute(lock).await.expect("a lock");
    let (url, migrations) = (schema.url.clone(), with_another(sql));
    let migrating = tokio::spawn(async move { start_with(&url, &migrations).await });
    let waiting = "select count(*) from pg_stat_activity
                   where state = 'active' and pid <> pg_backend_pid()
                     and query like '%drop index concurrently if exists costs_given_up%'";
    for expected in [1, 0] {
        while number(&watcher, waiting).await != expected {
            assert!(!migrating.is_finished(), "the migration did not wait");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    building.rollback().await.expect("the end");
    migrating.await.expect("no panic").expect("migrated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incompatible_migration_is_applied_with_all_others_or_not_at_all() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let schema = Schema::create_without_tables().await;
    drop(schema.open().await);
    let compatible = format!(
        "-- Compatible from: {}\ncreate table added (a int);",
        newest()
    );
    let mut migrations = with_another(compatible);
    migrations.push(Migration {
        number: NUMBER + 1,
        name: "incompatible",
        sql: "drop table added; drop table missing;",
    });
    start_with(&schema.url, &migrations)
        .await
        .expect_err("a failure");
    let client = schema.client().await;
    let added = "select count(*) from pg_class where oid = to_regclass('added')";
    assert_eq!(number(&client, added).await, 0);
    if let Some(last) = migrations.last_mut() {
        last.sql = "drop table added;";
    }
    start_with(&schema.url, &migrations)
        .await
        .expect("migrated");
    let refused = PostgresStore::connect(&schema.url, options()).await.err();
    let expected = MigrationRefusal::DatabaseIsNewer {
        found: NUMBER + 1,
        known: newest(),
    };
    assert!(matches!(refused, Some(PostgresOpenError::Migration(found)) if found == expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adds_the_compatibility_to_the_list_of_an_older_version() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let schema = Schema::create_without_tables().await;
    drop(schema.open().await);
    let client = schema.client().await;
    let older = "alter table schema_migrations drop column compatible_from";
    client.batch_execute(older).await.expect("the older list");
    drop(schema.open().await);
    let sql = format!("-- Compatible from: {}\nselect 1;", newest());
    let newer = with_another(sql);
    start_with(&schema.url, &newer).await.expect("migrated");
    let declared = "select compatible_from from schema_migrations order by number desc limit 1";
    assert_eq!(number(&client, declared).await, newest());
}
