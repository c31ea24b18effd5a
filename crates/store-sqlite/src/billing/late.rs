//! Devices and people that show up after their subscriptions did.

use super::settle::{Moment, Settlement};
use super::{people, waiting};
use crate::Failure;
use rusqlite::Connection;
use tributary_domain::access::Environment;
use tributary_domain::billing::{JOINED_WITHIN, advertising_key, person_key};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;

/// Subscriptions that one call joins. More than one person has is somebody's shared id.
const JOINED_AT_ONCE_MAX: i64 = 100;

/// What a device shows up with.
pub(crate) struct Shown<'a> {
    pub(crate) app: AppId,
    pub(crate) environment: Environment,
    pub(crate) device: &'a DeviceKey,
    /// A person's id that it did not go by before.
    pub(crate) user: Option<&'a UserKey>,
    /// An advertising id that it did not have before.
    pub(crate) advertising: Option<&'a AdvertisingId>,
}

/// Remembers what a device goes by, and joins the subscriptions that waited for it. The circumstances are asked for only if
/// there are any.
pub(crate) fn show(
    connection: &Connection,
    shown: &Shown<'_>,
    moment: impl FnOnce(&Connection) -> Result<Moment, Failure>,
    at: tributary_domain::vocabulary::time::Timestamp,
) -> Result<Increments, Failure> {
    let (app, environment) = (shown.app, shown.environment);
    let mut keys = Vec::new();
    if let Some(user) = shown.user {
        people::insert_link(connection, app, environment, user, shown.device, at)?;
        let people = std::slice::from_ref(user);
        let also = people::person_keys(connection, app, environment, people, people::Way::To)?;
        keys.extend(also);
        debug_assert!(
            keys.contains(&person_key(user)),
            "a person's own key is among them"
        );
    }
    keys.extend(shown.advertising.map(advertising_key));
    join(connection, app, environment, &keys, moment, at)
}

/// Joins the subscriptions that wait for one of these keys.
pub(super) fn join(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    keys: &[String],
    moment: impl FnOnce(&Connection) -> Result<Moment, Failure>,
    at: tributary_domain::vocabulary::time::Timestamp,
) -> Result<Increments, Failure> {
    let window = i64::try_from(JOINED_WITHIN.as_millis()).unwrap_or(i64::MAX);
    let since = tributary_domain::vocabulary::time::Timestamp::from_millis(
        at.as_millis().saturating_sub(window),
    );
    let mut chains = Vec::new();
    for key in keys {
        let limit = JOINED_AT_ONCE_MAX;
        chains.extend(waiting::find(
            connection,
            app,
            environment,
            key,
            since,
            limit,
        )?);
    }
    chains.sort();
    chains.dedup();
    if chains.is_empty() {
        return Ok(Increments::default());
    }
    let mut settlement = Settlement::new(connection, moment(connection)?);
    for chain in chains {
        settlement.settle(chain, true)?;
    }
    Ok(settlement.into_increments())
}
