//! Traffic checks: hours with far more installs, events or revenue than usual.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::report::anomaly::{TrafficAnomaly, TrafficCheck};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of anomalies that an overview shows.
pub const ANOMALIES_SHOWN_MAX: u32 = 20;

/// What earlier checks of an app stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficHistory {
    /// Installs from the busiest address in each hour.
    pub peaks: Vec<(Timestamp, i64)>,
    /// Latest anomaly of each subject.
    pub anomalies: Vec<TrafficAnomaly>,
}

/// A finished check of an app's hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedHour {
    /// The app.
    pub app: AppId,
    /// Start of the hour.
    pub hour: Timestamp,
    /// Installs from the busiest address in the hour.
    pub peak: i64,
    /// Anomalies to store and to end.
    pub check: TrafficCheck,
    /// Alerts to queue.
    pub alerts: Vec<Alert>,
    /// Time of the check.
    pub at: Timestamp,
}

/// Traffic checks.
#[async_trait]
pub trait Traffic: Send + Sync {
    /// Returns apps that are not archived and whose hour is not checked yet.
    async fn unchecked_apps(
        &self,
        hour: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>>;

    /// Returns the address with the most live installs of each app between two times, as its keyed
    /// hash, with the number of installs.
    async fn busiest_addresses(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<(AppId, Digest, i64)>>;

    /// Returns what earlier checks of an app stored since `since`.
    async fn traffic_history(&self, app: AppId, since: Timestamp) -> StoreResult<TrafficHistory>;

    /// Stores a check, and removes what is older than `keep_since`. Returns false without storing
    /// anything if the hour or a later one was checked already, for example by another node.
    async fn record_checked_hour(
        &self,
        checked: CheckedHour,
        keep_since: Timestamp,
    ) -> StoreResult<bool>;

    /// Returns an app's anomalies since `since`, newest first, at most [`ANOMALIES_SHOWN_MAX`].
    /// Only live data is checked, so a test caller finds none.
    async fn traffic_anomalies(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        since: Timestamp,
    ) -> StoreResult<Vec<TrafficAnomaly>>;
}
