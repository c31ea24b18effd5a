//! Trying an integration: one harmless test event, sent to the network now.

use async_trait::async_trait;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;

pub use tributary_domain::integration::Probed;

/// Who sends test events.
#[async_trait]
pub trait Probe: Send + Sync {
    /// Sends one harmless test event to the network now. Where something is missing that it cannot be sent without,
    /// it says what, in words for the operator.
    async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<Probed, String>;
}

/// Sends nothing.
#[cfg(test)]
pub(crate) struct Nowhere;

#[cfg(test)]
#[async_trait]
impl Probe for Nowhere {
    async fn probe(
        &self,
        _organization: OrganizationId,
        _integration: &Integration,
    ) -> Result<Probed, String> {
        Err("Nothing is sent from here.".to_owned())
    }
}
