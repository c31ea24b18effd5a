//! Health of an app's integrations.

use crate::error::ApiError;
use crate::state::ApiState;
use std::collections::BTreeMap;
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::forwarding::skipped::SkippedConversions;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::IntegrationHealth;

/// The health of all of an app's integrations, loaded in one query.
#[derive(Debug)]
pub(super) struct HealthByNetwork {
    by_network: BTreeMap<Network, IntegrationHealth>,
    /// Default for a network without data.
    unknown: IntegrationHealth,
}

impl HealthByNetwork {
    pub(super) async fn load(
        state: &ApiState,
        reader: &Authorized<AppsRead>,
        app: AppId,
    ) -> Result<Self, ApiError> {
        let now = state.runtime.now();
        let mut found = state.store.integration_health(reader, app, now).await?;
        if reader.environment() == Environment::Test {
            // A test key may see whether the integration is paused, because that is a setting. The
            // other figures are live data.
            for (_, health) in &mut found {
                (health.pending, health.delivered, health.failed) = (0, 0, 0);
                health.state.last_delivered_at = None;
                health.skipped = SkippedConversions::default();
            }
        }
        Ok(Self {
            by_network: found.into_iter().collect(),
            unknown: IntegrationHealth::default(),
        })
    }

    pub(super) fn of(&self, integration: &Integration) -> &IntegrationHealth {
        let found = self.by_network.get(&integration.network);
        found.unwrap_or(&self.unknown)
    }
}

/// Loads one integration's health.
pub(super) async fn load_health(
    state: &ApiState,
    reader: &Authorized<AppsRead>,
    integration: &Integration,
) -> Result<IntegrationHealth, ApiError> {
    let all = HealthByNetwork::load(state, reader, integration.app).await?;
    Ok(all.of(integration).clone())
}
