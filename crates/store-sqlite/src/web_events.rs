//! Verified website events and the ledger of payments. The writer is alone, so what is found is as it is
//! until the batch is committed.

use crate::batch::{Batch, StoredClick};
use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::conversions::find_event;
use crate::events::{claim_in, exchanged, insert_in};
use crate::tables::{Tables, run};
use crate::{Failure, SqliteStore, devices, duplicates, planned};
use async_trait::async_trait;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use tributary_domain::access::Environment;
use tributary_domain::event::duplicate::Replacement;
use tributary_domain::event::web::{
    Before, Posted, WebAcceptance, WebClick, WebFacts, WebRecord, accept,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::ledger::{Parent, Receipt};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_recording::Tally;
use tributary_recording::duplicates::demote;
use tributary_store::{StoreError, StoreResult, WebAccepted, WebEvents};

/// The key of a stored event.
struct StoredKey {
    event: EventId,
    fingerprint: Option<Digest>,
}

fn find_key(
    connection: &Connection,
    app: AppId,
    given_id: &str,
) -> Result<Option<StoredKey>, Failure> {
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
    Ok(row.map(|(event, fingerprint)| StoredKey {
        event: EventId::from_bytes(event),
        fingerprint: fingerprint.map(Digest::from_bytes),
    }))
}

static CLICK: LazyLock<String> = LazyLock::new(|| {
    format!("select {CLICK_COLUMNS}, kept from clicks where app_id = ?1 and click_id = ?2")
});

/// A click with its link as it is today, and whether something refers to it already.
fn find_click(
    batch: &Batch<'_>,
    app: AppId,
    click: ClickId,
) -> Result<Option<StoredClick>, Failure> {
    let find = |find: &mut CachedStatement<'_>| {
        let key = (app.as_bytes(), click.as_bytes());
        let read = |row: &Row<'_>| Ok((click_row(row)?, row.get("kept")?));
        Ok(find.query_row(key, read).optional()?)
    };
    let kept = &batch.statements.click;
    let row = kept.with(batch.connection, &CLICK, find)?;
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
        link_origin: funnel.origin.clone(),
    };
    Ok(Some(StoredClick {
        found: Arc::new(found),
        kept: Cell::new(kept),
    }))
}

fn find_parent(
    connection: &Connection,
    app: AppId,
    given_id: &str,
) -> Result<Option<Parent>, Failure> {
    let Some(key) = find_key(connection, app, given_id)? else {
        return Ok(None);
    };
    if key.fingerprint.is_none() {
        // Only another source knows this id. The web event may still come.
        return Ok(None);
    }
    let event = find_event(connection, app, key.event)?
        .ok_or_else(|| StoreError::corrupt("event_keys", "event_id", key.event))?;
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

/// The click that a post names.
fn click_of(batch: &Batch<'_>, posted: &Posted) -> Result<Option<Rc<StoredClick>>, Failure> {
    let Some(click) = posted.click else {
        return Ok(None);
    };
    let read = || find_click(batch, posted.app, click);
    batch.click(posted.app, click, read)
}

/// What the rules need to know about a new post.
fn gather(
    batch: &Batch<'_>,
    posted: &Posted,
    click: Option<&StoredClick>,
    reported: Option<&Event>,
    has_paid: bool,
) -> Result<WebFacts, Failure> {
    let connection = batch.connection;
    let parent = match &posted.parent {
        Some(parent) => find_parent(connection, posted.app, parent)?,
        None => None,
    };
    Ok(WebFacts {
        before: None,
        click: click.map(|click| click.found.clone()),
        parent,
        reported: reported.cloned().map(Box::new),
        exchanged: exchanged(connection, posted.exchange_day())?,
        has_paid,
        integrations: batch.integrations(posted.app)?,
    })
}

/// Writes what was decided; false, and nothing at all, when its id was taken before.
fn write(
    batch: &Batch<'_>,
    posted: &Posted,
    click: Option<&StoredClick>,
    reservation: Option<&Reservation>,
    mut record: Box<WebRecord>,
) -> Result<bool, Failure> {
    let (connection, app) = (batch.connection, posted.app.as_bytes());
    let claimed = if reservation.is_some() {
        let fingerprint = record.fingerprint.as_bytes().as_slice();
        duplicates::take_over(connection, &record.event, fingerprint)?
    } else {
        claim_in(batch, &record.event, Some(&record.fingerprint))?
    };
    if !claimed {
        return Ok(false);
    }
    if let Some(demotion) = &record.demotion {
        let tables = Tables(connection);
        let mut tally = Tally::default();
        let demoted = [(Replacement::clone(demotion), posted.received_at)];
        run(demote(&tables, &demoted, &mut tally))?;
        let increments = run(tally.write(&tables, posted.received_at))?;
        batch.count(|counted| {
            counted.merge(increments);
            counted.replace_event(&demotion.before, &demotion.after);
        });
    }
    let mut displaces = false;
    if record.event.first_payment && !devices::claim_first_payment(batch, &record.event)? {
        displaces = record
            .event
            .displaces(devices::first_payment(connection, &record.event)?);
        let reported = reservation.and_then(|reservation| reservation.reported.as_ref());
        let facts = gather(batch, posted, click, reported, true)?;
        if let WebAcceptance::Recorded(again) = accept(posted, facts)? {
            record = again;
        }
    }
    insert_in(batch, &record.event)?;
    batch.count(|counted| counted.add_event(&record.event));
    let demoted = record.demotion.as_ref().map(|demotion| &demotion.before);
    let payers = demoted.into_iter();
    for event in payers.chain(displaces.then_some(&record.event)) {
        devices::settle_payer(batch, event)?;
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
    if let Some(click) = click.filter(|click| !click.kept.replace(true)) {
        connection
            .prepare_cached("update clicks set kept = 1 where app_id = ?1 and click_id = ?2")?
            .execute((app, click.found.click.id.as_bytes()))?;
    }
    planned::insert(
        connection,
        &record.event,
        &record.planned,
        posted.received_at,
    )?;
    Ok(true)
}

/// An id that another source reserved.
struct Reservation {
    /// The event that did; nothing when it is not stored.
    reported: Option<Event>,
}

/// Accepts a post. Most are new, and of a device that has not paid before: it is taken for one until something speaks
/// against that. Then what came under its id before has the first word, and it is decided again.
fn accept_posted(batch: &Batch<'_>, posted: &Posted) -> Result<WebAccepted, Failure> {
    let click = click_of(batch, posted)?;
    let facts = gather(batch, posted, click.as_deref(), None, false)?;
    let new = WebAccepted {
        duplicate: false,
        received_at: posted.received_at,
    };
    let refused = match accept(posted, facts) {
        Ok(WebAcceptance::Recorded(record)) => {
            if write(batch, posted, click.as_deref(), None, record)? {
                return Ok(new);
            }
            None
        }
        Ok(WebAcceptance::Duplicate) => None,
        Err(refusal) => Some(refusal),
    };
    let key = find_key(batch.connection, posted.app, &posted.given_id)?;
    let Some(key) = key else {
        // It was new, and refused.
        return match refused {
            Some(refusal) => Err(refusal.into()),
            None => Err(StoreError::corrupt("event_keys", "given_id", posted.id).into()),
        };
    };
    let Some(fingerprint) = key.fingerprint else {
        if let Some(refusal) = refused {
            return Err(refusal.into());
        }
        let id = (posted.app, Environment::Live, posted.given_id.as_str());
        let reported = duplicates::of_source(batch.connection, id, EventSource::Sdk)?;
        let reservation = Reservation { reported };
        let reported = reservation.reported.as_ref();
        let facts = gather(batch, posted, click.as_deref(), reported, false)?;
        let written = match accept(posted, facts)? {
            WebAcceptance::Recorded(record) => {
                write(batch, posted, click.as_deref(), Some(&reservation), record)?
            }
            WebAcceptance::Duplicate => false,
        };
        return if written {
            Ok(new)
        } else {
            Err(StoreError::corrupt("event_keys", "fingerprint", key.event).into())
        };
    };
    let event = find_event(batch.connection, posted.app, key.event)?;
    let received_at = event.as_ref().map(|event| event.received_at);
    let facts = WebFacts {
        before: Some(Before {
            fingerprint,
            event: event.map(Box::new),
        }),
        ..WebFacts::default()
    };
    accept(posted, facts)?;
    Ok(WebAccepted {
        duplicate: true,
        received_at: received_at.unwrap_or(posted.received_at),
    })
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
