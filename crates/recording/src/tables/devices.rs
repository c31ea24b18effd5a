//! Devices, their people, and the clicks that lead to them.

use super::EngineTransaction;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::click::{Click, StoredClick};
use tributary_domain::device::{Device, DeviceKey, DeviceRef, Identity};
use tributary_domain::install::{
    Attribution, CandidateClicks, CandidateQuery, ConfigureCommand, ConfigureDecision, DeviceState,
};
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::LeasedToken;

/// Clicks.
pub trait ClickTable: EngineTransaction {
    /// Stores a click; false when it is stored already.
    async fn insert_click(&self, click: &Click) -> Result<bool, Self::Failure>;

    /// A click.
    async fn click(&self, app: AppId, click: ClickId) -> Result<Option<Click>, Self::Failure>;

    /// The clicks that an install may belong to.
    async fn candidates(
        &self,
        command: &ConfigureCommand,
        wanted: &CandidateQuery,
    ) -> Result<CandidateClicks, Self::Failure>;

    /// Gives a click to an install that finds it free.
    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Self::Failure>;

    /// Keeps a click that a decision names.
    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Self::Failure>;

    /// Takes a click back from an install. It stays, because the device's explanation names it.
    async fn release_click(
        &self,
        device: DeviceRef<'_>,
        click: ClickId,
    ) -> Result<(), Self::Failure>;

    /// Locks clicks in the order of their ids, and reads them.
    async fn lock_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<StoredClick>, Self::Failure>;

    /// Writes what remains of clicks, and which devices took them.
    async fn write_remaining_clicks(
        &self,
        app: AppId,
        clicks: &[StoredClick],
    ) -> Result<(), Self::Failure>;
}

/// Devices and their people.
pub trait DeviceTable: EngineTransaction {
    /// Locks devices until the transaction ends, in the order of their keys.
    async fn lock_devices(
        &self,
        devices: &BTreeSet<DeviceRef<'_>>,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Locks a device, and reads what is known of it.
    async fn lock_device(
        &self,
        device: DeviceRef<'_>,
        at: Timestamp,
    ) -> Result<DeviceState, Self::Failure>;

    /// Stores a device that was not stored.
    async fn insert_device(
        &self,
        command: &ConfigureCommand,
        opening: &ConfigureDecision,
    ) -> Result<(), Self::Failure>;

    /// Writes a device, and the decision about it.
    async fn update_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Self::Failure>;

    /// Writes who is behind a device.
    async fn write_identity(
        &self,
        device: DeviceRef<'_>,
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Devices that were last known to be active before a moment, at least so many of them if there are more.
    async fn inactive_devices(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<BTreeSet<(AppId, Environment, DeviceKey)>, Self::Failure>;

    /// Writes when a device was last active.
    async fn write_active_at(
        &self,
        device: DeviceRef<'_>,
        active_at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Writes what remains of a device under its key from now on, and of the decision about it.
    async fn write_remaining_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Self::Failure>;

    /// Forgets who is behind a device, and gives it its key from now on. Its first payment stays known, so that a later
    /// payment is not a first one.
    async fn forget_identity(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}

/// Tokens to be redeemed at Apple.
pub trait TokenTable: EngineTransaction {
    /// Keeps the token of a device, unless one is kept.
    async fn enqueue_token(&self, command: &ConfigureCommand) -> Result<(), Self::Failure>;

    /// Whether a lease of a token is still held.
    async fn holds_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Removes a token whose lease is still held; false when it is not.
    async fn remove_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Makes a token due again whose lease is still held; false when it is not.
    async fn retry_token(
        &self,
        lease: &LeasedToken,
        due_at: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Removes the token of a device.
    async fn remove_device_token(&self, device: DeviceRef<'_>) -> Result<(), Self::Failure>;
}
