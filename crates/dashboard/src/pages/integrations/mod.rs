//! `/apps/{app}/integrations` — connections to ad networks and billing providers.

pub(crate) mod billing;
pub(crate) mod connection_test;
pub(crate) mod list;
pub(crate) mod mapping;
pub(crate) mod network;
mod texts;

use crate::access::PageContext;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{Integration, Network};
use tributary_store::IntegrationHealth;

/// Returns the network in the path.
pub(crate) fn network_in_path<S>(context: &PageContext<S>) -> Result<Network, Failure> {
    Network::parse(context.path_parameter("network")).ok_or(Failure::NotFound)
}

/// Loads an integration and its health.
async fn find(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    network: Network,
) -> Result<(Integration, IntegrationHealth), Failure> {
    let app = context.app()?.id;
    let found = handles.store.integrations(caller, app).await?;
    let one = found.into_iter().find(|one| one.network == network);
    let one = one.ok_or(Failure::NotFound)?;
    let now = handles.runtime.now();
    let health = handles.store.integration_health(caller, app, now).await?;
    let health = health.into_iter().find(|(of, _)| *of == network);
    let health = health.map(|(_, health)| health);
    Ok((one, health.unwrap_or_default()))
}

/// Text, colour and reason of an integration's status.
pub(crate) struct StatusLabel {
    pub(crate) text: &'static str,
    pub(crate) tone: &'static str,
    reason: Option<String>,
}

impl StatusLabel {
    pub(crate) fn of(integration: &Integration, state: &QueueState) -> Self {
        use tributary_domain::integration::IntegrationStatus;
        let (status, reason) = integration.status(state);
        let reason = match status {
            IntegrationStatus::NotConfigured => Some(missing_text(integration)),
            IntegrationStatus::Paused if !integration.enabled => {
                Some("Off. Tick “Forward events” to send events.".to_owned())
            }
            _ => reason,
        };
        let (text, tone) = match status {
            IntegrationStatus::NotConfigured => ("Not connected", "quiet"),
            IntegrationStatus::Active => ("Active", "good"),
            IntegrationStatus::Paused if integration.enabled => ("Paused", "bad"),
            IntegrationStatus::Paused => ("Off", "quiet"),
            IntegrationStatus::Error => ("Failing", "bad"),
        };
        Self { text, tone, reason }
    }

    /// Returns whether events are sent without problems.
    pub(crate) fn is_active(&self) -> bool {
        self.tone == "good"
    }
}

/// Lists what is still required, with the labels of the form.
fn missing_text(integration: &Integration) -> String {
    let label = |name| texts::field_texts(integration.network, name).0;
    let labels: Vec<_> = integration.missing().into_iter().map(label).collect();
    let instead = match integration.network {
        Network::B => " A service account key replaces the OAuth client and its refresh token.",
        Network::A | Network::C | Network::D => "",
    };
    format!("To fill in: {}.{instead}", labels.join(", "))
}
