//! Devices and people that show up, before or after their subscriptions.

use super::settle::{Moment, Settling};
use super::{keys, people};
use crate::Failure;
use rusqlite::Connection;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{advertising_key, device_key, person_key};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// What a device shows up with.
pub(crate) struct Shown<'a> {
    pub(crate) app: AppId,
    pub(crate) environment: Environment,
    pub(crate) device: &'a DeviceKey,
    /// A person's id that it did not go by before.
    pub(crate) user: Option<&'a UserKey>,
    /// An advertising id that it did not have before.
    pub(crate) advertising: Option<&'a AdvertisingId>,
    /// Whether what its events say about it changed.
    pub(crate) is_changed: bool,
}

/// Remembers what a device goes by, and settles the subscriptions that this concerns. The circumstances are asked for
/// only if there are any.
pub(crate) fn show(
    connection: &Connection,
    shown: &Shown<'_>,
    moment: impl FnOnce(&Connection) -> Result<Moment, Failure>,
    at: Timestamp,
) -> Result<Increments, Failure> {
    let (app, environment) = (shown.app, shown.environment);
    if let Some(user) = shown.user {
        people::insert_link(connection, app, environment, user, shown.device, at)?;
    }
    let ids = shown.user.map(person_key).into_iter();
    let ids = ids.chain(shown.advertising.map(advertising_key));
    let is_news = shown.user.is_some() || shown.advertising.is_some() || shown.is_changed;
    let device = is_news.then(|| device_key(shown.device));
    let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX).unwrap_or(i64::MAX);
    let mut chains = BTreeSet::new();
    for key in ids.chain(device) {
        chains.extend(keys::find(connection, (app, environment), &key, limit)?);
    }
    if chains.is_empty() {
        return Ok(Increments::default());
    }
    let mut settling = Settling::new(connection, moment(connection)?);
    settling.settle(chains, Some(shown.device))?;
    Ok(settling.into_increments())
}
