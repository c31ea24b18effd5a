//! Statistics of tables that autovacuum has not analyzed yet.

use super::database::{Schema, number};
use crate::statistics::collect_missing;

const ANALYZED: &str = "select count(*) from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'r' and reltuples > 0";

#[tokio::test]
async fn a_new_table_with_many_rows_gets_statistics() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let client = schema.client().await;
    client
        .batch_execute(
            "create table many as select repeat('x', 100) as value from generate_series(1, 10000);
             create table few as select 1 as value;
             alter table many set (autovacuum_enabled = off);
             alter table few set (autovacuum_enabled = off)",
        )
        .await
        .expect("tables");
    let before = number(&client, ANALYZED).await;
    collect_missing(&store.pool).await.expect("statistics");
    assert_eq!(number(&client, ANALYZED).await, before + 1);
    let many = "select reltuples::bigint from pg_class
                where relnamespace = current_schema()::regnamespace and relname = 'many'";
    assert_eq!(number(&client, many).await, 10_000);
    client
        .batch_execute("drop table many, few")
        .await
        .expect("drop");
}
