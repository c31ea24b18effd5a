//! Planning deliveries of events that are recorded, and of events that change.

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

/// Deliveries that are looked for at once.
const CANCELLED_AT_ONCE_MAX: usize = 4_000;

/// What planning the events of one app needs beside the events.
pub(crate) struct PlanContext {
    pub(crate) integrations: Arc<[Integration]>,
    /// The click that the events are credited to, where an integration might send something.
    pub(crate) click: Option<Click>,
}

/// Gathers them.
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

/// Records an event, counts it, and plans its deliveries; nothing when an event of its id is stored.
pub(crate) async fn record_event<T: Tables>(
    tables: &T,
    mut event: Event,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let plan = facts.plan(&mut event, integrations);
    if tables.insert_event(&event).await? {
        let row = |one| PlannedRow::write(&event, one, facts.now);
        insert_unless_ended(tables, event.app, plan.planned.iter().map(row).collect()).await?;
        tally.increments.add_event(&event);
    }
    Ok(())
}

/// What events are planned with once more.
pub(crate) struct ReplanContext<'a> {
    pub(crate) facts: &'a DeviceFacts<'a>,
    pub(crate) integrations: &'a [Integration],
    /// Why deliveries that are not planned any more are cancelled.
    pub(crate) cancel_reason: &'static str,
}

/// Plans events of an app again. A delivery to a network that the event no longer concerns is cancelled where it still
/// waits; one that arrived, arrived.
///
/// What waits is locked first. A transaction that is just moving a delivery from the outbox to its end is waited for,
/// and is then seen to have done so; otherwise the delivery would be planned a second time.
pub(crate) async fn replan<T: Tables>(
    tables: &T,
    app: AppId,
    events: &mut [Event],
    again: &ReplanContext<'_>,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let now = again.facts.now;
    let mut planned = Vec::new();
    let mut cancelled = BTreeMap::new();
    let mut renoted = Vec::new();
    for event in events {
        let plan = again.facts.replan(event, again.integrations);
        let row = |one| PlannedRow::write(event, one, now);
        planned.extend(plan.planned.iter().map(row));
        let delivery = |network| (delivery_id(event.id, network), network);
        cancelled.extend(plan.cancelled.into_iter().map(delivery));
        if plan.skips_changed {
            renoted.push(&*event);
        }
    }
    // Nothing was ever planned where no integration was ever touched.
    if !again.integrations.is_empty() {
        let mut all: BTreeSet<DeliveryId> = cancelled.keys().copied().collect();
        all.extend(planned.iter().map(planned_id));
        let waiting = tables.lock_pending(app, &all, now).await?;
        cancel(
            tables,
            app,
            &waiting,
            &cancelled,
            (again.cancel_reason, now),
            tally,
        )
        .await?;
        insert_unless_ended(tables, app, planned).await?;
    }
    if renoted.is_empty() {
        return Ok(());
    }
    tables.write_skipped(&renoted).await
}

/// Cancels whatever waits of some events.
pub(crate) async fn cancel_all<T: Tables>(
    tables: &T,
    app: AppId,
    events: &[EventId],
    why: (&'static str, Timestamp),
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let of_event =
        |event: &EventId| Network::ALL.map(|network| (delivery_id(*event, network), network));
    // In the order of their ids over all parts, as every transaction locks them.
    let all: BTreeMap<DeliveryId, Network> = events.iter().flat_map(of_event).collect();
    let all: Vec<(DeliveryId, Network)> = all.into_iter().collect();
    for part in all.chunks(CANCELLED_AT_ONCE_MAX) {
        let part: BTreeMap<DeliveryId, Network> = part.iter().copied().collect();
        let ids = part.keys().copied().collect();
        let waiting = tables.lock_pending(app, &ids, why.1).await?;
        cancel(tables, app, &waiting, &part, why, tally).await?;
    }
    Ok(())
}

/// Cancels those deliveries that wait.
async fn cancel<T: Tables>(
    tables: &T,
    app: AppId,
    waiting: &BTreeSet<DeliveryId>,
    cancelled: &BTreeMap<DeliveryId, Network>,
    (why, now): (&'static str, Timestamp),
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let mut ended = BTreeSet::new();
    for (id, network) in cancelled.iter().filter(|(id, _)| waiting.contains(id)) {
        let queue = QueueRef {
            app,
            network: *network,
        };
        let of_moment = tally.cancelled.entry(now).or_default();
        let counts = of_moment.entry(queue).or_default();
        counts.add([DeliveryStatus::Cancelled]);
        ended.insert(*id);
    }
    if ended.is_empty() {
        return Ok(());
    }
    tables.cancel(app, &ended, why, now).await
}

/// Puts deliveries into the outbox, unless they ended. Those that were cancelled before their first attempt because
/// their event changed are planned again.
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
