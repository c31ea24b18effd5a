//! Verified website events and the ledger of payments. The writer is alone, so what is found is as it is
//! until the batch is committed.

use crate::batch::Batch;
use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::conversions::find_event;
use crate::events::{exchanged, insert_event};
use crate::{Failure, SqliteStore, devices, planned};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::event::EventSource;
use tributary_domain::event::web::{Posted, WebAcceptance, WebClick, WebFacts, WebRecord, accept};
use tributary_domain::ledger::{Parent, Receipt};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{StoreError, StoreResult, WebAccepted, WebEvents};

/// The event that has an id, by its payload and its time of arrival.
struct Before {
    event: EventId,
    fingerprint: Option<Digest>,
}

fn find_before(
    connection: &Connection,
    app: AppId,
    given_id: &str,
) -> Result<Option<Before>, Failure> {
    let row: Option<([u8; 16], Option<[u8; 32]>)> = connection
        .prepare_cached(
            "select event_id, fingerprint from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .query_row(
            params![
                app.as_bytes(),
                Environment::Live.as_str(),
                EventSource::Web.as_str(),
                given_id
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(row.map(|(event, fingerprint)| Before {
        event: EventId::from_bytes(event),
        fingerprint: fingerprint.map(Digest::from_bytes),
    }))
}

fn received_at(connection: &Connection, app: AppId, event: EventId) -> Result<Timestamp, Failure> {
    let at = connection
        .prepare_cached(
            "select received_at from events
             where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?
        .query_row(
            params![app.as_bytes(), Environment::Live.as_str(), event.as_bytes()],
            |row| row.get(0),
        )?;
    Ok(Timestamp::from_millis(at))
}

static CLICK: LazyLock<String> = LazyLock::new(|| {
    format!("select {CLICK_COLUMNS}, kept from clicks where app_id = ?1 and click_id = ?2")
});

/// A click with its link as it is today, and whether something refers to it already.
fn find_click(
    batch: &Batch<'_>,
    app: AppId,
    click: ClickId,
) -> Result<Option<(WebClick, bool)>, Failure> {
    let row = batch
        .connection
        .prepare_cached(&CLICK)?
        .query_row((app.as_bytes(), click.as_bytes()), |row| {
            Ok((click_row(row)?, row.get("kept")?))
        })
        .optional()?;
    let Some((row, kept)) = row else {
        return Ok(None);
    };
    let click = row.read()?;
    let funnel = batch
        .funnel(app, click.link)?
        .ok_or_else(|| StoreError::corrupt("clicks", "link_id", click.id))?;
    let found = WebClick {
        click,
        is_web_funnel: funnel.is_web_funnel,
        link_origin: funnel.origin,
    };
    Ok(Some((found, kept)))
}

fn find_parent(
    connection: &Connection,
    app: AppId,
    given_id: &str,
) -> Result<Option<Parent>, Failure> {
    let Some(before) = find_before(connection, app, given_id)? else {
        return Ok(None);
    };
    let event = find_event(connection, app, before.event)?
        .ok_or_else(|| StoreError::corrupt("event_keys", "event_id", before.event))?;
    let refunded: Option<i64> = connection
        .prepare_cached(
            "select refunded_micros from refunded_payments where app_id = ?1 and given_id = ?2",
        )?
        .query_row(params![app.as_bytes(), given_id], |row| row.get(0))
        .optional()?;
    let refunded = Amount::from_micros(refunded.unwrap_or(0));
    Ok(Some(match Receipt::of(event, refunded) {
        Some(receipt) => Parent::Payment(Box::new(receipt)),
        None => Parent::NoPayment,
    }))
}

/// What the rules need to know about a new post, and whether something refers to the click already.
fn gather(batch: &Batch<'_>, posted: &Posted) -> Result<(WebFacts, bool), Failure> {
    let found = match posted.click {
        Some(click) => find_click(batch, posted.app, click)?,
        None => None,
    };
    let (click, kept) = found.map_or((None, false), |(click, kept)| (Some(click), kept));
    let connection = batch.connection;
    let parent = match &posted.parent {
        Some(parent) => find_parent(connection, posted.app, parent)?,
        None => None,
    };
    let (app, device) = (posted.app, &posted.device);
    let person = devices::find_person(connection, app, Environment::Live, device)?;
    let facts = WebFacts {
        before: None,
        click,
        parent,
        exchanged: exchanged(connection, posted.exchange_day())?,
        has_paid: person.first_payment.is_some(),
        integrations: batch.integrations(app)?,
    };
    Ok((facts, kept))
}

/// Writes what was decided; nothing at all when its id was taken before. `kept`: something refers to the click already.
fn write(
    connection: &Connection,
    posted: &Posted,
    record: &WebRecord,
    kept: bool,
) -> Result<Option<Increments>, Failure> {
    let app = posted.app.as_bytes();
    if !insert_event(connection, &record.event, Some(&record.fingerprint))? {
        return Ok(None);
    }
    if let Some(payment) = &record.refunded {
        connection
            .prepare_cached(
                "insert into refunded_payments (app_id, given_id, refunded_micros, version)
                 values (?1, ?2, ?3, 1)
                 on conflict (app_id, given_id) do update
                 set refunded_micros = excluded.refunded_micros, version = version + 1",
            )?
            .execute(params![app, posted.parent, payment.refunded.micros()])?;
    }
    if let Some(click) = posted.click.filter(|_| !kept) {
        connection
            .prepare_cached("update clicks set kept = 1 where app_id = ?1 and click_id = ?2")?
            .execute((app, click.as_bytes()))?;
    }
    if record.event.first_payment {
        devices::note_first_payment(connection, &record.event)?;
    }
    planned::insert(
        connection,
        &record.event,
        &record.planned,
        posted.received_at,
    )?;
    let mut increments = Increments::default();
    increments.add_event(&record.event);
    Ok(Some(increments))
}

/// Accepts a post. Most are new, so it is taken for one until something speaks against that: then what came under
/// its id before has the first word.
fn accept_posted(batch: &Batch<'_>, posted: &Posted) -> Result<(WebAccepted, Increments), Failure> {
    let (facts, kept) = gather(batch, posted)?;
    let decided = accept(posted, facts);
    if let Ok(WebAcceptance::Recorded(record)) = &decided
        && let Some(increments) = write(batch.connection, posted, record, kept)?
    {
        let accepted = WebAccepted {
            duplicate: false,
            received_at: posted.received_at,
        };
        return Ok((accepted, increments));
    }
    let before = find_before(batch.connection, posted.app, &posted.given_id)?;
    let Some(before) = before else {
        // It was new, and refused.
        return match decided {
            Err(refusal) => Err(refusal.into()),
            Ok(_) => Err(StoreError::corrupt("event_keys", "given_id", posted.id).into()),
        };
    };
    let facts = WebFacts {
        before: before.fingerprint,
        ..WebFacts::default()
    };
    accept(posted, facts)?;
    let accepted = WebAccepted {
        duplicate: true,
        received_at: received_at(batch.connection, posted.app, before.event)?,
    };
    Ok((accepted, Increments::default()))
}

#[async_trait]
impl WebEvents for SqliteStore {
    async fn accept_web_event(&self, posted: Posted) -> StoreResult<WebAccepted> {
        self.write_decided("accept_web_event", move |batch| {
            accept_posted(batch, &posted)
        })
        .await
    }
}
