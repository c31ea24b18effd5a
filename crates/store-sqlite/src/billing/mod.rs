//! Billing: notifications of providers, and what they come to. The writer is alone, so what is found is as it is until the
//! batch is committed.

mod counts;
mod erase;
mod keys;
mod late;
mod notifications;
mod people;
mod settle;
mod trials;

pub(crate) use erase::erase;
pub(crate) use late::{Shown, show};
pub(crate) use settle::{Moment, of_transaction};

use crate::events::exchanged;
use crate::rows::{APP_COLUMNS, app_row, app_secrets, require_app};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use counts::Count;
use rusqlite::{Connection, OptionalExtension, params};
use settle::Settling;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::{App, AppSecret, BillingProvider, FraudPolicy};
use tributary_domain::billing::{Arrival, Chain, Meaning, Notification, happened_at, sign_of};
use tributary_domain::exchange::Day;
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    Billing, BillingApp, BillingFigures, BillingSecret, NotificationAccepted, StoreError,
    StoreResult,
};

fn accept(
    connection: &Connection,
    arrival: &Arrival,
) -> Result<(NotificationAccepted, Increments), Failure> {
    let (app, provider, said) = (arrival.app, arrival.provider, &arrival.said);
    let environment = said.environment;
    let digest = Digest::of(arrival.body.as_bytes());
    let before = notifications::digest_of(connection, app, provider, &said.given_id)?;
    if let Some(before) = before {
        if before == digest.as_bytes() {
            return Ok((NotificationAccepted::Duplicate, Increments::default()));
        }
        let count = Count {
            reused: 1,
            ..Count::default()
        };
        let at = arrival.received_at;
        counts::add(connection, app, provider, environment, at, count)?;
        return Ok((NotificationAccepted::Reused, Increments::default()));
    }
    let is_of_nobody = erase::is_of_nobody(connection, arrival)?;
    let one = if is_of_nobody {
        arrived(connection, &arrival.of_nobody())?
    } else {
        arrived(connection, arrival)?
    };
    let body = Some(arrival.body.as_str()).filter(|_| !is_of_nobody);
    notifications::insert(connection, &one, digest.as_bytes(), body)?;
    keys::insert(connection, &one)?;
    let count = Count {
        notifications: 1,
        ..Count::default()
    };
    counts::add(
        connection,
        app,
        provider,
        environment,
        arrival.received_at,
        count,
    )?;
    if one.said.meaning == Meaning::Receipt {
        let stored = NotificationAccepted::Stored {
            event: false,
            matched: false,
        };
        return Ok((stored, Increments::default()));
    }
    connect_store(connection, &one)?;
    let increments = settle(connection, arrival, &one)?;
    let chain = notifications::chain(connection, &Chain::of(&one))?;
    let settled = chain
        .iter()
        .find(|it| it.said.given_id == one.said.given_id);
    let standing = settled.map(|one| one.standing.clone()).unwrap_or_default();
    let stored = NotificationAccepted::Stored {
        event: standing.name.is_some(),
        matched: standing.name.is_some() && standing.device.is_some(),
    };
    Ok((stored, increments))
}

/// An arrival with its money.
fn arrived(connection: &Connection, arrival: &Arrival) -> Result<Notification, Failure> {
    let said = &arrival.said;
    let at = happened_at(said.happened_at, arrival.received_at);
    let money = match sign_of(&said.meaning) {
        Some(sign) => {
            let worth = exchanged(connection, said.price.exchange_day(at))?;
            said.price.judged(sign, worth)
        }
        None => None,
    };
    Ok(Notification::arrived(arrival, money))
}

fn settle(
    connection: &Connection,
    arrival: &Arrival,
    one: &Notification,
) -> Result<Increments, Failure> {
    let moment = Moment {
        now: arrival.received_at,
        holds_suspicious: arrival.holds_suspicious,
    };
    let chain = Chain::of(one);
    if let Some(hold) = arrival.trial_hold
        && chain.environment == Environment::Live
        && one.said.meaning == Meaning::TrialStart
    {
        trials::insert(connection, &chain, arrival.received_at.plus(hold))?;
    }
    let mut settling = Settling::new(connection, moment);
    settling.settle(BTreeSet::from([chain]), None)?;
    Ok(settling.into_increments())
}

/// The App Store has no secret that would say that it is connected: its first notification does.
fn connect_store(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    let is_live = one.said.environment == Environment::Live;
    if one.provider != BillingProvider::Appstore || !is_live {
        return Ok(());
    }
    connection
        .prepare_cached(
            "insert into app_secrets (app_id, name, sealed, set_at) values (?1, ?2, ?3, ?4)
             on conflict do nothing",
        )?
        .execute(params![
            one.app.as_bytes(),
            AppSecret::Billing(one.provider).as_str(),
            [].as_slice(),
            one.received_at.as_millis()
        ])?;
    Ok(())
}

/// An app, whoever asks.
pub(crate) fn find_any_app(connection: &Connection, app: AppId) -> Result<Option<App>, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([app.as_bytes()], app_row)
        .optional()?;
    match row {
        Some(row) => Ok(Some(row.read(app_secrets(connection, app)?)?)),
        None => Ok(None),
    }
}

/// The circumstances of an app, for whoever does not know its settings.
pub(crate) fn moment_of(
    connection: &Connection,
    app: AppId,
    now: Timestamp,
) -> Result<Moment, Failure> {
    let holds = |app: App| app.attribution.fraud == FraudPolicy::Hold;
    Ok(Moment {
        now,
        holds_suspicious: find_any_app(connection, app)?.is_some_and(holds),
    })
}

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
                sealed: Sealed::from_bytes(sealed),
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
                provider: notifications::provider_of(app, &provider)?,
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
            let Some(found) = find_any_app(connection, app)? else {
                return Ok(None);
            };
            Ok(Some(BillingApp {
                app: found,
                secrets: find_secrets(connection, app)?,
            }))
        })
        .await
    }

    async fn accept_notification(&self, arrival: Arrival) -> StoreResult<NotificationAccepted> {
        self.write_counted("accept_notification", move |connection| {
            accept(connection, &arrival)
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
            let count = Count {
                unauthorized: 1,
                ..Count::default()
            };
            counts::add(connection, app, provider, Environment::Live, at, count)
        })
        .await
    }

    async fn billing_figures(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        days: RangeInclusive<Day>,
    ) -> StoreResult<Vec<BillingFigures>> {
        let organization = caller.organization();
        self.read("billing_figures", move |connection| {
            require_app(connection, organization, app)?;
            find_figures(connection, app, &days)
        })
        .await
    }

    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        // Nothing is due nearly always, and a look costs no sync.
        let due = self
            .read("due_trials", move |connection| {
                trials::due(connection, now, limit)
            })
            .await?;
        if due.is_empty() {
            return Ok(0);
        }
        self.write_counted("settle_trials", move |connection| {
            let due = trials::due(connection, now, limit)?;
            let mut increments = Increments::default();
            for chain in &due {
                let moment = moment_of(connection, chain.app, now)?;
                let mut settling = Settling::new(connection, moment);
                settling.settle(BTreeSet::from([chain.clone()]), None)?;
                increments.merge(settling.into_increments());
            }
            Ok((u64::try_from(due.len()).unwrap_or(0), increments))
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
