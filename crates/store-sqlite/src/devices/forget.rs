//! Forgetting attribution data. `domain::retention` decides when and what.

use super::known::find_known;
use crate::Failure;
use crate::clicks::CLICK_COLUMNS;
use crate::rows::read_row;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, Identity};
use tributary_domain::event::EventSource;
use tributary_domain::retention::{self, Activity, Verdict};
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::AttributionSweep;
use tributary_store::records::{ClickRow, DeviceRow, ERASED_CLICK, IdentityRow};

/// One device.
struct Target {
    app: AppId,
    environment: Environment,
    device: DeviceKey,
}

/// Examines devices that were last known to be active before a moment.
pub(super) fn forget(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<AttributionSweep, Failure> {
    let mut sweep = AttributionSweep::default();
    for target in due(connection, before, limit)? {
        sweep.examined += 1;
        match retention::decide(activity(connection, &target)?, before) {
            Verdict::Keep { active_at } => set_active_at(connection, &target, active_at)?,
            Verdict::Forget { user_links } => {
                forget_one(connection, &target, user_links)?;
                sweep.forgotten += 1;
            }
        }
    }
    Ok(sweep)
}

fn due(connection: &Connection, before: Timestamp, limit: u32) -> Result<Vec<Target>, Failure> {
    let mut find = connection.prepare_cached(
        "select app_id, environment, device_id from devices where active_at < ?1
         union
         select app_id, environment, device_id from identities where active_at < ?1
         limit ?2",
    )?;
    let mut rows = find.query(params![before.as_millis(), limit])?;
    let mut targets = Vec::new();
    while let Some(row) = rows.next()? {
        // Both environments are written by this program, so the text is one of the two.
        let environment: String = row.get(1)?;
        let environment = Environment::parse(&environment);
        targets.extend(environment.map(|environment| {
            Ok::<_, Failure>(Target {
                app: AppId::from_bytes(row.get(0)?),
                environment,
                device: DeviceKey::stored(row.get(2)?),
            })
        }));
    }
    targets.into_iter().collect()
}

fn activity(connection: &Connection, target: &Target) -> Result<Activity, Failure> {
    let key = params![
        target.app.as_bytes(),
        target.environment.as_str(),
        target.device.as_str()
    ];
    let last_seen: Option<i64> = connection
        .prepare_cached(
            "select last_seen_at from devices
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    let (last_event, has_billing): (Option<i64>, bool) = connection
        .prepare_cached(
            "select max(occurred_at), coalesce(max(source = ?4), 0) from events
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(
            params![
                target.app.as_bytes(),
                target.environment.as_str(),
                target.device.as_str(),
                EventSource::Billing.as_str()
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
    Ok(Activity {
        last_seen: last_seen.map(Timestamp::from_millis),
        last_event: last_event.map(Timestamp::from_millis),
        has_billing,
    })
}

fn set_active_at(
    connection: &Connection,
    target: &Target,
    active_at: Timestamp,
) -> Result<(), Failure> {
    for table in ["devices", "identities"] {
        let sql = format!(
            "update {table} set active_at = ?4
             where app_id = ?1 and environment = ?2 and device_id = ?3 and active_at < ?4"
        );
        connection.prepare_cached(&sql)?.execute(params![
            target.app.as_bytes(),
            target.environment.as_str(),
            target.device.as_str(),
            active_at.as_millis()
        ])?;
    }
    Ok(())
}

fn forget_one(connection: &Connection, target: &Target, user_links: bool) -> Result<(), Failure> {
    let (app, environment) = (target.app.as_bytes(), target.environment.as_str());
    let device = target.device.as_str();
    let known = find_known(connection, target.app, target.environment, &target.device)?;
    let empty = IdentityRow::write(&Identity::default());
    connection
        .prepare_cached(
            "update identities set user_id = ?4, matching = ?5, active_at = null
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            app,
            environment,
            device,
            empty.user_id,
            empty.matching
        ])?;
    let mut tables = vec!["ad_services_tokens"];
    tables.extend(user_links.then_some("user_links"));
    for table in tables {
        let sql = format!(
            "delete from {table} where app_id = ?1 and environment = ?2 and device_id = ?3"
        );
        connection
            .prepare_cached(&sql)?
            .execute(params![app, environment, device])?;
    }
    let (Some(stored), Some(attribution)) = (known.device, known.attribution) else {
        return Ok(());
    };
    let click = attribution.decision.click;
    let row = DeviceRow::write(
        &retention::device(stored),
        &retention::attribution(attribution),
    );
    connection
        .prepare_cached(
            "update devices set traits = ?4, advertising_id = ?5, idfv = ?6, decision = ?7,
                                address_hash = null, active_at = null
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            app,
            environment,
            device,
            row.traits,
            row.advertising_id,
            row.idfv,
            row.decision
        ])?;
    match click {
        // Test devices take no clicks: a live device may have this one.
        Some(click) if target.environment == Environment::Live => {
            forget_click(connection, target, click)
        }
        _ => Ok(()),
    }
}

fn forget_click(connection: &Connection, target: &Target, click: ClickId) -> Result<(), Failure> {
    let sql = format!(
        "select {CLICK_COLUMNS} from clicks
         where app_id = ?1 and click_id = ?2 and taken_by = ?3"
    );
    let key = params![
        target.app.as_bytes(),
        click.as_bytes(),
        target.device.as_str()
    ];
    let row = connection
        .prepare_cached(&sql)?
        .query_row(key, read_row::<ClickRow>)
        .optional()?;
    let Some(row) = row else { return Ok(()) };
    let row = ClickRow::write(&retention::click(row.read()?));
    let sql = format!(
        "update clicks set captured = ?3, {ERASED_CLICK} where app_id = ?1 and click_id = ?2"
    );
    connection
        .prepare_cached(&sql)?
        .execute(params![row.app_id, row.click_id, row.captured])?;
    Ok(())
}
