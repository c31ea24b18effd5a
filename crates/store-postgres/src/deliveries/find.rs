//! Finds pending deliveries in the outbox, and finished deliveries.

use crate::conversions::find_events;
use crate::params::Param;
use crate::rows::{Conditions, id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, events, queues};
use tributary_domain::access::Environment;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_ids};
use tributary_domain::forwarding::{Delivery, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_store::DeliveryWithEvent;
use tributary_store::records::{Columns, DeliveryRow, EVENT_NAME, OutboxRow};
use uuid::Uuid;

/// Finds pending deliveries.
async fn pending(
    tx: &Tx,
    conditions: &str,
    params: &[&dyn Param],
) -> Result<Vec<Delivery>, Failure> {
    let sql = format!(
        "select {} from outbox as found where {conditions}",
        OutboxRow::COLUMNS
    );
    let rows = tx.query(&sql, params).await?;
    let mut found = rows
        .iter()
        .map(|row| Ok(read_row::<OutboxRow>(row)?.read()?))
        .collect::<Result<Vec<Delivery>, Failure>>()?;
    if let Some(first) = found.first() {
        let states = queues::find_states(tx, first.app).await?;
        for delivery in &mut found {
            if let Some(state) = states.get(&delivery.network) {
                delivery.apply_queue_delay(state);
            }
        }
    }
    Ok(found)
}

/// Finds finished deliveries.
async fn ended(tx: &Tx, conditions: &str, params: &[&dyn Param]) -> Result<Vec<Delivery>, Failure> {
    let sql = format!(
        "select {} from deliveries as found where {conditions}",
        DeliveryRow::COLUMNS
    );
    let rows = tx.query(&sql, params).await?;
    rows.iter()
        .map(|row| Ok(read_row::<DeliveryRow>(row)?.read()?))
        .collect()
}

/// A delivery filter as SQL values.
struct DeliverySearch {
    app: Uuid,
    before: Option<Uuid>,
    from: Option<Uuid>,
    until: Option<Uuid>,
    ids: Option<Vec<Uuid>>,
    network: Option<&'static str>,
    event_name: Option<String>,
    /// Applies to finished deliveries only; pending ones have no reason.
    reason: Option<String>,
}

impl DeliverySearch {
    async fn of(
        tx: &Tx,
        app: AppId,
        filter: &DeliveryFilter,
        before: Option<[u8; 16]>,
    ) -> Result<Self, Failure> {
        let app = uuid(app.as_bytes());
        // A delivery id starts with the time of its event.
        let first_at = |moment| uuid(DeliveryId::first_at(moment).as_bytes());
        let ids = match &filter.external_id {
            Some(external_id) => {
                let live = Environment::Live.as_str();
                let events = events::find_event_ids(tx, app, live, external_id).await?;
                let events = events.into_iter().map(Uuid::into_bytes);
                Some(ids_of_events(events.map(EventId::from_bytes)))
            }
            None => None,
        };
        Ok(Self {
            app,
            before: before.as_ref().map(uuid),
            from: filter.from.map(first_at),
            until: filter.until.map(first_at),
            ids,
            network: filter.network.map(Network::as_str),
            event_name: filter.event_name.clone(),
            reason: filter.reason.clone(),
        })
    }

    /// Conditions that apply to both tables.
    fn conditions(&self) -> Conditions<'_> {
        Conditions::new("app_id", &self.app)
            .and("delivery_id <", self.before.as_ref())
            .and("delivery_id >=", self.from.as_ref())
            .and("delivery_id <", self.until.as_ref())
            .and_any("delivery_id", self.ids.as_ref())
            .and("network =", self.network.as_ref())
            .and(&format!("{EVENT_NAME} ="), self.event_name.as_ref())
    }

    async fn pending(&self, tx: &Tx, limit: i64) -> Result<Vec<Delivery>, Failure> {
        if self.reason.is_some() {
            return Ok(Vec::new());
        }
        let (conditions, params) = self.conditions().newest("delivery_id", &limit);
        pending(tx, &conditions, &params).await
    }

    async fn ended(
        &self,
        tx: &Tx,
        status: Option<DeliveryStatus>,
        limit: i64,
    ) -> Result<Vec<Delivery>, Failure> {
        let status = status.map(DeliveryStatus::as_str);
        let (conditions, params) = self
            .conditions()
            .and(comparison(status), status.as_ref())
            .and("reason =", self.reason.as_ref())
            .newest("delivery_id", &limit);
        ended(tx, &conditions, &params).await
    }
}

/// Returns the status condition. For statuses other than delivered, it includes a redundant
/// condition that makes the planner use the partial index on failures.
fn comparison(status: Option<&str>) -> &'static str {
    if status == Some(DeliveryStatus::Delivered.as_str()) {
        "status ="
    } else {
        "status <> 'delivered' and status ="
    }
}

/// Finds matching deliveries, newest first.
pub(super) async fn find(
    tx: &Tx,
    app: AppId,
    filter: &DeliveryFilter,
    before: Option<[u8; 16]>,
    limit: i64,
) -> Result<Vec<Delivery>, Failure> {
    let wanted = DeliverySearch::of(tx, app, filter, before).await?;
    match filter.status {
        Some(DeliveryStatus::Pending) => wanted.pending(tx, limit).await,
        Some(status) => wanted.ended(tx, Some(status), limit).await,
        None => {
            let mut both = wanted.pending(tx, limit).await?;
            both.extend(wanted.ended(tx, None, limit).await?);
            both.sort_by_key(|delivery| std::cmp::Reverse(delivery.id));
            both.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(both)
        }
    }
}

/// Finds the ids of matching finished deliveries, newest first.
pub(crate) async fn find_ended_ids(
    tx: &Tx,
    app: AppId,
    filter: &DeliveryFilter,
    limit: i64,
) -> Result<Vec<DeliveryId>, Failure> {
    let wanted = DeliverySearch::of(tx, app, filter, None).await?;
    let status = filter.status.map(DeliveryStatus::as_str);
    let (conditions, params) = wanted
        .conditions()
        .and(comparison(status), status.as_ref())
        .and("reason =", wanted.reason.as_ref())
        .newest("delivery_id", &limit);
    let sql = format!("select delivery_id from deliveries as found where {conditions}");
    let rows = tx.query(&sql, &params).await?;
    let read = |row| Ok(DeliveryId::from_bytes(id(row, 0)?));
    rows.iter().map(read).collect()
}

/// Adds each delivery's event.
pub(super) async fn with_events(
    tx: &Tx,
    app: AppId,
    deliveries: Vec<Delivery>,
) -> Result<Vec<DeliveryWithEvent>, Failure> {
    let events = find_events(tx, app, deliveries.iter().map(|delivery| delivery.event)).await?;
    let with_event = |delivery: Delivery| DeliveryWithEvent {
        event: events.get(&delivery.event).cloned(),
        delivery,
    };
    Ok(deliveries.into_iter().map(with_event).collect())
}

pub(crate) async fn find_one(
    tx: &Tx,
    app: AppId,
    id: DeliveryId,
) -> Result<DeliveryWithEvent, Failure> {
    let found = by_ids(tx, app, vec![uuid(id.as_bytes())]).await?;
    let delivery = found.into_iter().next().ok_or(Refusal::DeliveryNotFound)?;
    let mut found = with_events(tx, app, vec![delivery]).await?;
    Ok(found.pop().ok_or(Refusal::DeliveryNotFound)?)
}

/// Finds the deliveries of events.
pub(super) async fn find_by_events(
    tx: &Tx,
    app: AppId,
    events: &[EventId],
) -> Result<Vec<Delivery>, Failure> {
    let mut found = by_ids(tx, app, ids_of_events(events.iter().copied())).await?;
    // In the order of the events, then in the order of the networks.
    found.sort_by_key(|delivery| {
        let index = events.iter().position(|event| *event == delivery.event);
        (index, delivery.network)
    });
    Ok(found)
}

async fn by_ids(tx: &Tx, app: AppId, ids: Vec<Uuid>) -> Result<Vec<Delivery>, Failure> {
    const CONDITIONS: &str = "app_id = $1 and delivery_id = any($2)";
    let params: [&dyn Param; 2] = [&uuid(app.as_bytes()), &ids];
    let mut found = pending(tx, CONDITIONS, &params).await?;
    found.extend(ended(tx, CONDITIONS, &params).await?);
    Ok(found)
}

/// Returns the ids that deliveries for these events would have.
fn ids_of_events(events: impl Iterator<Item = EventId>) -> Vec<Uuid> {
    let ids = events.flat_map(delivery_ids);
    ids.map(|id| uuid(id.as_bytes())).collect()
}
