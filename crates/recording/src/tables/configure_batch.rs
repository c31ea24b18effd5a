//! Reads and writes for a batch of `configure` calls, with one statement per table.

use super::Tables;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::device::{ClaimFacts, Device, DeviceRef, Identity, UserClaim, UserKey};
use tributary_domain::event::Event;
use tributary_domain::install::{
    Attribution, CandidateClicks, CandidateQuery, ConfigureCommand, ConfigureDecision, DeviceState,
};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;

/// What the decision about a call depends on, besides the device.
#[derive(Debug)]
pub struct ConfigureQuery<'a> {
    /// The call.
    pub command: &'a ConfigureCommand,
    /// Clicks to find.
    pub clicks: CandidateQuery,
    /// The claim of a user, if it depends on stored facts.
    pub claim: Option<ClaimQuery<'a>>,
}

/// What a claim of a user depends on.
#[derive(Debug, Clone, Copy)]
pub struct ClaimQuery<'a> {
    /// Claiming device.
    pub device: DeviceRef<'a>,
    /// Claimed user.
    pub user: &'a UserKey,
    /// The caller's address, and since when to count its claims.
    pub address: Option<(Digest, Timestamp)>,
}

/// Facts for the decision about a call.
#[derive(Debug, Default)]
pub struct ConfigureFacts {
    /// Candidate clicks.
    pub candidates: CandidateClicks,
    /// Facts about the claim of a user.
    pub claims: ClaimFacts,
}

/// Data that a decided call may affect besides its own.
#[derive(Debug)]
pub struct RelatedQuery<'a> {
    /// Device.
    pub device: DeviceRef<'a>,
    /// Keys of subscriptions that may be waiting for the device.
    pub keys: Vec<String>,
    /// Whether the device's events are credited again, or their deliveries cancelled.
    pub changes_events: bool,
}

/// Rows that decided calls write.
#[derive(Debug, Default)]
pub struct ConfigureWrites<'a> {
    /// New devices.
    pub new_devices: Vec<(&'a ConfigureCommand, &'a ConfigureDecision)>,
    /// Changed devices.
    pub devices: Vec<(DeviceRef<'a>, &'a Device, &'a Attribution)>,
    /// Changed identities, with the times of the changes.
    pub identities: Vec<(DeviceRef<'a>, &'a Identity, Timestamp)>,
    /// Devices whose unsigned links are no longer used.
    pub revoked: Vec<DeviceRef<'a>>,
    /// Claims of users, with their times.
    pub claims: Vec<(DeviceRef<'a>, &'a UserClaim, Timestamp)>,
    /// Clicks that devices release.
    pub released_clicks: Vec<(DeviceRef<'a>, ClickId)>,
    /// Clicks that devices reserve.
    pub taken_clicks: Vec<(DeviceRef<'a>, ClickId)>,
    /// Clicks that decisions refer to.
    pub kept_clicks: BTreeSet<(AppId, ClickId)>,
    /// Calls with a proof for erasing the device.
    pub erase_proofs: Vec<&'a ConfigureCommand>,
    /// Calls whose tokens are redeemed.
    pub tokens: Vec<&'a ConfigureCommand>,
}

/// Batches of `configure` calls.
pub trait ConfigureBatchTable: Tables {
    /// Returns the stored integrations of apps.
    async fn integrations_of(
        &self,
        apps: &BTreeSet<AppId>,
    ) -> Result<BTreeMap<AppId, Arc<[Integration]>>, Self::Failure>;

    /// Locks apps in shared mode, in id order.
    async fn lock_apps_shared(&self, apps: &BTreeSet<AppId>) -> Result<(), Self::Failure>;

    /// Locks devices, except those that other transactions have locked. Returns the states of the
    /// locked ones.
    async fn try_lock_devices<'a>(
        &self,
        devices: &[(DeviceRef<'a>, Timestamp)],
    ) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Self::Failure>;

    /// Stores clicks. Returns those that are new.
    async fn insert_clicks(
        &self,
        clicks: &[&Click],
    ) -> Result<BTreeSet<(AppId, ClickId)>, Self::Failure>;

    /// Deletes clicks that this transaction stored.
    async fn delete_clicks(&self, clicks: &BTreeSet<(AppId, ClickId)>)
    -> Result<(), Self::Failure>;

    /// Returns the facts for each call.
    async fn configure_facts(
        &self,
        queries: &[ConfigureQuery<'_>],
    ) -> Result<Vec<ConfigureFacts>, Self::Failure>;

    /// Returns the positions of the queries for which a subscription is waiting, or an event changes.
    async fn find_related(
        &self,
        queries: &[RelatedQuery<'_>],
    ) -> Result<BTreeSet<usize>, Self::Failure>;

    /// Returns clicks by id.
    async fn clicks(
        &self,
        wanted: BTreeSet<(AppId, ClickId)>,
    ) -> Result<BTreeMap<(AppId, ClickId), Click>, Self::Failure>;

    /// Writes rows and installs. Returns whether each install is new.
    async fn write_configured(
        &self,
        writes: &ConfigureWrites<'_>,
        installs: &[&Event],
    ) -> Result<Vec<bool>, Self::Failure>;
}
