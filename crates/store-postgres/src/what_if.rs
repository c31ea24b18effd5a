//! Installs to replay under other attribution rules.

use crate::clicks::{CLICK_COLUMNS, CLICK_COLUMNS_COUNT};
use crate::params::column;
use crate::rows::{AppLockMode, id, qualified, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tokio_postgres::Row;
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
impl Replays for PostgresStore {
    async fn replay_span(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> StoreResult<ReplaySpan> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "replay_span", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let (from, until) = (EventId::first_at(from), EventId::first_at(until));
            let rows = tx
                .query(
                    "select event_id from events
                     where app_id = $1 and environment = $2 and name = $3 and own
                       and event_id >= $4 and event_id < $5 order by event_id desc limit $6",
                    &[
                        &uuid(app.as_bytes()),
                        &environment.as_str(),
                        &name::INSTALL,
                        &uuid(from.as_bytes()),
                        &uuid(until.as_bytes()),
                        &(i64::from(limit) + 1),
                    ],
                )
                .await?;
            let read = usize::try_from(limit).unwrap_or(usize::MAX).min(rows.len());
            let first = read.checked_sub(1).and_then(|last| rows.get(last));
            Ok(ReplaySpan {
                first: first
                    .map(|row| id(row, 0))
                    .transpose()?
                    .map(EventId::from_bytes),
                installs: u64::try_from(read).unwrap_or(u64::MAX),
                has_older: rows.len() > read,
            })
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
        self.read_for(caller, "replay_part", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            replay_part(tx, (app, environment), &part).await
        })
        .await
    }
}

/// Reads a click, and the claiming device with its first open, which follow the click's columns.
fn read_click(row: &Row) -> Result<ReplayClick, Failure> {
    let click = read_row::<ClickRow>(row)?.read()?;
    let device: Option<String> = row.try_get(CLICK_COLUMNS_COUNT)?;
    let first_open_at: Option<i64> = row.try_get(CLICK_COLUMNS_COUNT + 1)?;
    Ok(ReplayClick {
        click,
        owner: device.map(|device| ClickOwner {
            device: DeviceKey::stored(device),
            first_open_at: first_open_at.map(Timestamp::from_millis),
        }),
    })
}

impl ReplayTable for Tx {
    async fn replay_installs(
        &self,
        (app, environment): (AppId, Environment),
        part: &ReplayPart,
    ) -> Result<Vec<(EventId, Device, Attribution)>, Failure> {
        let comparison = if part.is_read { ">" } else { ">=" };
        let sql = format!(
            "select {}, events.event_id from events
             join devices on devices.app_id = $1 and devices.environment = events.environment
                         and devices.device_id = events.device_id
             where events.app_id = $1 and events.environment = $2 and events.name = $3
               and events.own and events.event_id {comparison} $4 and events.event_id < $5
             order by events.event_id limit $6",
            qualified("devices", DeviceRow::COLUMNS)
        );
        let until = EventId::first_at(part.until);
        let rows = self
            .query(
                &sql,
                &[
                    &uuid(app.as_bytes()),
                    &environment.as_str(),
                    &name::INSTALL,
                    &uuid(part.from.as_bytes()),
                    &uuid(until.as_bytes()),
                    &i64::from(part.limit),
                ],
            )
            .await?;
        let install = |row: &Row| {
            let (device, attribution) = read_row::<DeviceRow>(row)?.read()?;
            let install = EventId::from_bytes(id(row, DeviceRow::COUNT)?);
            Ok((install, device, attribution))
        };
        rows.iter().map(install).collect()
    }

    async fn replay_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<ReplayClick>, Failure> {
        if clicks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select {}, clicks.taken_by, owners.first_seen_at from clicks
             left join devices as owners on owners.app_id = $1 and owners.environment = 'live'
                                        and owners.device_id = clicks.taken_by
             where clicks.app_id = $1 and clicks.click_id = any($2)",
            qualified("clicks", CLICK_COLUMNS)
        );
        let ids: Vec<&ClickId> = clicks.iter().collect();
        let ids = column(&ids, |click| uuid(click.as_bytes()));
        let rows = self.query(&sql, &[&uuid(app.as_bytes()), &ids]).await?;
        rows.iter().map(read_click).collect()
    }

    async fn replay_advertised(
        &self,
        app: AppId,
        searches: &[AdvertisingSearch],
    ) -> Result<Vec<(usize, ReplayClick)>, Failure> {
        if searches.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select {}, clicks.taken_by, owners.first_seen_at, found.number
             from unnest($2, $3, $4) as wanted (number, hash, until)
             cross join lateral
                  (select wanted.number, click_id from clicks
                   where app_id = $1 and advertising_hash = wanted.hash
                     and advertising_hash is not null and bot is null
                     and clicked_at <= wanted.until
                   order by clicked_at desc, click_id desc
                   limit {ADVERTISING_CANDIDATES_MAX}) as found
             join clicks on clicks.app_id = $1 and clicks.click_id = found.click_id
             left join devices as owners on owners.app_id = $1 and owners.environment = 'live'
                                        and owners.device_id = clicks.taken_by",
            qualified("clicks", CLICK_COLUMNS)
        );
        let numbers: Vec<i64> = (0..).take(searches.len()).collect();
        let rows = self
            .query(
                &sql,
                &[
                    &uuid(app.as_bytes()),
                    &numbers,
                    &column(searches, |one| one.hash.as_bytes().as_slice()),
                    &column(searches, |one| one.until.as_millis()),
                ],
            )
            .await?;
        let found = |row: &Row| {
            let number: i64 = row.try_get("number")?;
            let position = usize::try_from(number).unwrap_or(usize::MAX);
            Ok((position, read_click(row)?))
        };
        rows.iter().map(found).collect()
    }

    async fn replay_revenue(
        &self,
        (app, environment): (AppId, Environment),
        devices: &[DeviceKey],
    ) -> Result<Vec<(DeviceKey, i64, i64)>, Failure> {
        let rows = self
            .query(
                "select device_id, sum(greatest(usd_micros, 0))::bigint,
                        (-sum(least(usd_micros, 0)))::bigint
                 from events
                 where app_id = $1 and environment = $2 and device_id = any($3) and source <> $4
                   and usd_micros is not null and uncounted is null and duplicate_of is null
                 group by device_id",
                &[
                    &uuid(app.as_bytes()),
                    &environment.as_str(),
                    &column(devices, DeviceKey::as_str),
                    &SELF_CREDITED_SOURCE.as_str(),
                ],
            )
            .await?;
        let revenue = |row: &Row| {
            let device: String = row.try_get(0)?;
            Ok((DeviceKey::stored(device), row.try_get(1)?, row.try_get(2)?))
        };
        rows.iter().map(revenue).collect()
    }
}
