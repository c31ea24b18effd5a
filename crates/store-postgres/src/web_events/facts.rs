//! Gathers the facts for a batch of web events.
//!
//! Refunded payments are locked first; otherwise the facts could be outdated.

use crate::clicks::{CLICK_COLUMNS, CLICK_COLUMNS_COUNT};
use crate::devices::bulk;
use crate::event_rows::{EVENT_COLUMNS, read_event};
use crate::links::LINK_COLUMNS;
use crate::params::column;
use crate::rates::imported_rates;
use crate::rows::{qualified, read_row, read_row_at, uuid};
use crate::tx::Tx;
use crate::{Failure, integrations};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::event::web::{
    ExistingEvent, ExternalKey, RefundTotals, Reservation, StoredWebClick, WebClick, WebEvent,
    WebEventKind, WebFacts,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::link::LinkKind;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::web_url::PageUrl;
use tributary_recording::duplicates::{find_billed_payment, lock_sdk_events};
use tributary_store::StoreError;
use tributary_store::records::{ClickRow, LinkRow};
use uuid::Uuid;

/// Web events are always live.
pub(super) const ENVIRONMENT: Environment = Environment::Live;
pub(super) const SOURCE: EventSource = EventSource::Web;

/// The facts, and the payments that refunds name. If facts are locked, these are the stored ones, and
/// they stay locked until this transaction ends.
pub(super) struct LockedWebFacts<'a> {
    pub(super) facts: WebFacts<'a>,
    pub(super) locked: BTreeSet<ExternalKey<'a>>,
}

/// Whether the rows that a decision depends on are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactLocks {
    /// The decision is written, so its facts must stay valid until the commit.
    UntilCommit {
        /// Whether the events' apps are locked, so that the facts include the billing events.
        is_app_locked: bool,
    },
    /// Nothing is written.
    None,
}

/// Reads the facts that the rules need, after locking what they depend on.
pub(super) async fn gather<'a>(
    tx: &Tx,
    posts: &'a [WebEvent],
    locks: FactLocks,
) -> Result<LockedWebFacts<'a>, Failure> {
    // A posted event without a verified click is rejected, so it needs no locks.
    let verifiable = || posts.iter().filter(|post| post.click.is_some());
    let refunds = verifiable().filter(|post| post.kind == WebEventKind::Refund);
    let refunds: BTreeSet<_> = refunds.filter_map(WebEvent::parent_key).collect();
    let locked = match locks {
        FactLocks::UntilCommit { .. } => lock_payments(tx, refunds).await?,
        FactLocks::None => refunds,
    };

    let own: BTreeSet<_> = posts.iter().map(WebEvent::key).collect();
    let parents: BTreeSet<_> = verifiable().filter_map(WebEvent::parent_key).collect();
    let clicks = verifiable().filter_map(|post| Some((post.app, post.click?)));
    let apps: BTreeSet<AppId> = verifiable().map(|post| post.app).collect();
    let first_payments = || bulk::find_first_payments(tx, verifiable().map(WebEvent::device_ref));
    // Pipelined: these reads are independent.
    let (found, refunds, mut paid, clicks, integrations) = tokio::try_join!(
        find_events(tx, &own, &parents),
        find_refunds(tx, &locked),
        first_payments(),
        find_clicks(tx, clicks.collect()),
        integrations::find_configured(tx, &apps)
    )?;
    let FoundKeys { events, reserved } = found;
    let twins = reserved.values().filter_map(|(_, event)| event.as_ref());
    let twins: Vec<&Event> = twins.collect();
    let mut reported = BTreeMap::new();
    if locks == FactLocks::None {
        let unlocked = twins
            .iter()
            .filter(|event| event.source == EventSource::Sdk);
        reported.extend(unlocked.map(|event| (event.id, (*event).clone())));
    } else if let Some(first) = posts.first().filter(|_| !twins.is_empty()) {
        reported = lock_sdk_events(tx, &twins, first.received_at).await?;
        // Read again, because the devices may have changed before they were locked.
        paid = first_payments().await?;
    }
    let mut reservations = BTreeMap::new();
    for (key, (by, _)) in reserved {
        let billed = match locks {
            FactLocks::UntilCommit { is_app_locked } if !is_app_locked => None,
            _ => find_billed_payment(tx, (key.0, ENVIRONMENT, key.1)).await?,
        };
        let reservation = Reservation {
            event_id: by,
            sdk_event: reported.remove(&by).map(Box::new),
            billing_event: billed.map(Box::new),
        };
        reservations.insert(key, reservation);
    }
    let new = verifiable().filter(|post| !events.contains_key(&post.key()));
    let rates: BTreeSet<_> = new
        .filter_map(WebEvent::exchange_day)
        .map(|(_, currency, day)| (currency, day))
        .collect();
    let rates = imported_rates(tx, &rates.into_iter().collect::<Vec<_>>()).await?;
    let facts = WebFacts {
        events,
        refunds,
        reservations,
        first_payments: paid,
        clicks,
        rates,
        integrations,
    };
    Ok(LockedWebFacts { facts, locked })
}

/// Locks payments against concurrent refunds and returns those that exist. The row in `event_keys`
/// serves as the lock, because most payments have no row in `refunded_payments`. There is one
/// statement per app, so that no lock spans shards.
async fn lock_payments<'a>(
    tx: &Tx,
    wanted: BTreeSet<ExternalKey<'a>>,
) -> Result<BTreeSet<ExternalKey<'a>>, Failure> {
    let mut by_app: BTreeMap<AppId, Vec<&'a str>> = BTreeMap::new();
    for (app, external_id) in wanted {
        by_app.entry(app).or_default().push(external_id);
    }
    let mut locked = BTreeSet::new();
    for (app, ids) in by_app {
        let rows = tx
            .query(
                "select given_id from event_keys
                 where app_id = $1 and environment = $2 and source = $3 and given_id = any($4)
                 order by given_id for no key update",
                &[
                    &uuid(app.as_bytes()),
                    &ENVIRONMENT.as_str(),
                    &SOURCE.as_str(),
                    &ids,
                ],
            )
            .await?;
        let found: BTreeSet<&str> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        let existing = ids.into_iter().filter(|id| found.contains(id));
        locked.extend(existing.map(|id| (app, id)));
    }
    Ok(locked)
}

/// The wanted keys as SQL columns. Result rows refer to a key by its position, counted from one.
fn columns<'a>(wanted: &[ExternalKey<'a>]) -> (Vec<Uuid>, Vec<&'a str>) {
    let apps = column(wanted, |(app, _)| uuid(app.as_bytes()));
    (apps, column(wanted, |(_, external_id)| *external_id))
}

fn key_of_row<K: Copy>(wanted: &[K], row: &Row) -> Result<K, Failure> {
    let number: i64 = row.try_get("number")?;
    let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
    wanted.get(index).copied().ok_or(Failure::Conflict)
}

static FIND_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        // One index lookup per id, because of the grouping (see `devices::bulk::rows_of`).
        "select {}, wanted.number, taken.event_id as taken_id, taken.fingerprint
         from unnest($1, $2) with ordinality as wanted (app_id, given_id, number)
         cross join lateral
              (select app_id, environment, event_id, fingerprint from event_keys
               where app_id = wanted.app_id and environment = $3 and source = $4
                 and given_id = wanted.given_id
                 /* distributed: and app_id = any($1) */
               group by app_id, environment, source, given_id) as taken
         left join lateral
              (select {EVENT_COLUMNS} from events
               where app_id = taken.app_id and environment = taken.environment
                 and event_id = taken.event_id
                 /* distributed: and app_id = any($1) */
               group by app_id, environment, event_id) as events on true",
        qualified("events", EVENT_COLUMNS)
    )
});

/// The events with the wanted ids, and the ids that other sources reserved. A reserved id comes
/// with the event that reserved it, if that event is stored.
struct FoundKeys<'a> {
    events: BTreeMap<ExternalKey<'a>, ExistingEvent>,
    reserved: BTreeMap<ExternalKey<'a>, (EventId, Option<Event>)>,
}

/// Finds the events with the posted ids and with the parents' ids, and the posted ids that are
/// reserved. A parent must be an event, not a reservation.
async fn find_events<'a>(
    tx: &Tx,
    own: &BTreeSet<ExternalKey<'a>>,
    parents: &BTreeSet<ExternalKey<'a>>,
) -> Result<FoundKeys<'a>, Failure> {
    let wanted: Vec<_> = own.union(parents).copied().collect();
    let (apps, ids) = columns(&wanted);
    let rows = tx
        .query(
            &FIND_EVENTS,
            &[&apps, &ids, &ENVIRONMENT.as_str(), &SOURCE.as_str()],
        )
        .await?;
    let mut found = FoundKeys {
        events: BTreeMap::new(),
        reserved: BTreeMap::new(),
    };
    for row in &rows {
        let key = key_of_row(&wanted, row)?;
        let taken: Uuid = row.try_get("taken_id")?;
        let logged: Option<Uuid> = row.try_get("event_id")?;
        let event = logged.map(|_| read_event(row)).transpose()?;
        let fingerprint: Option<&[u8]> = row.try_get("fingerprint")?;
        let Some(fingerprint) = fingerprint else {
            if own.contains(&key) {
                let by = EventId::from_bytes(*taken.as_bytes());
                found.reserved.insert(key, (by, event));
            }
            continue;
        };
        let corrupt = |column| StoreError::corrupt("event_keys", column, taken);
        if event.is_none() && parents.contains(&key) {
            return Err(corrupt("event_id").into());
        }
        let fingerprint = fingerprint.try_into().map_err(|_| corrupt("fingerprint"))?;
        let before = ExistingEvent {
            fingerprint: Digest::from_bytes(fingerprint),
            event: event.map(Box::new),
        };
        found.events.insert(key, before);
    }
    Ok(found)
}

/// Finds the refunds of payments.
pub(crate) async fn find_refunds<'a>(
    tx: &Tx,
    payments: &BTreeSet<ExternalKey<'a>>,
) -> Result<BTreeMap<ExternalKey<'a>, RefundTotals>, Failure> {
    if payments.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted: Vec<_> = payments.iter().copied().collect();
    let (apps, ids) = columns(&wanted);
    let rows = tx
        .query(
            "select wanted.number, refunded.refunded_micros, refunded.version
             from unnest($1, $2) with ordinality as wanted (app_id, given_id, number)
             join refunded_payments as refunded
               on refunded.app_id = wanted.app_id and refunded.given_id = wanted.given_id
             /* distributed: where refunded.app_id = any($1) */",
            &[&apps, &ids],
        )
        .await?;
    let refunds = |row: &Row| {
        let refunds = RefundTotals {
            total: Amount::from_micros(row.try_get("refunded_micros")?),
            version: row.try_get("version")?,
        };
        Ok((key_of_row(&wanted, row)?, refunds))
    };
    rows.iter().map(refunds).collect()
}

/// Finds clicks with the current state of their links. A link may have been archived meanwhile.
async fn find_clicks(
    tx: &Tx,
    wanted: BTreeSet<(AppId, ClickId)>,
) -> Result<BTreeMap<(AppId, ClickId), StoredWebClick>, Failure> {
    let wanted: Vec<_> = wanted.into_iter().collect();
    let sql = format!(
        "select {}, clicks.kept, {}, wanted.number
         from unnest($1, $2) with ordinality as wanted (app_id, click_id, number)
         join clicks on clicks.app_id = wanted.app_id and clicks.click_id = wanted.click_id
         join links on links.app_id = clicks.app_id and links.link_id = clicks.link_id
         /* distributed: where clicks.app_id = any($1) and links.app_id = any($1) */",
        qualified("clicks", CLICK_COLUMNS),
        qualified("links", LINK_COLUMNS),
    );
    let apps = column(&wanted, |(app, _)| uuid(app.as_bytes()));
    let clicks = column(&wanted, |(_, click)| uuid(click.as_bytes()));
    let rows = tx.query(&sql, &[&apps, &clicks]).await?;
    let click = |row: &Row| {
        let link = read_row_at::<LinkRow>(row, CLICK_COLUMNS_COUNT + 1)?.read()?;
        let found = Arc::new(WebClick {
            click: read_row::<ClickRow>(row)?.read()?,
            is_web_funnel: link.kind == LinkKind::WebFunnel,
            link_origin: link.destination_url.as_ref().map(PageUrl::origin),
        });
        let is_referenced = row.try_get(CLICK_COLUMNS_COUNT)?;
        Ok((
            key_of_row(&wanted, row)?,
            StoredWebClick {
                click: found,
                is_referenced,
            },
        ))
    };
    rows.iter().map(click).collect()
}
