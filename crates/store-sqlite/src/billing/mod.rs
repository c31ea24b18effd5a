//! Billing: provider notifications and the subscriptions they settle.

mod counts;
mod keys;
mod notifications;
mod people;
mod trials;

use crate::rows::{app_by_id, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use std::ops::RangeInclusive;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::{AppSecret, BillingProvider};
use tributary_domain::billing::IncomingNotification;
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

fn find_secrets(connection: &Connection, app: AppId) -> Result<Vec<BillingSecret>, Failure> {
    let rows: Vec<(String, Vec<u8>, i64)> = connection
        .prepare_cached(
            "select name, sealed, set_at from app_secrets
             where app_id = ?1 and name >= 'billing.' and name < 'billing/'",
        )?
        .query_map([app.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(name, sealed, set_at)| {
            Ok(BillingSecret {
                secret: AppSecret::parse(&name)
                    .ok_or_else(|| StoreError::corrupt("app_secrets", "name", app))?,
                sealed: SealedSecret::from_bytes(sealed),
                set_at: Timestamp::from_millis(set_at),
            })
        })
        .collect()
}

fn find_figures(
    connection: &Connection,
    app: AppId,
    days: &RangeInclusive<Day>,
) -> Result<Vec<BillingFigures>, Failure> {
    type Sums = (String, String, [i64; 5]);
    let (first, last) = (days.start().as_days(), days.end().as_days());
    let rows: Vec<Sums> = connection
        .prepare_cached(
            "select provider, environment, sum(notifications), sum(events), sum(matched),
                    sum(unauthorized), sum(reused)
             from billing_days where app_id = ?1 and day between ?2 and ?3
             group by provider, environment order by provider, environment",
        )?
        .query_map(params![app.as_bytes(), first, last], |row| {
            let sums = [
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
                row.get(6)?,
            ];
            Ok((row.get(0)?, row.get(1)?, sums))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(provider, environment, sums)| {
            let [notifications, events, matched, unauthorized, reused] = sums;
            Ok(BillingFigures {
                provider: billing_provider(app, &provider)?,
                environment: Environment::parse(&environment)
                    .ok_or_else(|| StoreError::corrupt("billing_days", "environment", app))?,
                notifications,
                events,
                matched,
                unauthorized,
                reused,
            })
        })
        .collect()
}

#[async_trait]
impl Billing for SqliteStore {
    async fn billing_app(&self, app: AppId) -> StoreResult<Option<BillingApp>> {
        self.read("billing_app", move |connection| {
            let Some(found) = app_by_id(connection, app)? else {
                return Ok(None);
            };
            Ok(Some(BillingApp {
                app: found,
                secrets: find_secrets(connection, app)?,
            }))
        })
        .await
    }

    async fn accept_notification(
        &self,
        notification: IncomingNotification,
    ) -> StoreResult<NotificationOutcome> {
        self.write_counted("accept_notification", move |connection| {
            let tables = SqliteTables(connection);
            let (mut answers, increments) = run(accept_notifications(&tables, &[&notification]))?;
            let answer = answers.pop();
            let missing = || StoreError::unavailable("accept_notification", "bug: missing outcome");
            Ok((answer.ok_or_else(missing)?, increments))
        })
        .await
    }

    async fn note_unauthorized(
        &self,
        app: AppId,
        provider: BillingProvider,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write("note_unauthorized", move |connection| {
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
            run(SqliteTables(connection).add_to_billing_day(&day, &count))
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
        self.read("billing_figures", move |connection| {
            require_app(connection, organization, app)?;
            find_figures(connection, app, &days)
        })
        .await
    }

    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        // Read first, without writing: usually nothing is due, and a read needs no sync.
        let due = self
            .read("due_trials", move |connection| {
                trials::find_due(connection, now, limit)
            })
            .await?;
        if due.is_empty() {
            return Ok(0);
        }
        self.write_counted("settle_trials", move |connection| {
            let due = trials::find_due(connection, now, limit)?;
            run(settle_trials(&SqliteTables(connection), now, due))
        })
        .await
    }

    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("forget_notifications", move |connection| {
            let emptied = connection
                .prepare_cached(
                    "update notifications set body = null where (app_id, provider, given_id) in
                     (select app_id, provider, given_id from notifications
                      where body is not null and received_at < ?1 limit ?2)",
                )?
                .execute(params![before.as_millis(), limit])?;
            Ok(u64::try_from(emptied).unwrap_or(0))
        })
        .await
    }
}
