//! Integrations with ad networks, and their health.

use super::secret_keys::admit_sealed;
use crate::day_values::learn;
use crate::tables::Tables;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::integration::{Integration, IntegrationChange, Network};
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{audit_row, first_hour_of_last_day};
use tributary_store::{IntegrationHealth, QueueRef};

/// Changes an integration. Returns the updated integration.
pub async fn update_integration<T: Tables>(
    tables: &T,
    (organization, queue): (OrganizationId, QueueRef),
    change: &IntegrationChange,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Integration, T::Failure> {
    let new = change.credentials.values().filter_map(Change::value);
    admit_sealed(tables, new.map(|credential| &credential.sealed)).await?;
    tables.require_app(organization, queue.app).await?;
    let current = read_integration(tables, queue).await?;
    let changed = current.changed(change.clone(), precondition, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    tables.write_integration(&changed.after).await?;
    let mapping = changed.after.event_mapping.iter().flatten();
    let names = mapping.map(|row| row.event.clone());
    learn(tables, queue.app, ValueKind::Name, names).await?;
    // The change may fix the cause of the pause.
    resume_queue(tables, queue, origin.at).await?;
    let (action, target) = (Action::IntegrationUpdated, queue.network.as_str());
    let (app, changes) = (Some(queue.app), &changed.changes);
    let row = audit_row(organization, origin, action, app, target, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Resumes an integration's queue. Returns the integration.
pub async fn resume_integration<T: Tables>(
    tables: &T,
    (organization, queue): (OrganizationId, QueueRef),
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Integration, T::Failure> {
    tables.require_app(organization, queue.app).await?;
    let found = read_integration(tables, queue).await?;
    found.admit(precondition)?;
    resume_queue(tables, queue, origin.at).await?;
    let (action, target) = (Action::IntegrationResumed, queue.network.as_str());
    let row = audit_row(organization, origin, action, Some(queue.app), target, &[]);
    tables.insert_audit(&row).await?;
    Ok(found)
}

/// Reads an integration. Returns the default settings when none is stored.
pub(crate) async fn read_integration<T: Tables>(
    tables: &T,
    queue: QueueRef,
) -> Result<Integration, T::Failure> {
    let stored = tables.integrations(queue.app).await?;
    let found = stored.iter().find(|one| one.network == queue.network);
    Ok(found
        .cloned()
        .unwrap_or_else(|| Integration::new(queue.app, queue.network)))
}

/// Resumes a paused queue. Locks it first, because the lease holder may be writing a pause at the
/// same time.
async fn resume_queue<T: Tables>(
    tables: &T,
    queue: QueueRef,
    at: Timestamp,
) -> Result<(), T::Failure> {
    let stored = tables.lock_queue(queue).await?;
    let is_stored = stored.is_some();
    let mut state = stored.unwrap_or_default();
    state.resume_if_paused(at);
    tables.write_queue(queue, &state, is_stored).await
}

/// Reads the health of an app's integrations, in the order of the networks.
pub async fn integration_health<T: Tables>(
    tables: &T,
    app: AppId,
    now: Timestamp,
) -> Result<Vec<(Network, IntegrationHealth)>, T::Failure> {
    let mut states = tables.queue_states(app).await?;
    let waiting = tables.pending_delivery_counts(app).await?;
    let ended = tables
        .terminal_counts_since(app, first_hour_of_last_day(now))
        .await?;
    let health = |network| {
        let ended = ended.get(&network).copied().unwrap_or_default();
        let health = IntegrationHealth {
            state: states.remove(&network).unwrap_or_default(),
            pending: waiting.get(&network).copied().unwrap_or_default(),
            delivered: ended.delivered(),
            failed: ended.failed(),
            ..IntegrationHealth::default()
        };
        (network, health)
    };
    Ok(Network::ALL.into_iter().map(health).collect())
}
