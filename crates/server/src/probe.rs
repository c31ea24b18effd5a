//! Trying an integration out, as the REST interface asks for it.

use async_trait::async_trait;
use tributary_api::{Probe, Probed};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_forwarder::{Parts, Prober};

/// Asks the networks themselves.
pub struct NetworkProbe {
    prober: Prober,
}

impl NetworkProbe {
    /// From the parts of the forwarder.
    pub fn new(parts: Parts) -> Self {
        Self {
            prober: Prober::new(parts),
        }
    }
}

#[async_trait]
impl Probe for NetworkProbe {
    async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<Probed, String> {
        let probed = self.prober.probe(organization, integration).await;
        let probed = probed.map_err(|reason| reason.words)?;
        Ok(Probed {
            accepted: probed.accepted,
            status: probed.status,
            duration_ms: probed.duration_ms,
            code: probed.code,
            answer: probed.answer,
        })
    }
}
