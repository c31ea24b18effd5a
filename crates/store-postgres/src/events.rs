//! Lists events and accepts SDK events.

use crate::rows::{AppLockMode, Conditions, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, event_rows};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequest, SdkRequestContext};
use tributary_domain::event::{EVENTS_SCANNED_MAX, EventFilter, EventSource};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_store::records::skipped_pattern;
use tributary_store::{EventPage, Events, StoreResult};
use uuid::Uuid;

/// Finds the internal ids of the events with an external id, at most one per source.
pub(crate) async fn find_event_ids(
    tx: &Tx,
    app: Uuid,
    environment: &str,
    external_id: &str,
) -> Result<Vec<Uuid>, Failure> {
    let sources: Vec<&str> = EventSource::ALL
        .iter()
        .map(|source| source.as_str())
        .collect();
    // One index lookup per source, because of the grouping (see `devices::bulk::rows_of`).
    let rows = tx
        .query(
            "select event_id from unnest($3) as wanted (source)
             cross join lateral
                  (select event_id from event_keys
                   where app_id = $1 and environment = $2 and source = wanted.source and given_id = $4
                     and (fingerprint is not null or source <> $5)
                   group by app_id, environment, source, given_id) as stored",
            &[&app, &environment, &sources, &external_id, &EventSource::Web.as_str()],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn find_page(
    tx: &Tx,
    app: Uuid,
    environment: &'static str,
    filter: &EventFilter,
    page: PageRequest,
) -> Result<EventPage, Failure> {
    let rows = page.limit.rows();
    let before = page.before.as_ref().map(uuid);
    // An event id starts with the event's time.
    let first_at = |moment| uuid(EventId::first_at(moment).as_bytes());
    let (from, until) = (filter.from.map(first_at), filter.until.map(first_at));
    let device = filter.device.as_ref().map(DeviceKey::as_str);
    let ids = match &filter.external_id {
        Some(external_id) => Some(find_event_ids(tx, app, environment, external_id).await?),
        None => None,
    };
    let user = filter.user.as_ref().map(UserKey::as_str);
    // Conditions that an index covers.
    let indexed = || {
        Conditions::new("app_id", &app)
            .and("environment =", Some(&environment))
            .and("event_id <", before.as_ref())
            .and("event_id >=", from.as_ref())
            .and("event_id <", until.as_ref())
            .and("name =", filter.name.as_ref())
            .and("device_id =", device.as_ref())
            .and("user_id =", user.as_ref())
            .and_any("event_id", ids.as_ref())
    };
    let stopped_at = if filter.is_indexed() {
        None
    } else {
        scan_end(tx, indexed()).await?
    };
    let source = filter.source.map(EventSource::as_str);
    let network = filter.network.map(CreditedNetwork::as_str);
    let link = filter.link.map(|link| uuid(link.as_bytes()));
    let not_sent = filter
        .not_sent
        .map(|(network, reason)| skipped_pattern(network, reason));
    let (conditions, params) = indexed()
        .and("event_id >=", stopped_at.as_ref())
        .and("source =", source.as_ref())
        .and("network =", network.as_ref())
        .and("link_id =", link.as_ref())
        .and("skipped like", not_sent.as_ref())
        .newest("event_id", &rows);
    let events = event_rows::find(tx, &conditions, &params).await?;
    let stopped_at = stopped_at.map(|id| EventId::from_bytes(id.into_bytes()));
    Ok(EventPage::with_stop(
        Page::from_rows(events, page.limit),
        stopped_at,
    ))
}

/// Finds where a page stops scanning: at the oldest of the [`EVENTS_SCANNED_MAX`] newest events
/// that the indexed conditions find. Returns `None` when there are fewer events.
async fn scan_end(tx: &Tx, indexed: Conditions<'_>) -> Result<Option<Uuid>, Failure> {
    let (conditions, params) = indexed.newest("event_id", &1);
    let sql = format!(
        "select event_id from events where {conditions} offset {}",
        EVENTS_SCANNED_MAX - 1
    );
    let rows = tx.query(&sql, &params).await?;
    let found = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(found)
}

#[async_trait]
impl Events for PostgresStore {
    async fn accept_sdk_events(
        &self,
        context: SdkRequestContext,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<SdkEventOutcome>> {
        let request = SdkRequest { context, events };
        self.write_batched(&self.sdk_events, request).await
    }

    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<EventPage> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "events", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let app = uuid(app.as_bytes());
            find_page(tx, app, environment.as_str(), &filter, page).await
        })
        .await
    }
}
