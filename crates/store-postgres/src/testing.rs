//! A pool of migrated databases for tests.
//!
//! Migrating and dropping a schema takes about a second. A test therefore takes a database of
//! earlier tests and deletes their rows. The databases stay on the server after a run, and the next
//! run uses them again.

use crate::migrate::{MIGRATIONS, migrate, migrate_to};
use crate::partitions::{self, CLICKS, DELIVERIES};
use crate::pool::Pool;
use crate::{PostgresOpenError, PostgresOptions};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::migration::Migration;

/// Maximum number of databases, above the number of tests that run at the same time.
const DATABASES_MAX: i32 = 256;
/// Time limit for the sessions of an earlier test to end.
const SESSIONS_END_MAX: Duration = Duration::from_secs(30);
/// Interval between checks whether those sessions have ended.
const SESSIONS_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Takes the first database that no test is using.
const TAKE: &str = "select number from generate_series(0, $2 - 1) as number
                    where pg_try_advisory_lock($1, number) limit 1";

/// Ends the sessions of an earlier test, whose last statements may still run.
const END_SESSIONS: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                            where datname = current_database() and pid <> pg_backend_pid()
                              and backend_type = 'client backend'";

/// Describes everything that a test may have changed except for rows.
const DESCRIBE: &str = "
    select md5(concat_ws(' ',
        (select string_agg(nspname, ',' order by oid) from pg_namespace where nspname !~ '^pg_'),
        (select string_agg(concat_ws(' ', c.oid, relname, relkind, reloptions), ',' order by c.oid)
         from pg_class as c join pg_namespace as n on n.oid = relnamespace and nspname !~ '^pg_'),
        (select string_agg(concat_ws(' ', attrelid, attnum, attname, atttypid, attnotnull), ','
                           order by attrelid, attnum)
         from pg_attribute where attrelid in (select oid from pg_class where relnamespace = $1::text::regnamespace)),
        (select string_agg(concat_ws(' ', oid, conname), ',' order by oid)
         from pg_constraint where connamespace = $1::text::regnamespace),
        (select string_agg(concat_ws(' ', oid, tgname, tgenabled), ',' order by oid)
         from pg_trigger where not tgisinternal),
        (select string_agg(proname, ',' order by p.oid)
         from pg_proc as p join pg_namespace as n on n.oid = pronamespace
         where nspname !~ '^pg_' and nspname <> 'information_schema'),
        (select string_agg(concat_ws(' ', number, name, checksum), ',' order by number) from schema_migrations)))";

/// Deletes all rows except the applied migrations, referencing tables first, and restarts sequences.
const EMPTY: &str = "
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
                  and relname <> 'schema_migrations'
                union all
                select conrelid, height + 1 from reference join level on oid = confrelid
            )
            select format('delete from %s', oid::regclass) from level where pg_relation_size(oid) > 0
            group by oid order by max(height) desc
        loop
            execute sql;
        end loop;
        perform setval(c.oid, seqstart, false)
        from pg_class as c join pg_sequence on seqrelid = c.oid
        where relnamespace = current_schema()::regnamespace;
    end $$";

/// Lists tables with rows, except the applied migrations.
const TABLES_WITH_ROWS: &str = "select string_agg(relname, ', ') from pg_class
                                where relkind = 'r' and relnamespace = current_schema()::regnamespace
                                  and relname <> 'schema_migrations' and pg_relation_size(oid) > 0";

/// Finds tables in which deleted rows take so much space that they slow down scans.
const BLOATED: &str = "select oid::regclass::text from pg_class
                       where relkind = 'r' and relnamespace = current_schema()::regnamespace
                         and pg_relation_size(oid) > 256 * 1024";

/// A migrated database without rows, which belongs to one test.
#[derive(Debug)]
pub struct PooledDatabase {
    /// Name of the database and of its schema.
    pub name: String,
    /// URL with the schema as search path.
    pub url: String,
    /// Session that holds the lock. When it ends, another test may take the database.
    lock: Client,
}

impl PooledDatabase {
    /// Takes a database on this server, or creates one.
    pub async fn take(server_url: &str) -> Self {
        let lock = connect(server_url).await;
        let version = schema_version();
        let row = lock.query_one(TAKE, &[&version, &DATABASES_MAX]).await;
        let number: i32 = row.expect("a database that no test is using").get(0);
        let name = format!("tributary_test_{version:08x}_{number}");
        let separator = if server_url.contains('?') { '&' } else { '?' };
        let url = format!("{server_url}{separator}dbname={name}&options=-csearch_path%3D{name}");
        let database = Self { name, url, lock };
        if !database.reuse().await {
            database.create().await;
        }
        database
    }

    /// Empties the database. Returns false if it does not exist or if a test changed more than rows.
    async fn reuse(&self) -> bool {
        let sql =
            "select shobj_description(oid, 'pg_database') from pg_database where datname = $1";
        let row = self.lock.query_opt(sql, &[&self.name]).await;
        let row = row.expect("query databases");
        let Some(created) = row.and_then(|row| row.get::<_, Option<String>>(0)) else {
            return false;
        };
        let client = connect(&self.url).await;
        end_other_sessions(&client).await;
        if describe(&client, &self.name).await != Some(created) {
            return false;
        }
        client.batch_execute(EMPTY).await.expect("delete rows");
        for row in client.query(BLOATED, &[]).await.expect("query sizes") {
            let vacuum = format!("vacuum {}", row.get::<_, &str>(0));
            client.batch_execute(&vacuum).await.expect("vacuum");
        }
        true
    }

    async fn create(&self) {
        let name = &self.name;
        for sql in [
            format!("drop database if exists {name} with (force)"),
            format!("create database {name} template template0"),
        ] {
            let created = self.lock.batch_execute(&sql).await;
            created.expect("create database; the user needs the right to");
        }
        let client = connect(&self.url).await;
        let created = client.batch_execute(&format!("create schema {name}")).await;
        created.expect("create schema");
        self.migrate().await.expect("migrate");
        let rows = client.query_one(TABLES_WITH_ROWS, &[]).await;
        let rows: Option<String> = rows.expect("query sizes").get(0);
        assert_eq!(
            rows, None,
            "a migration inserted rows, which `EMPTY` would delete"
        );
        let described = describe(&client, name).await.expect("describe database");
        // Written last: without it, the database is created again.
        let comment = format!("comment on database {name} is '{described}'");
        client.batch_execute(&comment).await.expect("comment");
    }

    async fn migrate(&self) -> Result<(), PostgresOpenError> {
        let pool = Pool::open(&self.url, options())?;
        migrate(&pool, &mut pool.first_connection().await?).await?;
        // As if the tables had been large, so that the tests use partitioned ones.
        let retention = Duration::from_hours(30 * 24);
        let now = now(&self.lock).await;
        for table in [CLICKS, DELIVERIES] {
            let partitioned = partitions::maintain(&pool, table, now, retention, 0).await;
            partitioned.map_err(|error| PostgresOpenError::Statement(error.to_string()))?;
        }
        Ok(())
    }
}

/// Returns all migrations in order.
pub const fn migrations() -> &'static [Migration] {
    MIGRATIONS
}

/// Migrates a database as a program with only these migrations does.
pub async fn migrate_with(url: &str, migrations: &[Migration]) -> Result<(), PostgresOpenError> {
    let pool = Pool::open(url, options())?;
    migrate_to(&pool, &mut pool.first_connection().await?, migrations).await
}

/// Returns options for migrating: a second connection builds indexes outside a transaction.
const fn options() -> PostgresOptions {
    PostgresOptions {
        connections: 2,
        worker_connections: 1,
        report_connections: 1,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(10),
        report_timeout: Duration::from_secs(10),
        statement_cache: false,
        merges_increments: false,
    }
}

/// Identifies the schema, so that each version of it has other databases.
pub(crate) fn schema_version() -> i32 {
    let checksums: String = MIGRATIONS.iter().map(Migration::checksum).collect();
    let digest = Digest::of(format!("{checksums} partitioned clicks deliveries").as_bytes());
    let [first, second, third, fourth, ..] = *digest.as_bytes();
    i32::from_be_bytes([first, second, third, fourth])
}

/// Reads the server's clock.
async fn now(client: &Client) -> Timestamp {
    let sql = "select (extract(epoch from now()) * 1000)::bigint";
    let row = client.query_one(sql, &[]).await;
    Timestamp::from_millis(row.expect("the time").get(0))
}

async fn connect(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.expect("connect to the PostgreSQL server of the tests");
    tokio::spawn(connection);
    client
}

async fn end_other_sessions(client: &Client) {
    let begun = Instant::now();
    loop {
        let row = client.query_one(END_SESSIONS, &[]).await;
        if row.expect("end sessions").get::<_, i64>(0) == 0 {
            return;
        }
        assert!(begun.elapsed() < SESSIONS_END_MAX, "a session does not end");
        tokio::time::sleep(SESSIONS_CHECK_INTERVAL).await;
    }
}

/// Returns `None` if the schema or its list of migrations is missing.
async fn describe(client: &Client, schema: &str) -> Option<String> {
    let row = client.query_one(DESCRIBE, &[&schema]).await.ok()?;
    Some(row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::server_url;

    const COUNT: &str = "select count(*) from organizations";

    async fn count_rows(client: &Client) -> i64 {
        client.query_one(COUNT, &[]).await.expect("a row").get(0)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_database_is_used_again_without_its_rows_and_sessions() {
        let database = PooledDatabase::take(&server_url()).await;
        let client = connect(&database.url).await;
        let rows = "insert into organizations (organization_id, name, created_at)
                    select gen_random_uuid(), 'A', 0 from generate_series(1, 9)";
        client.batch_execute(rows).await.expect("rows");
        // A statement that would add rows after the next test has begun.
        client.batch_execute("begin").await.expect("a transaction");
        client.batch_execute(rows).await.expect("rows");
        assert!(database.reuse().await);
        assert!(client.batch_execute("commit").await.is_err());
        assert_eq!(count_rows(&connect(&database.url).await).await, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_changed_schema_is_not_used_again() {
        for change in [
            "alter table costs add column added bigint",
            "create function added() returns int language sql as 'select 1'",
            "update schema_migrations set checksum = 'x' where number = 1",
        ] {
            let database = PooledDatabase::take(&server_url()).await;
            let client = connect(&database.url).await;
            client.batch_execute(change).await.expect("a change");
            assert!(!database.reuse().await, "{change}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_tests_never_share_a_database() {
        let one = PooledDatabase::take(&server_url()).await;
        let other = PooledDatabase::take(&server_url()).await;
        assert_ne!(one.name, other.name);
    }
}
