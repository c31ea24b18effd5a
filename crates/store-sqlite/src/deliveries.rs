//! Deliveries, as people see them.

use crate::conversions::find_event;
use crate::rows::{page_start, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore, events, queues, skipped};
use async_trait::async_trait;
use rusqlite::{Connection, ToSql, params_from_iter};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_ids};
use tributary_domain::forwarding::{Delivery, DeliveryStatus};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{
    integration_health, resume_integration, retry_deliveries, retry_delivery,
};
use tributary_store::records::{Columns, DeliveryRow, OutboxRow};
use tributary_store::{Deliveries, DeliveryWithEvent, IntegrationHealth, QueueRef, StoreResult};

/// What a filter asks for, as SQL that both tables understand.
struct Conditions {
    sql: String,
    values: Vec<Vec<u8>>,
    network: Option<&'static str>,
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
    if let Some(given) = &filter.external_id {
        let ids = events::find_event_ids(connection, app, Environment::Live.as_str(), given)?;
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
    if filter.network.is_some() {
        sql.push_str(" and network = ?");
    }
    Ok(Conditions {
        sql,
        values,
        network: filter.network.map(Network::as_str),
    })
}

impl Conditions {
    fn values(&self) -> Vec<&dyn ToSql> {
        let values = self.values.iter().map(|value| value as &dyn ToSql);
        let network = self.network.iter().map(|network| network as &dyn ToSql);
        values.chain(network).collect()
    }

    /// Deliveries that are to be made.
    fn pending(&self, connection: &Connection, limit: i64) -> Result<Vec<Delivery>, Failure> {
        let sql = format!(
            "select {} from outbox where {} order by delivery_id desc limit ?",
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

    /// Deliveries that came to their end.
    fn ended(
        &self,
        connection: &Connection,
        status: Option<DeliveryStatus>,
        limit: i64,
    ) -> Result<Vec<Delivery>, Failure> {
        let status = match status {
            None => String::new(),
            Some(DeliveryStatus::Delivered) => " and status = 'delivered'".to_owned(),
            // Said twice, so that the index of what went wrong is seen to cover it.
            Some(status) => format!(
                " and status = '{}' and status <> 'delivered'",
                status.as_str()
            ),
        };
        let sql = format!(
            "select {} from deliveries where {}{status} order by delivery_id desc limit ?",
            DeliveryRow::COLUMNS,
            self.sql
        );
        let mut values = self.values();
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

/// Deliveries that fit, newest first.
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

fn with_event(connection: &Connection, delivery: Delivery) -> Result<DeliveryWithEvent, Failure> {
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
        network: None,
    };
    let mut found = conditions.pending(connection, 1)?;
    found.extend(conditions.ended(connection, None, 1)?);
    let delivery = found.into_iter().next().ok_or(Refusal::DeliveryNotFound)?;
    with_event(connection, delivery)
}

fn of_events(
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
                network: None,
            };
            found.extend(conditions.pending(connection, 1)?);
            found.extend(conditions.ended(connection, None, 1)?);
        }
    }
    Ok(found)
}

#[async_trait]
impl Deliveries for SqliteStore {
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryWithEvent>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("deliveries", move |connection| {
            require_app(connection, organization, app)?;
            if environment != Environment::Live {
                return Ok(Page::from_rows(Vec::new(), page.limit));
            }
            let before = page_start(page.before);
            let found = find(connection, app, &filter, before, page.limit.rows())?;
            let rows = found
                .into_iter()
                .map(|delivery| with_event(connection, delivery))
                .collect::<Result<_, _>>()?;
            Ok(Page::from_rows(rows, page.limit))
        })
        .await
    }

    async fn delivery(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        delivery: DeliveryId,
    ) -> StoreResult<DeliveryWithEvent> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("delivery", move |connection| {
            require_app(connection, organization, app)?;
            if environment != Environment::Live {
                return Err(Refusal::DeliveryNotFound.into());
            }
            find_one(connection, app, delivery)
        })
        .await
    }

    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>> {
        self.read("deliveries_of", move |connection| {
            of_events(connection, app, &events)
        })
        .await
    }

    async fn retry_delivery(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        delivery: DeliveryId,
        origin: AuditContext,
    ) -> StoreResult<DeliveryWithEvent> {
        let of = (caller.organization(), app);
        self.write("retry_delivery", move |connection| {
            let tables = SqliteTables(connection);
            run(retry_delivery(&tables, of, delivery, &origin))
        })
        .await
    }

    async fn retry_deliveries(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        filter: DeliveryFilter,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        let of = (caller.organization(), app);
        self.write("retry_deliveries", move |connection| {
            let tables = SqliteTables(connection);
            run(retry_deliveries(&tables, of, &filter, &origin))
        })
        .await
    }

    async fn integration_health(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>> {
        let organization = caller.organization();
        self.read("integration_health", move |connection| {
            require_app(connection, organization, app)?;
            let counts = skipped::find(connection, app, now)?;
            let mut all = run(integration_health(&SqliteTables(connection), app, now))?;
            for (network, health) in &mut all {
                health.skipped = counts.of(*network);
            }
            Ok(all)
        })
        .await
    }

    async fn resume_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration> {
        let organization = caller.organization();
        self.write("resume_integration", move |connection| {
            let of = (organization, QueueRef { app, network });
            let tables = SqliteTables(connection);
            run(resume_integration(&tables, of, &precondition, &origin))
        })
        .await
    }
}
