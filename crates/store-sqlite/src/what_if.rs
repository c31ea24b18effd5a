//! Installs to replay under other attribution rules.

use crate::clicks::CLICK_COLUMNS;
use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeSet;
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::device::{Device, DeviceKey};
use tributary_domain::event::{SELF_CREDITED_SOURCE, name};
use tributary_domain::install::what_if::{ClickOwner, ReplayClick, StoredInstall};
use tributary_domain::install::{ADVERTISING_CANDIDATES_MAX, Attribution};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{AdvertisingSearch, ReplayTable, replay_part};
use tributary_store::records::{ClickRow, Columns, DeviceRow};
use tributary_store::{ReplayPart, ReplaySpan, Replays, StoreResult};

#[async_trait]
impl Replays for SqliteStore {
    async fn replay_span(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> StoreResult<ReplaySpan> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("replay_span", move |connection| {
            require_app(connection, organization, app)?;
            let mut find = connection.prepare_cached(
                "select event_id from events
                 where app_id = ?1 and environment = ?2 and name = ?3 and own = 1
                   and event_id >= ?4 and event_id < ?5 order by event_id desc limit ?6",
            )?;
            let (from, until) = (EventId::first_at(from), EventId::first_at(until));
            let mut rows = find.query(params![
                app.as_bytes(),
                environment.as_str(),
                name::INSTALL,
                from.as_bytes(),
                until.as_bytes(),
                i64::from(limit) + 1
            ])?;
            let mut span = ReplaySpan {
                first: None,
                installs: 0,
                has_older: false,
            };
            while let Some(row) = rows.next()? {
                span.has_older = span.installs == u64::from(limit);
                if !span.has_older {
                    span.installs += 1;
                    span.first = Some(EventId::from_bytes(row.get(0)?));
                }
            }
            Ok(span)
        })
        .await
    }

    async fn replay_part(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        part: ReplayPart,
    ) -> StoreResult<(Vec<StoredInstall>, Option<EventId>)> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("replay_part", move |connection| {
            require_app(connection, organization, app)?;
            let tables = SqliteTables(connection);
            run(replay_part(&tables, (app, environment), &part))
        })
        .await
    }
}

/// The claiming device and its first open, which follow the columns of a click.
const OWNER: &str = "taken_by, (select first_seen_at from devices
     where devices.app_id = clicks.app_id and devices.environment = 'live'
       and devices.device_id = clicks.taken_by)";

fn read_click(row: &Row<'_>) -> Result<ReplayClick, Failure> {
    let click = read_row::<ClickRow>(row)?.read()?;
    let device: Option<String> = row.get(ClickRow::COUNT)?;
    let first_open_at: Option<i64> = row.get(ClickRow::COUNT + 1)?;
    Ok(ReplayClick {
        click,
        owner: device.map(|device| ClickOwner {
            device: DeviceKey::stored(device),
            first_open_at: first_open_at.map(Timestamp::from_millis),
        }),
    })
}

impl ReplayTable for SqliteTables<'_> {
    async fn replay_installs(
        &self,
        (app, environment): (AppId, Environment),
        part: &ReplayPart,
    ) -> Result<Vec<(EventId, Device, Attribution)>, Failure> {
        let comparison = if part.is_read { ">" } else { ">=" };
        let sql = format!(
            "select event_id, device_id from events
             where app_id = ?1 and environment = ?2 and name = ?3 and own = 1
               and event_id {comparison} ?4 and event_id < ?5 and device_id is not null
             order by event_id limit ?6"
        );
        let device_sql = format!(
            "select {} from devices where app_id = ?1 and environment = ?2 and device_id = ?3",
            DeviceRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let mut find_device = self.0.prepare_cached(&device_sql)?;
        let until = EventId::first_at(part.until);
        let mut rows = find.query(params![
            app.as_bytes(),
            environment.as_str(),
            name::INSTALL,
            part.from.as_bytes(),
            until.as_bytes(),
            part.limit
        ])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (install, device): ([u8; 16], String) = (row.get(0)?, row.get(1)?);
            let key = params![app.as_bytes(), environment.as_str(), device];
            let row = find_device
                .query_row(key, read_row::<DeviceRow>)
                .optional()?;
            if let Some(row) = row {
                let (device, attribution) = row.read()?;
                found.push((EventId::from_bytes(install), device, attribution));
            }
        }
        Ok(found)
    }

    async fn replay_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<ReplayClick>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS}, {OWNER} from clicks where app_id = ?1 and click_id = ?2"
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for click in clicks {
            let mut rows = find.query((app.as_bytes(), click.as_bytes()))?;
            if let Some(row) = rows.next()? {
                found.push(read_click(row)?);
            }
        }
        Ok(found)
    }

    async fn replay_advertised(
        &self,
        app: AppId,
        searches: &[AdvertisingSearch],
    ) -> Result<Vec<(usize, ReplayClick)>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS}, {OWNER} from clicks
             where app_id = ?1 and advertising_hash = ?2 and advertising_hash is not null
               and bot is null and clicked_at <= ?3
             order by clicked_at desc, click_id desc limit {ADVERTISING_CANDIDATES_MAX}"
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for (position, search) in searches.iter().enumerate() {
            let hash = search.hash.as_bytes().as_slice();
            let key = params![app.as_bytes(), hash, search.until.as_millis()];
            let mut rows = find.query(key)?;
            while let Some(row) = rows.next()? {
                found.push((position, read_click(row)?));
            }
        }
        Ok(found)
    }

    async fn replay_revenue(
        &self,
        (app, environment): (AppId, Environment),
        devices: &[DeviceKey],
    ) -> Result<Vec<(DeviceKey, i64, i64)>, Failure> {
        let mut sum = self.0.prepare_cached(
            "select coalesce(sum(max(usd_micros, 0)), 0), coalesce(-sum(min(usd_micros, 0)), 0)
             from events
             where app_id = ?1 and environment = ?2 and device_id = ?3 and source <> ?4
               and usd_micros is not null and uncounted is null and duplicate_of is null",
        )?;
        let mut found = Vec::new();
        for device in devices {
            let key = params![
                app.as_bytes(),
                environment.as_str(),
                device.as_str(),
                SELF_CREDITED_SOURCE.as_str()
            ];
            let (paid, refunded) = sum.query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
            found.push((device.clone(), paid, refunded));
        }
        Ok(found)
    }
}
