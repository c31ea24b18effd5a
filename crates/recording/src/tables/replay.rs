//! Installs with the evidence of their attribution.

use super::EngineTransaction;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::device::{Device, DeviceKey};
use tributary_domain::install::Attribution;
use tributary_domain::install::what_if::ReplayClick;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ReplayPart;

/// A search for the clicks with an advertising id.
#[derive(Debug, Clone, Copy)]
pub struct AdvertisingSearch {
    /// Hash of the id.
    pub hash: Digest,
    /// Latest time of the clicks.
    pub until: Timestamp,
}

/// Reads of a replay.
pub trait ReplayTable: EngineTransaction {
    /// Returns installs with their devices, oldest first.
    async fn replay_installs(
        &self,
        scope: (AppId, Environment),
        part: &ReplayPart,
    ) -> Result<Vec<(EventId, Device, Attribution)>, Self::Failure>;

    /// Returns clicks with the installs that claimed them.
    async fn replay_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<ReplayClick>, Self::Failure>;

    /// Returns the newest clicks of each search, with the position of the search. Omits bots' clicks.
    async fn replay_advertised(
        &self,
        app: AppId,
        searches: &[AdvertisingSearch],
    ) -> Result<Vec<(usize, ReplayClick)>, Self::Failure>;

    /// Returns the counted revenue and refunds of devices' events, in millionths of a US dollar.
    /// Omits events that are credited by themselves.
    async fn replay_revenue(
        &self,
        scope: (AppId, Environment),
        devices: &[DeviceKey],
    ) -> Result<Vec<(DeviceKey, i64, i64)>, Self::Failure>;
}
