//! Recent deliveries by network.

use crate::access::PageContext;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::pages::integrations::StatusLabel;
use crate::state::DashboardHandles;
use crate::text;
use tributary_domain::access::{AnalyticsRead, AppsRead, Scope};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::IntegrationHealth;

/// Deliveries to a network in the last 24 hours.
pub(super) struct HealthRow {
    pub(super) network: NetworkLabel,
    pub(super) delivered: String,
    pub(super) failed: String,
    pub(super) pending: String,
    /// Status, unless the integration is active or the user may not see it.
    pub(super) status: Option<StatusLabel>,
}

impl HealthRow {
    fn of(network: Network, health: &IntegrationHealth, all: &[Integration]) -> Self {
        let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
        let integration = all.iter().find(|one| one.network == network);
        let status = integration.map(|one| StatusLabel::of(one, &health.state));
        Self {
            network: NetworkLabel::of(network),
            delivered: number(health.delivered),
            failed: number(health.failed),
            pending: number(health.pending),
            status: status.filter(|status| !status.is_active()),
        }
    }
}

/// Loads the deliveries.
pub(super) async fn health(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    app: AppId,
) -> Result<Vec<HealthRow>, Failure> {
    let (store, caller) = (&handles.store, &context.authorized);
    let found = store
        .delivery_health(caller, app, handles.runtime.now())
        .await?;
    let all = if context.session.user.role.grants(AppsRead::NAME) {
        let reader = context
            .session
            .authorize::<AppsRead>(caller.environment())?;
        store.integrations(&reader, app).await?
    } else {
        Vec::new()
    };
    let rows = found.iter();
    Ok(rows
        .map(|(network, health)| HealthRow::of(*network, health, &all))
        .collect())
}
