//! `configure` calls, many per transaction.
//!
//! Facts are read with one statement per table (`facts`, `crate::candidates`), `recording` decides
//! the calls in order, and their rows are written at once (`write`). A call that needs more than
//! that, or whose device is locked, gets a transaction to itself. The batch still waits for an app
//! that another transaction has locked, and fails if that takes too long.

mod facts;
mod write;

use crate::batch_writer::{BatchItem, BatchWriter, CONCURRENT_BATCHES, ShardKey};
use crate::devices::try_lock_and_read;
use crate::params::column;
use crate::pool::Pool;
use crate::rows::uuid;
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, candidates, clicks, integrations, outbox_table, rollups};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::Event;
use tributary_domain::install::{ConfigureCommand, DeviceState};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    AppTable as _, BatchedCall, ConfigureBatchTable, ConfigureFacts, ConfigureQuery,
    ConfigureWrites, RelatedQuery, configure, configure_batch,
};
use tributary_store::{ConfigureOutcome, StoreResult};
use uuid::Uuid;

/// Number of rows that a first open writes: device, identity, event and event id.
const ROWS_PER_CALL: usize = 4;

impl BatchItem for ConfigureCommand {
    fn shard_key(&self) -> ShardKey {
        ShardKey::App(self.app)
    }

    fn rows(&self) -> usize {
        ROWS_PER_CALL
    }
}

/// Name of the transactions.
const NAME: &str = "configure";

/// Starts the batch writer for `configure` calls. It writes no call that needs a transaction to
/// itself.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<ConfigureCommand, BatchedCall> {
    let write = move |commands| {
        let pool = pool.clone();
        async move { record_batch(&pool, commands).await }
    };
    BatchWriter::start_partial(NAME, CONCURRENT_BATCHES, write)
}

/// Records those calls that can be recorded together, and returns their results. A call that needs
/// a transaction to itself may take seconds, so its caller records it ([`record_alone`]), and the
/// other calls of the batch do not wait for it. A call without a result must be passed again.
pub(crate) async fn record_batch(
    pool: &Pool,
    commands: Arc<[ConfigureCommand]>,
) -> StoreResult<Vec<Option<BatchedCall>>> {
    let mode = TransactionMode::PipelinedWrite;
    tx::run(pool, NAME, mode, async move |tx| {
        // Boxed because the future is large.
        let (results, increments) = Box::pin(configure_batch(tx, &commands)).await?;
        rollups::store_increments(tx, &increments).await?;
        Ok(results)
    })
    .await
}

/// Records a single call in a separate transaction.
pub(crate) async fn record_alone(
    pool: &Pool,
    command: ConfigureCommand,
) -> StoreResult<ConfigureOutcome> {
    tx::run(pool, NAME, TransactionMode::Write, async move |tx| {
        // Boxed because the future is large.
        let (outcome, increments) = Box::pin(configure(tx, &command)).await?;
        rollups::store_increments(tx, &increments).await?;
        Ok(outcome)
    })
    .await
}

impl ConfigureBatchTable for Tx {
    async fn integrations_of(
        &self,
        apps: &BTreeSet<AppId>,
    ) -> Result<BTreeMap<AppId, Arc<[Integration]>>, Failure> {
        integrations::find_configured(self, apps).await
    }

    async fn lock_apps_shared(&self, apps: &BTreeSet<AppId>) -> Result<(), Failure> {
        if apps.is_empty() {
            return Ok(());
        }
        if self.is_distributed() {
            for app in apps {
                self.lock_app_shared(*app).await?;
            }
            return Ok(());
        }
        let apps: Vec<Uuid> = apps.iter().map(|app| uuid(app.as_bytes())).collect();
        let sql = "select app_id from apps where app_id = any($1) order by app_id for share";
        self.query(sql, &[&apps]).await?;
        Ok(())
    }

    async fn try_lock_devices<'a>(
        &self,
        devices: &[(DeviceRef<'a>, Timestamp)],
    ) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Failure> {
        try_lock_and_read(self, devices.iter().copied()).await
    }

    async fn insert_clicks(&self, new: &[&Click]) -> Result<BTreeSet<(AppId, ClickId)>, Failure> {
        clicks::insert(self, new).await
    }

    async fn delete_clicks(&self, clicks: &BTreeSet<(AppId, ClickId)>) -> Result<(), Failure> {
        if clicks.is_empty() {
            return Ok(());
        }
        let clicks: Vec<_> = clicks.iter().collect();
        self.execute(
            "delete from clicks using unnest($1, $2) as old (app_id, click_id)
             where clicks.app_id = old.app_id and clicks.click_id = old.click_id
               /* distributed: and clicks.app_id = any($1) */",
            &[
                &column(&clicks, |(app, _)| uuid(app.as_bytes())),
                &column(&clicks, |(_, click)| uuid(click.as_bytes())),
            ],
        )
        .await?;
        Ok(())
    }

    async fn configure_facts(
        &self,
        queries: &[ConfigureQuery<'_>],
    ) -> Result<Vec<ConfigureFacts>, Failure> {
        let wanted = column(queries, |query| (query.command, &query.clicks));
        // Pipelined: these reads are independent. Boxed because the futures are large.
        let (candidates, claims) = tokio::try_join!(
            Box::pin(candidates::find(self, &wanted)),
            Box::pin(facts::claims(self, queries))
        )?;
        let facts = candidates.into_iter().zip(claims);
        let facts = facts.map(|(candidates, claims)| ConfigureFacts { candidates, claims });
        Ok(facts.collect())
    }

    async fn find_related(&self, queries: &[RelatedQuery<'_>]) -> Result<BTreeSet<usize>, Failure> {
        // Pipelined: these reads are independent.
        let (mut related, changed) = tokio::try_join!(
            facts::with_subscriptions(self, queries),
            facts::with_events(self, queries)
        )?;
        related.extend(changed);
        Ok(related)
    }

    async fn clicks(
        &self,
        wanted: BTreeSet<(AppId, ClickId)>,
    ) -> Result<BTreeMap<(AppId, ClickId), Click>, Failure> {
        outbox_table::find_clicks(self, wanted).await
    }

    async fn write_configured(
        &self,
        writes: &ConfigureWrites<'_>,
        installs: &[&Event],
    ) -> Result<Vec<bool>, Failure> {
        // Boxed because the future is large.
        Box::pin(write::write(self, writes, installs)).await
    }
}
