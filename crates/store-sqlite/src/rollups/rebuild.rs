//! Figures made anew from the events, and what has to be added to the stored ones for them to agree.

use super::{add_rows, cohorts, values};
use crate::Failure;
use crate::billing::find_any_app;
use crate::events::EVENT_COLUMNS;
use crate::rows::Cells;
use crate::tables::{Tables, run};
use rusqlite::{Connection, Row, ToSql, params};
use std::collections::{BTreeMap, BTreeSet};
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
use tributary_recording::{Tally, settle_first_payment};
use tributary_store::records::{
    Campaigns, CohortStoredRow, Columns, EventRow, RollupRow, dimension_column, rollup_table,
    stretch,
};
use tributary_store::{Rebuilt, RollupDay};

/// The days that have events or figures.
pub(crate) fn days(connection: &Connection) -> Result<Vec<RollupDay>, Failure> {
    let mut days = BTreeSet::new();
    let mut apps = connection.prepare("select app_id from apps")?;
    let apps: Vec<[u8; 16]> = apps
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for app in apps {
        for environment in [Environment::Live, Environment::Test] {
            let mut next = Timestamp::from_millis(0);
            // One look a day: the events in between are passed over.
            while let Some(day) = next_day(connection, &app, environment, next)? {
                days.insert(RollupDay {
                    app: AppId::from_bytes(app),
                    environment,
                    day,
                });
                next = begin(day.following());
            }
            let mut figures = connection.prepare_cached(
                "select distinct bucket from rollup_networks
                 where app_id = ?1 and environment = ?2 and grain = 1440",
            )?;
            let key = params![app, environment.as_str()];
            for bucket in figures.query_map(key, |row| row.get::<_, i64>(0))? {
                days.insert(RollupDay {
                    app: AppId::from_bytes(app),
                    environment,
                    day: Day::of(Timestamp::from_millis(bucket?)),
                });
            }
        }
    }
    Ok(days.into_iter().collect())
}

fn next_day(
    connection: &Connection,
    app: &[u8; 16],
    environment: Environment,
    from: Timestamp,
) -> Result<Option<Day>, Failure> {
    let found: Option<i64> = connection
        .prepare_cached(
            "select occurred_at from events where app_id = ?1 and environment = ?2 and event_id >= ?3
             order by event_id limit 1",
        )?
        .query_map(
            params![
                app,
                environment.as_str(),
                EventId::first_at(from).as_bytes()
            ],
            |row| row.get(0),
        )?
        .next()
        .transpose()?;
    Ok(found.map(|at| Day::of(Timestamp::from_millis(at))))
}

/// The first moment of a day of UTC.
fn begin(day: Day) -> Timestamp {
    Timestamp::from_millis(i64::from(day.as_days()) * 24 * 60 * 60 * 1_000)
}

/// Makes the figures of a day anew.
pub(crate) fn rebuild(connection: &Connection, of: RollupDay) -> Result<Rebuilt, Failure> {
    let (from, until) = (begin(of.day), begin(of.day.following()));
    let span = (EventId::first_at(from), EventId::first_at(until));
    let app = find_any_app(connection, of.app)?;
    if let Some(app) = &app {
        let terms = SdkTerms {
            policy: sdk_policy(app),
            revenue_events: &app.revenue_events,
            integrations: &[],
        };
        let tables = Tables(connection);
        run(rejudge_duplicates(
            &tables,
            (of.app, of.environment),
            span,
            terms,
        ))?;
    }
    let revenue_events = app.map(|app| app.revenue_events).unwrap_or_default();
    // First payments are those of what counts by today's rule.
    rejudge(connection, of, span, &revenue_events)?;
    settle_first_payments(connection, of, from, until)?;
    let mut counted = Increments::default();
    let mut rebuilt = Rebuilt::default();
    let mut installed = BTreeSet::new();
    each_event(
        connection,
        "event_id >= ?3 and event_id < ?4 order by event_id",
        &[
            of.app.as_bytes(),
            &of.environment.as_str(),
            span.0.as_bytes(),
            span.1.as_bytes(),
        ],
        |event| {
            rebuilt.events += 1;
            counted.add_event(&event);
            if event.own && event.name == name::INSTALL {
                installed.extend(event.device);
            }
        },
    )?;
    let cohorts = enroll_anew(connection, of, &installed, &revenue_events)?;
    let mut bounded = counted.values();
    bounded.extend(cohorts.values());
    let (fates, decided) = values::fates(connection, bounded)?;
    values::insert(connection, &decided)?;
    let counted = RollupRows::of(&counted, &fates, &cohorts);
    let stored = stored(connection, of, from, until)?;
    let all = u64::try_from(counted.len().max(stored.len())).unwrap_or(u64::MAX);
    let correction = counted.correction(&stored);
    rebuilt.wrong = u64::try_from(correction.len()).unwrap_or(u64::MAX);
    rebuilt.right = all.saturating_sub(rebuilt.wrong);
    add_rows(connection, &correction)?;
    Ok(rebuilt)
}

/// Why the amount of an event does not count, as it is stored.
fn reason(event: &Event) -> Option<&'static str> {
    event.revenue.as_ref()?.uncounted.map(Uncounted::as_str)
}

/// Stores which amounts of SDK events count by today's rule.
fn rejudge(
    connection: &Connection,
    of: RollupDay,
    span: (EventId, EventId),
    revenue_events: &[String],
) -> Result<(), Failure> {
    let mut rejudged = Vec::new();
    each_event(
        connection,
        "event_id >= ?3 and event_id < ?4 and source = ?5 and amount_micros is not null",
        &[
            of.app.as_bytes(),
            &of.environment.as_str(),
            span.0.as_bytes(),
            span.1.as_bytes(),
            &EventSource::Sdk.as_str(),
        ],
        |mut event| {
            if event.rejudge(revenue_events) {
                rejudged.push((event.id, reason(&event), event.first_payment));
            }
        },
    )?;
    let mut update = connection.prepare_cached(
        "update events set uncounted = ?4, first_payment = ?5
         where app_id = ?1 and environment = ?2 and event_id = ?3",
    )?;
    for (event, reason, first_payment) in rejudged {
        update.execute(params![
            of.app.as_bytes(),
            of.environment.as_str(),
            event.as_bytes(),
            reason,
            first_payment
        ])?;
    }
    Ok(())
}

/// Derives the first payments of the devices that paid on a day, instead of trusting the stored flags. The days of the
/// other events that this changes have payments of these devices as well, and are rebuilt for themselves.
fn settle_first_payments(
    connection: &Connection,
    of: RollupDay,
    from: Timestamp,
    until: Timestamp,
) -> Result<(), Failure> {
    let devices: Vec<String> = connection
        .prepare_cached(
            "select distinct device_id from events
             where app_id = ?1 and environment = ?2 and event_id >= ?3 and event_id < ?4
               and device_id is not null and (usd_micros > 0 or first_payment = 1)",
        )?
        .query_map(
            params![
                of.app.as_bytes(),
                of.environment.as_str(),
                EventId::first_at(from).as_bytes(),
                EventId::first_at(until).as_bytes()
            ],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    for device in devices {
        let device = DeviceRef {
            app: of.app,
            environment: of.environment,
            key: &DeviceKey::stored(device),
        };
        // The figures are made from the events, so what moves between them is not added.
        let mut recounted = Tally::default();
        run(settle_first_payment(
            &Tables(connection),
            device,
            &mut recounted,
        ))?;
    }
    Ok(())
}

fn each_event(
    connection: &Connection,
    conditions: &str,
    values: &[&dyn ToSql],
    mut work: impl FnMut(Event),
) -> Result<(), Failure> {
    let sql = format!(
        "select {EVENT_COLUMNS} from events where app_id = ?1 and environment = ?2 and {conditions}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let (mut rows, mut campaigns) = (statement.query(values)?, Campaigns::default());
    while let Some(row) = rows.next()? {
        work(EventRow::from_row(&Cells(row), 0)?.read_with(&mut campaigns)?);
    }
    Ok(())
}

/// Makes the cohorts of devices anew that were installed on a day.
fn enroll_anew(
    connection: &Connection,
    of: RollupDay,
    installed: &BTreeSet<DeviceKey>,
    revenue_events: &[String],
) -> Result<CohortRows, Failure> {
    let mut all = CohortRows::default();
    for device in installed {
        let mut entries = Vec::new();
        each_event(
            connection,
            "device_id = ?3 and source <> ?4 order by event_id",
            &[
                of.app.as_bytes(),
                &of.environment.as_str(),
                &device.as_str(),
                &CREDITED_TO_ITS_OWN_CLICK.as_str(),
            ],
            |mut event| {
                event.rejudge(revenue_events);
                entries.extend(CohortEntry::of(&event));
            },
        )?;
        let mut known = BTreeMap::new();
        let rows = cohort::enroll(&entries, &mut known).rows;
        for (member, enrolled) in &known {
            cohorts::write(connection, member, enrolled)?;
        }
        all.merge(rows);
    }
    Ok(all)
}

fn stored(
    connection: &Connection,
    of: RollupDay,
    from: Timestamp,
    until: Timestamp,
) -> Result<RollupRows, Failure> {
    let mut rows = RollupRows::default();
    let key: [&dyn ToSql; 4] = [
        of.app.as_bytes(),
        &of.environment.as_str(),
        &from.as_millis(),
        &until.as_millis(),
    ];
    let within = "app_id = ?1 and environment = ?2 and grain in (15, 60, 1440)
                  and bucket >= ?3 and bucket < ?4";
    for table in Rollup::ALL {
        let columns: Vec<&str> = table
            .dimensions()
            .iter()
            .map(|one| dimension_column(*one))
            .collect();
        let sql = format!(
            "select grain, bucket, {}, {} from {} where {within}",
            columns.join(", "),
            Figures::COLUMNS.join(", "),
            rollup_table(table)
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(&key[..])?;
        while let Some(row) = found.next()? {
            rollup_row(row, of, table)?.read_into(table, &mut rows)?;
        }
    }
    for (table, by_credit) in [("rollup_cohorts", true), ("rollup_cohort_places", false)] {
        let columns = if by_credit {
            "network, campaign_id, link_id, age"
        } else {
            "country, age"
        };
        let sql = format!(
            "select grain, bucket, {columns}, {} from {table} where {within}",
            CohortFigures::COLUMNS.join(", ")
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(&key[..])?;
        while let Some(row) = found.next()? {
            cohort_row(row, of, by_credit)?.read_into(&mut rows)?;
        }
    }
    Ok(rows)
}

fn rollup_row(row: &Row<'_>, of: RollupDay, table: Rollup) -> Result<RollupRow, Failure> {
    let at = stretch(of.app, of.environment, row.get(0)?, row.get(1)?)?;
    let (mut texts, mut link_id) = (Vec::new(), None);
    let mut index = 2;
    for dimension in table.dimensions() {
        if *dimension == Dimension::Link {
            link_id = super::link_id(row, index)?;
        } else {
            texts.push(row.get(index)?);
        }
        index += 1;
    }
    let mut values = [0; Figures::COUNT];
    for (place, value) in values.iter_mut().enumerate() {
        *value = row.get(index + place)?;
    }
    Ok(RollupRow {
        at,
        texts,
        link_id,
        figures: Figures::from_values(values),
    })
}

fn cohort_row(row: &Row<'_>, of: RollupDay, by_credit: bool) -> Result<CohortStoredRow, Failure> {
    let at = stretch(of.app, of.environment, row.get(0)?, row.get(1)?)?;
    let first = if by_credit { 5 } else { 3 };
    let mut values = [0; CohortFigures::COUNT];
    for (place, value) in values.iter_mut().enumerate() {
        *value = row.get(first + 1 + place)?;
    }
    let credit = if by_credit {
        Some((row.get(2)?, row.get(3)?))
    } else {
        None
    };
    Ok(CohortStoredRow {
        at,
        link_id: if by_credit {
            super::link_id(row, 4)?
        } else {
            None
        },
        credit,
        country: if by_credit {
            String::new()
        } else {
            row.get(2)?
        },
        age: row.get(first)?,
        figures: CohortFigures::from_values(values),
    })
}
