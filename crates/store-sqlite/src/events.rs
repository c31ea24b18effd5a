//! Lists events and accepts SDK events.

use crate::event_rows::find_events;
use crate::rows::{page_start, require_app};
use crate::{Failure, SqliteStore, sdk_events};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, ToSql, params, params_from_iter};
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequest, SdkRequestContext};
use tributary_domain::event::{EVENTS_SCANNED_MAX, EventFilter, EventSource};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_store::records::skipped_pattern;
use tributary_store::{EventPage, Events, StoreResult};

#[async_trait]
impl Events for SqliteStore {
    async fn accept_sdk_events(
        &self,
        context: SdkRequestContext,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<SdkEventOutcome>> {
        let request = SdkRequest { context, events };
        self.write_decided("accept_sdk_events", move |batch| {
            sdk_events::accept(batch, &request)
        })
        .await
    }

    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<EventPage> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("events", move |connection| {
            require_app(connection, organization, app)?;
            let environment = environment.as_str();
            let before = page_start(page.before);
            let mut conditions = vec!["app_id = ?", "environment = ?", "event_id < ?"];
            let mut values: Vec<&dyn ToSql> = vec![app.as_bytes(), &environment, &before];
            let from = filter.from.map(EventId::first_at);
            if let Some(from) = &from {
                conditions.push("event_id >= ?");
                values.push(from.as_bytes());
            }
            let until = filter.until.map(EventId::first_at);
            if let Some(until) = &until {
                conditions.push("event_id < ?");
                values.push(until.as_bytes());
            }
            if let Some(name) = &filter.name {
                conditions.push("name = ?");
                values.push(name);
            }
            let device = filter.device.as_ref().map(DeviceKey::as_str);
            if let Some(device) = &device {
                conditions.push("device_id = ?");
                values.push(device);
            }
            let ids = match &filter.external_id {
                None => None,
                Some(external_id) => {
                    Some(find_event_ids(connection, app, environment, external_id)?)
                }
            };
            let marks;
            if let Some(ids) = &ids {
                marks = format!("event_id in ({})", vec!["?"; ids.len()].join(", "));
                conditions.push(&marks);
                values.extend(ids.iter().map(|id| id as &dyn ToSql));
            }
            let (stopped_at, bound);
            let user = filter.user.as_ref().map(UserKey::as_str);
            if let Some(user) = &user {
                conditions.push("user_id = ?");
                values.push(user);
            }
            if filter.is_indexed() {
                stopped_at = None;
            } else {
                stopped_at = scan_end(connection, &conditions, &values)?;
                if let Some(end) = &stopped_at {
                    bound = *end.as_bytes();
                    conditions.push("event_id >= ?");
                    values.push(&bound);
                }
            }
            let source = filter.source.map(EventSource::as_str);
            if let Some(source) = &source {
                conditions.push("source = ?");
                values.push(source);
            }
            let network = filter.network.map(CreditedNetwork::as_str);
            if let Some(network) = &network {
                conditions.push("network = ?");
                values.push(network);
            }
            if let Some(link) = &filter.link {
                conditions.push("link_id = ?");
                values.push(link.as_bytes());
            }
            let not_sent = filter
                .not_sent
                .map(|(network, reason)| skipped_pattern(network, reason));
            if let Some(pattern) = &not_sent {
                conditions.push("skipped like ? escape '\\'");
                values.push(pattern);
            }
            let rows = find_events(connection, &conditions, &values, page.limit.rows())?;
            let page = Page::from_rows(rows, page.limit);
            Ok(EventPage::with_stop(page, stopped_at))
        })
        .await
    }
}

/// Finds where a page stops scanning: at the oldest of the [`EVENTS_SCANNED_MAX`] newest events
/// that the indexed conditions find. Returns `None` when there are fewer events.
fn scan_end(
    connection: &Connection,
    conditions: &[&str],
    values: &[&dyn ToSql],
) -> Result<Option<EventId>, Failure> {
    let sql = format!(
        "select event_id from events where {} order by event_id desc limit 1 offset {}",
        conditions.join(" and "),
        EVENTS_SCANNED_MAX - 1
    );
    let found: Option<[u8; 16]> = connection
        .prepare_cached(&sql)?
        .query_row(params_from_iter(values.iter().copied()), |row| row.get(0))
        .optional()?;
    Ok(found.map(EventId::from_bytes))
}

/// Finds the internal ids of the events with an external id, at most one per source.
pub(crate) fn find_event_ids(
    connection: &Connection,
    app: AppId,
    environment: &str,
    external_id: &str,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut ids = Vec::new();
    for source in EventSource::ALL {
        let mut statement = connection.prepare_cached(
            "select event_id from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and (fingerprint is not null or source <> ?5)",
        )?;
        let web = EventSource::Web.as_str();
        let key = params![
            app.as_bytes(),
            environment,
            source.as_str(),
            external_id,
            web
        ];
        for id in statement.query_map(key, |row| row.get(0))? {
            ids.push(id?);
        }
    }
    Ok(ids)
}
