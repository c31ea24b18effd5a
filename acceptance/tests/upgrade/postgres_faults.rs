//! Interrupted upgrades on PostgreSQL: ended sessions, kills, locks, and two nodes at a time.

use super::{
    OldDatabase, catalog, first_migrations, new_definitions, newest, random_interruptions, report,
};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tributary_store::migration::Migration;
use tributary_testkit::{DirectConnection, Engine, ServerProcess};

/// First schema whose later migrations allow older nodes, so that each is a transaction.
const ROLLING_SINCE: i64 = 28;
/// A schema from which all migrations are one transaction.
const MIDDLE: i64 = 14;
/// Interval between checks of sessions and logs, and the time limit for them.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_mins(5);
/// Ends the session that runs it.
const END_SESSION: &str = "\nselect pg_terminate_backend(pg_backend_pid());\n";

/// Returns the beginnings of a migration's SQL after each of its statements.
fn beginnings(sql: &str) -> Vec<&str> {
    let mut ends = Vec::new();
    let mut end = 0;
    for line in sql.split_inclusive('\n') {
        end += line.len();
        let is_comment = line.trim_start().starts_with("--");
        if !is_comment && line.trim_end().ends_with(';') {
            ends.push(end);
        }
    }
    ends.into_iter().map(|end| &sql[..end]).collect()
}

/// Returns the migrations up to a number. The session of the last one ends after a part of it.
fn ended_after(number: i64, beginning: &str) -> Vec<Migration> {
    let mut migrations = first_migrations(Engine::Postgres, number).to_vec();
    let last = migrations.last_mut().unwrap();
    last.sql = format!("{beginning}{END_SESSION}").leak();
    migrations
}

async fn schema_of(old: &OldDatabase) -> i64 {
    catalog::newest(&old.database.direct_connection().await).await
}

/// Runs the command that the next start begins with, and checks the rows.
async fn assert_next_start_upgrades(old: &OldDatabase) {
    let migrated = tokio::task::block_in_place(|| ServerProcess::run(&old.database, &["migrate"]));
    migrated.unwrap();
    old.assert_upgraded(&new_definitions(Engine::Postgres).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_the_end_of_its_session_after_every_migration() {
    let newest = newest(Engine::Postgres);
    for from in [1, newest - 1] {
        let old = OldDatabase::create(Engine::Postgres, from).await;
        for number in from + 1..=newest {
            let whole = first_migrations(Engine::Postgres, number).last().unwrap();
            let broken = ended_after(number, whole.sql);
            let ended = old.database.migrate_with(&broken).await;
            let error = ended.expect_err("the session ended");
            // It says why, not that there is nothing to roll back any more.
            assert!(error.contains("terminating connection"), "{error}");
            assert_eq!(schema_of(&old).await, from, "migration {number}");
        }
        assert_next_start_upgrades(&old).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_the_end_of_its_session_after_a_random_migration() {
    let newest = newest(Engine::Postgres);
    for (from, number) in random_interruptions(Engine::Postgres, |from| from + 1..=newest) {
        let old = OldDatabase::create(Engine::Postgres, from).await;
        let whole = first_migrations(Engine::Postgres, number).last().unwrap();
        let broken = ended_after(number, whole.sql);
        let ended = old.database.migrate_with(&broken).await;
        ended.expect_err("the session ended");
        println!("from schema {from}: ended after migration {number}");
        assert_next_start_upgrades(&old).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_survives_the_end_of_its_session_after_every_statement() {
    let old = OldDatabase::create(Engine::Postgres, ROLLING_SINCE).await;
    let mut ends = 0;
    for number in ROLLING_SINCE + 1..=newest(Engine::Postgres) {
        let whole = first_migrations(Engine::Postgres, number).last().unwrap();
        for beginning in beginnings(whole.sql) {
            let broken = ended_after(number, beginning);
            let ended = old.database.migrate_with(&broken).await;
            ended.expect_err("the session ended");
            // The migrations before it are done, and nothing of this one is.
            assert_eq!(schema_of(&old).await, number - 1);
            ends += 1;
        }
    }
    println!("{ends} sessions were ended");
    assert!(ends > newest(Engine::Postgres) - ROLLING_SINCE);
    assert_next_start_upgrades(&old).await;
}

/// Starts `tributary migrate` with a session name.
fn spawn_migration(old: &OldDatabase, session: &str) -> Child {
    let url = format!("{}&application_name={session}", old.database.url());
    ServerProcess::command(&old.database, &["migrate"])
        .env("TRIBUTARY_DATABASE_URL", url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a query returns a row.
async fn wait_for(database: &DirectConnection, sql: &str) {
    let begun = Instant::now();
    while database.rows(sql).await.is_empty() {
        assert!(begun.elapsed() < WAIT_MAX, "{sql}");
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Tables that late migrations change, so that the migrating process waits for a lock on them.
const LOCKED: [&str; 4] = ["queues", "links", "costs", "events"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_a_kill_while_it_waits_for_a_lock() {
    for from in [MIDDLE, ROLLING_SINCE] {
        let old = OldDatabase::create(Engine::Postgres, from).await;
        let watching = old.database.direct_connection().await;
        for table in LOCKED {
            let holder = old.database.direct_connection().await;
            let lock = format!("begin; lock table {table} in access share mode");
            holder.run(&lock).await;
            let session = format!("upgrade_{from}_{table}");
            let mut migrating = spawn_migration(&old, &session);
            let waiting = format!(
                "select 1 from pg_stat_activity
                 where application_name = '{session}' and wait_event_type = 'Lock'"
            );
            wait_for(&watching, &waiting).await;
            migrating.kill().unwrap();
            migrating.wait().unwrap();
            // The server has not noticed yet: the session still waits, with the lock on migrating.
            let left =
                format!("select 1 from pg_stat_activity where application_name = '{session}'");
            assert!(!watching.rows(&left).await.is_empty());
            holder.run("rollback").await;
        }
        // Some of the sessions may still run; this start waits for the last one.
        assert_next_start_upgrades(&old).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_upgrade_at_the_same_time() {
    let definitions = new_definitions(Engine::Postgres).await;
    for from in [1, MIDDLE, ROLLING_SINCE, newest(Engine::Postgres) - 1] {
        let old = OldDatabase::create(Engine::Postgres, from).await;
        let mut nodes = [(); 2].map(|()| ServerProcess::spawn(&old.database, &[]));
        for node in &mut nodes {
            let ready = node.wait_until_ready().await;
            ready.unwrap_or_else(|exit| panic!("from schema {from}: {exit}"));
        }
        let direct = old.database.direct_connection().await;
        let applied = "select count(*), max(number) from schema_migrations";
        let newest = Some(newest(Engine::Postgres).to_string());
        assert_eq!(direct.rows(applied).await, [[newest.clone(), newest]]);
        assert_eq!(
            catalog::definitions(&direct, Engine::Postgres).await,
            definitions
        );
        for node in &nodes {
            report::assert_answers(node, from).await;
        }
        for node in nodes {
            assert!(node.terminate().success());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_tries_a_locked_table_again() {
    let old = OldDatabase::create(Engine::Postgres, ROLLING_SINCE).await;
    let holder = old.database.direct_connection().await;
    holder
        .run("begin; lock table events in access share mode")
        .await;
    let mut node = ServerProcess::spawn(&old.database, &[]);
    let begun = Instant::now();
    while !node
        .log()
        .contains("a table is locked; trying the migration again")
    {
        assert!(
            begun.elapsed() < WAIT_MAX && node.is_running(),
            "{}",
            node.log()
        );
    }
    // The migrations before the one that waits are done.
    let schema = catalog::newest(&holder).await;
    assert!(schema > ROLLING_SINCE, "{schema}");
    holder.run("rollback").await;
    node.wait_until_ready()
        .await
        .unwrap_or_else(|exit| panic!("{exit}"));
    assert_eq!(schema_of(&old).await, newest(Engine::Postgres));
    report::assert_answers(&node, ROLLING_SINCE).await;
    assert!(node.terminate().success());
}
