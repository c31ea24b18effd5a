//! Sends alerts to operators as signed POST requests to the URL configured for their app.
//!
//! The signature follows Standard Webhooks: the headers are `webhook-id`, `webhook-timestamp` and
//! `webhook-signature`, which signs the other two headers and the body. An alert is retried until
//! the receiver responds with success, for about a day. Before an alert is sent, a message is queued for
//! each notice on it.

use super::periodic::{Worker, WorkerActivity};
use crate::outbound::{AddressPolicy, Outbound};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::alert::{Alert, RETRY_WAITS};
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::alert::AlertSecrets;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::{DueAlert, Store};
use url::Url;

/// Timeout for one request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Alerts leased at a time: the one that is sent next, so that a shutdown leaves none leased.
const BATCH: u32 = 1;
/// Duration of a lease: a request, and as long again for the database.
const LEASE: Duration = Duration::from_secs(20);
/// Sends alerts.
pub(super) struct AlertsWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
    keyring: Keyring,
    outbound: Outbound,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertBody<'a> {
    id: String,
    r#type: &'a str,
    app_id: String,
    network: Option<&'a str>,
    timestamp: String,
    message: &'a str,
}

fn body(alert: &Alert) -> Vec<u8> {
    let at = jiff::Timestamp::from_millisecond(alert.at.as_millis()).unwrap_or_default();
    let body = AlertBody {
        id: alert.id.to_string(),
        r#type: alert.kind.as_str(),
        app_id: alert.app.to_string(),
        network: alert.network.map(Network::as_str),
        timestamp: at.to_string(),
        message: &alert.message,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

impl AlertsWorker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        runtime: Runtime,
        keyring: Keyring,
        policy: AddressPolicy,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            runtime,
            keyring,
            outbound: Outbound::new(policy, REQUEST_MAX)?,
        })
    }

    /// Sends an alert. Returns whether the receiver accepted it.
    pub(super) async fn post_alert(&self, alert: &Alert, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else {
            return false;
        };
        let body = body(alert);
        let id = alert.id.to_string();
        let seconds = self.runtime.now().as_millis().div_euclid(1_000);
        let Some(secrets) = self.secrets(alert.app).await else {
            return false;
        };
        let signatures = secrets.signatures(&id, seconds, &body);
        let request = self
            .outbound
            .request(Method::POST, &url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signatures)
            .body(body);
        match self.outbound.send(request).await {
            Ok(response) => response.status().is_success(),
            Err(error) => {
                tracing::debug!(%error, "failed to send alert");
                false
            }
        }
    }

    /// Returns the secrets that an app's alerts are signed with; `None` if they cannot be read now.
    async fn secrets(&self, app: AppId) -> Option<AlertSecrets> {
        let found = self.store.alert_secrets(app).await;
        let (organization, stored) = match found {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "failed to read the secrets of alerts");
                return None;
            }
        };
        let (of, now) = ((organization, app), self.runtime.now());
        let secrets = self.keyring.alert_secrets(of, stored.as_ref(), now);
        if secrets.is_err() {
            tracing::warn!(%app, "a stored secret of alerts cannot be decrypted");
        }
        secrets.ok()
    }

    async fn settle(&self, due: &DueAlert, was_accepted: bool) -> anyhow::Result<()> {
        let tries = usize::try_from(due.attempts).unwrap_or(usize::MAX);
        let wait = RETRY_WAITS.get(tries.saturating_sub(1));
        let retry_at = match (was_accepted, wait) {
            (false, Some(wait)) => Some(self.runtime.now().plus(*wait)),
            _ => None,
        };
        if !was_accepted && retry_at.is_none() {
            let app = due.alert.app;
            tracing::warn!(%app, "giving up on alert after a day; check alertWebhookUrl");
        }
        let alert = &due.alert;
        self.store
            .settle_alert(alert.app, alert.id, retry_at)
            .await?;
        Ok(())
    }
}

impl Worker for AlertsWorker {
    const NAME: &'static str = "alerts";
    const PERIOD: Duration = Duration::from_secs(2);
    const KIND: Option<WorkKind> = Some(WorkKind::Alerts);
    const DRAIN: Duration = REQUEST_MAX;

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let now = self.runtime.now();
        let due = self.store.lease_alerts(now, now.plus(LEASE), BATCH).await?;
        if due.is_empty() {
            return Ok(WorkerActivity::Idle);
        }
        for one in &due {
            let alert = one.alert.clone();
            self.store.queue_alert_messages(alert, now).await?;
            let was_accepted = match &one.url {
                // No URL is configured, so there is nothing to send.
                None => true,
                Some(url) => self.post_alert(&one.alert, url.as_str()).await,
            };
            self.settle(one, was_accepted).await?;
        }
        Ok(WorkerActivity::More)
    }
}

#[cfg(test)]
mod tests;
