//! Devices and people that show up, before or after their subscriptions.

use super::settle::{Moment, Settling};
use super::{keys, people};
use crate::Failure;
use crate::devices::DeviceRef;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{Chain, advertising_key, device_key, person_key};
use tributary_domain::device::{AdvertisingId, UserKey};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::time::Timestamp;

/// What a device shows up with.
pub(crate) struct Shown<'a> {
    pub(crate) device: DeviceRef<'a>,
    /// A person's id that it did not go by before.
    pub(crate) user: Option<&'a UserKey>,
    /// An advertising id that it did not have before.
    pub(crate) advertising: Option<&'a AdvertisingId>,
    /// Whether what its events say about it may have changed.
    pub(crate) is_changed: bool,
}

impl Shown<'_> {
    /// The subscriptions that this concerns.
    async fn chains(&self, tx: &Tx) -> Result<BTreeSet<Chain>, Failure> {
        let ids = self.user.map(person_key).into_iter();
        let ids = ids.chain(self.advertising.map(advertising_key));
        let is_news = self.user.is_some() || self.advertising.is_some() || self.is_changed;
        let device = is_news.then(|| device_key(self.device.key));
        let all: Vec<String> = ids.chain(device).collect();
        let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX).unwrap_or(i64::MAX);
        let of = (self.device.app, self.device.environment);
        let found = keys::find(tx, of, &column(&all, String::as_str), limit).await?;
        Ok(found.into_iter().map(|(_, chain)| chain).collect())
    }
}

/// How a call stands to those who settle the app's subscriptions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It is one of them: somebody waits for its device.
    Settling,
    /// It keeps them away while it links a device, and others may do so, too.
    Linking,
}

/// To be called before the device is locked, as everybody does it who settles subscriptions. Whoever links a device sees
/// who waits for it, or is seen.
pub(crate) async fn enter(tx: &Tx, shown: &Shown<'_>) -> Result<Entered, Failure> {
    let app = shown.device.app;
    if !shown.chains(tx).await?.is_empty() {
        super::lock(tx, app).await?;
        return Ok(Entered::Settling);
    }
    if shown.user.is_some() || shown.advertising.is_some() {
        let sql = "select 1 from apps where app_id = $1 for share";
        tx.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
    }
    Ok(Entered::Linking)
}

/// Remembers what a device goes by, and settles the subscriptions that this concerns. The circumstances are looked up if
/// the caller does not know them.
pub(crate) async fn show(
    tx: &Tx,
    entered: Entered,
    shown: &Shown<'_>,
    moment: Option<Moment>,
    at: Timestamp,
) -> Result<Increments, Failure> {
    let (app, environment) = (shown.device.app, shown.device.environment);
    if let Some(user) = shown.user {
        people::insert_link(tx, app, environment, user, shown.device.key, at).await?;
    }
    let chains = shown.chains(tx).await?;
    if !chains.is_empty() && entered == Entered::Linking {
        // They came after the look that decided about the lock.
        return Err(Failure::Overtaken);
    }
    let moment = match moment {
        _ if chains.is_empty() => return Ok(Increments::default()),
        Some(moment) => moment,
        None => super::moment_of(tx, app, at).await?,
    };
    let mut settling = Settling::new(tx, moment);
    settling.settle(chains, Some(shown.device.key)).await?;
    Ok(settling.into_increments())
}
