//! Alerts: webhook messages to operators.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::vocabulary::id::{AlertId, AppId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// An alert that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAlert {
    /// Alert to send.
    pub alert: Alert,
    /// Webhook URL of the app. `None` when the webhook was removed.
    pub url: Option<HttpsUrl>,
    /// Number of attempts, including this one.
    pub attempts: u32,
}

/// Alerts.
#[async_trait]
pub trait Alerts: Send + Sync {
    /// Queues an alert for every app that has a webhook, unless the app got an alert of this kind
    /// since `unless_since`. Returns the number of queued alerts.
    async fn raise_alert_everywhere(
        &self,
        kind: AlertKind,
        message: String,
        unless_since: Timestamp,
        at: Timestamp,
        random: [u8; 8],
    ) -> StoreResult<u64>;

    /// Leases due alerts until `until`. An alert that is not settled by then is due again.
    async fn lease_alerts(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueAlert>>;

    /// Settles an alert: removes it, or schedules a retry at `retry_at`.
    async fn settle_alert(
        &self,
        app: AppId,
        alert: AlertId,
        retry_at: Option<Timestamp>,
    ) -> StoreResult<()>;
}
