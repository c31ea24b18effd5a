//! Deliveries as they are planned, in the transaction that accepts their event.

use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::outbox::ends::{self, Ended, Ends};
use crate::params::{column, marks};
use crate::rows::{id, qualified, uuid};
use crate::tx::Tx;
use crate::{Failure, integrations};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::course::{
    ATTRIBUTION_CHANGED, DUPLICATE_OF_VERIFIED, NOT_FIRST_PAYMENT,
};
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::plan::{DeviceFacts, Planned, Skip};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{PlannedRow, skipped_to_json};
use uuid::Uuid;

/// Deliveries that one statement looks for.
const CANCELLED_AT_ONCE_MAX: usize = 4_000;

/// What planning the events of one app needs beside the events.
pub(crate) struct Surroundings {
    pub(crate) integrations: Arc<[Integration]>,
    /// The click that the device's install is credited to, where somebody wants to know.
    pub(crate) click: Option<Click>,
}

/// What events are planned with once more.
pub(crate) struct Replanning<'a> {
    pub(crate) facts: &'a DeviceFacts<'a>,
    pub(crate) integrations: &'a [Integration],
    /// Why what is not planned any more is cancelled.
    pub(crate) why: &'static str,
}

/// Forgets what waits of an event under a name that it no longer has. What is being sent stays.
pub(crate) async fn withdraw(tx: &Tx, event: &Event) -> Result<(), Failure> {
    let ids = column(&Network::ALL, |network| {
        uuid(delivery_id(event.id, *network).as_bytes())
    });
    tx.execute(
        "delete from outbox where app_id = $1 and delivery_id = any($2) and attempts_made = 0
           and sending_at is null",
        &[&uuid(event.app.as_bytes()), &ids],
    )
    .await?;
    Ok(())
}

/// Gathers them. A click is looked for only if there is an integration that might send something.
pub(crate) async fn surroundings(
    tx: &Tx,
    app: AppId,
    credit: &Credit,
) -> Result<Surroundings, Failure> {
    let mut touched = integrations::touched(tx, &BTreeSet::from([app])).await?;
    let integrations = touched.remove(&app).unwrap_or_default();
    let wanted = credit
        .click
        .filter(|_| integrations.iter().any(Integration::is_active));
    let wanted = wanted.into_iter().map(|click| (app, click)).collect();
    let click = find_clicks(tx, wanted).await?.into_values().next();
    Ok(Surroundings {
        integrations,
        click,
    })
}

/// Gathers them for an event, also for one that is credited to nothing.
pub(crate) async fn surroundings_of(tx: &Tx, event: &Event) -> Result<Surroundings, Failure> {
    if let Some(credit) = &event.credit {
        return surroundings(tx, event.app, credit).await;
    }
    let mut touched = integrations::touched(tx, &BTreeSet::from([event.app])).await?;
    Ok(Surroundings {
        integrations: touched.remove(&event.app).unwrap_or_default(),
        click: None,
    })
}

/// Clicks of apps.
pub(crate) async fn find_clicks(
    tx: &Tx,
    wanted: BTreeSet<(AppId, ClickId)>,
) -> Result<BTreeMap<(AppId, ClickId), Click>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let sql = format!(
        "select {} from unnest($1, $2) as wanted (app_id, click_id)
         join clicks on clicks.app_id = wanted.app_id and clicks.click_id = wanted.click_id",
        qualified("clicks", CLICK_COLUMNS)
    );
    let apps = column(&wanted, |(app, _)| uuid(app.as_bytes()));
    let clicks = column(&wanted, |(_, click)| uuid(click.as_bytes()));
    let rows = tx.query(&sql, &[&apps, &clicks]).await?;
    let click = |row| {
        let click = click_row(row)?.read()?;
        Ok(((click.app, click.id), click))
    };
    rows.iter().map(click).collect()
}

/// Puts deliveries into the outbox that did not come to their end yet.
pub(crate) async fn insert(tx: &Tx, rows: &[PlannedRow]) -> Result<(), Failure> {
    const COLUMNS: &str = "app_id, delivery_id, network, event_id, network_event, dedup_id, \
         planned_at, due_at, expires_at";
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "insert into outbox ({COLUMNS}) select * from unnest({})
         on conflict (app_id, delivery_id) do nothing",
        marks(9)
    );
    tx.execute(
        &sql,
        &[
            &column(rows, |row| uuid(&row.app_id)),
            &column(rows, |row| uuid(&row.delivery_id)),
            &column(rows, |row| row.network.as_str()),
            &column(rows, |row| uuid(&row.event_id)),
            &column(rows, |row| row.network_event.as_str()),
            &column(rows, |row| row.dedup_id.as_str()),
            &column(rows, |row| row.planned_at),
            &column(rows, |row| row.due_at),
            &column(rows, |row| row.expires_at),
        ],
    )
    .await?;
    Ok(())
}

/// Puts deliveries into the outbox, unless they came to their end. Those that were cancelled before their first attempt
/// because their event changed are planned again.
pub(crate) async fn insert_new(
    tx: &Tx,
    app: AppId,
    planned: Vec<PlannedRow>,
) -> Result<(), Failure> {
    if planned.is_empty() {
        return Ok(());
    }
    tx.execute(
        "delete from deliveries where app_id = $1 and delivery_id = any($2) and status = $3
           and attempts_made = 0 and reason in ($4, $5, $6)",
        &[
            &uuid(app.as_bytes()),
            &column(&planned, |row| uuid(&row.delivery_id)),
            &DeliveryStatus::Cancelled.as_str(),
            &ATTRIBUTION_CHANGED,
            &NOT_FIRST_PAYMENT,
            &DUPLICATE_OF_VERIFIED,
        ],
    )
    .await?;
    let ended = ended(tx, app, &planned).await?;
    let new: Vec<PlannedRow> = planned
        .into_iter()
        .filter(|row| !ended.contains(&row.delivery_id))
        .collect();
    insert(tx, &new).await
}

/// Plans events of a device anew that are credited to somebody else now. What was on its way to somebody whom they no
/// longer concern is cancelled; what arrived, arrived.
///
/// What waits in the outbox is locked first. Somebody who is just moving it from there to its end is waited for, and
/// is then seen to have done so; otherwise it would be planned a second time.
pub(crate) async fn replan(
    tx: &Tx,
    app: AppId,
    events: &mut [Event],
    anew: &Replanning<'_>,
    ends: &mut Ends,
) -> Result<(), Failure> {
    let (facts, integrations) = (anew.facts, anew.integrations);
    let before: Vec<_> = events.iter().map(|event| event.skipped.clone()).collect();
    let mut plans = Vec::new();
    let mut not_planned = BTreeMap::new();
    for event in events.iter_mut() {
        let plan = facts.plan(event, integrations);
        // What was planned before the mapping changed stays planned.
        let was_before = |network| plan.skipped.contains(&(network, Skip::EnabledLater));
        let planned = plan.planned;
        let hears = |network| planned.iter().any(|one| one.network == network);
        let silent = Network::ALL
            .into_iter()
            .filter(|network| !hears(*network) && !was_before(*network));
        not_planned.extend(silent.map(|network| (delivery_id(event.id, network), network)));
        plans.push(planned);
    }
    // Nothing was ever planned where nobody ever touched an integration.
    if !integrations.is_empty() {
        let planned = rows(events, &plans, facts);
        let waiting = lock(tx, app, &planned, &not_planned, facts.now).await?;
        let why = (anew.why, facts.now);
        cancel(tx, app, &waiting, &not_planned, why, ends).await?;
        insert_new(tx, app, planned).await?;
    }
    let changed: Vec<&Event> = events
        .iter()
        .zip(before)
        .filter(|(event, before)| event.skipped != *before)
        .map(|(event, _)| event)
        .collect();
    write_skipped(tx, &changed).await
}

fn rows(events: &[Event], plans: &[Vec<Planned>], facts: &DeviceFacts<'_>) -> Vec<PlannedRow> {
    let of_event = |(event, planned): (_, &Vec<Planned>)| -> Vec<PlannedRow> {
        let row = |one| PlannedRow::write(event, one, facts.now);
        planned.iter().map(row).collect()
    };
    events.iter().zip(plans).flat_map(of_event).collect()
}

/// Cancels whatever waits of some events. The caller counts it, when all else is written.
pub(crate) async fn cancel_all(
    tx: &Tx,
    app: AppId,
    events: &[EventId],
    why: (&'static str, Timestamp),
    ends: &mut Ends,
) -> Result<(), Failure> {
    let of_event =
        |event: &EventId| Network::ALL.map(|network| (delivery_id(*event, network), network));
    // In the order of their ids over all parts, as everybody locks them.
    let all: BTreeMap<DeliveryId, Network> = events.iter().flat_map(of_event).collect();
    let all: Vec<(DeliveryId, Network)> = all.into_iter().collect();
    for part in all.chunks(CANCELLED_AT_ONCE_MAX) {
        let part = part.iter().copied().collect();
        let waiting = lock(tx, app, &[], &part, why.1).await?;
        cancel(tx, app, &waiting, &part, why, ends).await?;
    }
    Ok(())
}

/// Locks what waits of these deliveries, in the order of their ids. Gives those that nobody is sending this very
/// moment.
async fn lock(
    tx: &Tx,
    app: AppId,
    planned: &[PlannedRow],
    not_planned: &BTreeMap<DeliveryId, Network>,
    now: Timestamp,
) -> Result<Vec<DeliveryId>, Failure> {
    let mut ids: Vec<Uuid> = column(planned, |row| uuid(&row.delivery_id));
    ids.extend(not_planned.keys().map(|id| uuid(id.as_bytes())));
    let rows = tx
        .query(
            "select delivery_id,
                    sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = outbox.app_id
                                     and queues.network = outbox.network
                                     and queues.leased_until > $3)
             from outbox
             where app_id = $1 and delivery_id = any($2) order by delivery_id for update",
            &[&uuid(app.as_bytes()), &ids, &now.as_millis()],
        )
        .await?;
    let mut waiting = Vec::new();
    for row in &rows {
        if row.try_get(1)? {
            waiting.push(DeliveryId::from_bytes(id(row, 0)?));
        }
    }
    Ok(waiting)
}

/// Takes what is not planned any more out of the outbox, unless it is being sent: then the network may have it.
async fn cancel(
    tx: &Tx,
    app: AppId,
    waiting: &[DeliveryId],
    not_planned: &BTreeMap<DeliveryId, Network>,
    (why, now): (&'static str, Timestamp),
    ends: &mut Ends,
) -> Result<(), Failure> {
    let status = DeliveryStatus::Cancelled;
    let mut cancelled = Vec::new();
    for id in waiting {
        let Some(network) = not_planned.get(id) else {
            continue;
        };
        let queue = QueueRef {
            app,
            network: *network,
        };
        ends.add(queue, [status].into_iter());
        cancelled.push(Ended {
            id: *id,
            status,
            reason: Some(why),
            attempts: None,
        });
    }
    ends::end(tx, app, &cancelled, now).await
}

/// Those of these deliveries that came to their end.
async fn ended(tx: &Tx, app: AppId, planned: &[PlannedRow]) -> Result<BTreeSet<[u8; 16]>, Failure> {
    if planned.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = column(planned, |row| uuid(&row.delivery_id));
    let sql = "select delivery_id from deliveries where app_id = $1 and delivery_id = any($2)";
    let rows = tx.query(sql, &[&uuid(app.as_bytes()), &ids]).await?;
    rows.iter().map(|row| Ok(id(row, 0)?)).collect()
}

/// Writes which networks do not hear of some events.
async fn write_skipped(tx: &Tx, events: &[&Event]) -> Result<(), Failure> {
    if events.is_empty() {
        return Ok(());
    }
    let skipped = column(events, |event| skipped_to_json(&event.skipped));
    tx.execute(
        "update events as stored set skipped = new.skipped
         from unnest($1, $2, $3, $4) as new (app_id, environment, event_id, skipped)
         where stored.app_id = new.app_id and stored.environment = new.environment
           and stored.event_id = new.event_id",
        &[
            &column(events, |event| uuid(event.app.as_bytes())),
            &column(events, |event| event.environment.as_str()),
            &column(events, |event| uuid(event.id.as_bytes())),
            &column(&skipped, |text| text.as_deref()),
        ],
    )
    .await?;
    Ok(())
}
