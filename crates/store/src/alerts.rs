//! What operators are told without asking.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::vocabulary::id::{AlertId, AppId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// An alert to be told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAlert {
    /// What.
    pub alert: Alert,
    /// To whom; nothing: nobody listens any more.
    pub url: Option<HttpsUrl>,
    /// Tries so far, this one included.
    pub attempts: u32,
}

/// Alerts.
#[async_trait]
pub trait Alerts: Send + Sync {
    /// Remembers an alert for every app that has somebody to tell, unless one of its kind was remembered since.
    /// Gives how many.
    async fn raise_alert_everywhere(
        &self,
        kind: AlertKind,
        message: String,
        unless_since: Timestamp,
        at: Timestamp,
        random: [u8; 8],
    ) -> StoreResult<u64>;

    /// Alerts to be told, each due again at `until` unless it is settled before.
    async fn lease_alerts(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueAlert>>;

    /// Told, or given up on (nothing); or to be tried again then.
    async fn settle_alert(
        &self,
        app: AppId,
        alert: AlertId,
        retry_at: Option<Timestamp>,
    ) -> StoreResult<()>;
}
