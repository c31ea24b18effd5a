//! The storage for several nodes: PostgreSQL, reached through a pool, in named transactions that retry
//! themselves.
//!
//! Many nodes write at the same time, and yet everything must come out as if one had written after the
//! other, as the embedded store's single writer does it. Three habits see to that:
//!
//! * Whoever changes something of an app locks the app's row first, then reads, decides and writes. A key
//!   is locked the same way, and for its set-up links an organization. It is always one row, found by its
//!   key.
//! * Names that are unique on the instance (slugs, App Store ids, link domains) are taken after that lock,
//!   in one fixed order of tables. So nobody who holds a name ever waits for a row, and no circle of waiting
//!   comes about.
//! * Who was first is decided by a unique constraint, never by looking beforehand.
//!
//! What devices do is much more than what people change, so it locks no app:
//!
//! * Whoever writes something of a device locks its row in `identities` first, made when absent. A device that
//!   is not configured yet can be locked like this, so that its first call and its first events come one after
//!   the other.
//! * A click has no lock: it is taken where nobody has it, and whoever comes too late decides again.
//! * Every transaction counts into the same roll-ups. It stores what it counted in a separate row, an increment, which no other
//!   waits for. Merging locks increments in the order of their ids, and holds nothing else by then but an app and its
//!   device that is being erased; the roll-ups come after that and in the order of their keys.
//! * Clicks and events are written in batches, many to a transaction. A batch locks its devices together and in
//!   the order of their keys, and takes the events' ids in the order of theirs.
//! * Postbacks lock nothing: their keys, then their bodies are taken in order, and whoever finds one taken decides again.
//! * Whoever gives money back locks the payments, after the devices and in the order of their keys: a sum has
//!   no constraint that would tell who was first.
//!
//! Billing decides about people, whose subscriptions are not known beforehand:
//!
//! * Whoever settles subscriptions of an app locks the app's row first, so that they are settled one after the other;
//!   who links a device with a person holds the same row shared. Devices come after that.
//!
//! What is sent to networks is a queue for each integration, and one node at a time works on one:
//!
//! * Whoever writes about a queue locks its row in `queues` by naming the lease, before anything else. A lease that
//!   somebody took over finds no row, and nothing is written.
//! * Rows of the outbox that somebody else may move come after that, one app after the other and in the order of
//!   their ids; or they are left alone while they are locked. The hours of `delivery_hours` come after those.
//!
//! A commit is synced before anybody is told of it, also where the role's settings say otherwise.

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
    /// Changes of keys and apps, for whoever keeps what was read of them.
    changes: AtomicU64,
}

impl PostgresStore {
    /// Connects, makes sure that the server keeps what it promises, and brings the schema up to date.
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

    /// Runs something in a transaction of its own name and answers after the commit. A failure undoes all
    /// of it.
    ///
    /// The work may run several times, each time from the beginning and on what is stored by then, so it
    /// must change nothing outside the transaction. It owns what it needs (`async move`); the compiler
    /// cannot see that a future is `Send` which borrows from around it.
    async fn write<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, name, Mode::Write, work).await
    }

    /// As [`Self::write`], for a change of a key or an app. It counts whatever became of it: a commit whose answer
    /// was lost is one all the same.
    async fn write_invalidating<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.write(name, work).await;
        self.changes.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    /// Runs something that only reads, on one state of the database. It may run several times.
    async fn read<T>(
        &self,
        name: &'static str,
        work: impl AsyncFn(&Tx) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, name, Mode::Read, work).await
    }
}

/// How work inside a transaction fails: by a rule, by the database, or because another one was first.
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Postgres(tokio_postgres::Error),
    /// What was found is not so any more. To be decided again, on what is stored now.
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

/// Turns the violation of one named constraint into a refusal.
fn refuse_duplicate(
    outcome: Result<u64, Failure>,
    constraint: &str,
    refusal: Refusal,
) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(Failure::Postgres(error))
            if error.as_db_error().is_some_and(|said| {
                *said.code() == SqlState::UNIQUE_VIOLATION && said.constraint() == Some(constraint)
            }) =>
        {
            Err(refusal.into())
        }
        Err(failure) => Err(failure),
    }
}
