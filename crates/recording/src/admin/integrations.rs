//! Integrations with networks, and how they do.

use crate::tables::Tables;
use tributary_domain::audit::{Action, Origin};
use tributary_domain::integration::{Integration, IntegrationChange, Network};
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{audit_row, day_before};
use tributary_store::{Health, QueueRef};

/// Changes an integration. Returns it as it is then.
pub async fn update_integration<T: Tables>(
    tables: &T,
    (organization, queue): (OrganizationId, QueueRef),
    change: &IntegrationChange,
    precondition: &Precondition,
    origin: &Origin,
) -> Result<Integration, T::Failure> {
    tables.require_app(organization, queue.app).await?;
    let current = integration(tables, queue).await?;
    let changed = current.changed(change.clone(), precondition, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    tables.write_integration(&changed.after).await?;
    // The change may remove what stopped the queue.
    go_on(tables, queue).await?;
    let (action, target) = (Action::IntegrationUpdated, queue.network.as_str());
    let (app, changes) = (Some(queue.app), &changed.changes);
    let row = audit_row(organization, origin, action, app, target, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Lets the queue of an integration go on. Returns the integration.
pub async fn resume_integration<T: Tables>(
    tables: &T,
    (organization, queue): (OrganizationId, QueueRef),
    precondition: &Precondition,
    origin: &Origin,
) -> Result<Integration, T::Failure> {
    tables.require_app(organization, queue.app).await?;
    let found = integration(tables, queue).await?;
    found.admit(precondition)?;
    go_on(tables, queue).await?;
    let (action, target) = (Action::IntegrationResumed, queue.network.as_str());
    let row = audit_row(organization, origin, action, Some(queue.app), target, &[]);
    tables.insert_audit(&row).await?;
    Ok(found)
}

/// Reads an integration, which is untouched where none is stored.
pub(crate) async fn integration<T: Tables>(
    tables: &T,
    queue: QueueRef,
) -> Result<Integration, T::Failure> {
    let stored = tables.integrations(queue.app).await?;
    let found = stored.iter().find(|one| one.network == queue.network);
    Ok(found
        .cloned()
        .unwrap_or_else(|| Integration::untouched(queue.app, queue.network)))
}

/// Lets a paused queue go on. It is locked first: the process that holds it may just be writing that it stops.
async fn go_on<T: Tables>(tables: &T, queue: QueueRef) -> Result<(), T::Failure> {
    let stored = tables.lock_queue(queue).await?;
    let is_stored = stored.is_some();
    let mut state = stored.unwrap_or_default();
    state.changed();
    tables.write_queue(queue, &state, is_stored).await
}

/// Reads how the integrations of an app do, in the order of the networks.
pub async fn integration_health<T: Tables>(
    tables: &T,
    app: AppId,
    now: Timestamp,
) -> Result<Vec<(Network, Health)>, T::Failure> {
    let mut states = tables.queue_states(app).await?;
    let waiting = tables.waiting_deliveries(app).await?;
    let ended = tables.ended_since(app, day_before(now)).await?;
    let health = |network| {
        let ended = ended.get(&network).copied().unwrap_or_default();
        let health = Health {
            state: states.remove(&network).unwrap_or_default(),
            pending: waiting.get(&network).copied().unwrap_or_default(),
            delivered: ended.delivered(),
            failed: ended.failed(),
            ..Health::default()
        };
        (network, health)
    };
    Ok(Network::ALL.into_iter().map(health).collect())
}
