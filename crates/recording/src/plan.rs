//! Plans deliveries for new and changed events.

use crate::tables::Tables;
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::plan::{DeviceFacts, credited_planning_click};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::PlannedRow;

/// Maximum number of deliveries that are locked per query.
const CANCELLED_AT_ONCE_MAX: usize = 4_000;

/// What planning needs besides the event: the app's integrations and the credited click.
pub(crate) struct PlanContext {
    pub(crate) integrations: Arc<[Integration]>,
    /// Click that the events are credited to. Only read when an integration may need the click.
    pub(crate) click: Option<Click>,
}

/// Reads the planning context for an app's events.
pub(crate) async fn read_plan_context<T: Tables>(
    tables: &T,
    app: AppId,
    credit: Option<&Credit>,
) -> Result<PlanContext, T::Failure> {
    let integrations = tables.integrations(app).await?;
    let click = match credited_planning_click(&integrations, credit) {
        Some(click) => tables.click(app, click).await?,
        None => None,
    };
    Ok(PlanContext {
        integrations,
        click,
    })
}

/// An event with its planned deliveries.
pub(crate) struct PlannedEvent {
    pub(crate) event: Event,
    pub(crate) deliveries: Vec<PlannedRow>,
}

/// Plans the deliveries of a new event.
pub(crate) fn plan_event(
    mut event: Event,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
) -> PlannedEvent {
    let plan = facts.plan(&mut event, integrations);
    let row = |delivery| PlannedRow::write(&event, delivery, facts.now);
    let deliveries = plan.planned.iter().map(row).collect();
    PlannedEvent { event, deliveries }
}

/// Records an event, counts it, and plans its deliveries. Does nothing when an event with the same
/// id exists.
pub(crate) async fn record_event<T: Tables>(
    tables: &T,
    event: Event,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let PlannedEvent { event, deliveries } = plan_event(event, facts, integrations);
    if tables.insert_event(&event).await? {
        insert_unless_ended(tables, event.app, deliveries).await?;
        tally.increments.add_event(&event);
    }
    Ok(())
}

/// Context for planning the deliveries of existing events again.
pub(crate) struct ReplanContext<'a> {
    pub(crate) facts: &'a DeviceFacts<'a>,
    pub(crate) integrations: &'a [Integration],
    /// Reason code for deliveries that are cancelled because their network should no longer get the
    /// event.
    pub(crate) cancel_reason: &'static str,
}

/// Plans the deliveries of an app's events again. Cancels pending deliveries to networks that
/// should no longer get the event; finished deliveries stay.
///
/// Pending deliveries are locked first. The lock waits for a transaction that is moving a delivery
/// out of the outbox; otherwise the delivery would be planned twice.
pub(crate) async fn replan<T: Tables>(
    tables: &T,
    app: AppId,
    events: &mut [Event],
    context: &ReplanContext<'_>,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let now = context.facts.now;
    let mut planned = Vec::new();
    let mut cancelled = BTreeMap::new();
    let mut skips_changed = Vec::new();
    for event in events {
        let plan = context.facts.replan(event, context.integrations);
        let row = |planned_delivery| PlannedRow::write(event, planned_delivery, now);
        planned.extend(plan.planned.iter().map(row));
        let delivery = |network| (delivery_id(event.id, network), network);
        cancelled.extend(plan.cancelled.into_iter().map(delivery));
        if plan.skips_changed {
            skips_changed.push(&*event);
        }
    }
    // If no integration is configured, no delivery was ever planned.
    if !context.integrations.is_empty() {
        let mut all: BTreeSet<DeliveryId> = cancelled.keys().copied().collect();
        all.extend(planned.iter().map(planned_id));
        let pending = tables.lock_pending(app, &all, now).await?;
        cancel(
            tables,
            app,
            &pending,
            &cancelled,
            (context.cancel_reason, now),
            tally,
        )
        .await?;
        insert_unless_ended(tables, app, planned).await?;
    }
    if skips_changed.is_empty() {
        return Ok(());
    }
    tables.write_skipped(&skips_changed).await
}

/// Cancels all pending deliveries of some events.
pub(crate) async fn cancel_all<T: Tables>(
    tables: &T,
    app: AppId,
    events: &[EventId],
    (reason, at): (&'static str, Timestamp),
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let of_event =
        |event: &EventId| Network::ALL.map(|network| (delivery_id(*event, network), network));
    // Sorted by id across all chunks, because every transaction locks deliveries in id order.
    let all: BTreeMap<DeliveryId, Network> = events.iter().flat_map(of_event).collect();
    let all: Vec<(DeliveryId, Network)> = all.into_iter().collect();
    for chunk in all.chunks(CANCELLED_AT_ONCE_MAX) {
        let chunk: BTreeMap<DeliveryId, Network> = chunk.iter().copied().collect();
        let ids = chunk.keys().copied().collect();
        let pending = tables.lock_pending(app, &ids, at).await?;
        cancel(tables, app, &pending, &chunk, (reason, at), tally).await?;
    }
    Ok(())
}

/// Cancels the given deliveries that are still pending.
async fn cancel<T: Tables>(
    tables: &T,
    app: AppId,
    pending: &BTreeSet<DeliveryId>,
    cancelled: &BTreeMap<DeliveryId, Network>,
    (reason, now): (&'static str, Timestamp),
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let mut ended = BTreeSet::new();
    for (id, network) in cancelled.iter().filter(|(id, _)| pending.contains(id)) {
        let queue = QueueRef {
            app,
            network: *network,
        };
        let queues = tally.cancelled.entry(now).or_default();
        let counts = queues.entry(queue).or_default();
        counts.add([DeliveryStatus::Cancelled]);
        ended.insert(*id);
    }
    if ended.is_empty() {
        return Ok(());
    }
    tables.cancel(app, &ended, reason, now).await
}

/// Puts deliveries into the outbox unless they are finished. A delivery that was cancelled before
/// its first attempt because its event changed is planned again.
async fn insert_unless_ended<T: Tables>(
    tables: &T,
    app: AppId,
    mut planned: Vec<PlannedRow>,
) -> Result<(), T::Failure> {
    if planned.is_empty() {
        return Ok(());
    }
    let ids = planned.iter().map(planned_id).collect();
    tables.remove_cancelled(app, &ids).await?;
    let ended = tables.find_ended(app, &ids).await?;
    planned.retain(|row| !ended.contains(&planned_id(row)));
    tables.insert_planned(&planned).await
}

const fn planned_id(row: &PlannedRow) -> DeliveryId {
    DeliveryId::from_bytes(row.delivery_id)
}
