//! Billing: notifications of providers, and what they come to, many to a transaction.
//!
//! What a payment is depends on everything that its person paid before, under whichever ids, so nothing short of the app
//! says beforehand which rows a notification will touch. Whoever settles subscriptions therefore takes the app's row
//! first, and they come one after the other; a batch makes up for it. Who stores something that only refers to the app is
//! not kept waiting.

mod counts;
mod erase;
mod keys;
mod late;
mod notifications;
mod people;
mod settle;
mod trials;

pub(crate) use erase::erase;
pub(crate) use late::{Shown, enter, show};
pub(crate) use settle::{Moment, of_transactions};

use crate::batch::{self, Batches};
use crate::devices::{DeviceRef, locked};
use crate::pool::Pool;
use crate::rates::imported_rates;
use crate::rows::{Purpose, app_by_id, require_app, uuid};
use crate::tx::{self, Mode, Tx};
use crate::{Failure, PostgresStore, duplicates, rollups};
use async_trait::async_trait;
use counts::Count;
use settle::Settling;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::{App, AppSecret, BillingProvider, FraudPolicy};
use tributary_domain::billing::{Arrival, Chain, Meaning, Notification, happened_at, sign_of};
use tributary_domain::exchange::{Day, exchange};
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    Billing, BillingApp, BillingFigures, BillingSecret, NotificationAccepted, StoreError,
    StoreResult,
};

/// A notification that waits to be written with others.
#[derive(Clone)]
pub(crate) struct Item(Arc<Arrival>);

impl batch::Item for Item {}

/// Where notifications are written in batches.
pub(crate) fn batches(pool: Arc<Pool>) -> Batches<Item, NotificationAccepted> {
    let name = "accept_notification";
    Batches::start(name, move |items: Arc<[Item]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::Write, async move |tx| {
                // On the heap: a notification may do a great deal.
                Box::pin(accept_all(tx, &items)).await
            })
            .await
        }
    })
}

/// Settles nobody else's subscriptions of an app until this transaction ends.
async fn lock(tx: &Tx, app: AppId) -> Result<(), Failure> {
    let sql = "select 1 from apps where app_id = $1 for no key update";
    tx.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
    Ok(())
}

/// Keeps notifications in the order of their arrival. One answer each.
async fn accept_all(tx: &Tx, items: &[Item]) -> Result<Vec<NotificationAccepted>, Failure> {
    let apps: BTreeSet<AppId> = items.iter().map(|item| item.0.app).collect();
    for app in apps {
        lock(tx, app).await?;
    }
    reserve_transactions(tx, items).await?;
    let nobodys = erase::are_of_nobody(tx, items).await?;
    lock_named(tx, items, &nobodys).await?;
    let mut answers = Vec::with_capacity(items.len());
    let mut increments = Increments::default();
    let mut counts = BTreeMap::new();
    for (Item(arrival), is_of_nobody) in items.iter().zip(nobodys) {
        let (answer, counted) = accept(tx, arrival, is_of_nobody, &mut counts).await?;
        increments.merge(counted);
        answers.push(answer);
    }
    for ((app, provider, environment, day), count) in counts {
        counts::add(tx, app, provider, environment, day, count).await?;
    }
    rollups::keep(tx, &increments).await?;
    Ok(answers)
}

/// Reserves the transactions that are named, together and before devices are locked, as those do who write events of SDKs.
async fn reserve_transactions(tx: &Tx, items: &[Item]) -> Result<(), Failure> {
    let named = items.iter().filter_map(|Item(arrival)| {
        let said = &arrival.said;
        sign_of(&said.meaning)?;
        Some((arrival.app, said.environment, said.transaction.as_deref()?))
    });
    duplicates::reserve_transactions(tx, named.collect()).await
}

/// Locks the devices that are named, together and in order, as those do who write events of devices. Devices that are
/// found by other means are locked when they are found. Those of a subscription that goes on under a pseudonym are not:
/// a lock would be a row with the id that was erased. Neither are those of what makes no event: that is no device's.
async fn lock_named(tx: &Tx, items: &[Item], nobodys: &[bool]) -> Result<(), Failure> {
    let somebodys = items.iter().zip(nobodys).filter(|(_, nobodys)| !**nobodys);
    let somebodys = somebodys.filter(|(Item(one), _)| one.said.meaning != Meaning::Receipt);
    let named = somebodys.filter_map(|(Item(arrival), _)| {
        let device = DeviceRef {
            app: arrival.app,
            environment: arrival.said.environment,
            key: arrival.said.subscriber.device.as_ref()?,
        };
        Some((device, arrival.received_at))
    });
    locked::lock(tx, named).await?;
    Ok(())
}

/// Milliseconds of a day.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// What the notifications of a batch add up to, by day.
type Counts = BTreeMap<(AppId, BillingProvider, Environment, Timestamp), Count>;

async fn accept(
    tx: &Tx,
    arrival: &Arrival,
    is_of_nobody: bool,
    counts: &mut Counts,
) -> Result<(NotificationAccepted, Increments), Failure> {
    let (app, provider, said) = (arrival.app, arrival.provider, &arrival.said);
    let environment = said.environment;
    let digest = Digest::of(arrival.body.as_bytes());
    let before = notifications::digest_of(tx, app, provider, &said.given_id).await?;
    let day =
        Timestamp::from_millis(i64::from(Day::of(arrival.received_at).as_days()) * DAY_MILLIS);
    let count = counts.entry((app, provider, environment, day)).or_default();
    if let Some(before) = before {
        if before == digest.as_bytes() {
            return Ok((NotificationAccepted::Duplicate, Increments::default()));
        }
        count.reused += 1;
        return Ok((NotificationAccepted::Reused, Increments::default()));
    }
    count.notifications += 1;
    let one = if is_of_nobody {
        arrived(tx, &arrival.of_nobody()).await?
    } else {
        arrived(tx, arrival).await?
    };
    let body = Some(arrival.body.as_str()).filter(|_| !is_of_nobody);
    notifications::insert(tx, &one, digest.as_bytes(), body).await?;
    keys::insert(tx, &one).await?;
    if one.said.meaning == Meaning::Receipt {
        let stored = NotificationAccepted::Stored {
            event: false,
            matched: false,
        };
        return Ok((stored, Increments::default()));
    }
    connect_store(tx, &one).await?;
    let increments = settle(tx, arrival, &one).await?;
    let chain = notifications::chain(tx, &Chain::of(&one)).await?;
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
async fn arrived(tx: &Tx, arrival: &Arrival) -> Result<Notification, Failure> {
    let said = &arrival.said;
    let at = happened_at(said.happened_at, arrival.received_at);
    let money = match sign_of(&said.meaning) {
        Some(sign) => {
            let worth = match said.price.exchange_day(at) {
                Some((amount, currency, day)) => {
                    let rates = imported_rates(tx, &[(currency, day)]).await?;
                    exchange(amount, currency, day, &rates)
                }
                None => None,
            };
            said.price.judged(sign, worth)
        }
        None => None,
    };
    Ok(Notification::arrived(arrival, money))
}

async fn settle(tx: &Tx, arrival: &Arrival, one: &Notification) -> Result<Increments, Failure> {
    let moment = Moment {
        now: arrival.received_at,
        holds_suspicious: arrival.holds_suspicious,
    };
    let chain = Chain::of(one);
    if let Some(hold) = arrival.trial_hold
        && chain.environment == Environment::Live
        && one.said.meaning == Meaning::TrialStart
    {
        trials::insert(tx, &chain, arrival.received_at.plus(hold)).await?;
    }
    let mut settling = Settling::new(tx, moment);
    settling.settle(BTreeSet::from([chain]), None).await?;
    Ok(settling.into_increments())
}

/// The App Store has no secret that would say that it is connected: its first notification does.
async fn connect_store(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let is_live = one.said.environment == Environment::Live;
    if one.provider != BillingProvider::Appstore || !is_live {
        return Ok(());
    }
    let nothing: &[u8] = &[];
    tx.execute(
        "insert into app_secrets (app_id, name, sealed, set_at) values ($1, $2, $3, $4)
         on conflict (app_id, name) do nothing",
        &[
            &uuid(one.app.as_bytes()),
            &AppSecret::Billing(one.provider).as_str(),
            &nothing,
            &one.received_at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}

/// The circumstances of an app, for whoever does not know its settings.
async fn moment_of(tx: &Tx, app: AppId, now: Timestamp) -> Result<Moment, Failure> {
    let holds = |app: App| app.attribution.fraud == FraudPolicy::Hold;
    let app = app_by_id(tx, uuid(app.as_bytes())).await?;
    Ok(Moment {
        now,
        holds_suspicious: app.is_some_and(holds),
    })
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
                sealed: Sealed::from_bytes(row.try_get(1)?),
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
                provider: notifications::provider_of(app, row.try_get(0)?)?,
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

/// Lets trials of an app count that are due. They are looked at once more when nobody else can settle them.
async fn settle_trials(tx: &Tx, now: Timestamp, limit: u32) -> Result<u64, Failure> {
    let due = trials::due(tx, now, limit).await?;
    let apps: BTreeSet<AppId> = due.iter().map(|chain| chain.app).collect();
    for app in &apps {
        lock(tx, *app).await?;
    }
    let mut increments = Increments::default();
    for chain in &due {
        let moment = moment_of(tx, chain.app, now).await?;
        let mut settling = Settling::new(tx, moment);
        settling
            .settle(BTreeSet::from([chain.clone()]), None)
            .await?;
        increments.merge(settling.into_increments());
    }
    rollups::keep(tx, &increments).await?;
    Ok(u64::try_from(due.len()).unwrap_or(0))
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

    async fn accept_notification(&self, arrival: Arrival) -> StoreResult<NotificationAccepted> {
        self.notifications.write(Item(Arc::new(arrival))).await
    }

    async fn note_unauthorized(
        &self,
        app: AppId,
        provider: BillingProvider,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write("note_unauthorized", async move |tx| {
            let count = Count {
                unauthorized: 1,
                ..Count::default()
            };
            counts::add(tx, app, provider, Environment::Live, at, count).await
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
        self.read("billing_figures", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            find_figures(tx, app, &days).await
        })
        .await
    }

    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("settle_trials", async move |tx| {
            Box::pin(settle_trials(tx, now, limit)).await
        })
        .await
    }

    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("forget_notifications", async move |tx| {
            let (before, limit) = (before.as_millis(), i64::from(limit));
            let emptied = tx
                .execute(
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
