//! `/apps/{app}/integrations` — the connections to the four networks.

pub(crate) mod billing;
pub(crate) mod list;
pub(crate) mod mapping;
pub(crate) mod network;
pub(crate) mod try_out;
mod words;

pub(crate) use words::network_name;

use crate::access::Reader;
use crate::failure::Failure;
use crate::state::Handles;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{Integration, Network};
use tributary_store::Health;

/// The network that a path names.
fn network_of<S>(reader: &Reader<S>) -> Result<Network, Failure> {
    Network::parse(reader.part("network")).ok_or(Failure::NotFound)
}

/// An integration and how it does.
async fn find(
    handles: &Handles,
    reader: &Reader<impl Send>,
    caller: &Authorized<AppsRead>,
    network: Network,
) -> Result<(Integration, Health), Failure> {
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
struct StatusWords {
    words: &'static str,
    tone: &'static str,
    reason: Option<String>,
}

impl StatusWords {
    fn of(integration: &Integration, state: &QueueState) -> Self {
        use tributary_domain::integration::Status;
        let (status, reason) = integration.status(state);
        let (words, tone) = match status {
            Status::NotConfigured => ("Not connected", "quiet"),
            Status::Active => ("Active", "good"),
            Status::Paused if integration.enabled => ("Paused", "bad"),
            Status::Paused => ("Switched off", "quiet"),
            Status::Error => ("Failing", "bad"),
        };
        Self {
            words,
            tone,
            reason,
        }
    }
}
