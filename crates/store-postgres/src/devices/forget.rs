//! Forgetting attribution data. `domain::retention` decides when and what.
//!
//! Each device is locked by its row in `identities`, as by every other change of a device, in the order of keys.

use super::AsColumns;
use crate::Failure;
use crate::clicks::CLICK_COLUMNS;
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef, Identity};
use tributary_domain::event::EventSource;
use tributary_domain::install::Known;
use tributary_domain::retention::{self, Activity, Verdict};
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::DeviceTable;
use tributary_store::AttributionSweep;
use tributary_store::records::{ClickRow, DeviceRow, ERASED_CLICK, IdentityRow};

/// Examines devices that were last known to be active before a moment.
pub(super) async fn forget(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<AttributionSweep, Failure> {
    let mut sweep = AttributionSweep::default();
    for (app, environment, key) in due(tx, before, limit).await? {
        let device = DeviceRef {
            app,
            environment,
            key: &key,
        };
        let known = tx.lock_device(device, before).await?;
        sweep.examined += 1;
        match retention::decide(activity(tx, device, &known).await?, before) {
            Verdict::Keep { active_at } => set_active_at(tx, device, active_at).await?,
            Verdict::Forget { user_links } => {
                forget_one(tx, device, known, user_links).await?;
                sweep.forgotten += 1;
            }
        }
    }
    Ok(sweep)
}

async fn due(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<BTreeSet<(AppId, Environment, DeviceKey)>, Failure> {
    let mut targets = BTreeSet::new();
    for table in ["devices", "identities"] {
        let sql = format!(
            "select app_id, environment, device_id from {table}
             where active_at < $1 order by active_at limit $2"
        );
        let rows = tx
            .query(&sql, &[&before.as_millis(), &i64::from(limit)])
            .await?;
        for row in &rows {
            let app = AppId::from_bytes(id(row, 0)?);
            let environment: &str = row.try_get(1)?;
            let device = DeviceKey::stored(row.try_get(2)?);
            let environment = Environment::parse(environment);
            targets.extend(environment.map(|environment| (app, environment, device)));
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(targets.into_iter().take(limit).collect())
}

async fn activity(tx: &Tx, of: DeviceRef<'_>, known: &Known) -> Result<Activity, Failure> {
    let (app, environment, device) = of.columns();
    let billing = EventSource::Billing.as_str();
    let rows = tx
        .query(
            "select max(occurred_at), coalesce(bool_or(source = $4), false) from events
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &device, &billing],
        )
        .await?;
    let (mut last_event, mut has_billing) = (None, false);
    for row in &rows {
        last_event = row.try_get::<_, Option<i64>>(0)?;
        has_billing = row.try_get(1)?;
    }
    Ok(Activity {
        last_seen: known.device.as_ref().map(|device| device.last_seen_at),
        last_event: last_event.map(Timestamp::from_millis),
        has_billing,
    })
}

async fn set_active_at(tx: &Tx, of: DeviceRef<'_>, active_at: Timestamp) -> Result<(), Failure> {
    let (app, environment, device) = of.columns();
    for table in ["devices", "identities"] {
        let sql = format!(
            "update {table} set active_at = $4
             where app_id = $1 and environment = $2 and device_id = $3 and active_at < $4"
        );
        tx.execute(&sql, &[&app, &environment, &device, &active_at.as_millis()])
            .await?;
    }
    Ok(())
}

async fn forget_one(
    tx: &Tx,
    of: DeviceRef<'_>,
    known: Known,
    user_links: bool,
) -> Result<(), Failure> {
    let (app, environment, device) = of.columns();
    let empty = IdentityRow::write(&Identity::default());
    tx.execute(
        "update identities set user_id = $4, matching = $5, active_at = null
         where app_id = $1 and environment = $2 and device_id = $3",
        &[&app, &environment, &device, &empty.user_id, &empty.matching],
    )
    .await?;
    let mut tables = vec!["ad_services_tokens"];
    tables.extend(user_links.then_some("user_links"));
    for table in tables {
        let sql = format!(
            "delete from {table} where app_id = $1 and environment = $2 and device_id = $3"
        );
        tx.execute(&sql, &[&app, &environment, &device]).await?;
    }
    let (Some(stored), Some(attribution)) = (known.device, known.attribution) else {
        return Ok(());
    };
    let click = attribution.decision.click;
    let row = DeviceRow::write(
        &retention::device(stored),
        &retention::attribution(attribution),
    );
    tx.execute(
        "update devices set traits = $4, advertising_id = $5, idfv = $6, decision = $7,
                            address_hash = null, active_at = null
         where app_id = $1 and environment = $2 and device_id = $3",
        &[
            &app,
            &environment,
            &device,
            &row.traits,
            &row.advertising_id,
            &row.idfv,
            &row.decision,
        ],
    )
    .await?;
    match click {
        // Test devices take no clicks: a live device may have this one.
        Some(click) if of.environment == Environment::Live => forget_click(tx, of, click).await,
        _ => Ok(()),
    }
}

async fn forget_click(tx: &Tx, of: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
    let click = uuid(click.as_bytes());
    let sql = format!(
        "select {CLICK_COLUMNS} from clicks
         where app_id = $1 and click_id = $2 and taken_by = $3 for update"
    );
    let found = tx
        .query_opt(&sql, &[&of.app(), &click, &of.device()])
        .await?;
    let Some(found) = found else { return Ok(()) };
    let row = ClickRow::write(&retention::click(read_row::<ClickRow>(&found)?.read()?));
    let sql = format!(
        "update clicks set captured = $3, {ERASED_CLICK} where app_id = $1 and click_id = $2"
    );
    tx.execute(&sql, &[&of.app(), &click, &row.captured])
        .await?;
    Ok(())
}
