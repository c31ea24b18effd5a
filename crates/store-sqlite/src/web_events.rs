//! Verified web events and the payment ledger. There is only one writer, so facts that were read
//! stay valid until the commit.

use crate::clicks::CLICK_COLUMNS;
use crate::conversions::find_event;
use crate::event_rows::{claim_in, insert_in};
use crate::rates::imported_rates;
use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::write_batch::{BatchCache, WriteBatch};
use crate::{Failure, SqliteStore, devices, duplicates, outbox_table};
use async_trait::async_trait;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use std::sync::{Arc, LazyLock};
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::EventSource;
use tributary_domain::event::web::{
    AcceptedWebEvent, ExistingEvent, ExternalKey, RecordedWebEvent, RefundTotals, Reservation,
    StoredWebClick, WebChanges, WebClick, WebEvent, WebEventKind, WebEventPreview, WebFacts,
    decide, preview,
};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_recording::TransactionTally;
use tributary_recording::duplicates::{
    demote, find_billed_payment, find_billed_subscriptions, settle_billed_subscriptions,
};
use tributary_store::records::ClickRow;
use tributary_store::{StoreError, StoreResult, WebEvents};

/// Web events are always live.
const LIVE: Environment = Environment::Live;

/// The stored key of an event id.
struct StoredKey {
    event: EventId,
    fingerprint: Option<Digest>,
}

fn find_key(
    connection: &Connection,
    (app, given_id): ExternalKey<'_>,
) -> Result<Option<StoredKey>, Failure> {
    let row: Option<([u8; 16], Option<[u8; 32]>)> = connection
        .prepare_cached(
            "select event_id, fingerprint from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .query_row(
            params![
                app.as_bytes(),
                LIVE.as_str(),
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

/// Finds a click with the current state of its link, and whether an event already refers to the
/// click.
fn find_click(
    batch: &WriteBatch<'_>,
    app: AppId,
    click: ClickId,
) -> Result<Option<StoredWebClick>, Failure> {
    let find = |find: &mut CachedStatement<'_>| {
        let key = (app.as_bytes(), click.as_bytes());
        let read = |row: &Row<'_>| Ok((read_row::<ClickRow>(row)?, row.get("kept")?));
        Ok(find.query_row(key, read).optional()?)
    };
    let statement = &batch.statements.click;
    let row = statement.with(batch.connection, &CLICK, find)?;
    let Some((row, is_referenced)) = row else {
        return Ok(None);
    };
    let click = row.read()?;
    let funnel = batch
        .link_destination(app, click.link)?
        .ok_or_else(|| StoreError::corrupt("clicks", "link_id", click.id))?;
    let found = WebClick {
        click,
        is_web_funnel: funnel.is_web_funnel,
        link_origin: funnel.origin.clone(),
    };
    Ok(Some(StoredWebClick {
        click: Arc::new(found),
        is_referenced,
    }))
}

/// Finds the parent event of a posted event, and the parent's refunds. A reserved id has no event
/// yet.
fn find_parent<'p>(
    connection: &Connection,
    post: &'p WebEvent,
    facts: &mut WebFacts<'p>,
) -> Result<(), Failure> {
    let Some(parent) = post.parent_key() else {
        return Ok(());
    };
    let Some(StoredKey {
        event,
        fingerprint: Some(fingerprint),
    }) = find_key(connection, parent)?
    else {
        return Ok(());
    };
    let stored = find_event(connection, post.app, event)?
        .ok_or_else(|| StoreError::corrupt("event_keys", "event_id", event))?;
    let before = ExistingEvent {
        fingerprint,
        event: Some(Box::new(stored)),
    };
    facts.events.insert(parent, before);
    if post.kind != WebEventKind::Refund {
        return Ok(());
    }
    let refunds = find_refunds(connection, parent)?;
    facts
        .refunds
        .extend(refunds.map(|refunds| (parent, refunds)));
    Ok(())
}

/// Finds the refunds of a payment.
pub(crate) fn find_refunds(
    connection: &Connection,
    (app, given_id): ExternalKey<'_>,
) -> Result<Option<RefundTotals>, Failure> {
    let refunds = connection
        .prepare_cached(
            "select refunded_micros, version from refunded_payments
             where app_id = ?1 and given_id = ?2",
        )?
        .query_row((app.as_bytes(), given_id), |row| {
            Ok(RefundTotals {
                total: Amount::from_micros(row.get(0)?),
                version: row.get(1)?,
            })
        })
        .optional()?;
    Ok(refunds)
}

/// Gathers the facts for a posted event, assuming that its id is free and its device has not paid.
fn gather_assuming_new<'p>(
    batch: &WriteBatch<'_>,
    post: &'p WebEvent,
) -> Result<WebFacts<'p>, Failure> {
    let (connection, app) = (batch.connection, post.app);
    let mut facts = WebFacts::default();
    if let Some(click) = post.click {
        let found = batch.click(app, click, || find_click(batch, app, click))?;
        let found = found.map(|found| ((app, click), found));
        facts.clicks.extend(found);
    }
    find_parent(connection, post, &mut facts)?;
    let rates = post.exchange_day();
    let rates = rates.map(|(_, currency, day)| (currency, day));
    facts.rates = imported_rates(connection, rates)?;
    facts.integrations.insert(app, batch.integrations(app)?);
    Ok(facts)
}

/// Finds the stored event with a posted event's id, or the reservation of that id.
fn find_id<'p>(
    connection: &Connection,
    post: &'p WebEvent,
    facts: &mut WebFacts<'p>,
) -> Result<(), Failure> {
    let (app, given_id) = post.key();
    let Some(key) = find_key(connection, post.key())? else {
        return Ok(());
    };
    if let Some(fingerprint) = key.fingerprint {
        let event = find_event(connection, app, key.event)?.map(Box::new);
        let before = ExistingEvent { fingerprint, event };
        facts.events.insert(post.key(), before);
    } else {
        let reported =
            duplicates::find_by_source(connection, (app, LIVE, given_id), EventSource::Sdk)?;
        let tables = SqliteTables(connection);
        let billed = run(find_billed_payment(&tables, (app, LIVE, given_id)))?;
        let reservation = Reservation {
            event_id: key.event,
            sdk_event: reported.map(Box::new),
            billing_event: billed.map(Box::new),
        };
        facts.reservations.insert(post.key(), reservation);
    }
    Ok(())
}

/// Finds the first payment of the event's device.
fn find_first_payment<'p>(
    connection: &Connection,
    post: &'p WebEvent,
    facts: &mut WebFacts<'p>,
) -> Result<(), Failure> {
    let paid = devices::find_first_payment(connection, post.device_ref())?;
    let paid = paid.map(|first| (post.device_ref(), first));
    facts.first_payments.extend(paid);
    Ok(())
}

/// Claims the ids of new events. Returns false if there are no new events or an id is already in
/// use.
fn claim_ids(batch: &WriteBatch<'_>, changes: &WebChanges<'_>) -> Result<bool, Failure> {
    let mut claimed = !changes.recorded.is_empty();
    for recorded in &changes.recorded {
        claimed &= claim_in(batch, recorded.key())?;
    }
    Ok(claimed)
}

/// Reassigns reserved ids to new events.
fn take_over(connection: &Connection, changes: &WebChanges<'_>) -> Result<(), Failure> {
    for recorded in &changes.recorded {
        let (event, fingerprint) = (&recorded.event, recorded.fingerprint.as_bytes());
        if !duplicates::take_over(connection, event, fingerprint)? {
            return Err(StoreError::corrupt("event_keys", "fingerprint", event.id).into());
        }
    }
    Ok(())
}

/// Claims the first payments of devices. Returns false if a device has already paid.
fn claim_first_payments(batch: &WriteBatch<'_>, changes: &WebChanges<'_>) -> Result<bool, Failure> {
    let events = changes.recorded.iter().map(|recorded| &recorded.event);
    let mut claimed = true;
    for event in events.filter(|event| event.first_payment) {
        claimed &= devices::claim_first_payment(batch, event)?;
    }
    Ok(claimed)
}

/// Writes changes whose ids and first payments are claimed.
fn write(batch: &WriteBatch<'_>, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let connection = batch.connection;
    if !changes.demotions.is_empty() {
        let tables = SqliteTables(connection);
        let mut tally = TransactionTally::default();
        run(demote(&tables, &changes.demotions, &mut tally))?;
        run(tally.write(&tables))?;
    }
    for recorded in &changes.recorded {
        insert_in(batch, &recorded.event)?;
    }
    batch.count(|counted| changes.count(counted));
    for (app, key) in &changes.unsettled {
        let device = DeviceRef {
            app: *app,
            environment: LIVE,
            key,
        };
        devices::settle_first_payment_in(batch, device)?;
    }
    for ((app, given_id), payment) in &changes.refunded {
        connection
            .prepare_cached(
                "insert into refunded_payments (app_id, given_id, refunded_micros, version)
                 values (?1, ?2, ?3, ?4)
                 on conflict (app_id, given_id) do update
                 set refunded_micros = excluded.refunded_micros,
                     version = version + excluded.version",
            )?
            .execute(params![
                app.as_bytes(),
                given_id,
                payment.total.micros(),
                payment.refunds
            ])?;
    }
    for (app, click) in &changes.clicks {
        connection
            .prepare_cached("update clicks set kept = 1 where app_id = ?1 and click_id = ?2")?
            .execute((app.as_bytes(), click.as_bytes()))?;
        batch.mark_click_kept(*app, *click);
    }
    for RecordedWebEvent { event, planned, .. } in &changes.recorded {
        outbox_table::insert_in(batch, event, planned)?;
    }
    settle_billed(batch, changes)
}

/// Settles the subscriptions with payments that the new events report or refund.
fn settle_billed(batch: &WriteBatch<'_>, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let tables = SqliteTables(batch.connection);
    let billed = run(find_billed_subscriptions(&tables, &changes.recorded))?;
    let latest = changes.recorded.last().map(|last| last.event.received_at);
    if let Some(now) = latest.filter(|_| !billed.is_empty()) {
        let mut tally = TransactionTally::default();
        run(settle_billed_subscriptions(
            &tables, billed, now, &mut tally,
        ))?;
        let increments = run(tally.write(&tables))?;
        batch.count(|counted| counted.merge(increments));
    }
    Ok(())
}

/// Accepts a posted event. Most posted events are new and most devices have not paid, so both are
/// assumed and claimed without reading. If a claim fails, the stored event or first payment is
/// read, and the posted event is evaluated again.
fn accept(batch: &WriteBatch<'_>, post: &WebEvent) -> Result<AcceptedWebEvent, Failure> {
    let (connection, posts) = (batch.connection, std::slice::from_ref(post));
    let mut facts = gather_assuming_new(batch, post)?;
    let mut decided = decide(posts, &facts);
    if !claim_ids(batch, &decided.changes)? {
        find_id(connection, post, &mut facts)?;
        decided = decide(posts, &facts);
        take_over(connection, &decided.changes)?;
    }
    if !claim_first_payments(batch, &decided.changes)? {
        find_first_payment(connection, post, &mut facts)?;
        decided = decide(posts, &facts);
    }
    write(batch, &decided.changes)?;
    let answer = decided.answers.pop();
    Ok(answer.ok_or_else(|| StoreError::corrupt("event_keys", "given_id", post.id))??)
}

/// Decides an event on a read connection. The batch serves only as the reader of the facts.
fn validate(connection: &Connection, post: &WebEvent) -> Result<WebEventPreview, Failure> {
    let cache = BatchCache::default();
    let batch = WriteBatch::new(connection, &cache)?;
    let mut facts = gather_assuming_new(&batch, post)?;
    find_id(connection, post, &mut facts)?;
    find_first_payment(connection, post, &mut facts)?;
    Ok(preview(post, &facts)?)
}

#[async_trait]
impl WebEvents for SqliteStore {
    async fn accept_web_event(&self, post: WebEvent) -> StoreResult<AcceptedWebEvent> {
        self.write_decided("accept_web_event", move |batch| accept(batch, &post))
            .await
    }

    async fn validate_web_event(&self, post: WebEvent) -> StoreResult<WebEventPreview> {
        self.read("validate_web_event", move |connection| {
            validate(connection, &post)
        })
        .await
    }
}
