//! The contract suite, and tests that need several clients.

mod abandoned_reports;
mod audit_tampering;
mod batches;
mod citus;
mod click_partitions;
mod configure_batches;
mod configure_histories;
mod configure_locks;
mod connecting;
mod connection_shares;
mod database;
mod device_races;
mod distributed;
mod due_work;
mod erased_rows;
mod event_batches;
mod faults;
mod increments;
mod instance_report;
mod older_schemas;
mod outbox_races;
mod partitions;
mod pgbouncer;
mod planned_batches;
mod proxy;
mod queue_parts;
mod races;
mod read_only;
mod rolling_migrations;
mod round_trips;
mod standby;
mod statistics;
mod web_batches;
mod web_site;
mod wiped_tables;

use crate::PostgresStore;
pub(crate) use database::server_url;
use database::{Schema, options};
use std::sync::Arc;
use tributary_store::Store;

async fn open() -> (Arc<dyn Store>, Schema) {
    let schema = Schema::create().await;
    let store = schema.open().await;
    (Arc::new(store), schema)
}

tributary_store::contract_suite!(super::open);

/// Billing notifications, user links and transfers give the same result in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "the number of cases is configurable"
)]
async fn billing_histories_in_any_order() {
    use tributary_store::contract::billing_orders::{
        CASES_ON_A_SERVER, CASES_VARIABLE, arrival_order_changes_nothing,
    };
    let (store, _schema) = open().await;
    let cases = std::env::var(CASES_VARIABLE).ok();
    arrival_order_changes_nothing(&store, CASES_ON_A_SERVER, cases).await;
}

/// The contract suite through `PgBouncer` in transaction mode, without prepared statements. It uses
/// the statements for a distributed database, which an ordinary server accepts as well, and finds due
/// work only by hints.
mod through_pgbouncer {
    use super::{Arc, PostgresStore, Schema, Store, options, pgbouncer};

    async fn open() -> (Arc<dyn Store>, Schema) {
        let schema = Schema::create().await;
        let url = pgbouncer::url(&schema).await;
        let mut options = options();
        options.statement_cache = false;
        let store = PostgresStore::connect(&url, options).await;
        let store = store.expect("a store");
        store.pool.set_distributed(true);
        store.pool.due_work.skip_searches();
        (Arc::new(store), schema)
    }

    tributary_store::contract_suite!(super::open);
}
