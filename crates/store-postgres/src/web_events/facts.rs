//! What is known about the posts of a batch.
//!
//! Payments that are refunded are locked first, or what is read could be older than their locks. Ids are read before
//! payments: whatever has an id then and is no payment after that is none, and not one that came between the two
//! statements.

use super::GivenKey;
use super::decide::{Payment, Row as PaymentRow};
use crate::clicks::{CLICK_COLUMNS, CLICK_COLUMNS_COUNT, click_row};
use crate::devices::locked;
use crate::event_rows::{EVENT_COLUMNS, read_event};
use crate::links::{LINK_COLUMNS, link_row};
use crate::params::column;
use crate::rates::imported_rates;
use crate::rows::{qualified, uuid};
use crate::tx::Tx;
use crate::{Failure, integrations};
use locked::DeviceColumns;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::web::{Posted, WebClick, WebEventKind};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::integration::Integration;
use tributary_domain::ledger::Receipt;
use tributary_domain::link::LinkKind;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_recording::duplicates::lock_reported;
use tributary_store::StoreError;
use uuid::Uuid;

/// Website events are live.
pub(super) const ENVIRONMENT: Environment = Environment::Live;
pub(super) const SOURCE: EventSource = EventSource::Web;

/// What is known, and what the decisions so far add to it.
pub(super) struct Facts<'a> {
    /// Events, by the ids that their senders gave.
    pub(super) events: BTreeMap<GivenKey<'a>, KeyedEvent>,
    /// Those of them that are payments.
    pub(super) payments: BTreeMap<GivenKey<'a>, Payment>,
    /// The events of other sources that reserved ids, where they are stored.
    pub(super) reserved: BTreeMap<GivenKey<'a>, EventId>,
    /// The SDK events among them, whose devices are locked.
    pub(super) reported: BTreeMap<EventId, Event>,
    /// The first payments of devices, as they are stored.
    pub(super) paid: BTreeMap<DeviceColumns<'a>, EventId>,
    pub(super) clicks: BTreeMap<(AppId, ClickId), StoredClick>,
    pub(super) rates: ImportedRates,
    /// Those of each app that were ever touched.
    pub(super) integrations: BTreeMap<AppId, Arc<[Integration]>>,
}

/// The event that has an id.
pub(super) struct KeyedEvent {
    pub(super) fingerprint: Digest,
    pub(super) event: LoggedEvent,
}

/// Where that event is.
pub(super) enum LoggedEvent {
    /// In the log.
    Stored(Box<Event>),
    /// Among the accepted events of this batch, at this place.
    InBatch(usize),
    /// Removed from the log.
    Removed,
}

/// A click with its link.
pub(super) struct StoredClick {
    pub(super) found: Arc<WebClick>,
    /// Whether something refers to it already.
    pub(super) kept: bool,
}

/// Locks and reads what the rules need to know.
pub(super) async fn gather<'a>(tx: &Tx, posts: &'a [Posted]) -> Result<Facts<'a>, Failure> {
    // Nothing can come of a post whose click is none of ours, so it locks nothing.
    let verifiable = || posts.iter().filter(|posted| posted.click.is_some());
    let refunds = verifiable().filter(|posted| posted.kind == WebEventKind::Refund);
    let locked = lock_payments(tx, refunds.filter_map(parent).collect()).await?;

    let own = posts.iter().map(given);
    let own = own.chain(posts.iter().filter_map(parent)).collect();
    let ledger = async {
        let Found { events, reserved } = find_events(tx, own).await?;
        let paid = verifiable().filter_map(parent).collect();
        let payments = find_payments(tx, paid, &locked).await?;
        Ok((events, reserved, payments))
    };
    let clicks = verifiable().filter_map(|posted| Some((posted.app, posted.click?)));
    let apps: BTreeSet<AppId> = verifiable().map(|posted| posted.app).collect();
    // Sent together: none of them has anything to do with the others.
    let ((events, reserved, payments), mut paid, clicks, integrations) = tokio::try_join!(
        ledger,
        locked::find_first_payments(tx, verifiable().map(device)),
        find_clicks(tx, clicks.collect()),
        integrations::touched(tx, &apps)
    )?;
    let own: BTreeSet<_> = posts.iter().map(given).collect();
    let twins = reserved.iter().filter(|(key, _)| own.contains(*key));
    let twins: Vec<&Event> = twins.filter_map(|(_, (_, event))| event.as_ref()).collect();
    let mut reported = BTreeMap::new();
    if let Some(first) = posts.first().filter(|_| !twins.is_empty()) {
        reported = lock_reported(tx, &twins, first.received_at).await?;
        // What is known of the devices may have changed until they were locked.
        paid = locked::find_first_payments(tx, verifiable().map(device)).await?;
    }
    let reserved = reserved.into_iter();
    let reserved = reserved.map(|(key, (event, _))| (key, event)).collect();
    let new = verifiable().filter(|posted| !events.contains_key(&given(posted)));
    let rates: BTreeSet<_> = new
        .filter_map(Posted::exchange_day)
        .map(|(_, currency, day)| (currency, day))
        .collect();
    let rates = imported_rates(tx, &rates.into_iter().collect::<Vec<_>>()).await?;
    Ok(Facts {
        events,
        payments,
        reserved,
        reported,
        paid,
        clicks,
        rates,
        integrations,
    })
}

pub(super) const fn device(posted: &Posted) -> DeviceRef<'_> {
    DeviceRef {
        app: posted.app,
        environment: ENVIRONMENT,
        key: &posted.device,
    }
}

/// The id that it was given.
pub(super) fn given(posted: &Posted) -> GivenKey<'_> {
    (posted.app, &posted.given_id)
}

/// The id that its payment was given.
pub(super) fn parent(posted: &Posted) -> Option<GivenKey<'_>> {
    Some((posted.app, posted.parent.as_deref()?))
}

/// Locks payments, so that nobody else gives anything of them back until this transaction ends, and says which
/// are there. The id stands for the payment: most have no other row. Each app is asked alone, because no lock is taken
/// on several machines by one statement.
async fn lock_payments<'a>(
    tx: &Tx,
    wanted: BTreeSet<GivenKey<'a>>,
) -> Result<BTreeSet<GivenKey<'a>>, Failure> {
    let mut by_app: BTreeMap<AppId, Vec<&'a str>> = BTreeMap::new();
    for (app, given) in wanted {
        by_app.entry(app).or_default().push(given);
    }
    let mut locked = BTreeSet::new();
    for (app, given) in by_app {
        let rows = tx
            .query(
                "select given_id from event_keys
                 where app_id = $1 and environment = $2 and source = $3 and given_id = any($4)
                 order by given_id for no key update",
                &[
                    &uuid(app.as_bytes()),
                    &ENVIRONMENT.as_str(),
                    &SOURCE.as_str(),
                    &given,
                ],
            )
            .await?;
        let found: BTreeSet<&str> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        let given = given.into_iter().filter(|given| found.contains(given));
        locked.extend(given.map(|given| (app, given)));
    }
    Ok(locked)
}

/// The keys that are wanted, each once, as columns. A row tells by a number, from one, which it is of.
fn columns<'a>(wanted: &[GivenKey<'a>]) -> (Vec<Uuid>, Vec<&'a str>) {
    let apps = column(wanted, |(app, _)| uuid(app.as_bytes()));
    (apps, column(wanted, |(_, given)| *given))
}

fn numbered<K: Copy>(wanted: &[K], row: &Row) -> Result<K, Failure> {
    let number: i64 = row.try_get("number")?;
    let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
    wanted.get(place).copied().ok_or(Failure::Overtaken)
}

static FIND_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        // One look-up an id, whatever the planner thinks of the table: a plan that was made while it was
        // small, and kept, would walk through all of it.
        "select {}, wanted.number, taken.event_id as taken_id, taken.fingerprint
         from unnest($1, $2) with ordinality as wanted (app_id, given_id, number)
         cross join lateral
              (select app_id, environment, event_id, fingerprint from event_keys
               where app_id = wanted.app_id and environment = $3 and source = $4
                 and given_id = wanted.given_id limit 1) as taken
         left join lateral
              (select {EVENT_COLUMNS} from events
               where app_id = taken.app_id and environment = taken.environment
                 and event_id = taken.event_id limit 1) as events on true",
        qualified("events", EVENT_COLUMNS)
    )
});

/// The events that have ids, and the ids that other sources reserved, each with its event where that is stored.
struct Found<'a> {
    events: BTreeMap<GivenKey<'a>, KeyedEvent>,
    reserved: BTreeMap<GivenKey<'a>, (EventId, Option<Event>)>,
}

async fn find_events<'a>(tx: &Tx, wanted: BTreeSet<GivenKey<'a>>) -> Result<Found<'a>, Failure> {
    let wanted: Vec<_> = wanted.into_iter().collect();
    let (apps, given) = columns(&wanted);
    let rows = tx
        .query(
            &FIND_EVENTS,
            &[&apps, &given, &ENVIRONMENT.as_str(), &SOURCE.as_str()],
        )
        .await?;
    let mut found = Found {
        events: BTreeMap::new(),
        reserved: BTreeMap::new(),
    };
    for row in &rows {
        let key = numbered(&wanted, row)?;
        let taken: Uuid = row.try_get("taken_id")?;
        let logged: Option<Uuid> = row.try_get("event_id")?;
        let event = logged.map(|_| read_event(row)).transpose()?;
        let fingerprint: Option<&[u8]> = row.try_get("fingerprint")?;
        let Some(fingerprint) = fingerprint else {
            let reserved_by = EventId::from_bytes(*taken.as_bytes());
            found.reserved.insert(key, (reserved_by, event));
            continue;
        };
        let fingerprint = fingerprint
            .try_into()
            .map_err(|_| StoreError::corrupt("event_keys", "fingerprint", taken))?;
        let keyed = KeyedEvent {
            fingerprint: Digest::from_bytes(fingerprint),
            event: event.map_or(LoggedEvent::Removed, |event| {
                LoggedEvent::Stored(Box::new(event))
            }),
        };
        found.events.insert(key, keyed);
    }
    Ok(found)
}

async fn find_payments<'a>(
    tx: &Tx,
    wanted: BTreeSet<GivenKey<'a>>,
    locked: &BTreeSet<GivenKey<'a>>,
) -> Result<BTreeMap<GivenKey<'a>, Payment>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let (apps, given) = columns(&wanted);
    let sql = format!(
        "select {}, wanted.number, taken.event_id as taken_id,
                coalesce(refunded.refunded_micros, 0) as refunded_micros,
                coalesce(refunded.version, 0) as version
         from unnest($1, $2) with ordinality as wanted (app_id, given_id, number)
         join event_keys as taken
           on taken.app_id = wanted.app_id and taken.environment = $3 and taken.source = $4
          and taken.given_id = wanted.given_id and taken.fingerprint is not null
         left join events
           on events.app_id = taken.app_id and events.environment = taken.environment
          and events.event_id = taken.event_id
         left join refunded_payments as refunded
           on refunded.app_id = wanted.app_id and refunded.given_id = wanted.given_id",
        qualified("events", EVENT_COLUMNS)
    );
    let (environment, source) = (ENVIRONMENT.as_str(), SOURCE.as_str());
    let rows = tx
        .query(&sql, &[&apps, &given, &environment, &source])
        .await?;
    let mut payments = BTreeMap::new();
    for row in &rows {
        let key = numbered(&wanted, row)?;
        let stored = PaymentRow::Stored {
            version: row.try_get("version")?,
            locked: locked.contains(&key),
        };
        if let Some(receipt) = receipt(row)? {
            payments.insert(key, Payment::new(receipt, stored));
        }
    }
    Ok(payments)
}

/// The receipt of an event; nothing when it is no payment.
fn receipt(row: &Row) -> Result<Option<Receipt>, Failure> {
    let logged: Option<Uuid> = row.try_get("event_id")?;
    if logged.is_none() {
        let taken: Uuid = row.try_get("taken_id")?;
        return Err(StoreError::corrupt("event_keys", "event_id", taken).into());
    }
    let refunded = Amount::from_micros(row.try_get("refunded_micros")?);
    Ok(Receipt::of(read_event(row)?, refunded))
}

/// Clicks, each with its link as it is today. The link may be archived by now.
async fn find_clicks(
    tx: &Tx,
    wanted: BTreeSet<(AppId, ClickId)>,
) -> Result<BTreeMap<(AppId, ClickId), StoredClick>, Failure> {
    let wanted: Vec<_> = wanted.into_iter().collect();
    let sql = format!(
        "select {}, clicks.kept, {}, wanted.number
         from unnest($1, $2) with ordinality as wanted (app_id, click_id, number)
         join clicks on clicks.app_id = wanted.app_id and clicks.click_id = wanted.click_id
         join links on links.app_id = clicks.app_id and links.link_id = clicks.link_id",
        qualified("clicks", CLICK_COLUMNS),
        qualified("links", LINK_COLUMNS),
    );
    let apps = column(&wanted, |(app, _)| uuid(app.as_bytes()));
    let clicks = column(&wanted, |(_, click)| uuid(click.as_bytes()));
    let rows = tx.query(&sql, &[&apps, &clicks]).await?;
    let click = |row: &Row| {
        let link = link_row(row, CLICK_COLUMNS_COUNT + 1)?.read()?;
        let found = Arc::new(WebClick {
            click: click_row(row)?.read()?,
            is_web_funnel: link.kind == LinkKind::WebFunnel,
            link_origin: link.destination_url.as_ref().map(HttpsUrl::origin),
        });
        let kept = row.try_get(CLICK_COLUMNS_COUNT)?;
        Ok((numbered(&wanted, row)?, StoredClick { found, kept }))
    };
    rows.iter().map(click).collect()
}
