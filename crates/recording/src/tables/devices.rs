//! Devices, their identities, and clicks.

use super::EngineTransaction;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::attribution::HoldFilter;
use tributary_domain::click::{Click, StoredClick};
use tributary_domain::device::{Device, DeviceKey, DeviceRef, Identity};
use tributary_domain::install::{
    Attribution, CandidateClicks, CandidateQuery, ConfigureCommand, ConfigureDecision, DeviceState,
};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{HeldInstall, LeasedToken};

/// Clicks.
pub trait ClickTable: EngineTransaction {
    /// Stores a click. Returns false when the click exists already.
    async fn insert_click(&self, click: &Click) -> Result<bool, Self::Failure>;

    /// Returns a click.
    async fn click(&self, app: AppId, click: ClickId) -> Result<Option<Click>, Self::Failure>;

    /// Finds the candidate clicks for an install.
    async fn candidates(
        &self,
        command: &ConfigureCommand,
        query: &CandidateQuery,
    ) -> Result<CandidateClicks, Self::Failure>;

    /// Assigns an unclaimed click to an install.
    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Self::Failure>;

    /// Protects a click from removal, because a decision refers to it.
    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Self::Failure>;

    /// Releases a click from an install. The click stays protected, because the device's decision
    /// refers to it.
    async fn release_click(
        &self,
        device: DeviceRef<'_>,
        click: ClickId,
    ) -> Result<(), Self::Failure>;

    /// Locks clicks in id order, and returns them.
    async fn lock_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<StoredClick>, Self::Failure>;

    /// Writes redacted clicks, including the ids of the devices that claimed them.
    async fn write_remaining_clicks(
        &self,
        app: AppId,
        clicks: &[StoredClick],
    ) -> Result<(), Self::Failure>;
}

/// Devices and identities.
pub trait DeviceTable: EngineTransaction {
    /// Locks devices in key order until the transaction ends.
    async fn lock_devices(
        &self,
        devices: &BTreeSet<DeviceRef<'_>>,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Locks a device, and returns its state.
    async fn lock_device(
        &self,
        device: DeviceRef<'_>,
        at: Timestamp,
    ) -> Result<DeviceState, Self::Failure>;

    /// Stores a new device.
    async fn insert_device(
        &self,
        command: &ConfigureCommand,
        decision: &ConfigureDecision,
    ) -> Result<(), Self::Failure>;

    /// Writes a device and its attribution.
    async fn update_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Self::Failure>;

    /// Writes a device's identity.
    async fn write_identity(
        &self,
        device: DeviceRef<'_>,
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Finds devices that were last known to be active before `before`: at least `limit` of them,
    /// if there are that many.
    async fn inactive_devices(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<BTreeSet<(AppId, Environment, DeviceKey)>, Self::Failure>;

    /// Writes the time of a device's last activity.
    async fn write_active_at(
        &self,
        device: DeviceRef<'_>,
        active_at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Writes a redacted device and attribution under the device's new key.
    async fn write_remaining_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Self::Failure>;

    /// Clears a device's identity, and moves it to the device's new key. Keeps the first payment,
    /// so that a later payment does not become the first one.
    async fn forget_identity(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}

/// Proofs of the tokens with which users erase their devices.
pub trait EraseTokenTable: EngineTransaction {
    /// Stores the proof in a call unless the device has one.
    async fn insert_erase_proof(&self, command: &ConfigureCommand) -> Result<(), Self::Failure>;

    /// Returns the device's proof, and those of erased devices that equal `proof`.
    async fn erase_proofs(
        &self,
        device: DeviceRef<'_>,
        proof: &Digest,
    ) -> Result<Vec<Digest>, Self::Failure>;

    /// Moves a device's proof to the device's new key.
    async fn move_erase_proof(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}

/// Installs that are held for a review.
pub trait HoldTable: EngineTransaction {
    /// Returns at most `limit` installs whose holds match a filter, newest first, before the
    /// attribution id `before`.
    async fn held_installs(
        &self,
        scope: (AppId, Environment),
        filter: &HoldFilter,
        before: Option<[u8; 16]>,
        limit: i64,
    ) -> Result<Vec<HeldInstall>, Self::Failure>;
}

/// AdServices tokens to be redeemed at Apple.
pub trait TokenTable: EngineTransaction {
    /// Stores a device's token unless one is stored already.
    async fn enqueue_token(&self, command: &ConfigureCommand) -> Result<(), Self::Failure>;

    /// Returns whether a token's lease is still held.
    async fn holds_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Removes a token if its lease is still held. Returns false when the lease was lost.
    async fn remove_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Schedules a retry for a token if its lease is still held. Returns false when the lease was
    /// lost.
    async fn retry_token(
        &self,
        lease: &LeasedToken,
        due_at: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Removes a device's token.
    async fn remove_device_token(&self, device: DeviceRef<'_>) -> Result<(), Self::Failure>;
}
