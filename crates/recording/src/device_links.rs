//! Links devices to users and to the subscriptions that wait for them.

use crate::settle::settle;
use crate::tables::{ClaimQuery, ConfigureWrites, Conflict, Tables};
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{Chain, DeviceUpdate};
use tributary_domain::device::{
    ADDRESS_CLAIMS_WINDOW, ClaimFacts, DeviceRef, Identity, IdentityClaim, UserClaim,
};
use tributary_domain::vocabulary::time::Timestamp;

/// Lock that a call holds on the app while it links a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppLock {
    /// Exclusive: the call may settle subscriptions, because some are waiting for this device.
    Exclusive,
    /// Shared: no subscription is waiting for this device. Keeps other transactions from settling
    /// subscriptions until this one has linked the device. Not taken if the call has no new id to
    /// link.
    Shared,
}

/// Locks the app of a device that may be linked. The app must be locked before the device, as in
/// every transaction that settles subscriptions. Then either this transaction sees the waiting
/// subscriptions, or the transaction that stores them sees the link.
pub(crate) async fn lock_app<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    update: &DeviceUpdate,
) -> Result<AppLock, T::Failure> {
    if !find_chains(tables, device, update).await?.is_empty() {
        tables.lock_app(device.app).await?;
        return Ok(AppLock::Exclusive);
    }
    if update.has_new_id() {
        tables.lock_app_shared(device.app).await?;
    }
    Ok(AppLock::Shared)
}

/// Reads the stored facts that a claim of a user depends on. The caller holds the lock on the
/// device.
pub(crate) async fn read_claim_facts<T: Tables>(
    tables: &T,
    (device, at): (DeviceRef<'_>, Timestamp),
    before: &Identity,
    claim: &IdentityClaim,
) -> Result<ClaimFacts, T::Failure> {
    let Some(query) = ClaimQuery::of((device, at), before, claim) else {
        return Ok(ClaimFacts::default());
    };
    let mut facts = tables.claimed_users(device).await?;
    if let Some((address, since)) = query.address {
        facts.claims_from_address = tables.claims_from_address(device, address, since).await?;
    }
    facts.links_of_user = tables.count_links(device, query.user).await?;
    Ok(facts)
}

impl<'a> ClaimQuery<'a> {
    /// Returns what a claim depends on, or `None` if it does not depend on stored facts.
    pub(crate) fn of(
        (device, at): (DeviceRef<'a>, Timestamp),
        before: &Identity,
        claim: &'a IdentityClaim,
    ) -> Option<Self> {
        let user = claim.user.as_ref().filter(|_| claim.needs_facts(before))?;
        let since = at.minus(ADDRESS_CLAIMS_WINDOW);
        Some(Self {
            device,
            user,
            address: claim.address_hash.map(|address| (address, since)),
        })
    }
}

impl<'a> ConfigureWrites<'a> {
    /// Adds a device's claim of a user.
    pub(crate) fn add_claim(
        &mut self,
        (device, at): (DeviceRef<'a>, Timestamp),
        claim: Option<&'a UserClaim>,
    ) {
        let Some(claim) = claim else { return };
        let revoked = claim.revokes_unsigned.then_some(device);
        self.revoked.extend(revoked);
        self.claims.push((device, claim, at));
    }
}

/// Settles the subscriptions that a device or its user may now belong to. The identifiers in `update`
/// are among those that the lock was chosen for.
pub(crate) async fn settle_linked<T: Tables>(
    tables: &T,
    lock: AppLock,
    (device, at): (DeviceRef<'_>, Timestamp),
    update: &DeviceUpdate,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if T::IS_SOLE_WRITER && lock == AppLock::Shared {
        return Ok(());
    }
    let chains = find_chains(tables, device, update).await?;
    if chains.is_empty() {
        return Ok(());
    }
    if lock == AppLock::Shared {
        // A subscription arrived after the lock mode was chosen. The retry takes the exclusive
        // lock.
        return Err(Conflict.into());
    }
    settle(tables, at, chains, Some(device.key), tally).await?;
    Ok(())
}

/// Finds the subscriptions that are waiting for these identifiers.
async fn find_chains<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    update: &DeviceUpdate,
) -> Result<BTreeSet<Chain>, T::Failure> {
    let scope = (device.app, device.environment);
    let keys = update.keys(device.key);
    let found = tables
        .chains_by_key(scope, &keys, KEY_SUBSCRIPTIONS_MAX)
        .await?;
    Ok(found.into_iter().map(|(_, chain)| chain).collect())
}
