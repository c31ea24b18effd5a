//! Devices that were installed, and the cohorts that they count in.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;
use tributary_domain::event::CREDITED_TO_ITS_OWN_CLICK;
use tributary_domain::report::cohort::{self, CohortEntry, CohortRows, Doubt, Enrolled, Member};
use tributary_domain::vocabulary::id::EventId;
use tributary_store::StoreError;
use tributary_store::records::EnrolledRow;

/// Counts what devices did, and gives those of which something else is known now.
pub(super) fn enroll(
    connection: &Connection,
    entries: &[CohortEntry],
) -> Result<(CohortRows, BTreeMap<Member, Enrolled>), Failure> {
    let mut known = BTreeMap::new();
    for entry in entries {
        if !known.contains_key(&entry.member)
            && let Some(enrolled) = find(connection, &entry.member)?
        {
            known.insert(entry.member.clone(), enrolled);
        }
    }
    let mut all = cohort::enroll(entries, &mut known);
    for doubt in all.doubts.clone() {
        if !was_seen(connection, &doubt)? {
            all.unsee(&doubt, &mut known);
        }
    }
    known.retain(|member, _| all.changed.contains(member));
    Ok((all.rows, known))
}

/// Whether a device has an event that counts on the day of a doubt. Events are written before they are counted.
fn was_seen(connection: &Connection, doubt: &Doubt) -> Result<bool, Failure> {
    let span = (
        EventId::first_at(doubt.from),
        EventId::first_at(doubt.until),
    );
    let found = connection
        .prepare_cached(
            "select 1 from events
             where app_id = ?1 and environment = ?2 and device_id = ?3
               and event_id >= ?4 and event_id < ?5 and source <> ?6 and network is not null",
        )?
        .exists(params![
            doubt.member.app.as_bytes(),
            doubt.member.environment.as_str(),
            doubt.member.device.as_str(),
            span.0.as_bytes(),
            span.1.as_bytes(),
            CREDITED_TO_ITS_OWN_CLICK.as_str()
        ])?;
    Ok(found)
}

fn row(row: &Row<'_>) -> rusqlite::Result<EnrolledRow> {
    Ok(EnrolledRow {
        installed_at: row.get(0)?,
        network: row.get(1)?,
        link_id: row.get(2)?,
        campaign_id: row.get(3)?,
        country: row.get(4)?,
        ages: row.get(5)?,
    })
}

fn find(connection: &Connection, member: &Member) -> Result<Option<Enrolled>, Failure> {
    let found = connection
        .prepare_cached(
            "select installed_at, network, link_id, campaign_id, country, ages from cohort_devices
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(
            params![
                member.app.as_bytes(),
                member.environment.as_str(),
                member.device.as_str()
            ],
            row,
        )
        .optional()?;
    Ok(found.and_then(readable))
}

/// A row that cannot be read stops nobody else: its device counts in no cohort until figures are made anew.
fn readable(row: EnrolledRow) -> Option<Enrolled> {
    let tell = |error: &StoreError| tracing::error!(%error, "a device is in no cohort");
    row.read().inspect_err(tell).ok()
}

pub(super) fn write(
    connection: &Connection,
    member: &Member,
    enrolled: &Enrolled,
) -> Result<(), Failure> {
    let row = EnrolledRow::write(enrolled);
    connection
        .prepare_cached(
            "insert into cohort_devices (app_id, environment, device_id, installed_at, network, link_id,
                                         campaign_id, country, ages)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             on conflict (app_id, environment, device_id) do update
             set installed_at = excluded.installed_at, network = excluded.network,
                 link_id = excluded.link_id, campaign_id = excluded.campaign_id,
                 country = excluded.country, ages = excluded.ages",
        )?
        .execute(params![
            member.app.as_bytes(),
            member.environment.as_str(),
            member.device.as_str(),
            row.installed_at,
            row.network,
            row.link_id,
            row.campaign_id,
            row.country,
            row.ages
        ])?;
    Ok(())
}
