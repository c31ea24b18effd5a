//! Devices that were installed, and the cohorts that they count in. Who writes here has locked the increments of
//! their app, or all of this table.

use crate::Failure;
use crate::params::column;
use crate::rows::{optional_id, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::event::CREDITED_TO_ITS_OWN_CLICK;
use tributary_domain::report::cohort::{self, CohortEntry, CohortRows, Doubt, Enrolled, Member};
use tributary_domain::vocabulary::id::EventId;
use tributary_store::StoreError;
use tributary_store::records::EnrolledRow;

/// Counts what devices did, and gives those of which something else is known now.
pub(super) async fn enroll(
    tx: &Tx,
    entries: &[CohortEntry],
) -> Result<(CohortRows, BTreeMap<Member, Enrolled>), Failure> {
    if entries.is_empty() {
        return Ok((CohortRows::default(), BTreeMap::new()));
    }
    let members: BTreeSet<&Member> = entries.iter().map(|entry| &entry.member).collect();
    let members: Vec<&Member> = members.into_iter().collect();
    let mut known = find(tx, &members).await?;
    let mut all = cohort::enroll(entries, &mut known);
    for doubt in all.doubts.clone() {
        if !was_seen(tx, &doubt).await? {
            all.unsee(&doubt, &mut known);
        }
    }
    known.retain(|member, _| all.changed.contains(member));
    Ok((all.rows, known))
}

/// Whether a device has an event that counts on the day of a doubt. Events are written before they are counted.
async fn was_seen(tx: &Tx, doubt: &Doubt) -> Result<bool, Failure> {
    let span = (
        EventId::first_at(doubt.from),
        EventId::first_at(doubt.until),
    );
    let found = tx
        .query_opt(
            "select 1 from events
             where app_id = $1 and environment = $2 and device_id = $3
               and event_id >= $4 and event_id < $5 and source <> $6 and network is not null
             limit 1",
            &[
                &uuid(doubt.member.app.as_bytes()),
                &doubt.member.environment.as_str(),
                &doubt.member.device.as_str(),
                &uuid(span.0.as_bytes()),
                &uuid(span.1.as_bytes()),
                &CREDITED_TO_ITS_OWN_CLICK.as_str(),
            ],
        )
        .await?;
    Ok(found.is_some())
}

fn row(row: &Row) -> Result<EnrolledRow, tokio_postgres::Error> {
    Ok(EnrolledRow {
        installed_at: row.try_get(1)?,
        network: row.try_get(2)?,
        link_id: optional_id(row, 3)?,
        campaign_id: row.try_get(4)?,
        country: row.try_get(5)?,
        ages: row.try_get(6)?,
    })
}

async fn find(tx: &Tx, members: &[&Member]) -> Result<BTreeMap<Member, Enrolled>, Failure> {
    let numbers: Vec<i64> = (0..).take(members.len()).collect();
    let rows = tx
        .query(
            "select asked.number, installed_at, network, link_id, campaign_id, country, ages
             from unnest($1, $2, $3, $4) as asked (app_id, environment, device_id, number)
             join cohort_devices as stored
               on stored.app_id = asked.app_id and stored.environment = asked.environment
              and stored.device_id = asked.device_id",
            &[
                &column(members, |member| uuid(member.app.as_bytes())),
                &column(members, |member| member.environment.as_str()),
                &column(members, |member| member.device.as_str()),
                &numbers,
            ],
        )
        .await?;
    let mut known = BTreeMap::new();
    for found in &rows {
        let place = usize::try_from(found.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
        if let (Some(member), Some(enrolled)) = (members.get(place), readable(row(found)?)) {
            known.insert((*member).clone(), enrolled);
        }
    }
    Ok(known)
}

/// A row that cannot be read stops nobody else: its device counts in no cohort until figures are made anew.
fn readable(row: EnrolledRow) -> Option<Enrolled> {
    let tell = |error: &StoreError| tracing::error!(%error, "a device is in no cohort");
    row.read().inspect_err(tell).ok()
}

pub(super) async fn write(tx: &Tx, changed: &[(&Member, &Enrolled)]) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let rows: Vec<(&Member, EnrolledRow)> = changed
        .iter()
        .map(|(member, enrolled)| (*member, EnrolledRow::write(enrolled)))
        .collect();
    tx.execute(
        "insert into cohort_devices (app_id, environment, device_id, installed_at, network, link_id,
                                     campaign_id, country, ages)
         select * from unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (app_id, environment, device_id) do update
         set installed_at = excluded.installed_at, network = excluded.network,
             link_id = excluded.link_id, campaign_id = excluded.campaign_id,
             country = excluded.country, ages = excluded.ages",
        &[
            &column(&rows, |(member, _)| uuid(member.app.as_bytes())),
            &column(&rows, |(member, _)| member.environment.as_str()),
            &column(&rows, |(member, _)| member.device.as_str()),
            &column(&rows, |(_, row)| row.installed_at),
            &column(&rows, |(_, row)| row.network.as_str()),
            &column(&rows, |(_, row)| row.link_id.as_ref().map(uuid)),
            &column(&rows, |(_, row)| row.campaign_id.as_str()),
            &column(&rows, |(_, row)| row.country.as_str()),
            &column(&rows, |(_, row)| row.ages.as_slice()),
        ],
    )
    .await?;
    Ok(())
}
