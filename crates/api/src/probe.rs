//! Tests an integration by sending one test event.

use async_trait::async_trait;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;

pub use tributary_domain::integration::TestEventResult;

/// Sends test events to ad networks.
#[async_trait]
pub trait IntegrationProbe: Send + Sync {
    /// Sends one test event to the network now. The error tells the operator which setting or
    /// credential is missing.
    async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<TestEventResult, String>;
}

/// A probe that sends nothing.
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
        Err("This probe sends nothing.".to_owned())
    }
}
