//! Integrations.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::integration::{Integration, IntegrationChange, Network};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;

/// Integrations. Every app has one integration for each of the four networks. An integration that
/// was never changed has default settings.
#[async_trait]
pub trait Integrations: Send + Sync {
    /// Returns the four integrations of an app, in the order of the networks.
    async fn integrations(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Integration>>;

    /// Changes an integration.
    async fn update_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        change: IntegrationChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration>;
}
