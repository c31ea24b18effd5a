//! Verified website events and the ledger of payments. The writer is alone, so what is found is as it is
//! until the batch is committed.

use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::events::{EVENT_COLUMNS, event_row, exchanged, insert_event};
use crate::links::{LINK_COLUMNS, link_row};
use crate::{Failure, SqliteStore, devices, integrations, planned};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::event::EventSource;
use tributary_domain::event::web::{Posted, WebAcceptance, WebClick, WebFacts, WebRecord, accept};
use tributary_domain::ledger::{Parent, PaymentKind, Receipt};
use tributary_domain::link::LinkKind;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;
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

/// A click with its link as it is today, and whether something refers to it already.
fn find_click(
    connection: &Connection,
    app: AppId,
    click: ClickId,
) -> Result<Option<(WebClick, bool)>, Failure> {
    let sql =
        format!("select {CLICK_COLUMNS}, kept from clicks where app_id = ?1 and click_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), click.as_bytes()), |row| {
            Ok((click_row(row)?, row.get("kept")?))
        })
        .optional()?;
    let Some((row, kept)) = row else {
        return Ok(None);
    };
    let click = row.read()?;
    let sql = format!("select {LINK_COLUMNS} from links where app_id = ?1 and link_id = ?2");
    let link = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), click.link.as_bytes()), link_row)
        .optional()?
        .ok_or_else(|| StoreError::corrupt("clicks", "link_id", click.id))?
        .read()?;
    let found = WebClick {
        click,
        is_web_funnel: link.kind == LinkKind::WebFunnel,
        link_origin: link.destination_url.as_ref().map(HttpsUrl::origin),
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
    let row: Option<(String, i64)> = connection
        .prepare_cached(
            "select kind, refunded_micros from receipts where app_id = ?1 and given_id = ?2",
        )?
        .query_row(params![app.as_bytes(), given_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((kind, refunded)) = row else {
        return Ok(Some(Parent::NoPayment));
    };
    let corrupt = |column| StoreError::corrupt("receipts", column, before.event);
    let event = connection
        .prepare_cached(&format!(
            "select {EVENT_COLUMNS} from events
             where app_id = ?1 and environment = ?2 and event_id = ?3"
        ))?
        .query_row(
            params![
                app.as_bytes(),
                Environment::Live.as_str(),
                before.event.as_bytes()
            ],
            event_row,
        )?
        .read()?;
    let (Some(revenue), Some(credit)) = (event.revenue, event.credit) else {
        return Err(corrupt("event_id").into());
    };
    Ok(Some(Parent::Payment(Box::new(Receipt {
        kind: PaymentKind::parse(&kind).ok_or_else(|| corrupt("kind"))?,
        revenue,
        credit,
        refunded: Amount::from_micros(refunded),
    }))))
}

/// What the rules need to know, and whether something refers to the click already.
fn gather(
    connection: &Connection,
    posted: &Posted,
    before: Option<&Before>,
) -> Result<(WebFacts, bool), Failure> {
    if let Some(before) = before {
        // Nothing else is asked about what was here before.
        let facts = WebFacts {
            before: before.fingerprint,
            ..WebFacts::default()
        };
        return Ok((facts, false));
    }
    let found = match posted.click {
        Some(click) => find_click(connection, posted.app, click)?,
        None => None,
    };
    let (click, kept) = found.map_or((None, false), |(click, kept)| (Some(click), kept));
    let parent = match &posted.parent {
        Some(parent) => find_parent(connection, posted.app, parent)?,
        None => None,
    };
    let (app, device) = (posted.app, &posted.device);
    let person = devices::find_person(connection, app, Environment::Live, device)?;
    let integrations = integrations::touched(connection, app)?;
    let facts = WebFacts {
        before: None,
        click,
        parent,
        exchanged: exchanged(connection, posted.exchange_day())?,
        has_paid: person.first_payment.is_some(),
        integrations: integrations.into(),
    };
    Ok((facts, kept))
}

/// Writes what was decided. `kept`: something refers to the click already.
fn write(
    connection: &Connection,
    posted: &Posted,
    record: &WebRecord,
    kept: bool,
) -> Result<Increments, Failure> {
    let app = posted.app.as_bytes();
    insert_event(connection, &record.event, Some(&record.fingerprint))?;
    connection
        .prepare_cached(
            "insert into web_events (app_id, event_id, source_url, parent_given_id, email_sha256)
             values (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            app,
            posted.id.as_bytes(),
            posted.source_url,
            posted.parent,
            posted.email_sha256
        ])?;
    if let Some(receipt) = &record.receipt {
        connection
            .prepare_cached(
                "insert into receipts (app_id, given_id, event_id, kind, refunded_micros, version)
                 values (?1, ?2, ?3, ?4, 0, 0)",
            )?
            .execute(params![
                app,
                posted.given_id,
                posted.id.as_bytes(),
                receipt.kind.as_str()
            ])?;
    }
    if let Some(payment) = &record.refunded {
        connection
            .prepare_cached(
                "update receipts set refunded_micros = ?3, version = version + 1
                 where app_id = ?1 and given_id = ?2",
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
    Ok(increments)
}

#[async_trait]
impl WebEvents for SqliteStore {
    async fn accept_web_event(&self, posted: Posted) -> StoreResult<WebAccepted> {
        self.write_decided("accept_web_event", move |connection| {
            let before = find_before(connection, posted.app, &posted.given_id)?;
            let (facts, kept) = gather(connection, &posted, before.as_ref())?;
            match (accept(&posted, facts)?, before) {
                (WebAcceptance::Recorded(record), _) => {
                    let increments = write(connection, &posted, &record, kept)?;
                    let accepted = WebAccepted {
                        duplicate: false,
                        received_at: posted.received_at,
                    };
                    Ok((accepted, increments))
                }
                (WebAcceptance::Duplicate, before) => {
                    let first =
                        before.map(|before| received_at(connection, posted.app, before.event));
                    let accepted = WebAccepted {
                        duplicate: true,
                        received_at: first.transpose()?.unwrap_or(posted.received_at),
                    };
                    Ok((accepted, Increments::default()))
                }
            }
        })
        .await
    }
}
