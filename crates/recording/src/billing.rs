//! Notifications of billing providers, and trials that become due.

use crate::settle::{SettleContext, settle};
use crate::tables::{SharedId, Tables};
use crate::tally::{BillingDay, TransactionTally};
use std::borrow::Cow;
use std::collections::BTreeSet;
use tributary_domain::billing::{
    Chain, IncomingNotification, Notification, NotificationMeaning, RepeatKind,
};
use tributary_domain::device::DeviceRef;
use tributary_domain::exchange::exchange;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NotificationOutcome;

/// Keeps notifications in the order of their arrival, with everything that follows from them. Returns an answer for
/// each, and what is to be added to the reports.
///
/// What a payment is depends on everything that its person paid before, under any of their ids, so nothing short of the
/// app says beforehand which rows a notification touches. A transaction that settles subscriptions therefore locks the
/// app first.
pub async fn accept_notifications<T: Tables>(
    tables: &T,
    arrivals: &[&IncomingNotification],
) -> Result<(Vec<NotificationOutcome>, Increments), T::Failure> {
    let apps: BTreeSet<AppId> = arrivals.iter().map(|arrival| arrival.app).collect();
    for app in apps {
        tables.lock_app(app).await?;
    }
    let transactions = arrivals.iter().filter_map(|arrival| transaction(arrival));
    tables.reserve_transactions(&transactions.collect()).await?;
    let arrivals = strip_erased_subscribers(tables, arrivals).await?;
    let Some(last) = arrivals.last().map(|arrival| arrival.received_at) else {
        return Ok((Vec::new(), Increments::default()));
    };
    let devices = arrivals.iter().filter_map(|arrival| device(arrival));
    tables.lock_devices(&devices.collect(), last).await?;
    let mut tally = TransactionTally::default();
    let mut answers = Vec::with_capacity(arrivals.len());
    for arrival in &arrivals {
        // What is kept of an erased device's subscription has no body: it may say who it is about.
        let body = match arrival {
            Cow::Borrowed(arrival) => Some(arrival.body.as_str()),
            Cow::Owned(_) => None,
        };
        answers.push(accept(tables, arrival, body, &mut tally).await?);
    }
    Ok((answers, tally.write(tables).await?))
}

fn transaction(arrival: &IncomingNotification) -> Option<SharedId<'_>> {
    let transaction = arrival.transaction()?;
    Some((arrival.app, arrival.content.environment, transaction))
}

fn device(arrival: &IncomingNotification) -> Option<DeviceRef<'_>> {
    Some(DeviceRef {
        app: arrival.app,
        environment: arrival.content.environment,
        key: arrival.device()?,
    })
}

/// Takes who they are about from those that are of a subscription whose device was erased. To lock that device would
/// store the id that was erased.
async fn strip_erased_subscribers<'a, T: Tables>(
    tables: &T,
    arrivals: &[&'a IncomingNotification],
) -> Result<Vec<Cow<'a, IncomingNotification>>, T::Failure> {
    let chains = arrivals.iter().map(|arrival| arrival.chain()).collect();
    // Nearly no subscription has a pseudonym: the others are not read for it.
    let erased = tables.chains_with_pseudonyms(&chains).await?;
    let mut kept = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        let chain = BTreeSet::from([arrival.chain()]);
        let goes_on_erased = erased.is_superset(&chain)
            && arrival.continues_erased_subscription(&tables.notifications(&chain).await?);
        kept.push(if goes_on_erased {
            Cow::Owned(arrival.without_subscriber())
        } else {
            Cow::Borrowed(*arrival)
        });
    }
    Ok(kept)
}

async fn accept<T: Tables>(
    tables: &T,
    arrival: &IncomingNotification,
    body: Option<&str>,
    tally: &mut TransactionTally,
) -> Result<NotificationOutcome, T::Failure> {
    let (app, provider, id) = (arrival.app, arrival.provider, &arrival.content.external_id);
    let day = BillingDay {
        app,
        provider,
        environment: arrival.content.environment,
        day: Day::of(arrival.received_at),
    };
    if let Some(kept) = tables.notification_digest(app, provider, id).await? {
        return Ok(match arrival.compare_with_stored(&kept) {
            RepeatKind::Duplicate => NotificationOutcome::Duplicate,
            RepeatKind::Reused => {
                tally.billing_day(day).reused += 1;
                NotificationOutcome::IdReused
            }
        });
    }
    tally.billing_day(day).notifications += 1;
    let one = exchange_arrival(tables, arrival).await?;
    let chain = Chain::of(&one);
    tables
        .insert_notification(&one, arrival.digest(), body)
        .await?;
    tables.insert_keys(&chain, &one.lookup_keys()).await?;
    if one.content.meaning == NotificationMeaning::Receipt {
        return Ok(NotificationOutcome::Stored {
            has_event: false,
            is_matched: false,
        });
    }
    if let Some(secret) = one.connected_secret() {
        tables
            .mark_provider_connected(app, secret, one.received_at)
            .await?;
    }
    if let Some(due_at) = one.trial_due(arrival.trial_hold) {
        tables.hold_trial(&chain, due_at).await?;
    }
    let moment = SettleContext {
        now: arrival.received_at,
        holds_suspicious: arrival.holds_suspicious,
    };
    let settlement = settle(tables, moment, BTreeSet::from([chain]), None, tally).await?;
    let standing = settlement.settled_for(&one);
    Ok(NotificationOutcome::Stored {
        has_event: standing.makes_event(),
        is_matched: standing.is_matched(),
    })
}

/// An arrival with its money.
async fn exchange_arrival<T: Tables>(
    tables: &T,
    arrival: &IncomingNotification,
) -> Result<Notification, T::Failure> {
    let exchanged = match arrival.exchange_day() {
        Some((amount, currency, day)) => {
            let rates = tables.rates(&[(currency, day)]).await?;
            exchange(amount, currency, day, &rates)
        }
        None => None,
    };
    Ok(Notification::from_incoming(arrival, exchanged))
}

/// Lets trials count that are due and still alive, at most so many. Returns how many were looked at, and what is to be
/// added to the reports.
pub async fn settle_trials<T: Tables>(
    tables: &T,
    now: Timestamp,
    limit: u32,
) -> Result<(u64, Increments), T::Failure> {
    let due = tables.due_trials(now, limit).await?;
    let apps: BTreeSet<AppId> = due.iter().map(|chain| chain.app).collect();
    for app in apps {
        tables.lock_app(app).await?;
    }
    let mut tally = TransactionTally::default();
    let looked_at = u64::try_from(due.len()).unwrap_or(0);
    for chain in due {
        let moment = SettleContext::of(tables, chain.app, now).await?;
        settle(tables, moment, BTreeSet::from([chain]), None, &mut tally).await?;
    }
    Ok((looked_at, tally.write(tables).await?))
}
