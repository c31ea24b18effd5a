//! Cost sources, and the costs that are imported from them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::cost_source::{CostSource, CostSourceDraft, DaySpan, PullOutcome};
use tributary_domain::integration::Network;
use tributary_domain::report::cost::Cost;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// A cost source whose pull a node has leased. The lease is valid while the stored source has the
/// same revision and the same due time, which is the end of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedCostSource {
    /// The app's organization.
    pub organization: OrganizationId,
    /// The source.
    pub source: CostSource,
}

/// Cost sources. Every app has one for each network with a reporting interface.
#[async_trait]
pub trait CostSources: Send + Sync {
    /// Returns the cost sources of an app, in the order of the networks.
    async fn cost_sources(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<CostSource>>;

    /// Replaces a cost source. Its next pull is due at once.
    async fn put_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        draft: CostSourceDraft,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<CostSource>;

    /// Removes a cost source and its credentials, and its imported costs if `with_costs` is set.
    async fn remove_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        with_costs: bool,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Makes the next pull due now. Changes nothing while a pull runs, shortly after one, and during a
    /// longer wait that the network asked for.
    async fn pull_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        origin: AuditContext,
    ) -> StoreResult<CostSource>;

    /// Leases the cost source that has been due longest. Archived apps are left out.
    async fn lease_cost_source(
        &self,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedCostSource>>;

    /// Replaces the imported costs of the network in a span of days, all at once. Stores nothing if
    /// one of the costs cannot be converted to USD, or if the lease was lost. Returns whether the
    /// lease is still valid.
    async fn store_imported_costs(
        &self,
        lease: LeasedCostSource,
        span: DaySpan,
        costs: Vec<Cost>,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Stores how a pull ended. Returns whether the lease was still valid.
    async fn settle_cost_source(
        &self,
        lease: LeasedCostSource,
        outcome: PullOutcome,
        now: Timestamp,
    ) -> StoreResult<bool>;
}
