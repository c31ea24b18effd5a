//! Trying an integration: one harmless test event, sent to the network now.

use async_trait::async_trait;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;

/// What a network made of a test event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Whether it took it.
    pub accepted: bool,
    /// The status of its answer; nothing when none came.
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u32,
    /// The network's code, or ours.
    pub code: Option<String>,
    /// The network's words, cut and cleaned of secrets.
    pub answer: Option<String>,
}

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
