//! Rebuilds figures from events, and corrects the stored roll-ups by the difference.

use crate::day_values::{read_cohort_rows, read_rows};
use crate::duplicates;
use crate::first_payment::settle_first_payment;
use crate::tables::{RollupPart, Tables};
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::SdkEventRules;
use tributary_domain::ledger::sdk_policy;
use tributary_domain::report::cohort::{CohortEntry, CohortRows, CohortTable, update_cohorts};
use tributary_domain::report::{DayValues, Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{RebuildReport, RollupDay};

/// Events read per query.
const PAGE_EVENTS: usize = 5_000;
/// Devices whose cohorts are rebuilt at once. A statement per device would take most of the time on
/// PostgreSQL, while requests of all apps wait for the lock.
const COHORT_DEVICES: usize = 500;

/// Finds the days that have events or figures.
pub async fn rollup_days<T: Tables>(tables: &T) -> Result<Vec<RollupDay>, T::Failure> {
    let mut days = BTreeSet::new();
    for app in tables.app_ids().await? {
        for environment in [Environment::Live, Environment::Test] {
            let scope = (app, environment);
            let mut found = tables.rolled_up_days(scope).await?;
            let mut next = EventId::first_at(Timestamp::from_millis(0));
            // One lookup per day: once a day is found, the search continues with the next day.
            while let Some(day) = tables.day_of_next_event(scope, next).await? {
                found.push(day);
                next = EventId::first_at(day.following().begins_at());
            }
            days.extend(found.into_iter().map(|day| RollupDay {
                app,
                environment,
                day,
            }));
        }
    }
    Ok(days.into_iter().collect())
}

/// Rebuilds the figures for a day. Increments from earlier transactions are merged first.
/// Concurrent transactions wait for the lock before they store their increments, which are merged
/// after the rebuild.
pub async fn rebuild_rollups<T: Tables>(
    tables: &T,
    day: RollupDay,
) -> Result<RebuildReport, T::Failure> {
    let span = (
        EventId::first_at(day.day.begins_at()),
        EventId::first_at(day.day.following().begins_at()),
    );
    let app = tables.app(day.app).await?;
    if let Some(app) = &app {
        let rules = SdkEventRules {
            policy: sdk_policy(app),
            revenue_events: &app.revenue_events,
            integrations: &[],
        };
        duplicates::correct_duplicates(tables, (day.app, day.environment), span, rules).await?;
    }
    let revenue_events = app.map(|app| app.revenue_events).unwrap_or_default();
    // First payments depend on which amounts count under the current rule. Both steps run before
    // the roll-ups are locked, because devices are locked before figures are written.
    correct_counting(tables, day, span, &revenue_events).await?;
    settle_first_payments(tables, day, span).await?;
    // Before the lock: filling the pivots locks its row before it stores increments.
    tables.touch_pivot_history(day.app).await?;
    tables.lock_rollups().await?;
    tables.merge_increments(day.app).await?;
    let (mut counted, installed, events) = count(tables, day, span).await?;
    let cohorts = rebuild_cohorts(tables, day, &installed, &revenue_events).await?;
    let stored = read_stored_rows(tables, day).await?;
    let mut values = DayValues::new(day.app, day.environment, day.day);
    values.add_stored(&stored);
    counted.keep_clicks(&stored.unfold(&values.stored_decisions()).0);
    let mut values = DayValues::new(day.app, day.environment, day.day);
    values.add_increments(&counted);
    let known = tables.known_values(&values.knowable()).await?;
    let decisions = values.decide(&known);
    tables.remove_cap_decisions(day).await?;
    tables.write_cap_decisions(&decisions).await?;
    let counted = RollupRows::of(&counted, &decisions, &cohorts);
    let all = counted.len().max(stored.len());
    let correction = counted.correction_from(&stored);
    tables.add_rollups(&correction).await?;
    let rows = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let wrong = rows(correction.len());
    Ok(RebuildReport {
        events,
        correct_rows: rows(all).saturating_sub(wrong),
        corrected_rows: wrong,
    })
}

/// Updates which SDK event amounts count under the current rule.
async fn correct_counting<T: Tables>(
    tables: &T,
    day: RollupDay,
    (mut from, until): (EventId, EventId),
    revenue_events: &[String],
) -> Result<(), T::Failure> {
    loop {
        let events = tables
            .sdk_amounts_between((day.app, day.environment), (from, until), PAGE_EVENTS)
            .await?;
        let Some(latest) = events.last() else {
            return Ok(());
        };
        from = latest.id.following();
        let changed = |mut event: Event| event.reassess_revenue(revenue_events).then_some(event);
        let changed: Vec<Event> = events.into_iter().filter_map(changed).collect();
        tables.write_counting(&changed).await?;
    }
}

/// Derives the first payments of the devices that paid on a day, instead of trusting the stored
/// flags. This may change other days on which the same devices paid; rebuilding those days corrects
/// their figures.
async fn settle_first_payments<T: Tables>(
    tables: &T,
    day: RollupDay,
    span: (EventId, EventId),
) -> Result<(), T::Failure> {
    let keys = tables
        .paying_devices((day.app, day.environment), span)
        .await?;
    // The time would only be used to insert a missing device, and all of these devices exist.
    let at = Timestamp::from_millis(0);
    let devices: BTreeSet<DeviceRef<'_>> = keys.iter().map(|key| device(day, key)).collect();
    tables.lock_devices(&devices, at).await?;
    for device in devices {
        // Discarded, because the figures are counted from the events afterwards.
        let mut discarded = TransactionTally::default();
        settle_first_payment(tables, device, &mut discarded).await?;
    }
    Ok(())
}

const fn device(day: RollupDay, key: &DeviceKey) -> DeviceRef<'_> {
    DeviceRef {
        app: day.app,
        environment: day.environment,
        key,
    }
}

/// Counts the events of a day. Returns the increments, the devices installed on that day, and the
/// number of events.
pub(crate) async fn count<T: Tables>(
    tables: &T,
    day: RollupDay,
    (mut from, until): (EventId, EventId),
) -> Result<(Increments, BTreeSet<DeviceKey>, u64), T::Failure> {
    let mut counted = Increments::default();
    let mut installed = BTreeSet::new();
    let mut count = 0;
    loop {
        let events = tables
            .events_between((day.app, day.environment), (from, until), PAGE_EVENTS)
            .await?;
        let Some(latest) = events.last() else {
            return Ok((counted, installed, count));
        };
        from = latest.id.following();
        for event in events {
            count += 1;
            counted.add_event(&event);
            if event.is_install() {
                installed.extend(event.device);
            }
        }
    }
}

/// Rebuilds the cohorts of the devices installed on a day.
pub(crate) async fn rebuild_cohorts<T: Tables>(
    tables: &T,
    day: RollupDay,
    installed: &BTreeSet<DeviceKey>,
    revenue_events: &[String],
) -> Result<CohortRows, T::Failure> {
    let mut all = CohortRows::default();
    let installed: Vec<&DeviceKey> = installed.iter().collect();
    for devices in installed.chunks(COHORT_DEVICES) {
        let mut events = tables
            .credited_events((day.app, day.environment), devices)
            .await?;
        for event in &mut events {
            event.reassess_revenue(revenue_events);
        }
        let entries: Vec<CohortEntry> = events.iter().filter_map(CohortEntry::of).collect();
        let mut devices = BTreeMap::new();
        let rows = update_cohorts(&entries, &mut devices).rows;
        tables.write_cohort_devices(&devices).await?;
        all.merge(rows);
    }
    Ok(all)
}

/// Reads the stored figures for a day.
async fn read_stored_rows<T: Tables>(tables: &T, day: RollupDay) -> Result<RollupRows, T::Failure> {
    let mut rows = RollupRows::default();
    for table in Rollup::ALL {
        read_rows(tables, day, table, RollupPart::All, &mut rows).await?;
    }
    for table in CohortTable::ALL {
        read_cohort_rows(tables, day, table, RollupPart::All, &mut rows).await?;
    }
    Ok(rows)
}
