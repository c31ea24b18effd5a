//! Billing: provider notifications and the subscriptions they settle, many notifications per
//! transaction.
//!
//! Transactions that settle an app's subscriptions run one after the other, because each locks the
//! app row. Batching makes up for this. The lock does not block transactions that only insert rows
//! referring to the app.

mod counts;
mod keys;
mod notifications;
pub(crate) mod people;
mod trials;

use crate::batch_writer::{BatchItem, BatchWriter, ShardKey};
use crate::due_work::{Look, look_at_apps};
use crate::pool::Pool;
use crate::rows::{AppLockMode, app_by_id, require_app, uuid};
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, PostgresStore, rollups};
use async_trait::async_trait;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::{AppSecret, BillingProvider};
use tributary_domain::billing::{Chain, IncomingNotification};
use tributary_domain::due_work::WorkKind;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    BillingDay, BillingDayCounts, BillingDayTable, accept_notifications, settle_trials,
};
use tributary_store::records::billing_provider;
use tributary_store::{
    Billing, BillingApp, BillingFigures, BillingSecret, NotificationOutcome, StoreError,
    StoreResult,
};

/// A notification in a write batch.
#[derive(Clone)]
pub(crate) struct NotificationItem(Arc<IncomingNotification>);

impl BatchItem for NotificationItem {
    fn shard_key(&self) -> ShardKey {
        ShardKey::App(self.0.app)
    }
}

/// Starts the batch writer for notifications.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<NotificationItem, NotificationOutcome> {
    let name = "accept_notification";
    BatchWriter::start(name, move |items: Arc<[NotificationItem]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, TransactionMode::Write, async move |tx| {
                // Boxed because the future is large.
                Box::pin(accept_all(tx, &items)).await
            })
            .await
        }
    })
}

/// Stores notifications in order of arrival. Returns one outcome per notification.
async fn accept_all(
    tx: &Tx,
    items: &[NotificationItem],
) -> Result<Vec<NotificationOutcome>, Failure> {
    let arrivals: Vec<&IncomingNotification> = items
        .iter()
        .map(|NotificationItem(notification)| notification.as_ref())
        .collect();
    let (answers, increments) = accept_notifications(tx, &arrivals).await?;
    rollups::store_increments(tx, &increments).await?;
    Ok(answers)
}

async fn find_secrets(tx: &Tx, app: AppId) -> Result<Vec<BillingSecret>, Failure> {
    let rows = tx
        .query(
            "select name, sealed, set_at from app_secrets
             where app_id = $1 and name >= 'billing.' and name < 'billing/'",
            &[&uuid(app.as_bytes())],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(BillingSecret {
                secret: AppSecret::parse(row.try_get(0)?)
                    .ok_or_else(|| StoreError::corrupt("app_secrets", "name", app))?,
                sealed: SealedSecret::from_bytes(row.try_get(1)?),
                set_at: Timestamp::from_millis(row.try_get(2)?),
            })
        })
        .collect()
}

async fn find_figures(
    tx: &Tx,
    app: AppId,
    days: &RangeInclusive<Day>,
) -> Result<Vec<BillingFigures>, Failure> {
    let (first, last) = (days.start().as_days(), days.end().as_days());
    let rows = tx
        .query(
            "select provider, environment, sum(notifications)::bigint, sum(events)::bigint,
                    sum(matched)::bigint, sum(unauthorized)::bigint, sum(reused)::bigint
             from billing_days where app_id = $1 and day between $2 and $3
             group by provider, environment order by provider, environment",
            &[&uuid(app.as_bytes()), &i64::from(first), &i64::from(last)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(BillingFigures {
                provider: billing_provider(app, row.try_get(0)?)?,
                environment: Environment::parse(row.try_get(1)?)
                    .ok_or_else(|| StoreError::corrupt("billing_days", "environment", app))?,
                notifications: row.try_get(2)?,
                events: row.try_get(3)?,
                matched: row.try_get(4)?,
                unauthorized: row.try_get(5)?,
                reused: row.try_get(6)?,
            })
        })
        .collect()
}

/// Settles due trials. Returns how many were examined.
async fn settle_due(tx: &Tx, now: Timestamp, due: Vec<Chain>) -> Result<u64, Failure> {
    let (examined, increments) = Box::pin(settle_trials(tx, now, due)).await?;
    rollups::store_increments(tx, &increments).await?;
    Ok(examined)
}

/// Settles due trials of the apps with hints, one app per transaction.
async fn settle_hinted(pool: &Arc<Pool>, now: Timestamp, limit: u32) -> StoreResult<u64> {
    let shared = pool.clone();
    let look = async move |app, limit| {
        let settle = async move |tx: &Tx| {
            let due = trials::find_due_of(tx, app, now, limit).await?;
            settle_due(tx, now, due.clone()).await?;
            Ok(Look::new(due, trials::earliest_due(tx, app).await?))
        };
        tx::run(&shared, "settle_trials", TransactionMode::Write, settle).await
    };
    let settled = look_at_apps(pool, WorkKind::Trials, now, limit, look).await?;
    Ok(u64::try_from(settled.len()).unwrap_or(u64::MAX))
}

#[async_trait]
impl Billing for PostgresStore {
    async fn billing_app(&self, app: AppId) -> StoreResult<Option<BillingApp>> {
        self.read("billing_app", async move |tx| {
            let Some(found) = app_by_id(tx, uuid(app.as_bytes())).await? else {
                return Ok(None);
            };
            Ok(Some(BillingApp {
                app: found,
                secrets: find_secrets(tx, app).await?,
            }))
        })
        .await
    }

    async fn accept_notification(
        &self,
        notification: IncomingNotification,
    ) -> StoreResult<NotificationOutcome> {
        let item = NotificationItem(Arc::new(notification));
        self.write_batched(&self.notifications, item).await
    }

    async fn note_unauthorized(
        &self,
        app: AppId,
        provider: BillingProvider,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write("note_unauthorized", async move |tx| {
            let day = BillingDay {
                app,
                provider,
                environment: Environment::Live,
                day: Day::of(at),
            };
            let count = BillingDayCounts {
                unauthorized: 1,
                ..BillingDayCounts::default()
            };
            tx.add_to_billing_day(&day, &count).await
        })
        .await
    }

    async fn billing_figures(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        days: RangeInclusive<Day>,
    ) -> StoreResult<Vec<BillingFigures>> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "billing_figures", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_figures(tx, app, &days).await
        })
        .await
    }

    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        if self.pool.is_distributed() {
            return settle_hinted(&self.pool, now, limit).await;
        }
        self.write("settle_trials", async move |tx| {
            let due = trials::find_due(tx, now, limit).await?;
            settle_due(tx, now, due).await
        })
        .await
    }

    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("forget_notifications", async move |tx| {
            let (before, limit) = (before.as_millis(), i64::from(limit));
            let emptied = tx
                .execute_counting(
                    "update notifications set body = null where (app_id, provider, given_id) in
                     (select app_id, provider, given_id from notifications
                      where body is not null and received_at < $1 limit $2)",
                    &[&before, &limit],
                )
                .await?;
            Ok(emptied)
        })
        .await
    }
}
