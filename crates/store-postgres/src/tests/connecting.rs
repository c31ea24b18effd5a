//! Connecting: rejected servers and error messages.

use super::database::{Schema, options, server_url, with_setting};
use crate::{PostgresOpenError, PostgresOptions, PostgresStore};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tributary_store::Instance;
use tributary_store::contract::fixtures::at;
use tributary_store::migration::MigrationRefusal;

const PASSWORD: &str = "canary-p4ssword";

async fn refused(url: &str) -> PostgresOpenError {
    let mut options = options();
    options.connect_timeout = Duration::from_secs(1);
    match PostgresStore::connect(url, options).await {
        Ok(_) => panic!("a store was opened"),
        Err(error) => error,
    }
}

/// Returns a port without a listener.
async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_never_contain_the_password() {
    let closed = free_port().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let urls = [
        format!("postgres://u:{PASSWORD}@127.0.0.1:{closed}/d"),
        format!("postgres://u:{PASSWORD}@127.0.0.1:{silent_port}/d"),
        format!("postgres://u:{PASSWORD}@host.invalid/d"),
        format!("postgres://u:{PASSWORD}@127.0.0.1:port/d"),
        format!("postgres://u:{PASSWORD}@127.0.0.1/d?sslmode=perhaps"),
        format!("postgres://u:{PASSWORD}@127.0.0.1/d?unknown=1"),
        format!("postgres://u:x@{PASSWORD}?{PASSWORD}=1@127.0.0.1/d"),
        format!("postgres://u:x?{PASSWORD}@y@127.0.0.1:{closed}/d"),
        format!("postgres://127.0.0.1:{closed}/d?user=u&password={PASSWORD}"),
        format!("postgres://u:{PASSWORD}@/d"),
        format!("mysql://u:{PASSWORD}@127.0.0.1/d"),
        format!("host=127.0.0.1 port={closed} user=u password={PASSWORD} x"),
    ];
    for url in urls {
        let error = refused(&url).await;
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let text = format!("{error} {error:?} {source:?}");
        assert!(!text.contains(PASSWORD), "{text}");
        assert!(!text.contains("p4ss"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_the_problem() {
    let closed = free_port().await;
    let error = refused(&format!("postgres://u@127.0.0.1:{closed}/d")).await;
    assert!(
        matches!(error, PostgresOpenError::Unreachable(_)),
        "{error:?}"
    );
    assert!(error.to_string().contains("refused"), "{error}");

    let error = refused("postgres://u@127.0.0.1/d?sslmode=perhaps").await;
    assert!(matches!(error, PostgresOpenError::Url(_)), "{error:?}");
    assert!(error.to_string().contains("`sslmode`"), "{error}");

    let error = refused("postgres:///d?user=u").await;
    assert!(error.to_string().contains("no host"), "{error}");

    let missing = with_setting(&server_url(), "dbname=there_is_no_such_database");
    let error = refused(&missing).await;
    assert!(matches!(error, PostgresOpenError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("does not exist"), "{error}");

    let missing_schema = with_setting(
        &server_url(),
        "options=-csearch_path%3Dthere_is_no_such_schema",
    );
    let error = refused(&missing_schema).await;
    assert!(
        matches!(error, PostgresOpenError::Statement(_)),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn required_tls_is_never_skipped() {
    for mode in ["require", "verify-full", "verify-ca"] {
        let url = with_setting(&server_url(), &format!("sslmode={mode}"));
        let error = refused(&url).await;
        assert!(
            matches!(error, PostgresOpenError::Unreachable(_)),
            "{error:?}"
        );
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_server_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let error = refused(&format!("postgres://u@127.0.0.1:{port}/d")).await;
    assert!(
        matches!(error, PostgresOpenError::Unreachable(_)),
        "{error:?}"
    );
    assert!(error.to_string().contains("within 1s"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_server_that_may_lose_commits() {
    for setting in ["fsync", "full_page_writes"] {
        let schema = Schema::create_without_tables().await;
        // Pretends that the setting is off instead of making the shared server unsafe.
        let fake = format!(
            "create function {}.current_setting(text) returns text language sql as
                 $$ select case when $1 = '{setting}' then 'off'
                    else pg_catalog.current_setting($1) end $$",
            schema.name
        );
        let created = schema.client().await.batch_execute(&fake).await;
        created.expect("create function");
        let error = refused(&format!("{},pg_catalog", schema.url)).await;
        assert!(
            matches!(error, PostgresOpenError::Unsafe { .. }),
            "{error:?}"
        );
        let advice = format!("set {setting} = on");
        assert!(error.to_string().contains(&advice), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_migrate_once() {
    let schema = Schema::create_without_tables().await;
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let url = schema.url.clone();
            tokio::spawn(async move { PostgresStore::connect(&url, options()).await })
        })
        .collect();
    for start in starts {
        let store = start.await.expect("no panic").expect("a store");
        store.commit_probe(at(1)).await.expect("a commit");
    }
    let applied = "select count(*), max(number) from schema_migrations";
    let row = schema.client().await.query_one(applied, &[]).await;
    let row = row.expect("a row");
    let applied: (i64, i64) = (row.get(0), row.get(1));
    let newest = crate::migrate::MIGRATIONS
        .last()
        .expect("a migration")
        .number;
    assert_eq!(applied, (newest, newest));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_an_unknown_schema_without_changing_it() {
    let schema = Schema::create_without_tables().await;
    drop(schema.open().await);
    drop(schema.open().await);
    let client = schema.client().await;
    let newer = "insert into schema_migrations values (999, 'future', 'x')";
    client.batch_execute(newer).await.expect("a row");
    let error = refused(&schema.url).await;
    assert!(matches!(
        error,
        PostgresOpenError::Migration(MigrationRefusal::DatabaseIsNewer { found: 999, .. })
    ));
    let edited = "delete from schema_migrations where number = 999;
                  update schema_migrations set checksum = 'edited'";
    client.batch_execute(edited).await.expect("an edit");
    let error = refused(&schema.url).await;
    assert!(matches!(
        error,
        PostgresOpenError::Migration(MigrationRefusal::ChecksumDiffers { number: 1 })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepares_no_statements_without_the_cache() {
    let schema = Schema::create().await;
    for (statement_cache, is_prepared) in [(true, true), (false, false)] {
        let mut options = options();
        (options.connections, options.statement_cache) = (1, statement_cache);
        let store = schema.open_with(options).await;
        store.commit_probe(at(1)).await.expect("a commit");
        let prepared = store
            .run_write(async |tx| {
                let sql =
                    "select count(*) from pg_prepared_statements where statement like 'insert%'";
                let row = tx.query_opt(sql, &[]).await?.expect("a row");
                Ok(row.try_get::<_, i64>(0)?)
            })
            .await;
        assert_eq!(prepared.expect("count") > 0, is_prepared);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_host_does_not_hide_the_next_one() {
    let schema = Schema::create().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = silent.local_addr().expect("an address");
    let server: Config = server_url().parse().expect("a URL");
    let Some(Host::Tcp(host)) = server.get_hosts().first() else {
        panic!("the server at TEST_DATABASE_URL must be reached over TCP");
    };
    let port = server.get_ports().first().copied().unwrap_or(5432);
    let next = format!("{host}:{port}");
    let url = schema.url.replacen(&next, &format!("{silent},{next}"), 1);
    assert_ne!(url, schema.url);
    let options = PostgresOptions {
        connect_timeout: Duration::from_secs(2),
        ..options()
    };
    let store = PostgresStore::connect(&url, options).await;
    let store = store.expect("the second host answers");
    store.commit_probe(at(1)).await.expect("a commit");
}
