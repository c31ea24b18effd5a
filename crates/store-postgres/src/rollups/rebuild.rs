//! Figures made anew from the events, and what has to be added to the stored ones for them to agree.

use super::{add_rows, cohorts, merge_or_discard, values};
use crate::params::Param;
use crate::rows::{app_by_id, id, uuid};
use crate::tx::Tx;
use crate::{Failure, event_rows};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::duplicate::SdkTerms;
use tributary_domain::event::{CREDITED_TO_ITS_OWN_CLICK, Event, EventSource, name};
use tributary_domain::ledger::{Uncounted, sdk_policy};
use tributary_domain::report::cohort::{self, CohortEntry, CohortFigures, CohortRows};
use tributary_domain::report::{Dimension, Figures, Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::duplicates::rejudge as rejudge_duplicates;
use tributary_recording::{DeviceTable, Tally, settle_first_payment};
use tributary_store::records::{
    CohortStoredRow, RollupRow, dimension_column, rollup_table, stretch,
};
use tributary_store::{Rebuilt, RollupDay};
use uuid::Uuid;

/// Events that are read at a time.
const PAGE_EVENTS: i64 = 5_000;

/// The days that have events or figures.
pub(crate) async fn days(tx: &Tx) -> Result<Vec<RollupDay>, Failure> {
    let mut days = BTreeSet::new();
    for row in &tx.query("select app_id from apps", &[]).await? {
        let app = AppId::from_bytes(id(row, 0)?);
        for environment in [Environment::Live, Environment::Test] {
            let mut add = |day| {
                days.insert(RollupDay {
                    app,
                    environment,
                    day,
                })
            };
            let mut next = Timestamp::from_millis(0);
            // One look a day: the events in between are passed over.
            while let Some(day) = next_day(tx, app, environment, next).await? {
                add(day);
                next = begin(day.following());
            }
            let figures = "select distinct bucket from rollup_networks
                           where app_id = $1 and environment = $2 and grain = 1440";
            let key: [&dyn Param; 2] = [&uuid(app.as_bytes()), &environment.as_str()];
            for row in &tx.query(figures, &key).await? {
                add(Day::of(Timestamp::from_millis(row.try_get(0)?)));
            }
        }
    }
    Ok(days.into_iter().collect())
}

async fn next_day(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    from: Timestamp,
) -> Result<Option<Day>, Failure> {
    let found = tx
        .query_opt(
            "select occurred_at from events where app_id = $1 and environment = $2 and event_id >= $3
             order by event_id limit 1",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &uuid(EventId::first_at(from).as_bytes()),
            ],
        )
        .await?;
    let day = |row: Row| Ok(Day::of(Timestamp::from_millis(row.try_get(0)?)));
    found.map(day).transpose()
}

/// The first moment of a day of UTC.
fn begin(day: Day) -> Timestamp {
    Timestamp::from_millis(i64::from(day.as_days()) * 24 * 60 * 60 * 1_000)
}

/// Derives the first payments of the devices that paid on a day, instead of trusting the stored flags. The days of the
/// other events that this changes have payments of these devices as well, and are rebuilt for themselves.
async fn settle_first_payments(tx: &Tx, of: RollupDay) -> Result<(), Failure> {
    let (from, until) = (begin(of.day), begin(of.day.following()));
    let rows = tx
        .query(
            "select distinct device_id from events
             where app_id = $1 and environment = $2 and event_id >= $3 and event_id < $4
               and device_id is not null and (usd_micros > 0 or first_payment)",
            &[
                &uuid(of.app.as_bytes()),
                &of.environment.as_str(),
                &uuid(EventId::first_at(from).as_bytes()),
                &uuid(EventId::first_at(until).as_bytes()),
            ],
        )
        .await?;
    let mut keys = Vec::new();
    for row in &rows {
        keys.push(DeviceKey::stored(row.try_get(0)?));
    }
    let of_device = |key| DeviceRef {
        app: of.app,
        environment: of.environment,
        key,
    };
    let now = Timestamp::from_millis(0);
    tx.lock_devices(&keys.iter().map(of_device).collect(), now)
        .await?;
    for key in &keys {
        // The figures are made from the events, so what moves between them is not added.
        let mut recounted = Tally::default();
        settle_first_payment(tx, of_device(key), &mut recounted).await?;
    }
    Ok(())
}

/// Makes the figures of a day anew. Whoever records something meanwhile waits before it is counted, and is counted
/// afterwards; what was counted before is added first.
pub(crate) async fn rebuild(tx: &Tx, of: RollupDay) -> Result<Rebuilt, Failure> {
    let (from, until) = (begin(of.day), begin(of.day.following()));
    let app = app_by_id(tx, uuid(of.app.as_bytes())).await?;
    if let Some(app) = &app {
        let span = (EventId::first_at(from), EventId::first_at(until));
        let terms = SdkTerms {
            policy: sdk_policy(app),
            revenue_events: &app.revenue_events,
            integrations: &[],
        };
        rejudge_duplicates(tx, (of.app, of.environment), span, terms).await?;
    }
    let revenue_events = app.map(|app| app.revenue_events).unwrap_or_default();
    // First payments are those of what counts by today's rule. Both come before the tables, since devices are locked
    // before figures are written.
    rejudge(tx, of, &revenue_events).await?;
    settle_first_payments(tx, of).await?;
    tx.execute(
        "lock table rollup_increments, rollup_networks, rollup_values, cohort_devices
         in share row exclusive mode",
        &[],
    )
    .await?;
    merge_or_discard(tx, of.app).await?;
    let mut counted = Increments::default();
    let mut rebuilt = Rebuilt::default();
    let mut installed = BTreeSet::new();
    let last = uuid(EventId::first_at(until).as_bytes());
    let mut next = uuid(EventId::first_at(from).as_bytes());
    let mut comparison = ">=";
    loop {
        let events = page(
            tx,
            of,
            &format!("event_id {comparison} $3 and event_id < $4 order by event_id limit $5"),
            &[&next, &last, &PAGE_EVENTS],
        )
        .await?;
        let Some(latest) = events.last() else { break };
        (next, comparison) = (uuid(latest.id.as_bytes()), ">");
        for event in events {
            rebuilt.events += 1;
            counted.add_event(&event);
            if event.own && event.name == name::INSTALL {
                installed.extend(event.device);
            }
        }
    }
    let cohorts = enroll_anew(tx, of, &installed, &revenue_events).await?;
    let mut bounded = counted.values();
    bounded.extend(cohorts.values());
    let (fates, decided) = values::fates(tx, bounded).await?;
    values::insert(tx, &decided).await?;
    let counted = RollupRows::of(&counted, &fates, &cohorts);
    let stored = stored(tx, of, from, until).await?;
    let all = u64::try_from(counted.len().max(stored.len())).unwrap_or(u64::MAX);
    let correction = counted.correction(&stored);
    rebuilt.wrong = u64::try_from(correction.len()).unwrap_or(u64::MAX);
    rebuilt.right = all.saturating_sub(rebuilt.wrong);
    add_rows(tx, &correction).await?;
    Ok(rebuilt)
}

/// Stores which amounts of SDK events count by today's rule.
async fn rejudge(tx: &Tx, of: RollupDay, revenue_events: &[String]) -> Result<(), Failure> {
    let (from, until) = (begin(of.day), begin(of.day.following()));
    let last = uuid(EventId::first_at(until).as_bytes());
    let mut next = uuid(EventId::first_at(from).as_bytes());
    let mut comparison = ">=";
    let sdk = EventSource::Sdk.as_str();
    loop {
        let events = page(
            tx,
            of,
            &format!(
                "event_id {comparison} $3 and event_id < $4 and source = $5 and amount_micros is not null
                 order by event_id limit $6"
            ),
            &[&next, &last, &sdk, &PAGE_EVENTS],
        )
        .await?;
        let Some(latest) = events.last() else {
            return Ok(());
        };
        (next, comparison) = (uuid(latest.id.as_bytes()), ">");
        for mut event in events {
            if event.rejudge(revenue_events) {
                store_reason(tx, of, &event).await?;
            }
        }
    }
}

/// Stores whether the amount of an event counts by today's rule.
async fn store_reason(tx: &Tx, of: RollupDay, event: &Event) -> Result<(), Failure> {
    let revenue = event.revenue.as_ref();
    let reason = revenue.and_then(|revenue| revenue.uncounted);
    tx.execute(
        "update events set uncounted = $4, first_payment = $5
         where app_id = $1 and environment = $2 and event_id = $3",
        &[
            &uuid(of.app.as_bytes()),
            &of.environment.as_str(),
            &uuid(event.id.as_bytes()),
            &reason.map(Uncounted::as_str),
            &event.first_payment,
        ],
    )
    .await?;
    Ok(())
}

async fn page(
    tx: &Tx,
    of: RollupDay,
    conditions: &str,
    further: &[&dyn Param],
) -> Result<Vec<Event>, Failure> {
    let (app, environment) = (uuid(of.app.as_bytes()), of.environment.as_str());
    let mut params: Vec<&dyn Param> = vec![&app, &environment];
    params.extend(further);
    let conditions = format!("app_id = $1 and environment = $2 and {conditions}");
    event_rows::find(tx, &conditions, &params).await
}

/// Makes the cohorts of devices anew that were installed on a day.
async fn enroll_anew(
    tx: &Tx,
    of: RollupDay,
    installed: &BTreeSet<DeviceKey>,
    revenue_events: &[String],
) -> Result<CohortRows, Failure> {
    let mut all = CohortRows::default();
    let stays = CREDITED_TO_ITS_OWN_CLICK.as_str();
    for device in installed {
        let device = device.as_str();
        let mut events = page(
            tx,
            of,
            "device_id = $3 and source <> $4 order by event_id",
            &[&device, &stays],
        )
        .await?;
        for event in &mut events {
            event.rejudge(revenue_events);
        }
        let entries: Vec<CohortEntry> = events.iter().filter_map(CohortEntry::of).collect();
        let mut known = BTreeMap::new();
        let rows = cohort::enroll(&entries, &mut known).rows;
        let known: Vec<_> = known.iter().collect();
        cohorts::write(tx, &known).await?;
        all.merge(rows);
    }
    Ok(all)
}

async fn stored(
    tx: &Tx,
    of: RollupDay,
    from: Timestamp,
    until: Timestamp,
) -> Result<RollupRows, Failure> {
    let mut rows = RollupRows::default();
    let (app, environment) = (uuid(of.app.as_bytes()), of.environment.as_str());
    let (from, until) = (from.as_millis(), until.as_millis());
    let key: [&dyn Param; 4] = [&app, &environment, &from, &until];
    let within = "app_id = $1 and environment = $2 and grain in (15, 60, 1440)
                  and bucket >= $3 and bucket < $4";
    for table in Rollup::ALL {
        let columns: Vec<&str> = table
            .dimensions()
            .iter()
            .map(|one| dimension_column(*one))
            .collect();
        let sql = format!(
            "select grain::bigint, bucket, {}, {} from {} where {within}",
            columns.join(", "),
            Figures::COLUMNS.join(", "),
            rollup_table(table)
        );
        for row in &tx.query(&sql, &key).await? {
            rollup_row(row, of, table)?.read_into(table, &mut rows)?;
        }
    }
    for (table, by_credit) in [("rollup_cohorts", true), ("rollup_cohort_places", false)] {
        let columns = if by_credit {
            "network, campaign_id, link_id, age::bigint"
        } else {
            "country, age::bigint"
        };
        let sql = format!(
            "select grain::bigint, bucket, {columns}, {} from {table} where {within}",
            CohortFigures::COLUMNS.join(", ")
        );
        for row in &tx.query(&sql, &key).await? {
            cohort_row(row, of, by_credit)?.read_into(&mut rows)?;
        }
    }
    Ok(rows)
}

/// The link of a key; nothing where it has none.
pub(crate) fn link_id(row: &Row, index: usize) -> Result<Option<[u8; 16]>, Failure> {
    let found: Uuid = row.try_get(index)?;
    Ok((!found.is_nil()).then(|| found.into_bytes()))
}

fn rollup_row(row: &Row, of: RollupDay, table: Rollup) -> Result<RollupRow, Failure> {
    let at = stretch(of.app, of.environment, row.try_get(0)?, row.try_get(1)?)?;
    let (mut texts, mut link) = (Vec::new(), None);
    let mut index = 2;
    for dimension in table.dimensions() {
        if *dimension == Dimension::Link {
            link = link_id(row, index)?;
        } else {
            texts.push(row.try_get(index)?);
        }
        index += 1;
    }
    let mut values = [0; Figures::COUNT];
    for (place, value) in values.iter_mut().enumerate() {
        *value = row.try_get(index + place)?;
    }
    Ok(RollupRow {
        at,
        texts,
        link_id: link,
        figures: Figures::from_values(values),
    })
}

fn cohort_row(row: &Row, of: RollupDay, by_credit: bool) -> Result<CohortStoredRow, Failure> {
    let at = stretch(of.app, of.environment, row.try_get(0)?, row.try_get(1)?)?;
    let first = if by_credit { 5 } else { 3 };
    let mut values = [0; CohortFigures::COUNT];
    for (place, value) in values.iter_mut().enumerate() {
        *value = row.try_get(first + 1 + place)?;
    }
    let credit = if by_credit {
        Some((row.try_get(2)?, row.try_get(3)?))
    } else {
        None
    };
    Ok(CohortStoredRow {
        at,
        link_id: if by_credit { link_id(row, 4)? } else { None },
        credit,
        country: if by_credit {
            String::new()
        } else {
            row.try_get(2)?
        },
        age: row.try_get(first)?,
        figures: CohortFigures::from_values(values),
    })
}
