//! Bulk reads and writes for imported events.

use super::{SharedId, Tables};
use crate::duplicates::VerifiedEvents;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::import::{
    ClickUse, ImportChanges, ImportDeviceFacts, ImportKey, ImportKeyHolder,
};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};

/// Imports, with one statement per table.
pub trait ImportTable: Tables {
    /// Returns the holders of event ids.
    async fn key_holders<'a>(
        &self,
        app: AppId,
        keys: &BTreeSet<ImportKey<'a>>,
    ) -> Result<BTreeMap<ImportKey<'a>, ImportKeyHolder>, Self::Failure>;

    /// Returns the internal ids that stored events have.
    async fn stored_event_ids(
        &self,
        scope: (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<BTreeSet<EventId>, Self::Failure>;

    /// Reserves ids for SDK events. Returns the verified events that already use one of these ids.
    async fn reserve_ids<'a>(
        &self,
        wanted: &[(SharedId<'a>, EventId)],
    ) -> Result<VerifiedEvents<'a>, Self::Failure>;

    /// Returns the links that exist.
    async fn existing_links(
        &self,
        app: AppId,
        links: &BTreeSet<LinkId>,
    ) -> Result<BTreeSet<LinkId>, Self::Failure>;

    /// Returns the clicks that exist.
    async fn click_uses(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<BTreeMap<ClickId, ClickUse>, Self::Failure>;

    /// Returns installs and first payments of devices. Unknown devices may be absent.
    async fn import_devices<'a>(
        &self,
        devices: &BTreeSet<DeviceRef<'a>>,
    ) -> Result<BTreeMap<DeviceRef<'a>, ImportDeviceFacts>, Self::Failure>;

    /// Returns the devices that have events.
    async fn devices_with_events(
        &self,
        scope: (AppId, Environment),
        devices: &BTreeSet<&DeviceKey>,
    ) -> Result<BTreeSet<DeviceKey>, Self::Failure>;

    /// Claims the ids of the recorded events, and writes events, devices, first payments, refunds,
    /// transactions and clicks. Another transaction that was first is a conflict.
    async fn write_import(
        &self,
        app: AppId,
        changes: &ImportChanges<'_>,
    ) -> Result<(), Self::Failure>;
}
