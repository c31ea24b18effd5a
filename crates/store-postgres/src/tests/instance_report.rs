//! The instance report and the settings of every transaction.

use super::database::{Schema, options, with_setting};
use crate::instance::find_warnings;
use crate::{PostgresOptions, PostgresStore};
use tributary_store::Instance;

async fn shown(store: &PostgresStore, setting: &str) -> String {
    let sql = format!("select current_setting('{setting}')");
    let shown = store.run_write(async |tx| {
        let row = tx.query_opt(&sql, &[]).await?.expect("a row");
        Ok(row.try_get::<_, String>(0)?)
    });
    shown.await.expect("a setting")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transaction_has_the_required_settings() {
    let schema = Schema::create().await;
    let unsafe_url = format!(
        "{}%20-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable",
        schema.url
    );
    drop(schema.open().await);
    let store = PostgresStore::connect(&unsafe_url, options()).await;
    let store = store.expect("a store");
    let expected = [
        ("synchronous_commit", "on"),
        ("transaction_isolation", "read committed"),
        ("transaction_read_only", "off"),
        ("statement_timeout", "10s"),
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("application_name", "tributary"),
    ];
    for (setting, value) in expected {
        assert_eq!(shown(&store, setting).await, value, "{setting}");
    }
    let report = store.report().await.expect("a report");
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    assert!(report.warnings[0].contains("synchronous_commit"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_settings_stay_unchanged() {
    let schema = Schema::create().await;
    let mut options = options();
    options.connections = 1;
    let store = schema.open_with(options).await;
    store.report().await.expect("a report");
    let connection = store.pool.connection().await.expect("the connection");
    let row = connection
        .query_one("show statement_timeout", &[])
        .await
        .expect("a setting");
    assert_eq!(row.get::<_, &str>(0), "0", "the session keeps its default");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_names_engine_schema_and_clock() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let report = store.report().await.expect("a report");
    assert!(report.engine.starts_with("PostgreSQL 1"), "{report:?}");
    let newest = crate::migrate::MIGRATIONS.last().expect("a migration");
    assert_eq!(report.schema, newest.number);
    assert_eq!(report.newest_record_at, None);
    let clock = report.server_time.expect("a clock").as_millis();
    assert!(clock > 1_700_000_000_000, "{report:?}");
    assert_eq!(report.warnings, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warns_about_a_pool_larger_than_max_connections() {
    let schema = Schema::create().await;
    let too_many = PostgresOptions {
        connections: 1_000_000,
        ..options()
    };
    let store = schema.open_with(too_many).await;
    let report = store.report().await.expect("a report");
    assert!(report.warnings[0].contains("max_connections"), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warns_about_idle_transactions() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let forgotten = schema.client().await;
    forgotten.batch_execute("begin").await.expect("begun");
    let found = store
        .run_write(async |tx| find_warnings(tx, 1, 0).await)
        .await
        .expect("concerns");
    assert!(
        found.iter().any(|text| text.contains("session")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warns_if_no_node_merges_increments() {
    let schema = Schema::create().await;
    let without_merging = PostgresOptions {
        merges_increments: false,
        ..options()
    };
    let store = schema.open_with(without_merging).await;
    let client = schema.client().await;
    for (number, warnings) in [(5_000, 0), (1, 1)] {
        let sql = format!(
            "insert into rollup_increments (app_id, body)
             select '00000000-0000-0000-0000-000000000001', '' from generate_series(1, {number})"
        );
        client.batch_execute(&sql).await.expect("increments");
        let report = store.report().await.expect("a report");
        assert_eq!(report.warnings.len(), warnings, "{report:?}");
        assert!(
            report
                .warnings
                .iter()
                .all(|text| text.contains("role forward"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_application_name_of_the_url() {
    let schema = Schema::create().await;
    let url = with_setting(&schema.url, "application_name=canary");
    let store = PostgresStore::connect(&url, options()).await;
    assert_eq!(
        shown(&store.expect("a store"), "application_name").await,
        "canary"
    );
}
