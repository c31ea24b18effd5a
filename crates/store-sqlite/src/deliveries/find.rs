//! Finds pending deliveries in the outbox, and finished deliveries.

use crate::conversions::find_event;
use crate::rows::read_row;
use crate::{Failure, events, queues};
use rusqlite::{Connection, ToSql, params_from_iter};
use tributary_domain::access::Environment;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_ids};
use tributary_domain::forwarding::{Delivery, DeliveryStatus};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_store::records::{Columns, DeliveryRow, EVENT_NAME, OutboxRow};
use tributary_store::{DeliveryWithEvent, QueueRef};

/// A delivery filter as SQL conditions that apply to both tables.
struct Conditions {
    sql: String,
    values: Vec<Vec<u8>>,
    /// Values that follow the others.
    texts: Vec<String>,
    /// Applies to finished deliveries only; pending ones have no reason.
    reason: Option<String>,
}

fn conditions(
    connection: &Connection,
    app: AppId,
    filter: &DeliveryFilter,
    before: Vec<u8>,
) -> Result<Conditions, Failure> {
    let mut sql = "app_id = ? and delivery_id < ?".to_owned();
    let mut values = vec![app.as_bytes().to_vec(), before];
    if let Some(from) = filter.from {
        sql.push_str(" and delivery_id >= ?");
        values.push(DeliveryId::first_at(from).as_bytes().to_vec());
    }
    if let Some(until) = filter.until {
        sql.push_str(" and delivery_id < ?");
        values.push(DeliveryId::first_at(until).as_bytes().to_vec());
    }
    if let Some(external_id) = &filter.external_id {
        let ids = events::find_event_ids(connection, app, Environment::Live.as_str(), external_id)?;
        let events = ids.iter().filter_map(|id| <[u8; 16]>::try_from(&**id).ok());
        let ids: Vec<Vec<u8>> = events
            .flat_map(|event| delivery_ids(EventId::from_bytes(event)))
            .map(|id| id.as_bytes().to_vec())
            .collect();
        let marks = vec!["?"; ids.len()].join(", ");
        sql.push_str(" and delivery_id in (");
        sql.push_str(&marks);
        sql.push(')');
        values.extend(ids);
    }
    let mut texts = Vec::new();
    if let Some(network) = filter.network {
        sql.push_str(" and network = ?");
        texts.push(network.as_str().to_owned());
    }
    if let Some(name) = &filter.event_name {
        sql.push_str(" and ");
        sql.push_str(EVENT_NAME);
        sql.push_str(" = ?");
        texts.push(name.clone());
    }
    Ok(Conditions {
        sql,
        values,
        texts,
        reason: filter.reason.clone(),
    })
}

impl Conditions {
    fn values(&self) -> Vec<&dyn ToSql> {
        let values = self.values.iter().map(|value| value as &dyn ToSql);
        let texts = self.texts.iter().map(|text| text as &dyn ToSql);
        values.chain(texts).collect()
    }

    /// Finds pending deliveries.
    fn pending(&self, connection: &Connection, limit: i64) -> Result<Vec<Delivery>, Failure> {
        if self.reason.is_some() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select {} from outbox as found where {} order by delivery_id desc limit ?",
            OutboxRow::COLUMNS,
            self.sql
        );
        let mut values = self.values();
        values.push(&limit);
        let rows: Vec<OutboxRow> = connection
            .prepare_cached(&sql)?
            .query_map(params_from_iter(values), read_row::<OutboxRow>)?
            .collect::<Result<_, _>>()?;
        rows.into_iter()
            .map(|row| {
                let mut delivery = row.read()?;
                let queue = QueueRef {
                    app: delivery.app,
                    network: delivery.network,
                };
                let state = queues::find_state(connection, queue)?;
                delivery.apply_queue_delay(&state.unwrap_or_default());
                Ok(delivery)
            })
            .collect()
    }

    /// Finds finished deliveries.
    fn ended(
        &self,
        connection: &Connection,
        status: Option<DeliveryStatus>,
        limit: i64,
    ) -> Result<Vec<Delivery>, Failure> {
        let status = match status {
            None => String::new(),
            Some(DeliveryStatus::Delivered) => " and status = 'delivered'".to_owned(),
            // The second condition is redundant, but makes the planner use the partial index.
            Some(status) => format!(
                " and status = '{}' and status <> 'delivered'",
                status.as_str()
            ),
        };
        let sql = format!(
            "select {} from deliveries as found where {}{status}{} order by delivery_id desc limit ?",
            DeliveryRow::COLUMNS,
            self.sql,
            if self.reason.is_some() {
                " and reason = ?"
            } else {
                ""
            }
        );
        let mut values = self.values();
        values.extend(self.reason.iter().map(|reason| reason as &dyn ToSql));
        values.push(&limit);
        let rows: Vec<DeliveryRow> = connection
            .prepare_cached(&sql)?
            .query_map(params_from_iter(values), read_row::<DeliveryRow>)?
            .collect::<Result<_, _>>()?;
        Ok(rows
            .into_iter()
            .map(DeliveryRow::read)
            .collect::<Result<_, _>>()?)
    }
}

/// Finds matching deliveries, newest first.
pub(crate) fn find(
    connection: &Connection,
    app: AppId,
    filter: &DeliveryFilter,
    before: Vec<u8>,
    limit: i64,
) -> Result<Vec<Delivery>, Failure> {
    let conditions = conditions(connection, app, filter, before)?;
    let mut found = match filter.status {
        Some(DeliveryStatus::Pending) => conditions.pending(connection, limit)?,
        Some(status) => conditions.ended(connection, Some(status), limit)?,
        None => {
            let mut both = conditions.pending(connection, limit)?;
            both.extend(conditions.ended(connection, None, limit)?);
            both
        }
    };
    found.sort_by_key(|delivery| std::cmp::Reverse(delivery.id));
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

pub(super) fn with_event(
    connection: &Connection,
    delivery: Delivery,
) -> Result<DeliveryWithEvent, Failure> {
    Ok(DeliveryWithEvent {
        event: find_event(connection, delivery.app, delivery.event)?,
        delivery,
    })
}

pub(crate) fn find_one(
    connection: &Connection,
    app: AppId,
    id: DeliveryId,
) -> Result<DeliveryWithEvent, Failure> {
    let conditions = Conditions {
        sql: "app_id = ? and delivery_id = ?".to_owned(),
        values: vec![app.as_bytes().to_vec(), id.as_bytes().to_vec()],
        texts: Vec::new(),
        reason: None,
    };
    let mut found = conditions.pending(connection, 1)?;
    found.extend(conditions.ended(connection, None, 1)?);
    let delivery = found.into_iter().next().ok_or(Refusal::DeliveryNotFound)?;
    with_event(connection, delivery)
}

pub(super) fn find_by_events(
    connection: &Connection,
    app: AppId,
    events: &[EventId],
) -> Result<Vec<Delivery>, Failure> {
    let mut found = Vec::new();
    for event in events {
        for id in delivery_ids(*event) {
            let conditions = Conditions {
                sql: "app_id = ? and delivery_id = ?".to_owned(),
                values: vec![app.as_bytes().to_vec(), id.as_bytes().to_vec()],
                texts: Vec::new(),
                reason: None,
            };
            found.extend(conditions.pending(connection, 1)?);
            found.extend(conditions.ended(connection, None, 1)?);
        }
    }
    Ok(found)
}
