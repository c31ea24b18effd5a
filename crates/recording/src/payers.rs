//! Counts the payers of cohorts whose installs are older than the counting of payers, step by step.

use crate::tables::Tables;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::report::cohort::{CohortEntry, CohortUpdate, update_cohorts};
use tributary_domain::report::{Increments, Period, RollupRows};
use tributary_domain::vocabulary::id::{AppId, EventId};

/// Events read per query.
const PAGE_EVENTS: usize = 5_000;
/// Devices whose payments are counted at once.
const DEVICES: usize = 500;
/// Installs of this time are one step. The roll-ups are locked during a step.
const STEP: Duration = Duration::from_hours(1);
const ENVIRONMENTS: [Environment; 2] = [Environment::Live, Environment::Test];

/// Counts the payers of the latest hour of installs that is not counted yet. A payment that was
/// counted before is not counted again, because each device has a record of the days on which it
/// paid. Returns whether more may be left.
pub async fn fill_payers<T: Tables>(tables: &T, app: AppId) -> Result<bool, T::Failure> {
    tables.lock_rollups().await?;
    let Some(complete_from) = tables.payers_from(app).await? else {
        return Ok(false);
    };
    let mut latest = None;
    for environment in ENVIRONMENTS {
        let found = tables.latest_installs((app, environment), complete_from);
        latest = latest.max(found.await?);
    }
    let Some(begin) = latest else {
        tables.write_payers_from(app, None).await?;
        return Ok(false);
    };
    tables.merge_increments(app).await?;
    for environment in ENVIRONMENTS {
        count_payers(tables, (app, environment), (begin, begin.plus(STEP))).await?;
    }
    tables.write_payers_from(app, Some(begin)).await?;
    Ok(true)
}

/// Counts the payments of the devices that were installed in a period.
async fn count_payers<T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    period: Period,
) -> Result<(), T::Failure> {
    let installed = installed_in(tables, scope, period).await?;
    let installed: Vec<&DeviceKey> = installed.iter().collect();
    for devices in installed.chunks(DEVICES) {
        let events = tables.credited_events(scope, devices).await?;
        let entries: Vec<CohortEntry> = events.iter().filter_map(CohortEntry::of).collect();
        let mut counted = BTreeMap::new();
        update_cohorts(&entries, &mut counted);
        let members = counted.keys().collect();
        let (mut update, mut changed) = (CohortUpdate::default(), BTreeMap::new());
        for (member, row) in tables.cohort_devices(&members).await? {
            let mut device = row.read()?;
            update.correct_payments(&member, &mut device, &counted[&member]);
            if update.changed_devices.contains(&member) {
                changed.insert(member, device);
            }
        }
        tables.write_cohort_devices(&changed).await?;
        let values: Vec<_> = update.rows.capped_values().into_iter().collect();
        let decisions = tables.cap_decisions(&values).await?;
        let rows = RollupRows::of(&Increments::default(), &decisions, &update.rows);
        tables.add_rollups(&rows).await?;
    }
    Ok(())
}

async fn installed_in<T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    (begin, end): Period,
) -> Result<BTreeSet<DeviceKey>, T::Failure> {
    let mut installed = BTreeSet::new();
    let (mut from, until) = (EventId::first_at(begin), EventId::first_at(end));
    loop {
        let events = tables
            .events_between(scope, (from, until), PAGE_EVENTS)
            .await?;
        let Some(latest) = events.last() else {
            return Ok(installed);
        };
        from = latest.id.following();
        let installs = events
            .into_iter()
            .filter(tributary_domain::event::Event::is_install);
        installed.extend(installs.filter_map(|event| event.device));
    }
}
