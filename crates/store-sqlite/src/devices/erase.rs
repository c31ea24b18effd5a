//! Erasing a device: what it is and was stays under a pseudonym, and nothing says whose it was. What remains is
//! `domain::erasure`'s to say.

use super::known::find_known;
use crate::clicks::CLICK_COLUMNS;
use crate::rows::read_row;
use crate::tables::{Tables, run};
use crate::{Failure, billing};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, Identity, UserKey};
use tributary_domain::erasure::{Erasure, clicks_of};
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::course::ERASED;
use tributary_domain::install::Known;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{Tally, cancel_all};
use tributary_store::records::{ClickRow, DeviceRow, ERASED_CLICK, ERASED_EVENT, IdentityRow};

/// Which device is erased, and when.
pub(super) struct Erased {
    pub(super) app: AppId,
    pub(super) environment: Environment,
    pub(super) device: DeviceKey,
    pub(super) pseudonym: DeviceKey,
    pub(super) at: Timestamp,
}

/// What an event leads to.
struct Trace {
    event: EventId,
    source: String,
    given_id: String,
    user: Option<String>,
    click: Option<ClickId>,
}

/// Erases it. The writer is alone, so what is found is as it is until all is written.
pub(super) fn erase(connection: &Connection, of: &Erased) -> Result<(), Failure> {
    let known = find_known(connection, of.app, of.environment, &of.device)?;
    let mut traces = traces(connection, of, "device_id = ?3", of.device.as_str())?;
    let unknown = known.device.is_none() && known.identity == Identity::default();
    if unknown && traces.is_empty() {
        return Err(Refusal::DeviceNotFound.into());
    }
    let advertising = known.device.as_ref();
    let advertising = advertising.and_then(|device| device.advertising_id.clone());
    let erasure = Erasure {
        device: of.device.clone(),
        pseudonym: of.pseudonym.clone(),
        people: people(connection, of, &known, &traces)?,
        advertising: advertising.into_iter().collect(),
    };
    for person in &erasure.people {
        // By the person's index: far more events have no device than are theirs.
        let condition = "user_id = ?3 and +device_id is null";
        traces.extend(self::traces(connection, of, condition, person.as_str())?);
    }
    let billed = traces.iter();
    let billed = billed.filter(|trace| trace.source == EventSource::Billing.as_str());
    let billed: BTreeSet<&str> = billed.map(|trace| trace.given_id.as_str()).collect();
    billing::erase(connection, of.app, of.environment, &erasure, &billed)?;
    write_events(connection, of, &erasure)?;
    let mut clicks: BTreeSet<ClickId> = traces.iter().filter_map(|trace| trace.click).collect();
    if let Some(attribution) = &known.attribution {
        clicks.extend(clicks_of(&attribution.decision));
    }
    write_device(connection, of, known, &erasure)?;
    for click in clicks {
        write_click(connection, of, &erasure, click)?;
    }
    let tables = Tables(connection);
    let mut tally = Tally::default();
    let events: Vec<EventId> = traces.iter().map(|trace| trace.event).collect();
    let why = (ERASED, of.at);
    run(cancel_all(&tables, of.app, &events, why, &mut tally))?;
    run(tally.write(&tables))?;
    Ok(())
}

fn traces(
    connection: &Connection,
    of: &Erased,
    condition: &str,
    value: &str,
) -> Result<Vec<Trace>, Failure> {
    let sql = format!(
        "select event_id, source, given_id, user_id, click_id from events
         where app_id = ?1 and environment = ?2 and {condition}"
    );
    let traces = connection
        .prepare_cached(&sql)?
        .query_map(
            params![of.app.as_bytes(), of.environment.as_str(), value],
            |row| {
                Ok(Trace {
                    event: EventId::from_bytes(row.get(0)?),
                    source: row.get(1)?,
                    given_id: row.get(2)?,
                    user: row.get(3)?,
                    click: row.get::<_, Option<[u8; 16]>>(4)?.map(ClickId::from_bytes),
                })
            },
        )?
        .collect::<Result<_, _>>()?;
    Ok(traces)
}

/// The ids of people that the device went by, and no other does.
fn people(
    connection: &Connection,
    of: &Erased,
    known: &Known,
    traces: &[Trace],
) -> Result<Vec<UserKey>, Failure> {
    let mut ids: BTreeSet<String> = traces.iter().filter_map(|one| one.user.clone()).collect();
    ids.extend(
        known
            .identity
            .user
            .iter()
            .map(|user| user.as_str().to_owned()),
    );
    let mut links = connection.prepare_cached(
        "select user_id from user_links where app_id = ?1 and environment = ?2 and device_id = ?3",
    )?;
    let (app, environment) = (of.app.as_bytes(), of.environment.as_str());
    let device = of.device.as_str();
    for id in links.query_map(params![app, environment, device], |row| row.get(0))? {
        ids.insert(id?);
    }
    let mut shared = connection.prepare_cached(
        "select 1 from user_links
         where app_id = ?1 and environment = ?2 and user_id = ?3 and device_id <> ?4",
    )?;
    let mut people = Vec::new();
    for id in ids {
        if !shared.exists(params![app, environment, id, device])? {
            people.push(UserKey::stored(id));
        }
    }
    Ok(people)
}

fn write_events(connection: &Connection, of: &Erased, erasure: &Erasure) -> Result<(), Failure> {
    let (app, environment) = (of.app.as_bytes(), of.environment.as_str());
    let sql = format!(
        "update events set {ERASED_EVENT}
         where app_id = ?1 and environment = ?2 and user_id = ?3 and +device_id is null"
    );
    let mut nobodys = connection.prepare_cached(&sql)?;
    for person in &erasure.people {
        nobodys.execute(params![app, environment, person.as_str()])?;
    }
    let sql = format!(
        "update events set device_id = ?4, {ERASED_EVENT}
         where app_id = ?1 and environment = ?2 and device_id = ?3"
    );
    let (device, pseudonym) = (erasure.device.as_str(), erasure.pseudonym.as_str());
    connection
        .prepare_cached(&sql)?
        .execute(params![app, environment, device, pseudonym])?;
    Ok(())
}

/// Writes what remains of the device, and of whoever was behind it.
fn write_device(
    connection: &Connection,
    of: &Erased,
    known: Known,
    erasure: &Erasure,
) -> Result<(), Failure> {
    let (app, environment) = (of.app.as_bytes(), of.environment.as_str());
    let (device, pseudonym) = (erasure.device.as_str(), erasure.pseudonym.as_str());
    // The first payment stays known: what is paid later is no first one.
    let nobody = IdentityRow::write(&Identity::default());
    connection
        .prepare_cached(
            "update identities set device_id = ?4, user_id = ?5, matching = ?6
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            app,
            environment,
            device,
            pseudonym,
            nobody.user_id,
            nobody.matching
        ])?;
    if let (Some(stored), Some(attribution)) = (known.device, known.attribution) {
        let row = DeviceRow::write(&erasure.device(stored), &erasure.attribution(attribution));
        connection
            .prepare_cached(
                "update devices set device_id = ?4, traits = ?5, advertising_id = ?6, idfv = ?7,
                                    consent = ?8, decision = ?9, address_hash = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                app,
                environment,
                device,
                row.device_id,
                row.traits,
                row.advertising_id,
                row.idfv,
                row.consent,
                row.decision
            ])?;
    }
    connection
        .prepare_cached(
            "update cohort_devices set device_id = ?4
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![app, environment, device, pseudonym])?;
    connection
        .prepare_cached(
            "delete from ad_services_tokens
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![app, environment, device])?;
    Ok(())
}

/// Writes what remains of a click, unless another device has taken it: then it is that one's.
fn write_click(
    connection: &Connection,
    of: &Erased,
    erasure: &Erasure,
    click: ClickId,
) -> Result<(), Failure> {
    // Only live devices take clicks, and a test device may go by the same id.
    let is_live = of.environment == Environment::Live;
    let taker = is_live.then_some(erasure.device.as_str());
    let sql = format!(
        "select {CLICK_COLUMNS} from clicks
         where app_id = ?1 and click_id = ?2 and (taken_by is null or taken_by = ?3)"
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row(
            params![of.app.as_bytes(), click.as_bytes(), taker],
            read_row::<ClickRow>,
        )
        .optional()?;
    let Some(row) = row else { return Ok(()) };
    let row = ClickRow::write(&erasure.click(row.read()?));
    let sql = format!(
        "update clicks set captured = ?3, taken_by = iif(taken_by is null, null, ?4), {ERASED_CLICK}
         where app_id = ?1 and click_id = ?2"
    );
    connection.prepare_cached(&sql)?.execute(params![
        row.app_id,
        row.click_id,
        row.captured,
        erasure.pseudonym.as_str()
    ])?;
    Ok(())
}
