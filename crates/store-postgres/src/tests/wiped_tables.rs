//! A wipe of test data covers every table.

use super::database::{Schema, client};
use std::sync::Arc;
use tributary_domain::access::Environment;
use tributary_store::contract::fixtures::{SharedStore, rebuild};
use tributary_store::contract::wipe_fixtures::{
    RowCount, assert_app_tables_are_listed, assert_wiped_as_listed, wipe_scenario,
};

/// Returns the columns of all tables except partitions, which are those of their tables.
async fn columns(schema: &Schema) -> Vec<(String, String)> {
    let sql = "select table_name::text, column_name::text from information_schema.columns
               where table_schema = $1
                 and table_name not in (select relname from pg_class where relispartition)";
    let client = client(&schema.url).await;
    let rows = client.query(sql, &[&schema.name]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Counts the rows of all tables with rows of apps.
async fn counts(schema: &Schema) -> Vec<RowCount> {
    let columns = columns(schema).await;
    let has = |table: &str, column: &str| {
        let mut columns = columns.iter();
        columns.any(|(name, one)| name == table && one == column)
    };
    let client = client(&schema.url).await;
    let mut counts = Vec::new();
    for (table, _) in columns.iter().filter(|(_, column)| column == "app_id") {
        let environment = if has(table, "environment") {
            "coalesce(environment, 'live')"
        } else {
            "''"
        };
        let sql = format!("select {environment}::text, count(*) from {table} group by 1");
        for row in client.query(&sql, &[]).await.unwrap() {
            counts.push((table.clone(), row.get(0), row.get(1)));
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_with_rows_of_apps_is_wiped_or_kept_for_a_reason() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    assert_app_tables_are_listed(&columns(&schema).await);
    let app = wipe_scenario(&store).await;
    app.fill(Environment::Live).await;
    app.fill(Environment::Test).await;
    // Merges the counts, which stores figures and cohorts.
    rebuild(&store).await;
    let before = counts(&schema).await;
    app.wipe().await;
    assert_wiped_as_listed(&before, &counts(&schema).await);
}
