//! Wiping the test data of an app, one transaction at a time.
//!
//! Each transaction locks the app, so no subscription is settled and no user is linked meanwhile,
//! and it locks the devices whose events it removes. A transaction that moves the figures of an
//! event holds one of these locks, and stores its increments before it ends. So the increments of a
//! removed event are complete when the figures of its day are counted again.

use crate::rebuild::{count, rebuild_cohorts};
use crate::tables::{Tables, WipeTable, WipedEvent};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::report::{DayValues, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::wipe::{WipeStep, WipedRows, first_click_reported_at};
use tributary_store::records::audit_row;
use tributary_store::{RollupDay, WIPE_CLICKS_SCANNED_MAX, WIPED_AT_ONCE_MAX, WipeBatch};

/// The environment that is wiped.
const TEST: Environment = Environment::Test;

/// Runs a part of a wipe.
pub async fn wipe_test_data<T: Tables + WipeTable>(
    tables: &T,
    organization: OrganizationId,
    app: AppId,
    step: WipeStep,
    origin: &AuditContext,
) -> Result<WipeBatch, T::Failure> {
    tables.require_app(organization, app).await?;
    let mut removed = WipedRows::default();
    let next = match step {
        WipeStep::Begin => {
            audit(tables, organization, app, origin).await?;
            step.following()
        }
        WipeStep::Notifications => {
            let is_done = wipe_notifications(tables, app, origin.at, &mut removed).await?;
            next_unless(is_done, step)
        }
        WipeStep::Events => {
            let events = tables.first_test_events(app, WIPED_AT_ONCE_MAX).await?;
            removed.events = wipe_events(tables, app, origin.at, &events).await?;
            next_unless(events.len() < WIPED_AT_ONCE_MAX, step)
        }
        WipeStep::Clicks(from) => {
            // Only a device reports clicks, so without one there are none.
            let first = tables.first_test_device_at(app).await?;
            let from = from.or_else(|| first.map(first_click_reported_at));
            let next = wipe_clicks(tables, app, from, &mut removed).await?;
            next.map_or(step.following(), |next| Some(WipeStep::Clicks(Some(next))))
        }
        WipeStep::Devices => {
            let is_done = wipe_devices(tables, app, origin.at, &mut removed).await?;
            next_unless(is_done, step)
        }
        WipeStep::LateClicks(from) => {
            let from = from.unwrap_or_else(|| first_click_reported_at(origin.at));
            let next = wipe_clicks(tables, app, Some(from), &mut removed).await?;
            next.map_or(step.following(), |next| {
                Some(WipeStep::LateClicks(Some(next)))
            })
        }
        WipeStep::Keys => {
            let is_done = wipe_keys(tables, app).await?;
            next_unless(is_done, step)
        }
        WipeStep::FindFigures(from) => {
            // Increments of a removed event would otherwise be merged after its day was counted.
            tables.merge_increments(app).await?;
            let day = tables.next_test_figures(app, from).await?;
            day.map(WipeStep::Figures)
        }
        WipeStep::Figures(day) => {
            removed.figures = recount(tables, (app, day), origin.at).await?;
            step.following()
        }
    };
    Ok(WipeBatch { removed, next })
}

/// Returns the next step, or the same one if it is not done.
fn next_unless(is_done: bool, step: WipeStep) -> Option<WipeStep> {
    if is_done {
        step.following()
    } else {
        Some(step)
    }
}

async fn audit<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    app: AppId,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    // The entry is about test data, even if a live key asks for the wipe.
    let origin = AuditContext {
        environment: TEST,
        ..origin.clone()
    };
    let action = Action::TestDataWiped;
    let row = audit_row(organization, &origin, action, Some(app), app, &[]);
    tables.insert_audit(&row).await
}

/// Removes notifications with their events. Returns whether none is left.
async fn wipe_notifications<T: Tables + WipeTable>(
    tables: &T,
    app: AppId,
    at: Timestamp,
    removed: &mut WipedRows,
) -> Result<bool, T::Failure> {
    let ids = tables
        .remove_test_notifications(app, WIPED_AT_ONCE_MAX)
        .await?;
    removed.notifications = u64::try_from(ids.len()).unwrap_or(u64::MAX);
    let events = tables.test_events_by_id(app, &ids).await?;
    removed.events = wipe_events(tables, app, at, &events).await?;
    let is_done = ids.len() < WIPED_AT_ONCE_MAX;
    if is_done {
        // The lock on the app keeps further notifications out, so nothing is left to count.
        tables.remove_test_billing_days(app).await?;
    }
    Ok(is_done)
}

/// Locks the devices of events, and removes the events. Returns their number.
async fn wipe_events<T: Tables + WipeTable>(
    tables: &T,
    app: AppId,
    at: Timestamp,
    events: &[WipedEvent],
) -> Result<u64, T::Failure> {
    if events.is_empty() {
        return Ok(0);
    }
    let devices = events.iter().filter_map(|event| event.device.as_ref());
    // May insert rows for devices that were never configured, which the next steps remove.
    let devices = device_refs(app, devices);
    tables.lock_devices(&devices, at).await?;
    tables.remove_test_events(app, events).await
}

fn device_refs<'a>(
    app: AppId,
    devices: impl Iterator<Item = &'a DeviceKey>,
) -> BTreeSet<DeviceRef<'a>> {
    let of_app = |key| DeviceRef {
        app,
        environment: TEST,
        key,
    };
    devices.map(of_app).collect()
}

/// Removes the clicks of a part of the table. Returns where the next part begins.
async fn wipe_clicks<T: WipeTable>(
    tables: &T,
    app: AppId,
    from: Option<ClickId>,
    removed: &mut WipedRows,
) -> Result<Option<ClickId>, T::Failure> {
    let Some(from) = from else { return Ok(None) };
    let (count, next) = tables
        .remove_test_clicks(app, from, WIPE_CLICKS_SCANNED_MAX)
        .await?;
    removed.clicks = count;
    Ok(next)
}

/// Removes devices with the rest of their events. Returns whether none is left.
async fn wipe_devices<T: Tables + WipeTable>(
    tables: &T,
    app: AppId,
    at: Timestamp,
    removed: &mut WipedRows,
) -> Result<bool, T::Failure> {
    let devices = tables.some_test_devices(app, WIPED_AT_ONCE_MAX).await?;
    if devices.is_empty() {
        return Ok(true);
    }
    let refs = device_refs(app, devices.iter());
    tables.lock_devices(&refs, at).await?;
    let events = tables
        .first_test_events_of(app, &devices, WIPED_AT_ONCE_MAX)
        .await?;
    removed.events = tables.remove_test_events(app, &events).await?;
    if events.len() == WIPED_AT_ONCE_MAX {
        // There may be more. A device goes with its last event: one whose install is gone but whose
        // row is not would never record another install.
        return Ok(false);
    }
    // A later merge would add the devices to their cohorts again.
    tables.merge_increments(app).await?;
    removed.devices = tables.remove_test_devices(app, &devices).await?;
    Ok(devices.len() < WIPED_AT_ONCE_MAX)
}

/// Removes keys that nothing uses. Returns whether none is left.
async fn wipe_keys<T: WipeTable>(tables: &T, app: AppId) -> Result<bool, T::Failure> {
    let limit = WIPED_AT_ONCE_MAX;
    // Lookup keys first, because an event id that is reserved for a notification has one.
    let billing = tables.remove_test_billing_keys(app, limit).await?;
    if billing == limit {
        return Ok(false);
    }
    Ok(tables.remove_test_event_keys(app, limit).await? < limit)
}

/// Replaces the figures of a day with those of the events and clicks that arrived during the wipe,
/// usually none. Returns the number of removed rows.
///
/// The locks are the same as for a rebuild: transactions that count wait until this one ends, and
/// their increments are merged afterwards.
async fn recount<T: Tables + WipeTable>(
    tables: &T,
    (app, day): (AppId, Day),
    begun_at: Timestamp,
) -> Result<u64, T::Failure> {
    let of_day = RollupDay {
        app,
        environment: TEST,
        day,
    };
    let (begin, end) = (day.begins_at(), day.following().begins_at());
    let stored = tables.app(app).await?;
    let revenue_events = stored.map(|app| app.revenue_events).unwrap_or_default();
    tables.touch_pivot_history(app).await?;
    tables.lock_rollups().await?;
    tables.merge_increments(app).await?;
    let span = (EventId::first_at(begin), EventId::first_at(end));
    let (mut counted, installed, _) = count(tables, of_day, span).await?;
    let cohorts = rebuild_cohorts(tables, of_day, &installed, &revenue_events).await?;
    let clicks = (
        first_click_reported_at(begun_at).max(ClickId::first_at(begin)),
        ClickId::first_at(end),
    );
    if clicks.0 < clicks.1 {
        for click in tables.test_clicks_between(app, clicks).await? {
            counted.add_click(&click);
        }
    }
    let removed = tables.remove_figures(of_day).await?;
    tables.remove_cap_decisions(of_day).await?;
    let mut values = DayValues::new(app, TEST, day);
    values.add_increments(&counted);
    let known = tables.known_values(&values.knowable()).await?;
    let decisions = values.decide(&known);
    tables.write_cap_decisions(&decisions).await?;
    let rows = RollupRows::of(&counted, &decisions, &cohorts);
    tables.add_rollups(&rows).await?;
    Ok(removed)
}
