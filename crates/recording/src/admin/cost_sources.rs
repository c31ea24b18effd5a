//! Cost sources, and the costs that are imported from them.

use super::costs::store_costs;
use super::secret_keys::admit_sealed;
use crate::tables::Tables;
use tributary_domain::audit::{Action, AuditContext, FieldChange};
use tributary_domain::cost_source::{CostSource, CostSourceDraft, DaySpan, PullOutcome};
use tributary_domain::integration::Network;
use tributary_domain::report::cost::Cost;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::LeasedCostSource;
use tributary_store::records::audit_row;

/// Replaces a cost source. Returns it.
pub async fn put_cost_source<T: Tables>(
    tables: &T,
    (organization, app, network): (OrganizationId, AppId, Network),
    draft: &CostSourceDraft,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<CostSource, T::Failure> {
    let of = (organization, app, network);
    let new = draft.credentials.values().filter_map(Change::value);
    admit_sealed(tables, new.map(|credential| &credential.sealed)).await?;
    let current = lock(tables, of).await?;
    let changed = current.replaced(draft.clone(), precondition, origin.at)?;
    tables.write_cost_source(&changed.after).await?;
    audit(
        tables,
        of,
        Action::CostSourceUpdated,
        &changed.changes,
        origin,
    )
    .await?;
    Ok(changed.after)
}

/// Removes a cost source, and its imported costs if `with_costs` is set.
pub async fn remove_cost_source<T: Tables>(
    tables: &T,
    of: (OrganizationId, AppId, Network),
    with_costs: bool,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (_, app, network) = of;
    lock(tables, of).await?.admit(precondition)?;
    tables.delete_cost_source(app, network).await?;
    if with_costs {
        tables.remove_imported_costs(app, network, None).await?;
    }
    audit(tables, of, Action::CostSourceRemoved, &[], origin).await
}

/// Makes the next pull due now, if the rule for requested pulls allows it. The request is audited in
/// any case. Returns the cost source.
pub async fn pull_cost_source<T: Tables>(
    tables: &T,
    of: (OrganizationId, AppId, Network),
    origin: &AuditContext,
) -> Result<CostSource, T::Failure> {
    let after = lock(tables, of).await?.pulled_now(origin.at)?;
    tables.write_cost_source(&after).await?;
    audit(tables, of, Action::CostSourcePulled, &[], origin).await?;
    Ok(after)
}

/// Leases the cost source that has been due longest.
pub async fn lease_cost_source<T: Tables>(
    tables: &T,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<LeasedCostSource>, T::Failure> {
    let Some((organization, app, network)) = tables.due_cost_source(now).await? else {
        return Ok(None);
    };
    // Another node may have leased it since it was found.
    let stored = tables.lock_cost_source(app, network).await?;
    let is_due = |source: &CostSource| source.pulls.due_at.is_some_and(|due| due <= now);
    let Some(mut source) = stored.filter(is_due) else {
        return Ok(None);
    };
    source.pulls.due_at = Some(until);
    tables.write_cost_source(&source).await?;
    Ok(Some(LeasedCostSource {
        organization,
        source,
    }))
}

/// Replaces the imported costs of a span of days. Returns whether the lease is still valid.
pub async fn store_imported_costs<T: Tables>(
    tables: &T,
    lease: &LeasedCostSource,
    span: DaySpan,
    costs: &[Cost],
    at: Timestamp,
) -> Result<bool, T::Failure> {
    let (app, network) = (lease.source.app, lease.source.network);
    tables.require_app(lease.organization, app).await?;
    if leased(tables, lease).await?.is_none() {
        return Ok(false);
    }
    tables
        .remove_imported_costs(app, network, Some(span))
        .await?;
    store_costs(tables, app, costs, at).await?;
    Ok(true)
}

/// Stores how a pull ended. Returns whether the lease was still valid.
pub async fn settle_cost_source<T: Tables>(
    tables: &T,
    lease: &LeasedCostSource,
    outcome: &PullOutcome,
    now: Timestamp,
) -> Result<bool, T::Failure> {
    let Some(mut source) = leased(tables, lease).await? else {
        return Ok(false);
    };
    source.pulls = source.pulls.after(outcome.clone(), now);
    tables.write_cost_source(&source).await?;
    Ok(true)
}

/// Returns the stored source if the lease is still valid.
async fn leased<T: Tables>(
    tables: &T,
    lease: &LeasedCostSource,
) -> Result<Option<CostSource>, T::Failure> {
    let of = &lease.source;
    let stored = tables.lock_cost_source(of.app, of.network).await?;
    Ok(stored.filter(|one| one.revision == of.revision && one.pulls.due_at == of.pulls.due_at))
}

async fn lock<T: Tables>(
    tables: &T,
    (organization, app, network): (OrganizationId, AppId, Network),
) -> Result<CostSource, T::Failure> {
    tables.require_app(organization, app).await?;
    let stored = tables.lock_cost_source(app, network).await?;
    Ok(stored.unwrap_or_else(|| CostSource::new(app, network)))
}

async fn audit<T: Tables>(
    tables: &T,
    (organization, app, network): (OrganizationId, AppId, Network),
    action: Action,
    changes: &[FieldChange],
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (target, of) = (network.as_str(), Some(app));
    let row = audit_row(organization, origin, action, of, target, changes);
    tables.insert_audit(&row).await
}
