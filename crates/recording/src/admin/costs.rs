//! Ad costs.

use crate::day_values::learn;
use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::report::cost::{Cost, CostChange};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;

/// Stores costs. Each cost replaces the stored one with the same key. Returns the number of costs.
pub async fn put_costs<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    costs: &[Cost],
    origin: &AuditContext,
) -> Result<u64, T::Failure> {
    tables.require_app(organization, app).await?;
    store_costs(tables, app, costs, origin.at).await?;
    let action = Action::CostsUpdated;
    let row = audit_row(organization, origin, action, Some(app), app, &[]);
    tables.insert_audit(&row).await?;
    Ok(u64::try_from(costs.len()).unwrap_or(u64::MAX))
}

/// Converts and writes costs, and keeps their campaigns apart in reports.
pub(super) async fn store_costs<T: Tables>(
    tables: &T,
    app: AppId,
    costs: &[Cost],
    at: Timestamp,
) -> Result<(), T::Failure> {
    let wanted: BTreeSet<(Currency, Day)> =
        costs.iter().map(|cost| (cost.currency, cost.day)).collect();
    let wanted: Vec<(Currency, Day)> = wanted.into_iter().collect();
    let change = CostChange::of(costs, &tables.rates(&wanted).await?)?;
    tables.remove_costs(app, &change.removed).await?;
    tables.write_costs(app, &change.stored, at).await?;
    let campaigns = change.stored.iter().map(|one| one.cost.campaign.clone());
    learn(tables, app, ValueKind::Campaign, campaigns).await
}
