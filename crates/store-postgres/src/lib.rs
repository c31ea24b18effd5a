//! The storage for several nodes: PostgreSQL with a connection pool and named transactions that
//! retry.
//!
//! Many nodes write concurrently, but the result must equal some serial order, as with the single
//! writer of the embedded store. Three rules ensure that:
//!
//! * A transaction that changes an app locks the app row first, then reads, decides and writes. API
//!   keys are locked the same way; set-up links lock their organization. The lock is always a
//!   single row, found by its key.
//! * Instance-wide unique names (slugs, App Store ids, link domains) are claimed after that lock,
//!   in a fixed order of tables. A transaction that holds a name never waits for a row, so there
//!   are no deadlocks.
//! * A unique constraint decides which of two transactions was first, never a preceding read.
//!
//! Device traffic is far more frequent than configuration changes, so it does not lock the app:
//!
//! * A transaction that writes a device locks its row in `identities` first and inserts it if
//!   missing. That works before the device is configured, so the first `configure` and the first
//!   events are serialised.
//! * Clicks have no lock. An install claims a click only if it is unclaimed; a transaction that
//!   comes too late decides again.
//! * All transactions count into the same roll-ups. Each stores its increments in a separate row,
//!   so none waits for another. Merging locks increments in id order and holds no other lock,
//!   except for an app and the device being erased. Roll-up rows are locked last, in key order.
//! * Clicks and events are written in batches, many per transaction. A batch locks its devices in
//!   key order and claims event ids in order.
//! * Postbacks take no locks. Their keys and bodies are inserted in order; a transaction that finds
//!   one taken decides again.
//! * Refunds lock their payments after the devices, in key order, because no constraint protects a
//!   sum.
//!
//! Billing decides about users whose subscriptions are not known in advance:
//!
//! * A transaction that settles subscriptions locks the app row first, so the subscriptions of an
//!   app are settled one after the other. A transaction that links a device to a user takes a
//!   shared lock on the same row. Devices are locked after that.
//!
//! Each integration has a queue of deliveries, and one node at a time works on it:
//!
//! * A transaction that writes about a queue locks its row in `queues` by lease id first. With an
//!   outdated lease it finds no row and writes nothing.
//! * Outbox rows that another transaction may move are locked after that, app by app and in id
//!   order, or skipped while they are locked. Rows of `delivery_hours` are locked last.
//!
//! Every commit is synced before it is acknowledged, even if the role's settings say otherwise.

mod batch_writer;
mod database_error;
mod migrate;
mod params;
mod pool;
mod rows;
mod tls;
mod tx;

mod alerts;
mod app_table;
mod apps;
mod audit_log;
mod billing;
mod candidates;
mod clicks;
mod conversions;
mod deliveries;
mod devices;
mod duplicates;
mod event_rows;
mod event_tables;
mod events;
mod instance;
mod integrations;
mod links;
mod members;
mod outbox;
mod outbox_table;
mod postbacks;
mod queues;
mod rates;
mod reports;
mod rollups;
mod sdk_events;
mod sessions;
mod skan;
mod tenants;
mod web_events;

#[cfg(test)]
mod tests;

use batch_writer::BatchWriter;
use pool::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_postgres::error::SqlState;
use tributary_domain::click::Click;
use tributary_domain::event::sdk::{Acceptance, SdkRequest};
use tributary_domain::event::web::WebEvent;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_store::{NotificationOutcome, PostbackOutcome, StoreError};
use tx::{Mode, Tx};

pub use pool::{PostgresOpenError, PostgresOptions};

/// The storage for several nodes.
pub struct PostgresStore {
    pool: Arc<Pool>,
    clicks: BatchWriter<Click, ()>,
    sdk_events: BatchWriter<SdkRequest, Vec<Acceptance>>,
    web_events: BatchWriter<WebEvent, web_events::WebEventAnswer>,
    postbacks: BatchWriter<ReceivedPostback, PostbackOutcome>,
    notifications: BatchWriter<billing::NotificationItem, NotificationOutcome>,
    merge_task: rollups::MergeTask,
    /// Incremented by changes to keys and apps, so that callers invalidate their caches.
    changes: AtomicU64,
}

impl PostgresStore {
    /// Connects, checks that the server is durable, and migrates the schema.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        let pool = Pool::open(url, options)?;
        let mut connection = pool.first_connection().await?;
        pool::check_server(&connection).await?;
        migrate::migrate(&mut connection).await?;
        let pool = Arc::new(pool);
        Ok(Self {
            clicks: clicks::batch_writer(pool.clone()),
            sdk_events: sdk_events::batch_writer(pool.clone()),
            web_events: web_events::batch_writer(pool.clone()),
            postbacks: postbacks::batch_writer(pool.clone()),
            notifications: billing::batch_writer(pool.clone()),
            merge_task: rollups::MergeTask::start(pool.clone()),
            pool,
            changes: AtomicU64::new(0),
        })
    }

    /// Runs `work` in a named transaction and returns after the commit. A failure rolls everything
    /// back.
    ///
    /// `work` may run several times, each time on current data, so it must have no effect outside
    /// the transaction. It must own its captures (`async move`); otherwise the compiler cannot
    /// prove that the future is `Send`.
    async fn write<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, name, Mode::Write, work).await
    }

    /// Like [`Self::write`], for changes to keys and apps. Invalidates caches whatever the outcome,
    /// because a commit may succeed although its confirmation is lost.
    async fn write_invalidating<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.write(name, work).await;
        self.changes.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    /// Runs read-only `work` on one snapshot. It may run several times.
    async fn read<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, name, Mode::Read, work).await
    }
}

/// How work in a transaction fails: by a rule, by the database, or by a conflict with another
/// transaction.
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Postgres(tokio_postgres::Error),
    /// The data changed after it was read. The transaction must decide again.
    Conflict,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Turns a violation of the named constraint into a refusal.
fn refuse_duplicate(
    outcome: Result<u64, Failure>,
    constraint: &str,
    refusal: Refusal,
) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(Failure::Postgres(error))
            if error.as_db_error().is_some_and(|db_error| {
                *db_error.code() == SqlState::UNIQUE_VIOLATION
                    && db_error.constraint() == Some(constraint)
            }) =>
        {
            Err(refusal.into())
        }
        Err(failure) => Err(failure),
    }
}
