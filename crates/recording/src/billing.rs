//! Notifications from billing providers, and trials that are due.

use crate::settle::settle;
use crate::tables::{SharedId, Tables};
use crate::tally::{BillingDay, TransactionTally};
use std::borrow::Cow;
use std::collections::BTreeSet;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{
    Chain, IncomingNotification, Notification, NotificationMeaning, RepeatKind,
};
use tributary_domain::device::DeviceRef;
use tributary_domain::exchange::exchange;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, AuditId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NotificationOutcome;

/// Stores notifications in order of arrival, with the events, figures and deliveries that follow
/// from them. Returns one outcome per notification, and the increments for the roll-ups.
///
/// What a payment means (a first payment, a renewal) depends on all earlier payments by the same
/// person under any id. The affected rows are therefore unknown in advance, so every transaction
/// that settles subscriptions locks the app first.
pub async fn accept_notifications<T: Tables>(
    tables: &T,
    arrivals: &[&IncomingNotification],
) -> Result<(Vec<NotificationOutcome>, Increments), T::Failure> {
    let apps: BTreeSet<AppId> = arrivals.iter().map(|arrival| arrival.app).collect();
    for app in apps {
        tables.lock_app(app).await?;
    }
    let transactions = arrivals.iter().flat_map(|arrival| transactions(arrival));
    tables.reserve_transactions(&transactions.collect()).await?;
    let arrivals = strip_erased_subscribers(tables, arrivals).await?;
    let Some(last) = arrivals.last().map(|arrival| arrival.received_at) else {
        return Ok((Vec::new(), Increments::default()));
    };
    let devices = arrivals.iter().filter_map(|arrival| device(arrival));
    tables.lock_devices(&devices.collect(), last).await?;
    let mut tally = TransactionTally::default();
    let mut outcomes = Vec::with_capacity(arrivals.len());
    for arrival in &arrivals {
        // If the subscription belongs to an erased device, the body is not stored, because the body
        // may identify the person.
        let body = match arrival {
            Cow::Borrowed(arrival) => Some(arrival.body.as_str()),
            Cow::Owned(_) => None,
        };
        outcomes.push(accept(tables, arrival, body, &mut tally).await?);
    }
    let connecting_event = tally.connecting_event;
    let increments = tally.write(tables).await?;
    if let Some(event) = connecting_event {
        // Whether an app's SDK revenue counts depends on its providers, and nodes cache the app.
        let version = AuditId::from_bytes(*event.as_bytes());
        tables.write_configuration_version(version).await?;
    }
    Ok((outcomes, increments))
}

fn transactions(arrival: &IncomingNotification) -> impl Iterator<Item = SharedId<'_>> {
    let ids = arrival.transactions();
    ids.map(|id| (arrival.app, arrival.content.environment, id))
}

fn device(arrival: &IncomingNotification) -> Option<DeviceRef<'_>> {
    Some(DeviceRef {
        app: arrival.app,
        environment: arrival.content.environment,
        key: arrival.device()?,
    })
}

/// Removes the subscriber from notifications whose subscription belongs to an erased device.
/// Locking that device would store the erased id again.
async fn strip_erased_subscribers<'a, T: Tables>(
    tables: &T,
    arrivals: &[&'a IncomingNotification],
) -> Result<Vec<Cow<'a, IncomingNotification>>, T::Failure> {
    let mut chains_of = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        chains_of.push(reporting_chains(tables, arrival).await?);
    }
    // Few subscriptions belong to an erased device, so only their notifications are read.
    let all = chains_of.iter().flatten().cloned().collect();
    let erased = tables.chains_with_pseudonyms(&all).await?;
    let mut stripped = Vec::with_capacity(arrivals.len());
    for (arrival, chains) in arrivals.iter().zip(chains_of) {
        let chains: BTreeSet<Chain> = chains.intersection(&erased).cloned().collect();
        let is_erased = !chains.is_empty()
            && arrival.continues_erased_subscription(&tables.notifications(&chains).await?);
        stripped.push(if is_erased {
            Cow::Owned(arrival.without_subscriber())
        } else {
            Cow::Borrowed(*arrival)
        });
    }
    Ok(stripped)
}

/// Returns a notification's subscription, and the subscriptions that share its payment.
async fn reporting_chains<T: Tables>(
    tables: &T,
    arrival: &IncomingNotification,
) -> Result<BTreeSet<Chain>, T::Failure> {
    let mut chains = BTreeSet::from([arrival.chain()]);
    let keys = arrival.payment_keys();
    if !keys.is_empty() {
        let scope = (arrival.app, arrival.content.environment);
        let found = tables
            .chains_by_key(scope, &keys, KEY_SUBSCRIPTIONS_MAX)
            .await?;
        chains.extend(found.into_iter().map(|(_, chain)| chain));
    }
    Ok(chains)
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
    if let Some(stored_digest) = tables.notification_digest(app, provider, id).await? {
        return Ok(match arrival.compare_with_stored(&stored_digest) {
            RepeatKind::Duplicate => NotificationOutcome::Duplicate,
            RepeatKind::Reused => {
                tally.billing_day(day).reused += 1;
                NotificationOutcome::IdReused
            }
        });
    }
    tally.billing_day(day).notifications += 1;
    let notification = exchange_arrival(tables, arrival).await?;
    let chain = Chain::of(&notification);
    tables
        .insert_notification(&notification, arrival.digest(), body)
        .await?;
    tables
        .insert_keys(&chain, &notification.lookup_keys())
        .await?;
    let is_receipt = notification.content.meaning == NotificationMeaning::Receipt;
    if is_receipt && !notification.links_payments() {
        return Ok(NotificationOutcome::Stored {
            has_event: false,
            is_matched: false,
        });
    }
    if let Some(secret) = notification.connected_secret()
        && tables
            .mark_provider_connected(app, secret, notification.received_at)
            .await?
    {
        tally.connecting_event = Some(notification.event);
    }
    if let Some(due_at) = notification.trial_due(arrival.trial_hold) {
        tables.hold_trial(&chain, due_at).await?;
    }
    let (now, chains) = (arrival.received_at, BTreeSet::from([chain]));
    let settlement = settle(tables, now, chains, None, tally).await?;
    let settled = settlement.settled_for(&notification);
    Ok(NotificationOutcome::Stored {
        has_event: settled.makes_event(),
        is_matched: settled.is_matched(),
    })
}

/// Converts the amount of a notification to USD.
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

/// Settles trials whose hold has ended by `now`. Returns the number of trials examined, and the
/// increments for the roll-ups.
pub async fn settle_trials<T: Tables>(
    tables: &T,
    now: Timestamp,
    due: Vec<Chain>,
) -> Result<(u64, Increments), T::Failure> {
    let apps: BTreeSet<AppId> = due.iter().map(|chain| chain.app).collect();
    for app in apps {
        tables.lock_app(app).await?;
    }
    let mut tally = TransactionTally::default();
    let examined = u64::try_from(due.len()).unwrap_or(0);
    for chain in due {
        settle(tables, now, BTreeSet::from([chain]), None, &mut tally).await?;
    }
    Ok((examined, tally.write(tables).await?))
}
