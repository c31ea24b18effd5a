//! Trying an integration: one harmless test event, sent to the network now.

use async_trait::async_trait;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;

pub use tributary_domain::integration::TestEventResult;

/// Who sends test events.
#[async_trait]
pub trait IntegrationProbe: Send + Sync {
    /// Sends one harmless test event to the network now. Where something is missing that it cannot be sent without,
    /// it says what, in words for the operator.
    async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<TestEventResult, String>;
}

/// Sends nothing.
#[cfg(test)]
pub(crate) struct UnusedProbe;

#[cfg(test)]
#[async_trait]
impl IntegrationProbe for UnusedProbe {
    async fn probe(
        &self,
        _organization: OrganizationId,
        _integration: &Integration,
    ) -> Result<TestEventResult, String> {
        Err("Nothing is sent from here.".to_owned())
    }
}
