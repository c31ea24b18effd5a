//! Events and the figures made of them.

use crate::rows::{SqliteRow, page_start, require_app};
use crate::write_batch::WriteBatch;
use crate::{Failure, SqliteStore, devices, duplicates, outbox_table, rates};
use async_trait::async_trait;
use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Params, Row, Statement, ToSql, params,
    params_from_iter,
};
use std::sync::LazyLock;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::sdk::{
    Acceptance, RecordedSdkEvent, SdkChanges, SdkEvent, SdkFacts, SdkRequest, SdkRequestContext,
    decide, planning_click,
};
use tributary_domain::event::{EVENTS_SCANNED_MAX, Event, EventFilter, EventKey, EventSource};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_store::records::{CampaignCache, Columns, EventRow};
use tributary_store::{EventPage, Events, StoreResult};

/// Everything of `events`, in the order of an [`EventRow`].
pub(crate) const EVENT_COLUMNS: &str = EventRow::COLUMNS;

/// The event that a row of [`EVENT_COLUMNS`] is.
pub(crate) fn read_event(row: &Row<'_>) -> Result<Event, Failure> {
    Ok(EventRow::from_row(&SqliteRow(row), 0)?.read()?)
}

/// The events of a query for [`EVENT_COLUMNS`].
pub(crate) fn read_events(
    statement: &mut Statement<'_>,
    values: impl Params,
) -> Result<Vec<Event>, Failure> {
    let mut campaigns = CampaignCache::default();
    let read =
        |row: &Row<'_>| Ok(EventRow::from_row(&SqliteRow(row), 0)?.read_cached(&mut campaigns)?);
    let rows = statement.query_and_then(values, read)?;
    rows.collect()
}

const CLAIM: &str =
    "insert into event_keys (app_id, environment, source, given_id, event_id, fingerprint)
     values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing";

/// Takes the id that a sender gave; false when an event has it already.
fn claim_key(claim: &mut Statement<'_>, key: EventKey<'_>) -> Result<bool, Failure> {
    let claimed = claim.execute(params![
        key.app.as_bytes(),
        key.environment.as_str(),
        key.source.as_str(),
        key.external_id,
        key.event.as_bytes(),
        key.fingerprint.map(|digest| digest.as_bytes().as_slice())
    ])?;
    Ok(claimed == 1)
}

/// Stores an event, once by the id that its sender gave; false when it was there before.
pub(crate) fn insert_event(connection: &Connection, event: &Event) -> Result<bool, Failure> {
    let key = EventKey::of(event, None);
    let claimed = claim_key(&mut *connection.prepare_cached(CLAIM)?, key)?;
    if claimed {
        insert_row(&mut *connection.prepare_cached(&INSERT)?, event)?;
    }
    Ok(claimed)
}

/// As [`claim_key`], with the statement that the batch keeps.
pub(crate) fn claim_in(batch: &WriteBatch<'_>, key: EventKey<'_>) -> Result<bool, Failure> {
    let claim = |claim: &mut CachedStatement<'_>| claim_key(claim, key);
    batch.statements.key.with(batch.connection, CLAIM, claim)
}

/// Stores an event whose id was claimed, with the statement that the batch keeps.
pub(crate) fn insert_in(batch: &WriteBatch<'_>, event: &Event) -> Result<(), Failure> {
    let insert = |insert: &mut CachedStatement<'_>| insert_row(insert, event);
    batch
        .statements
        .event
        .with(batch.connection, &INSERT, insert)
}

/// Removes an event and its sender's id, so that it can be stored again.
pub(crate) fn delete_event(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let (app, environment) = (event.app.as_bytes(), event.environment.as_str());
    connection
        .prepare_cached(
            "delete from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?
        .execute(params![app, environment, event.id.as_bytes()])?;
    connection
        .prepare_cached(
            "delete from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .execute(params![
            app,
            environment,
            event.source.as_str(),
            event.external_id
        ])?;
    Ok(())
}

/// Stores an event in the place of one of the same id.
pub(crate) fn replace_event(connection: &Connection, event: &Event) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            event.id.as_bytes()
        ])?;
    insert_row(&mut *connection.prepare_cached(&INSERT)?, event)
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into events ({EVENT_COLUMNS})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                 ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35)"
    )
});

fn insert_row(insert: &mut Statement<'_>, event: &Event) -> Result<(), Failure> {
    let row = EventRow::write(event);
    insert.execute(params![
        row.app_id,
        row.environment,
        row.event_id,
        row.given_id,
        row.source,
        row.name,
        row.original_name,
        row.occurred_at,
        row.received_at,
        row.device_id,
        row.user_id,
        row.platform,
        row.country,
        row.amount_micros,
        row.currency,
        row.usd_micros,
        row.rate,
        row.rate_day,
        row.rate_source,
        row.uncounted,
        row.network,
        row.match_type,
        row.link_id,
        row.click_id,
        row.campaign,
        row.params,
        row.first_payment,
        row.own,
        row.skipped,
        row.source_url,
        row.parent_given_id,
        row.email_sha256,
        row.duplicate_of,
        row.dedup_root,
        row.device_spelling
    ])?;
    Ok(())
}

/// Events that fit some conditions, newest first. Conditions are SQL with `?`; their values follow in order.
pub(crate) fn find_events(
    connection: &Connection,
    conditions: &[&str],
    values: &[&dyn ToSql],
    limit: i64,
) -> Result<Vec<Event>, Failure> {
    let conditions = conditions.join(" and ");
    let sql = format!(
        "select {EVENT_COLUMNS} from events where {conditions} order by event_id desc limit ?"
    );
    let all = values.iter().copied().chain([&limit as &dyn ToSql]);
    let mut statement = connection.prepare_cached(&sql)?;
    read_events(&mut statement, params_from_iter(all))
}

/// The rates that amounts of these currencies on these days need.
pub(crate) fn imported_rates(
    connection: &Connection,
    wanted: impl IntoIterator<Item = (Currency, Day)>,
) -> Result<ImportedRates, Failure> {
    ImportedRates::gather(wanted, |question| rates::latest_rate(connection, question))
}

/// Finds what is known about a request, and claims and reserves its ids. What may be unreadable is read first: a request
/// that fails after it has written undoes the whole batch.
fn gather<'r>(batch: &WriteBatch<'_>, request: &'r SdkRequest) -> Result<SdkFacts<'r>, Failure> {
    let connection = batch.connection;
    let DeviceRef {
        app,
        environment,
        key,
    } = request.sender();
    let mut facts = SdkFacts::default();
    let known = devices::find_state_in(batch, app, environment, key)?;
    let integrations = batch.integrations(app)?;
    if let Some(click) = planning_click(&known, &integrations) {
        let found = outbox_table::find_click(connection, app, click)?;
        let found = found.map(|found| ((app, click), found));
        facts.clicks.extend(found);
    }
    facts.integrations.insert(app, integrations);
    facts.devices.insert(request.sender(), known);
    for claim in request.keys() {
        if claim_in(batch, claim)? {
            let id = (claim.app, claim.environment, claim.external_id);
            facts.new_ids.insert(id);
        }
    }
    for (id, event) in request.verifiable() {
        if facts.new_ids.contains(&id) {
            let verified = duplicates::reserve(connection, id, event)?;
            facts.verified.insert(id, verified);
        }
    }
    facts.rates = imported_rates(connection, request.exchange_days(&facts.new_ids))?;
    Ok(facts)
}

/// Writes changes whose ids are claimed.
fn write(batch: &WriteBatch<'_>, changes: &SdkChanges<'_>) -> Result<(), Failure> {
    let connection = batch.connection;
    for RecordedSdkEvent { event, planned } in &changes.recorded {
        insert_in(batch, event)?;
        outbox_table::insert(connection, event, planned, event.received_at)?;
    }
    batch.count(|counted| changes.count(counted));
    for event in changes.first_payments() {
        devices::note_first_payment(connection, event)?;
    }
    for device in &changes.unsettled {
        devices::settle_first_payment_in(batch, *device)?;
    }
    for (device, at) in &changes.seen {
        devices::note_last_seen(connection, *device, *at)?;
    }
    Ok(())
}

/// Accepts a request. No event of it is ever refused, so there is nothing to undo.
fn accept(batch: &WriteBatch<'_>, request: &SdkRequest) -> Result<Vec<Acceptance>, Failure> {
    let facts = gather(batch, request)?;
    let decisions = decide(std::slice::from_ref(request), &facts);
    write(batch, &decisions.changes)?;
    Ok(decisions.answers.into_iter().flatten().collect())
}

#[async_trait]
impl Events for SqliteStore {
    async fn accept_sdk_events(
        &self,
        arrival: SdkRequestContext,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<Acceptance>> {
        let request = SdkRequest {
            context: arrival,
            events,
        };
        self.write_decided("accept_sdk_events", move |batch| accept(batch, &request))
            .await
    }

    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<EventPage> {
        let (organization, environment) = (caller.organization(), caller.environment());
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
            let device = filter
                .device
                .as_ref()
                .map(|device| device.as_str().to_owned());
            if let Some(device) = &device {
                conditions.push("device_id = ?");
                values.push(device);
            }
            let ids = match &filter.external_id {
                None => None,
                Some(given) => Some(find_event_ids(connection, app, environment, given)?),
            };
            let marks;
            if let Some(ids) = &ids {
                marks = format!("event_id in ({})", vec!["?"; ids.len()].join(", "));
                conditions.push(&marks);
                values.extend(ids.iter().map(|id| id as &dyn ToSql));
            }
            let (stopped_at, bound);
            let user = filter.user.as_ref().map(|user| user.as_str().to_owned());
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
            let rows = find_events(connection, &conditions, &values, page.limit.rows())?;
            let page = Page::from_rows(rows, page.limit);
            Ok(EventPage::with_stop(page, stopped_at))
        })
        .await
    }
}

/// How far a page looks: the last of so many events that an index leads to; nothing when there are fewer.
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

/// Our ids of the events that senders gave this id: at most one a source.
pub(crate) fn find_event_ids(
    connection: &Connection,
    app: AppId,
    environment: &str,
    given: &str,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut ids = Vec::new();
    for source in EventSource::ALL {
        let mut statement = connection.prepare_cached(
            "select event_id from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and (fingerprint is not null or source <> ?5)",
        )?;
        let web = EventSource::Web.as_str();
        let key = params![app.as_bytes(), environment, source.as_str(), given, web];
        for id in statement.query_map(key, |row| row.get(0))? {
            ids.push(id?);
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use crate::SqliteStore;
    use rusqlite::Connection;
    use std::sync::Arc;
    use tributary_store::contract::fixtures::{SharedStore, join_all};
    use tributary_store::contract::sdk_fixtures::{event, tenant};

    #[tokio::test]
    async fn an_unreadable_device_fails_its_own_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store: SharedStore = Arc::new(opened.unwrap().unwrap());
        let one = tenant(&store).await;
        one.call_configure(one.configure("unreadable", 10)).await;
        let connection = Connection::open(&path).unwrap();
        let damage = "update devices set decision = 'damaged'";
        connection.execute(damage, ()).unwrap();
        for round in 0..5 {
            let requests = (0..20).map(|number| {
                let device = if number == 10 {
                    "unreadable".to_owned()
                } else {
                    format!("device-{number}")
                };
                let id = format!("{round}-{number}");
                let arrival = one.arrival(&device, 20);
                store.accept_sdk_events(arrival, vec![event(&id, "level_up", 20)])
            });
            let outcomes = join_all(requests.collect()).await;
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert_eq!(failed, 1, "{outcomes:?}");
        }
    }
}
