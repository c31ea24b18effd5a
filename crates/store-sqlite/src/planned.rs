//! Deliveries as they are planned, in the transaction that accepts their event.

use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::{Failure, integrations};
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::click::Click;
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::course::{
    ATTRIBUTION_CHANGED, DUPLICATE_OF_VERIFIED, NOT_FIRST_PAYMENT,
};
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::plan::{DeviceFacts, Planned, Skip};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{ClickRow, PlannedRow, skipped_to_json};

/// What planning the events of one app needs beside the events.
pub(crate) struct Surroundings {
    pub(crate) integrations: Vec<Integration>,
    /// The click that the device's install is credited to, where somebody wants to know.
    pub(crate) click: Option<Click>,
}

/// Gathers them.
pub(crate) fn surroundings(
    connection: &Connection,
    app: AppId,
    credit: Option<&Credit>,
) -> Result<Surroundings, Failure> {
    let integrations = integrations::touched(connection, app)?;
    let click = credited_click(connection, app, &integrations, credit)?;
    Ok(Surroundings {
        integrations,
        click,
    })
}

/// The click that something is credited to. It is looked for only if there is an integration that might send something.
pub(crate) fn credited_click(
    connection: &Connection,
    app: AppId,
    integrations: &[Integration],
    credit: Option<&Credit>,
) -> Result<Option<Click>, Failure> {
    match credit.and_then(|credit| credit.click) {
        Some(click) if integrations.iter().any(Integration::is_active) => {
            find_click(connection, app, click)
        }
        _ => Ok(None),
    }
}

pub(crate) fn find_click(
    connection: &Connection,
    app: AppId,
    click: ClickId,
) -> Result<Option<Click>, Failure> {
    let sql = format!("select {CLICK_COLUMNS} from clicks where app_id = ?1 and click_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), click.as_bytes()), click_row)
        .optional()?;
    Ok(row.map(ClickRow::read).transpose()?)
}

/// Puts deliveries of a new event into the outbox.
pub(crate) fn insert(
    connection: &Connection,
    event: &Event,
    planned: &[Planned],
    at: Timestamp,
) -> Result<(), Failure> {
    for one in planned {
        let row = PlannedRow::write(event, one, at);
        connection
            .prepare_cached(
                "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                     planned_at, due_at, expires_at)
                 select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
                 where not exists (select 1 from deliveries where app_id = ?1 and delivery_id = ?2)
                 on conflict (app_id, delivery_id) do nothing",
            )?
            .execute(params![
                row.app_id,
                row.delivery_id,
                row.network,
                row.event_id,
                row.network_event,
                row.dedup_id,
                row.planned_at,
                row.due_at,
                row.expires_at
            ])?;
    }
    Ok(())
}

/// Plans an event anew that is credited to somebody else now. What was on its way to somebody whom it no longer concerns
/// is cancelled; what arrived, arrived.
pub(crate) fn replan(
    connection: &Connection,
    event: &mut Event,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    why: &'static str,
) -> Result<(), Failure> {
    let before = event.skipped.clone();
    let plan = facts.plan(event, integrations);
    for network in Network::ALL {
        let is_planned = plan.planned.iter().any(|one| one.network == network);
        // What was planned before the mapping changed stays planned.
        let was_before = plan.skipped.contains(&(network, Skip::EnabledLater));
        if !is_planned && !was_before {
            cancel(connection, (event.app, event.id), network, why, facts.now)?;
        }
    }
    for one in &plan.planned {
        forget_cancelled(connection, event, one.network)?;
    }
    insert(connection, event, &plan.planned, facts.now)?;
    if event.skipped != before {
        connection
            .prepare_cached(
                "update events set skipped = ?4
                 where app_id = ?1 and environment = ?2 and event_id = ?3",
            )?
            .execute(params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.id.as_bytes(),
                skipped_to_json(&event.skipped)
            ])?;
    }
    Ok(())
}

/// Forgets a delivery that was cancelled before its first attempt because its event changed, so that it can be planned
/// again.
fn forget_cancelled(
    connection: &Connection,
    event: &Event,
    network: Network,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from deliveries where app_id = ?1 and delivery_id = ?2 and status = ?3
               and attempts_made = 0 and reason in (?4, ?5, ?6)",
        )?
        .execute(params![
            event.app.as_bytes(),
            delivery_id(event.id, network).as_bytes(),
            DeliveryStatus::Cancelled.as_str(),
            ATTRIBUTION_CHANGED,
            NOT_FIRST_PAYMENT,
            DUPLICATE_OF_VERIFIED
        ])?;
    Ok(())
}

/// Forgets what waits of an event under a name that it no longer has. What is being sent stays.
pub(crate) fn withdraw(connection: &Connection, event: &Event) -> Result<(), Failure> {
    for network in Network::ALL {
        connection
            .prepare_cached(
                "delete from outbox where app_id = ?1 and delivery_id = ?2 and attempts_made = 0
                   and sending_at is null",
            )?
            .execute(params![
                event.app.as_bytes(),
                delivery_id(event.id, network).as_bytes()
            ])?;
    }
    Ok(())
}

/// Takes a delivery out of the outbox, unless it is being sent this very moment: then whoever sends it finds out.
pub(crate) fn cancel(
    connection: &Connection,
    (app, event): (AppId, EventId),
    network: Network,
    why: &'static str,
    at: Timestamp,
) -> Result<(), Failure> {
    let id = delivery_id(event, network);
    let waits = connection
        .prepare_cached(
            "select 1 from outbox where app_id = ?1 and delivery_id = ?2
               and (sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = ?1 and queues.network = outbox.network
                                     and queues.leased_until > ?3))",
        )?
        .exists(params![app.as_bytes(), id.as_bytes(), at.as_millis()])?;
    if waits {
        let queue = QueueRef { app, network };
        let status = DeliveryStatus::Cancelled;
        crate::outbox::ends::end(connection, queue, id, status, Some(why), at)?;
        crate::outbox::ends::count(connection, queue, [status].into_iter(), at)?;
    }
    Ok(())
}
