//! Finds the clicks that an install may be attributed to.

use crate::Failure;
use crate::clicks::{CLICK_COLUMNS, insert_click};
use crate::links::LINK_COLUMNS;
use crate::outbox_table::find_click;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tributary_domain::attribution::{ADDRESS_CANDIDATES_MAX, Candidate};
use tributary_domain::click::{Click, StoredClick};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::install::{
    ADVERTISING_CANDIDATES_MAX, CandidateClicks, CandidateQuery, ConfigureCommand,
};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::ClickTable;
use tributary_store::records::{ClickRow, ERASED_CLICK, LinkRow};
use tributary_store::{ADDRESS_CLICKS_SCANNED_MAX, INSTALL_BURST_WINDOW, StoreError};

/// A click and the device that claimed it.
type ClaimedClickRow = (ClickRow, Option<String>);

fn read_claimed_click(row: &Row<'_>) -> rusqlite::Result<ClaimedClickRow> {
    // The claiming device follows the click's columns.
    Ok((read_row::<ClickRow>(row)?, row.get("taken_by")?))
}

static BY_ID: LazyLock<String> = LazyLock::new(|| {
    format!("select {CLICK_COLUMNS}, taken_by from clicks where app_id = ?1 and click_id = ?2")
});

/// Finds the candidate clicks for an attribution decision.
fn find(
    connection: &Connection,
    command: &ConfigureCommand,
    wanted: &CandidateQuery,
) -> Result<CandidateClicks, Failure> {
    let mut found = CandidateClicks::default();
    for click in &wanted.clicks {
        let row = connection
            .prepare_cached(&BY_ID)?
            .query_row(
                (command.app.as_bytes(), click.as_bytes()),
                read_claimed_click,
            )
            .optional()?;
        if let Some(row) = row {
            found.clicks.push(candidate(connection, command, row)?);
        }
    }
    if let Some(hash) = &wanted.advertising_hash {
        let hash = hash.as_bytes().as_slice();
        let values: [&dyn ToSql; 2] = [command.app.as_bytes(), &hash];
        let condition = "app_id = ? and advertising_hash = ? and bot is null order by";
        let limit = ADVERTISING_CANDIDATES_MAX;
        found.same_advertising_id = newest(connection, command, condition, &values, limit)?;
    }
    if !wanted.address_hashes.is_empty() {
        let hashes: Vec<&[u8]> = wanted
            .address_hashes
            .iter()
            .map(|hash| hash.as_bytes().as_slice())
            .collect();
        let marks = vec!["?"; hashes.len()].join(", ");
        let from = wanted.clicks_from.as_millis();
        let platform = command.traits.platform.as_str();
        let mut values: Vec<&dyn ToSql> = vec![command.app.as_bytes()];
        values.extend(hashes.iter().map(|hash| hash as &dyn ToSql));
        values.push(&from);
        values.push(&platform);
        let condition = format!(
            "(app_id, click_id) in (
                 select app_id, click_id from clicks
                 where app_id = ? and address_hash in ({marks}) and clicked_at >= ? and bot is null
                 order by clicked_at desc limit {ADDRESS_CLICKS_SCANNED_MAX})
             order by (taken_by is null and platform = ?) desc,"
        );
        let limit = ADDRESS_CANDIDATES_MAX + 1;
        found.same_address = newest(connection, command, &condition, &values, limit)?;
        found.installs_from_address = installs(connection, command, &hashes)?;
    }
    Ok(found)
}

/// Finds the newest clicks that match a condition. The condition must end with `order by`, and may
/// add sort terms that take precedence over newest first.
fn newest(
    connection: &Connection,
    command: &ConfigureCommand,
    condition: &str,
    values: &[&dyn ToSql],
    limit: usize,
) -> Result<Vec<Candidate>, Failure> {
    let sql = format!(
        "select {CLICK_COLUMNS}, taken_by from clicks where {condition}
         clicked_at desc, click_id desc limit {limit}"
    );
    let rows: Vec<ClaimedClickRow> = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), read_claimed_click)?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|row| candidate(connection, command, row))
        .collect()
}

/// Adds the link to a click. The link may have been archived meanwhile.
fn candidate(
    connection: &Connection,
    command: &ConfigureCommand,
    (row, taken_by): ClaimedClickRow,
) -> Result<Candidate, Failure> {
    let click = row.read()?;
    let sql = format!("select {LINK_COLUMNS} from links where app_id = ?1 and link_id = ?2");
    let link = connection
        .prepare_cached(&sql)?
        .query_row(
            (click.app.as_bytes(), click.link.as_bytes()),
            read_row::<LinkRow>,
        )
        .optional()?
        .ok_or_else(|| StoreError::corrupt("clicks", "link_id", click.id))?
        .read()?;
    let taken = command.is_taken_by_other(taken_by.as_deref());
    Ok(Candidate::of(click, link, taken))
}

/// Counts recent installs from the same address by other devices, per link.
fn installs(
    connection: &Connection,
    command: &ConfigureCommand,
    hashes: &[&[u8]],
) -> Result<Vec<(LinkId, u32)>, Failure> {
    let marks = vec!["?"; hashes.len()].join(", ");
    let sql = format!(
        "select link_id, count(*) from devices
         where app_id = ? and environment = ? and first_seen_at >= ? and device_id <> ?
           and link_id is not null and address_hash in ({marks})
         group by link_id order by link_id"
    );
    let environment = command.environment.as_str();
    let from = burst_window_start(command.at);
    let device = command.device.as_str();
    let mut values: Vec<&dyn ToSql> = vec![command.app.as_bytes(), &environment, &from, &device];
    values.extend(hashes.iter().map(|hash| hash as &dyn ToSql));
    let counts = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok((LinkId::from_bytes(row.get(0)?), row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    Ok(counts)
}

fn burst_window_start(at: Timestamp) -> i64 {
    let window = i64::try_from(INSTALL_BURST_WINDOW.as_millis()).unwrap_or(i64::MAX);
    at.as_millis() - window
}

impl ClickTable for SqliteTables<'_> {
    async fn insert_click(&self, click: &Click) -> Result<bool, Failure> {
        insert_click(self.0, click)
    }

    async fn click(&self, app: AppId, click: ClickId) -> Result<Option<Click>, Failure> {
        find_click(self.0, app, click)
    }

    async fn candidates(
        &self,
        command: &ConfigureCommand,
        wanted: &CandidateQuery,
    ) -> Result<CandidateClicks, Failure> {
        find(self.0, command, wanted)
    }

    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update clicks set taken_by = ?3, kept = 1 where app_id = ?1 and click_id = ?2",
            )?
            .execute(params![
                device.app.as_bytes(),
                click.as_bytes(),
                device.key.as_str()
            ])?;
        Ok(())
    }

    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Failure> {
        self.0
            .prepare_cached("update clicks set kept = 1 where app_id = ?1 and click_id = ?2")?
            .execute((app.as_bytes(), click.as_bytes()))?;
        Ok(())
    }

    async fn release_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update clicks set taken_by = null
                 where app_id = ?1 and click_id = ?2 and taken_by = ?3",
            )?
            .execute(params![
                device.app.as_bytes(),
                click.as_bytes(),
                device.key.as_str()
            ])?;
        Ok(())
    }

    async fn lock_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<StoredClick>, Failure> {
        let mut find = self.0.prepare_cached(&BY_ID)?;
        let mut found = Vec::new();
        for click in clicks {
            let key = (app.as_bytes(), click.as_bytes());
            if let Some((row, taken_by)) = find.query_row(key, read_claimed_click).optional()? {
                found.push(StoredClick {
                    click: row.read()?,
                    taken_by: taken_by.map(DeviceKey::stored),
                });
            }
        }
        Ok(found)
    }

    async fn write_remaining_clicks(
        &self,
        app: AppId,
        clicks: &[StoredClick],
    ) -> Result<(), Failure> {
        let sql = format!(
            "update clicks set captured = ?3, taken_by = ?4, {ERASED_CLICK}
             where app_id = ?1 and click_id = ?2"
        );
        let mut update = self.0.prepare_cached(&sql)?;
        for StoredClick { click, taken_by } in clicks {
            let row = ClickRow::write(click);
            let taken_by = taken_by.as_ref().map(DeviceKey::as_str);
            update.execute(params![
                app.as_bytes(),
                row.click_id,
                row.captured,
                taken_by
            ])?;
        }
        Ok(())
    }
}
