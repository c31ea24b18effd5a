//! Devices and people that show up, before or after their subscriptions.

use crate::settle::{SettleContext, settle};
use crate::tables::{Conflict, Tables};
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{Chain, DeviceUpdate};
use tributary_domain::device::DeviceRef;
use tributary_domain::vocabulary::time::Timestamp;

/// The lock on the app that a call holds while it shows a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppLock {
    /// It may settle subscriptions: some wait for its device.
    Exclusive,
    /// It keeps transactions away that settle subscriptions, while it links a device.
    Shared,
}

/// Locks the app of a device that may show something. This comes before the device is locked, as in every transaction
/// that settles subscriptions: one that links a device sees which subscriptions wait for it, or is seen by them.
pub(crate) async fn lock_app<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    shown: &DeviceUpdate,
) -> Result<AppLock, T::Failure> {
    if !find_chains(tables, device, shown).await?.is_empty() {
        tables.lock_app(device.app).await?;
        return Ok(AppLock::Exclusive);
    }
    if shown.has_new_id() {
        tables.lock_app_shared(device.app).await?;
    }
    Ok(AppLock::Shared)
}

/// Remembers what a device goes by, and settles the subscriptions that this concerns. The circumstances are read if the
/// caller does not know them.
pub(crate) async fn link_and_settle<T: Tables>(
    tables: &T,
    lock: AppLock,
    (device, at): (DeviceRef<'_>, Timestamp),
    shown: &DeviceUpdate,
    moment: Option<SettleContext>,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if let Some(user) = &shown.user {
        tables.link_user(device, user, at).await?;
    }
    let chains = find_chains(tables, device, shown).await?;
    if chains.is_empty() {
        return Ok(());
    }
    if lock == AppLock::Shared {
        // They came after the look that decided about the lock.
        return Err(Conflict.into());
    }
    let moment = match moment {
        Some(moment) => moment,
        None => SettleContext::of(tables, device.app, at).await?,
    };
    settle(tables, moment, chains, Some(device.key), tally).await?;
    Ok(())
}

/// The subscriptions that something shown concerns.
async fn find_chains<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    shown: &DeviceUpdate,
) -> Result<BTreeSet<Chain>, T::Failure> {
    let of = (device.app, device.environment);
    let keys = shown.keys(device.key);
    let found = tables
        .chains_by_key(of, &keys, KEY_SUBSCRIPTIONS_MAX)
        .await?;
    Ok(found.into_iter().map(|(_, chain)| chain).collect())
}
