//! Finds the clicks that an install may be attributed to.

use crate::clicks::{CLICK_COLUMNS, CLICK_COLUMNS_COUNT};
use crate::devices::DeviceColumns;
use crate::links::LINK_COLUMNS;
use crate::outbox_table::find_clicks;
use crate::params::{Param, column};
use crate::rows::{id, qualified, read_row, read_row_at, uuid};
use crate::tx::Tx;
use crate::{Failure, clicks};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tributary_domain::attribution::{ADDRESS_CANDIDATES_MAX, Candidate};
use tributary_domain::click::{Click, StoredClick};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::install::{
    ADVERTISING_CANDIDATES_MAX, CandidateClicks, CandidateQuery, ConfigureCommand,
};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_recording::ClickTable;
use tributary_store::records::{ClickRow, ERASED_CLICK, LinkRow};
use tributary_store::{ADDRESS_CLICKS_SCANNED_MAX, INSTALL_BURST_WINDOW, StoreError};
use uuid::Uuid;

/// Finds the candidate clicks for an attribution decision. Runs statements only for the requested
/// lookups.
async fn find(
    tx: &Tx,
    command: &ConfigureCommand,
    wanted: &CandidateQuery,
) -> Result<CandidateClicks, Failure> {
    let mut found = CandidateClicks::default();
    let app = uuid(command.app.as_bytes());
    if !wanted.clicks.is_empty() {
        let clicks = column(&wanted.clicks, |click| uuid(click.as_bytes()));
        found.clicks = find_newest(tx, command, BY_ID, &[&app, &clicks]).await?;
    }
    if let Some(hash) = &wanted.advertising_hash {
        let hash = hash.as_bytes().as_slice();
        let params: [&dyn Param; 2] = [&app, &hash];
        found.same_advertising_id = find_newest(tx, command, BY_ADVERTISING_ID, &params).await?;
    }
    if !wanted.address_hashes.is_empty() {
        let hashes = column(&wanted.address_hashes, |hash| hash.as_bytes().as_slice());
        let from = wanted.clicks_from.as_millis();
        let platform = command.traits.platform.as_str();
        let params: [&dyn Param; 4] = [&app, &hashes, &from, &platform];
        found.same_address = find_newest(tx, command, BY_ADDRESS, &params).await?;
        found.installs_from_address = installs(tx, command, &hashes).await?;
    }
    Ok(found)
}

/// A search for candidate clicks in the app `$1`.
struct Search {
    condition: &'static str,
    /// How many of the newest matches to read.
    scanned: usize,
    /// Sort order that takes precedence over newest first.
    order_prefix: &'static str,
    /// How many candidates to return.
    limit: usize,
}

/// Number of clicks that a device can name: in the referrer, in the request, in the link that
/// opened the app, and in an earlier request.
const CLICKS_NAMED_MAX: usize = 4;

const BY_ID: Search = Search {
    condition: "click_id = any($2)",
    scanned: CLICKS_NAMED_MAX,
    order_prefix: "",
    limit: CLICKS_NAMED_MAX,
};

const BY_ADVERTISING_ID: Search = Search {
    condition: "advertising_hash = $2 and bot is null",
    scanned: ADVERTISING_CANDIDATES_MAX,
    order_prefix: "",
    limit: ADVERTISING_CANDIDATES_MAX,
};

/// Clicks that can win the attribution come first. Otherwise a flood of other clicks from the same
/// address could crowd them out.
const BY_ADDRESS: Search = Search {
    condition: "address_hash = any($2) and clicked_at >= $3 and bot is null",
    scanned: ADDRESS_CLICKS_SCANNED_MAX,
    order_prefix: "(clicks.taken_by is null and clicks.platform = $4) desc, ",
    limit: ADDRESS_CANDIDATES_MAX + 1,
};

/// Finds clicks with their links, newest first. A link may have been archived meanwhile.
async fn find_newest(
    tx: &Tx,
    command: &ConfigureCommand,
    search: Search,
    params: &[&dyn Param],
) -> Result<Vec<Candidate>, Failure> {
    let Search {
        condition,
        scanned,
        order_prefix,
        limit,
    } = search;
    let sql = format!(
        "select {}, clicks.taken_by, {}
         from (select * from clicks where app_id = $1 and {condition}
               order by clicked_at desc, click_id desc limit {scanned}) as clicks
         join links on links.app_id = clicks.app_id and links.link_id = clicks.link_id
         order by {order_prefix}clicks.clicked_at desc, clicks.click_id desc limit {limit}",
        qualified("clicks", CLICK_COLUMNS),
        qualified("links", LINK_COLUMNS),
    );
    let rows = tx.query(&sql, params).await?;
    rows.iter().map(|row| candidate(command, row)).collect()
}

fn candidate(command: &ConfigureCommand, row: &Row) -> Result<Candidate, Failure> {
    let click = read_row::<ClickRow>(row)?.read()?;
    let taken_by: Option<&str> = row.try_get(CLICK_COLUMNS_COUNT)?;
    let link = read_row_at::<LinkRow>(row, CLICK_COLUMNS_COUNT + 1)?.read()?;
    let taken = command.is_taken_by_other(taken_by);
    Ok(Candidate::of(click, link, taken))
}

/// Counts recent installs from the same address by other devices, per link.
async fn installs(
    tx: &Tx,
    command: &ConfigureCommand,
    hashes: &dyn Param,
) -> Result<Vec<(LinkId, u32)>, Failure> {
    let window = i64::try_from(INSTALL_BURST_WINDOW.as_millis()).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            "select link_id, count(*) from devices
             where app_id = $1 and environment = $2 and address_hash = any($3)
               and first_seen_at >= $4 and device_id <> $5 and link_id is not null
             group by link_id order by link_id",
            &[
                &uuid(command.app.as_bytes()),
                &command.environment.as_str(),
                hashes,
                &(command.at.as_millis() - window),
                &command.device.as_str(),
            ],
        )
        .await?;
    let count = |row: &Row| {
        let link = LinkId::from_bytes(id(row, 0)?);
        let installs: i64 = row.try_get(1)?;
        let many = |_| StoreError::corrupt("devices", "link_id", link);
        Ok((link, u32::try_from(installs).map_err(many)?))
    };
    rows.iter().map(count).collect()
}

impl ClickTable for Tx {
    async fn insert_click(&self, click: &Click) -> Result<bool, Failure> {
        let mut counted = Increments::default();
        clicks::record(self, std::slice::from_ref(click), &mut counted).await?;
        Ok(counted != Increments::default())
    }

    async fn click(&self, app: AppId, click: ClickId) -> Result<Option<Click>, Failure> {
        let found = find_clicks(self, BTreeSet::from([(app, click)])).await?;
        Ok(found.into_values().next())
    }

    async fn candidates(
        &self,
        command: &ConfigureCommand,
        wanted: &CandidateQuery,
    ) -> Result<CandidateClicks, Failure> {
        find(self, command, wanted).await
    }

    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        let taken = self
            .execute(
                "update clicks set taken_by = $3, kept = true
                 where app_id = $1 and click_id = $2 and (taken_by is null or taken_by = $3)",
                &[&device.app(), &uuid(click.as_bytes()), &device.device()],
            )
            .await?;
        require_one_row(taken)
    }

    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Failure> {
        let updated = self
            .execute(
                "update clicks set kept = true where app_id = $1 and click_id = $2",
                &[&uuid(app.as_bytes()), &uuid(click.as_bytes())],
            )
            .await?;
        require_one_row(updated)
    }

    async fn release_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        self.execute(
            "update clicks set taken_by = null
             where app_id = $1 and click_id = $2 and taken_by = $3",
            &[&device.app(), &uuid(click.as_bytes()), &device.device()],
        )
        .await?;
        Ok(())
    }

    async fn lock_clicks(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<Vec<StoredClick>, Failure> {
        if clicks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select {CLICK_COLUMNS}, taken_by from clicks
             where app_id = $1 and click_id = any($2) order by click_id for update"
        );
        let ids: Vec<Uuid> = clicks.iter().map(|click| uuid(click.as_bytes())).collect();
        let rows = self.query(&sql, &[&uuid(app.as_bytes()), &ids]).await?;
        let stored = |row: &Row| {
            let taken_by: Option<String> = row.try_get("taken_by")?;
            Ok(StoredClick {
                click: read_row::<ClickRow>(row)?.read()?,
                taken_by: taken_by.map(DeviceKey::stored),
            })
        };
        rows.iter().map(stored).collect()
    }

    async fn write_remaining_clicks(
        &self,
        app: AppId,
        clicks: &[StoredClick],
    ) -> Result<(), Failure> {
        let rows = column(clicks, |one| ClickRow::write(&one.click));
        let taken_by = column(clicks, |one| one.taken_by.as_ref().map(DeviceKey::as_str));
        let sql = format!(
            "update clicks set captured = new.captured, taken_by = new.taken_by, {ERASED_CLICK}
             from unnest($2, $3, $4) as new (click_id, captured, taken_by)
             where clicks.app_id = $1 and clicks.click_id = new.click_id"
        );
        self.execute(
            &sql,
            &[
                &uuid(app.as_bytes()),
                &column(&rows, |row| uuid(&row.click_id)),
                &column(&rows, |row| row.captured.as_str()),
                &taken_by,
            ],
        )
        .await?;
        Ok(())
    }
}

/// Reports a conflict when the click was claimed by another install or deleted meanwhile.
const fn require_one_row(rows: u64) -> Result<(), Failure> {
    if rows == 1 {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}
