//! `/apps/{app}/integrations` — the connections to the four networks.

pub(crate) mod billing;
pub(crate) mod connection_test;
pub(crate) mod list;
pub(crate) mod mapping;
pub(crate) mod network;
mod texts;

pub(crate) use texts::network_name;

use crate::access::PageContext;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{Integration, Network};
use tributary_store::IntegrationHealth;

/// The network that a path names.
fn network_in_path<S>(reader: &PageContext<S>) -> Result<Network, Failure> {
    Network::parse(reader.path_parameter("network")).ok_or(Failure::NotFound)
}

/// An integration and how it does.
async fn find(
    handles: &DashboardHandles,
    reader: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    network: Network,
) -> Result<(Integration, IntegrationHealth), Failure> {
    let app = reader.app()?.id;
    let found = handles.store.integrations(caller, app).await?;
    let one = found.into_iter().find(|one| one.network == network);
    let one = one.ok_or(Failure::NotFound)?;
    let now = handles.source.now();
    let health = handles.store.integration_health(caller, app, now).await?;
    let health = health.into_iter().find(|(of, _)| *of == network);
    let health = health.map(|(_, health)| health);
    Ok((one, health.unwrap_or_default()))
}

/// A status in words, and how it is coloured.
struct StatusLabel {
    words: &'static str,
    tone: &'static str,
    reason: Option<String>,
}

impl StatusLabel {
    fn of(integration: &Integration, state: &QueueState) -> Self {
        use tributary_domain::integration::IntegrationStatus;
        let (status, reason) = integration.status(state);
        let (words, tone) = match status {
            IntegrationStatus::NotConfigured => ("Not connected", "quiet"),
            IntegrationStatus::Active => ("Active", "good"),
            IntegrationStatus::Paused if integration.enabled => ("Paused", "bad"),
            IntegrationStatus::Paused => ("Switched off", "quiet"),
            IntegrationStatus::Error => ("Failing", "bad"),
        };
        Self {
            words,
            tone,
            reason,
        }
    }
}
