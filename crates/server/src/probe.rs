//! Tests an integration for the REST API.

use async_trait::async_trait;
use tributary_api::{IntegrationProbe, TestEventResult};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_forwarder::{ForwarderParts, Prober};

/// Sends test events to the real networks.
pub struct NetworkProbe {
    prober: Prober,
}

impl NetworkProbe {
    /// Creates a probe from the forwarder's parts.
    pub fn new(parts: ForwarderParts) -> Self {
        Self {
            prober: Prober::new(parts),
        }
    }
}

#[async_trait]
impl IntegrationProbe for NetworkProbe {
    async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<TestEventResult, String> {
        let probed = self.prober.probe(organization, integration).await;
        let probed = probed.map_err(|reason| reason.message)?;
        Ok(TestEventResult {
            accepted: probed.accepted,
            status: probed.status,
            duration_ms: probed.duration_ms,
            code: probed.code,
            answer: probed.answer,
        })
    }
}
