//! Devices and people that show up after their subscriptions did.

use super::notifications::Chain;
use super::settle::{Moment, Settlement};
use super::{people, waiting};
use crate::Failure;
use crate::devices::DeviceRef;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::{JOINED_WITHIN, advertising_key};
use tributary_domain::device::{AdvertisingId, UserKey};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Subscriptions that one call joins. More than one person has is somebody's shared id.
const JOINED_AT_ONCE_MAX: i64 = 100;

/// What a device shows up with.
pub(crate) struct Shown<'a> {
    pub(crate) device: DeviceRef<'a>,
    /// A person's id that it did not go by before.
    pub(crate) user: Option<&'a UserKey>,
    /// An advertising id that it did not have before.
    pub(crate) advertising: Option<&'a AdvertisingId>,
}

impl Shown<'_> {
    async fn keys(&self, tx: &Tx) -> Result<Vec<String>, Failure> {
        let (app, environment) = (self.device.app, self.device.environment);
        let people = self.user.map(std::slice::from_ref).unwrap_or_default();
        let mut keys = people::person_keys(tx, app, environment, people, people::Way::To).await?;
        keys.extend(self.advertising.map(advertising_key));
        Ok(keys)
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
pub(crate) async fn enter(tx: &Tx, shown: &Shown<'_>, at: Timestamp) -> Result<Entered, Failure> {
    if shown.user.is_none() && shown.advertising.is_none() {
        return Ok(Entered::Linking);
    }
    let app = shown.device.app;
    let keys = shown.keys(tx).await?;
    if !waiting(tx, app, shown.device.environment, &keys, at)
        .await?
        .is_empty()
    {
        super::lock(tx, app).await?;
        return Ok(Entered::Settling);
    }
    let sql = "select 1 from apps where app_id = $1 for share";
    tx.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
    Ok(Entered::Linking)
}

/// Remembers what a device goes by, and joins the subscriptions that waited for it. The circumstances are looked up if
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
    let keys = shown.keys(tx).await?;
    let chains = waiting(tx, app, environment, &keys, at).await?;
    if !chains.is_empty() && entered == Entered::Linking {
        // They came while nobody was looking.
        return Err(Failure::Overtaken);
    }
    let moment = match moment {
        _ if chains.is_empty() => return Ok(Increments::default()),
        Some(moment) => moment,
        None => super::moment_of(tx, app, at).await?,
    };
    join(tx, chains, moment).await
}

/// The subscriptions that wait for one of these keys.
pub(super) async fn waiting(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    keys: &[String],
    at: Timestamp,
) -> Result<Vec<Chain>, Failure> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let window = i64::try_from(JOINED_WITHIN.as_millis()).unwrap_or(i64::MAX);
    let since = Timestamp::from_millis(at.as_millis().saturating_sub(window));
    waiting::find(tx, app, environment, keys, since, JOINED_AT_ONCE_MAX).await
}

/// Joins subscriptions that may have a device now.
pub(super) async fn join(
    tx: &Tx,
    chains: Vec<Chain>,
    moment: Moment,
) -> Result<Increments, Failure> {
    let mut settlement = Settlement::new(tx, moment);
    for chain in chains {
        settlement.settle(chain, true).await?;
    }
    Ok(settlement.into_increments())
}
