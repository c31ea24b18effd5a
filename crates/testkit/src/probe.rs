//! A connection test that accepts every event without sending it. Like the real connection test, it
//! requires `testEventCode` for `network_a` and `network_c`.

use async_trait::async_trait;
use tributary_api::{IntegrationProbe, TestEventResult};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::OrganizationId;

pub(crate) struct TestProbe;

#[async_trait]
impl IntegrationProbe for TestProbe {
    async fn probe(
        &self,
        _organization: OrganizationId,
        integration: &Integration,
    ) -> Result<TestEventResult, String> {
        let needs_code = matches!(integration.network, Network::A | Network::C);
        if needs_code && integration.text("testEventCode").is_none() {
            return Err("Set `testEventCode`, which marks the event as a test.".to_owned());
        }
        Ok(TestEventResult {
            accepted: true,
            status: Some(200),
            duration_ms: 1,
            code: None,
            answer: Some("accepted".to_owned()),
        })
    }
}
