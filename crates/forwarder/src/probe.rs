//! Tests an integration by sending one test event.

use crate::pacing::ProjectPacer;
use crate::send::NetworkClient;
use crate::tokens::TokenCache;
use crate::{ForwarderParts, ForwarderState, account, judge};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_networks::{Account, Ruling, UnusableIntegration, check, test_conversion};
use tributary_store::QueueRef;

/// Timeout for a test. It is short, because the user waits for the result in a request that has its
/// own timeout.
const PROBE_MAX: Duration = Duration::from_secs(15);

/// Sends test events.
#[derive(Clone)]
pub struct Prober {
    shared: Arc<ForwarderState>,
}

/// A network's response to a test event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkProbeResponse {
    /// Whether the network accepted the event.
    pub accepted: bool,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Duration of the request.
    pub duration_ms: u32,
    /// The network's code.
    pub code: Option<String>,
    /// The network's message, redacted.
    pub answer: Option<String>,
}

impl Prober {
    /// Creates a prober from the forwarder's parts.
    pub fn new(parts: ForwarderParts) -> Self {
        Self {
            shared: Arc::new(ForwarderState {
                parts,
                tokens: TokenCache::default(),
                pacer: ProjectPacer::default(),
            }),
        }
    }

    /// Sends one event, marked as a test, to the integration's network.
    pub async fn probe(
        &self,
        organization: OrganizationId,
        integration: &Integration,
    ) -> Result<NetworkProbeResponse, UnusableIntegration> {
        let keyring = &self.shared.parts.keyring;
        let credentials = account::open_credentials(keyring, organization, integration)?;
        let account = Account::read_for_test(integration, &credentials)?;
        let now = self.shared.parts.runtime.now();
        let conversion = test_conversion(&account, now, integration.app);
        check(&account, &conversion).map_err(|reason| UnusableIntegration {
            message: format!("A test event cannot be sent: {}.", reason.code),
        })?;
        let client = NetworkClient {
            shared: &self.shared,
            queue: QueueRef {
                app: integration.app,
                network: integration.network,
            },
            revision: integration.revision.number(),
            account: &account,
        };
        let batch = std::slice::from_ref(&conversion);
        let sent = client.send(batch);
        let Ok(outcome) = tokio::time::timeout(PROBE_MAX, sent).await else {
            return Ok(NetworkProbeResponse {
                accepted: false,
                status: None,
                duration_ms: u32::try_from(PROBE_MAX.as_millis()).unwrap_or(u32::MAX),
                code: Some("timeout".to_owned()),
                answer: Some("The network did not respond in time.".to_owned()),
            });
        };
        let judgement = &outcome.judgement;
        Ok(NetworkProbeResponse {
            accepted: judgement.ruling == Ruling::Delivered,
            status: judgement.status,
            duration_ms: u32::try_from(outcome.duration.as_millis()).unwrap_or(u32::MAX),
            code: judgement.code.clone(),
            answer: judge::response_text(&account, batch, &outcome),
        })
    }
}
