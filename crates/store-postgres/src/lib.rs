//! The storage for several nodes: PostgreSQL with a connection pool and named transactions that
//! retry.
//!
//! Many nodes write concurrently, but the result must equal some serial order, as with the embedded
//! store's single writer. Three rules ensure this:
//!
//! * A transaction that changes an app locks the app row first, then reads, decides and writes. API
//!   keys are locked the same way; for setup links the organization is locked. The lock is always
//!   a single row, found by its key.
//! * Instance-wide unique names (slugs, App Store ids, link domains) are claimed after that lock,
//!   in a fixed order of tables. A transaction that holds a name never waits for a row, so there
//!   are no deadlocks.
//! * A unique constraint decides which of two transactions was first, never a preceding read.
//! * A transaction that changes a key, an app or a link writes the version of the configuration, one
//!   row for the whole instance, with its audit entry. That is its last write, so it waits for no
//!   lock after that.
//!
//! Device traffic is far more frequent than configuration changes, so it does not lock the app:
//!
//! * A transaction that writes a device first locks the device's row in `identities`, and inserts
//!   the row if it is missing. That works before the device is configured, so the first `configure`
//!   and the first events are serialised.
//! * Clicks are not locked. An install claims a click only if the click is unclaimed; a transaction
//!   that loses the race is retried.
//! * All transactions update the same roll-ups. Each stores its increments in a separate row, so
//!   none waits for another. Merging locks increments in id order and holds no other lock, except
//!   for the app and the devices when devices are being erased or wiped. Roll-up rows are locked
//!   last, in key order.
//! * Clicks, `configure` calls and events are written in batches, many per transaction. A batch locks its devices in
//!   key order and claims event ids in order.
//! * Postbacks take no locks. Their deduplication keys and bodies are inserted in order; a
//!   transaction that finds one of them already stored is retried.
//! * Refunds lock their payments before the devices, in key order, because no constraint limits the
//!   total of a payment's refunds.
//!
//! When a billing notification arrives, it is not known in advance which subscriptions of the user
//! are affected:
//!
//! * A transaction that settles subscriptions locks the app row first, so the subscriptions of an
//!   app are settled one after the other. A transaction that links a device to a user takes a
//!   shared lock on the same row. Devices are locked after that.
//!
//! Each integration has a queue of deliveries, and one node at a time works on it:
//!
//! * A transaction that writes to a queue first locks the queue's row in `queues` by lease id. With
//!   an outdated lease, the transaction finds no row and writes nothing.
//! * Outbox rows that another transaction may move are locked after the queue, app by app and in id
//!   order, or skipped if they are locked already. Rows in `delivery_hours` are locked last.
//!
//! Every commit is synced before it is acknowledged, even if the role's settings say otherwise.

mod attempt_error;
mod background_task;
mod batch_writer;
mod begin;
mod connector;
mod database_error;
mod distributed;
mod due_work;
mod migrate;
mod params;
mod partitions;
mod pipeline;
mod pool;
mod probe;
mod rows;
mod standby;
mod statement_text;
mod tls;
pub mod transfer;
mod tx;

mod abandoned;
mod accounts;
mod added_work;
mod alerts;
mod app_table;
mod apps;
mod audit_log;
mod audit_streams;
mod audit_table;
mod billing;
mod candidates;
mod clicks;
mod configure;
mod conversions;
mod cost_sources;
mod deliveries;
mod devices;
mod duplicates;
mod event_rows;
mod event_tables;
mod events;
mod factors;
mod imports;
mod instance;
mod integrations;
mod keys;
mod links;
mod members;
mod notices;
mod outbox;
mod outbox_table;
mod person;
mod pivots;
mod postbacks;
mod queue_leases;
mod queues;
mod rates;
mod reports;
mod rollups;
mod sdk_events;
mod secret_keys;
mod sessions;
mod sign_ins;
mod single_sign_on;
mod skan;
mod statistics;
mod store_ids;
mod tenants;
mod traffic;
mod values_insert;
mod views;
mod web_events;
mod what_if;
mod wipe;

#[cfg(any(test, feature = "testing"))]
pub mod server_pair;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use background_task::BackgroundTask;
use batch_writer::{BatchItem, BatchWriter};
use database_error::is_unique_violation;
use distributed::KnownShards;
use pool::Pool;
use standby::Standby;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_domain::access::Authorized;
use tributary_domain::click::Click;
use tributary_domain::event::sdk::{SdkEventOutcome, SdkRequest};
use tributary_domain::event::web::WebEvent;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_recording::BatchedCall;
use tributary_store::connection_share::DURING_OUTAGE;
use tributary_store::{NotificationOutcome, PostbackOutcome, StoreError};
use tx::{TransactionMode, Tx};

pub use pool::{PostgresOpenError, PostgresOptions};
pub use standby::StandbyOptions;

/// The storage for several nodes.
pub struct PostgresStore {
    pool: Arc<Pool>,
    /// The standby that serves reports, if one is configured.
    standby: Option<Standby>,
    clicks: BatchWriter<Click, ()>,
    configure: BatchWriter<ConfigureCommand, BatchedCall>,
    sdk_events: BatchWriter<SdkRequest, Vec<SdkEventOutcome>>,
    web_events: BatchWriter<WebEvent, web_events::WebEventResult>,
    postbacks: BatchWriter<ReceivedPostback, PostbackOutcome>,
    notifications: BatchWriter<billing::NotificationItem, NotificationOutcome>,
    /// `None` if only other nodes merge increments.
    merging: Option<BackgroundTask>,
    statistics: BackgroundTask,
    storing_hints: BackgroundTask,
    /// `None` if the database is not distributed.
    watching_workers: Option<BackgroundTask>,
    paused: outbox::PausedCounts,
    /// Incremented by changes to keys, apps and links, so that callers invalidate their caches.
    changes: AtomicU64,
    /// Number of batches that this process imported.
    imported_batches: AtomicU64,
}

impl PostgresStore {
    /// Connects, checks that the server is durable, and migrates the schema.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        Self::connect_with(url, options, None).await
    }

    /// Same as [`Self::connect`], with a standby that serves reports. It need not be reachable: as
    /// long as it is not, the primary serves all reports.
    pub async fn connect_with(
        url: &str,
        options: PostgresOptions,
        standby: Option<StandbyOptions<'_>>,
    ) -> Result<Self, PostgresOpenError> {
        let merges_increments = options.merges_increments;
        let pool = Pool::open(url, options.clone())?;
        let mut connection = pool.first_connection().await?;
        pool::check_server(&connection).await?;
        transfer::reject_moved(&connection).await?;
        if transfer::is_target(&connection).await? {
            return Err(PostgresOpenError::MoveUnfinished);
        }
        migrate::migrate(&pool, &mut connection).await?;
        if distributed::prepare(&mut connection).await? {
            if standby.is_some() {
                return Err(PostgresOpenError::DistributedStandby);
            }
            pool.set_distributed(true);
            pool.shards.get_or_init(KnownShards::default);
        }
        partitions::constraints::remove_expired_if_possible(&mut connection).await;
        drop(connection);
        let standby = match standby {
            Some(standby) => Some(Standby::start(url, &standby, options).await?),
            None => None,
        };
        let has_workers = pool.shards.get().is_some();
        let pool = Arc::new(pool);
        Ok(Self {
            standby,
            clicks: clicks::batch_writer(pool.clone()),
            configure: configure::batch_writer(pool.clone()),
            sdk_events: sdk_events::batch_writer(pool.clone()),
            web_events: web_events::batch_writer(pool.clone()),
            postbacks: postbacks::batch_writer(pool.clone()),
            notifications: billing::batch_writer(pool.clone()),
            merging: merges_increments.then(|| rollups::start_merging(pool.clone())),
            statistics: statistics::start_collecting(pool.clone()),
            storing_hints: due_work::start_storing(pool.clone()),
            watching_workers: has_workers.then(|| distributed::start_watching(pool.clone())),
            paused: outbox::PausedCounts::default(),
            pool,
            changes: AtomicU64::new(0),
            imported_batches: AtomicU64::new(0),
        })
    }

    /// Migrates the schema and distributes the database by app. Passes each step to `report`. Does
    /// nothing if the database is distributed already.
    pub async fn distribute(
        url: &str,
        options: PostgresOptions,
        report: impl Fn(&str) + Sync,
    ) -> Result<(), PostgresOpenError> {
        let pool = Pool::open(url, options)?;
        let mut connection = pool.first_connection().await?;
        pool::check_server(&connection).await?;
        if !distributed::has_citus(&connection).await? {
            return Err(PostgresOpenError::NotCitus);
        }
        migrate::migrate(&pool, &mut connection).await?;
        distributed::convert(&mut connection, &report).await
    }

    /// Runs `work` in a named transaction and returns after the commit. A failure rolls back
    /// everything.
    ///
    /// `work` may run several times, each time on current data, so it must have no effect outside
    /// the transaction. It must own its captures (`async move`); otherwise the compiler cannot
    /// prove that the future is `Send`.
    async fn write<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let outcome = tx::run(&self.pool, name, TransactionMode::Write, work).await;
        if let Some(standby) = &self.standby {
            standby.note_transaction(name);
        }
        outcome
    }

    /// Like [`Self::write`], for changes to cached configuration. Invalidates this process's caches
    /// unless the change was refused: a commit may succeed even if its confirmation is lost. If the
    /// caller stops waiting, the new version of the configuration invalidates them.
    async fn write_invalidating<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.write(name, work).await;
        if !matches!(outcome, Err(StoreError::Refused(_))) {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        outcome
    }

    /// Queues an item for the next batch of its shard and waits for the commit.
    async fn write_batched<T: BatchItem, A: Send + 'static>(
        &self,
        writer: &BatchWriter<T, A>,
        item: T,
    ) -> Result<A, StoreError> {
        let lane = distributed::lane_of(&self.pool, item.shard_key()).await?;
        writer.write(lane, item).await
    }

    /// Runs read-only `work` on one snapshot. `work` may run several times. If the primary is
    /// unreachable, the standby answers what is needed for reports.
    async fn read<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let read = tx::run_borrowed(&self.pool, name, TransactionMode::Read, &work);
        let Some(standby) = &self.standby else {
            return read.await;
        };
        if !DURING_OUTAGE.contains(&name) {
            return read.await;
        }
        let mut read = std::pin::pin!(read);
        tokio::select! {
            biased;
            () = standby.primary_lost() => {}
            outcome = &mut read => return outcome,
        }
        match standby.read_during_outage(name, &work).await {
            Some(outcome) => outcome,
            // The primary may only be slow.
            None => read.await,
        }
    }

    /// Runs read-only `work` of a report on one snapshot, on the standby if it may serve this caller.
    /// `work` may run several times.
    async fn read_for<S, T>(
        &self,
        caller: &Authorized<S>,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        if let Some(standby) = &self.standby
            && let Ok(outcome) = standby.read(caller.actor(), name, &work).await
        {
            return outcome;
        }
        self.read(name, work).await
    }
}

/// How work in a transaction fails: a rule refuses it, the database fails, or another transaction
/// conflicts with it.
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Postgres(tokio_postgres::Error),
    /// The data changed after it was read. The transaction must run again.
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
    outcome: Result<(), Failure>,
    constraint: &str,
    refusal: Refusal,
) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Postgres(error)) if is_unique_violation(&error, constraint) => {
            Err(refusal.into())
        }
        outcome => outcome,
    }
}
