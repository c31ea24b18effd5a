//! Finds the clicks that installs may be attributed to, for many calls at once.
//!
//! Each statement gets the position of the call with every row, and returns it.

use crate::clicks::{CLICK_COLUMNS, CLICK_COLUMNS_COUNT, KeptClicks};
use crate::links::LINK_COLUMNS;
use crate::outbox_table::find_clicks;
use crate::params::column;
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
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::ClickTable;
use tributary_store::records::{ClickRow, ERASED_CLICK, LinkRow};
use tributary_store::{ADDRESS_CLICKS_SCANNED_MAX, INSTALL_BURST_WINDOW, StoreError};
use uuid::Uuid;

/// A call with the clicks that its decision needs.
type Wanted<'a> = (&'a ConfigureCommand, &'a CandidateQuery);

/// The candidate clicks of each call.
type Found = Vec<Vec<Candidate>>;

/// Finds the candidate clicks for the decision about each call. Runs statements only for the
/// requested lookups.
pub(crate) async fn find(tx: &Tx, calls: &[Wanted<'_>]) -> Result<Vec<CandidateClicks>, Failure> {
    // Pipelined: these reads are independent.
    let (by_id, by_advertising_id, by_address, installs) = tokio::try_join!(
        find_by_id(tx, calls),
        find_by_advertising_id(tx, calls),
        find_by_address(tx, calls),
        count_installs(tx, calls)
    )?;
    let found = by_id.into_iter().zip(by_advertising_id).zip(by_address);
    let clicks =
        |(((clicks, same_advertising_id), same_address), installs_from_address)| CandidateClicks {
            clicks,
            same_advertising_id,
            same_address,
            installs_from_address,
        };
    Ok(found.zip(installs).map(clicks).collect())
}

/// Converts the position of a call to its SQL type.
pub(crate) fn to_number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Reads the position of a call.
pub(crate) fn position(row: &Row) -> Result<usize, Failure> {
    let number: i64 = row.try_get("number")?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Distributes rows to the calls that they belong to.
fn by_call<T>(
    calls: &[Wanted<'_>],
    rows: &[Row],
    read: impl Fn(&ConfigureCommand, &Row) -> Result<T, Failure>,
) -> Result<Vec<Vec<T>>, Failure> {
    let mut found = Vec::new();
    found.resize_with(calls.len(), Vec::new);
    for row in rows {
        let position = position(row)?;
        if let (Some((command, _)), Some(found)) = (calls.get(position), found.get_mut(position)) {
            found.push(read(command, row)?);
        }
    }
    Ok(found)
}

/// Finds clicks by id, with their links. A link may have been archived meanwhile.
async fn find_by_id(tx: &Tx, calls: &[Wanted<'_>]) -> Result<Found, Failure> {
    let mut wanted = Vec::new();
    for (position, (command, query)) in calls.iter().enumerate() {
        let clicks: BTreeSet<&ClickId> = query.clicks.iter().collect();
        wanted.extend(
            clicks
                .into_iter()
                .map(|click| (position, command.app, click)),
        );
    }
    if wanted.is_empty() {
        return by_call(calls, &[], candidate);
    }
    let sql = format!(
        "select {}, clicks.taken_by, {}, wanted.number
         from unnest($1, $2, $3) as wanted (number, app_id, click_id)
         join clicks on clicks.app_id = wanted.app_id and clicks.click_id = wanted.click_id
         join links on links.app_id = clicks.app_id and links.link_id = clicks.link_id
         /* distributed: where clicks.app_id = any($2) and links.app_id = any($2) */",
        qualified("clicks", CLICK_COLUMNS),
        qualified("links", LINK_COLUMNS),
    );
    let rows = tx
        .query(
            &sql,
            &[
                &column(&wanted, |(position, ..)| to_number(*position)),
                &column(&wanted, |(_, app, _)| uuid(app.as_bytes())),
                &column(&wanted, |(.., click)| uuid(click.as_bytes())),
            ],
        )
        .await?;
    by_call(calls, &rows, candidate)
}

/// A search for clicks by a hash.
struct HashSearch {
    hash_column: &'static str,
    /// How many of the newest matches to read.
    scanned: usize,
    /// Sort order that takes precedence over newest first.
    order_prefix: &'static str,
    /// How many candidates to return.
    limit: usize,
}

const BY_ADVERTISING_ID: HashSearch = HashSearch {
    hash_column: "advertising_hash",
    scanned: ADVERTISING_CANDIDATES_MAX,
    order_prefix: "",
    limit: ADVERTISING_CANDIDATES_MAX,
};

/// Clicks that can win the attribution come first. Otherwise a flood of other clicks from the same
/// address could crowd them out.
const BY_ADDRESS: HashSearch = HashSearch {
    hash_column: "address_hash",
    scanned: ADDRESS_CLICKS_SCANNED_MAX,
    order_prefix: "can_win desc, ",
    limit: ADDRESS_CANDIDATES_MAX + 1,
};

/// A hash that a call's clicks must have.
struct WantedHash<'a> {
    position: usize,
    command: &'a ConfigureCommand,
    hash: &'a Digest,
    /// Earliest time of the clicks.
    since: i64,
}

async fn find_by_advertising_id(tx: &Tx, calls: &[Wanted<'_>]) -> Result<Found, Failure> {
    let mut wanted = Vec::new();
    for (position, (command, query)) in calls.iter().enumerate() {
        wanted.extend(query.advertising_hash.as_ref().map(|hash| WantedHash {
            position,
            command,
            hash,
            since: i64::MIN,
        }));
    }
    let rows = find_by_hash(tx, &BY_ADVERTISING_ID, &wanted).await?;
    by_call(calls, &rows, candidate)
}

async fn find_by_address(tx: &Tx, calls: &[Wanted<'_>]) -> Result<Found, Failure> {
    let since = |_: &ConfigureCommand, query: &CandidateQuery| query.clicks_from;
    let wanted = wanted_addresses(calls, since);
    let rows = find_by_hash(tx, &BY_ADDRESS, &wanted).await?;
    by_call(calls, &rows, candidate)
}

/// Lists the calls' addresses.
fn wanted_addresses<'a>(
    calls: &[Wanted<'a>],
    since: impl Fn(&ConfigureCommand, &CandidateQuery) -> Timestamp,
) -> Vec<WantedHash<'a>> {
    let mut wanted = Vec::new();
    for (position, (command, query)) in calls.iter().enumerate() {
        let hashes: BTreeSet<&Digest> = query.address_hashes.iter().collect();
        let since = since(command, query).as_millis();
        wanted.extend(hashes.into_iter().map(|hash| WantedHash {
            position,
            command,
            hash,
            since,
        }));
    }
    wanted
}

/// Finds clicks with their links, newest first. The window in the lateral subquery makes the server
/// look up each hash in the index, and stop after the newest clicks.
async fn find_by_hash(
    tx: &Tx,
    search: &HashSearch,
    wanted: &[WantedHash<'_>],
) -> Result<Vec<Row>, Failure> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let HashSearch {
        hash_column,
        scanned,
        order_prefix,
        limit,
    } = search;
    let newest_first = "clicked_at desc, click_id desc";
    let sql = format!(
        "select {}, clicks.taken_by, {}, placed.number
         from (select number, app_id, click_id,
                      row_number() over (partition by app_id, number
                                         order by {order_prefix}{newest_first}) as place
               from (select wanted.number, found.app_id, found.click_id, found.clicked_at,
                            found.can_win,
                            row_number() over (partition by found.app_id, wanted.number
                                               order by {newest_first}) as age
                     from unnest($1, $2, $3, $4, $5)
                          as wanted (number, app_id, hash, since, platform)
                     cross join lateral
                          (select app_id, click_id, clicked_at,
                                  taken_by is null and platform = wanted.platform as can_win,
                                  row_number() over (/* distributed: partition by app_id */
                                                     order by {newest_first}) as age
                           from clicks
                           where app_id = wanted.app_id and {hash_column} = wanted.hash
                             and {hash_column} is not null and clicked_at >= wanted.since
                             and bot is null
                             /* distributed: and app_id = any($2) */) as found
                     where found.age <= {scanned}) as newest
               where age <= {scanned}) as placed
         join clicks on clicks.app_id = placed.app_id and clicks.click_id = placed.click_id
         join links on links.app_id = clicks.app_id and links.link_id = clicks.link_id
         where placed.place <= {limit}
               /* distributed: and clicks.app_id = any($2) and links.app_id = any($2) */
         order by placed.number, placed.place",
        qualified("clicks", CLICK_COLUMNS),
        qualified("links", LINK_COLUMNS),
    );
    tx.query(
        &sql,
        &[
            &column(wanted, |one| to_number(one.position)),
            &column(wanted, |one| uuid(one.command.app.as_bytes())),
            &column(wanted, |one| one.hash.as_bytes().as_slice()),
            &column(wanted, |one| one.since),
            &column(wanted, |one| one.command.traits.platform.as_str()),
        ],
    )
    .await
}

fn candidate(command: &ConfigureCommand, row: &Row) -> Result<Candidate, Failure> {
    let click = read_row::<ClickRow>(row)?.read()?;
    let taken_by: Option<&str> = row.try_get(CLICK_COLUMNS_COUNT)?;
    let link = read_row_at::<LinkRow>(row, CLICK_COLUMNS_COUNT + 1)?.read()?;
    let taken = command.is_taken_by_other(taken_by);
    Ok(Candidate::of(click, link, taken))
}

/// Counts recent installs from the same address by other devices, per link.
///
/// The subquery and the comparison of pairs make the server look up each address in
/// `devices_by_address`, even if it planned the statement when the table was empty.
async fn count_installs(tx: &Tx, calls: &[Wanted<'_>]) -> Result<Vec<Vec<(LinkId, u32)>>, Failure> {
    let since =
        |command: &ConfigureCommand, _: &CandidateQuery| command.at.minus(INSTALL_BURST_WINDOW);
    let wanted = wanted_addresses(calls, since);
    if wanted.is_empty() {
        return by_call(calls, &[], link_installs);
    }
    let rows = tx
        .query(
            "select found.link_id, sum(found.installs)::bigint, wanted.number
             from unnest($1, $2, $3, $4, $5, $6)
                  as wanted (number, app_id, environment, address_hash, since, device_id)
             cross join lateral
                  (select link_id, count(*) as installs
                   from devices
                   where app_id = wanted.app_id and environment = wanted.environment
                     and address_hash = wanted.address_hash and address_hash is not null
                     and (address_hash, first_seen_at) >= (wanted.address_hash, wanted.since)
                     and device_id <> wanted.device_id and link_id is not null
                     /* distributed: and app_id = any($2) */
                   group by app_id, link_id) as found
             group by wanted.app_id, wanted.number, found.link_id
             order by wanted.number, found.link_id",
            &[
                &column(&wanted, |one| to_number(one.position)),
                &column(&wanted, |one| uuid(one.command.app.as_bytes())),
                &column(&wanted, |one| one.command.environment.as_str()),
                &column(&wanted, |one| one.hash.as_bytes().as_slice()),
                &column(&wanted, |one| one.since),
                &column(&wanted, |one| one.command.device.as_str()),
            ],
        )
        .await?;
    by_call(calls, &rows, link_installs)
}

/// Reads a link and the number of its installs.
fn link_installs(_: &ConfigureCommand, row: &Row) -> Result<(LinkId, u32), Failure> {
    let link = LinkId::from_bytes(id(row, 0)?);
    let installs: i64 = row.try_get(1)?;
    let many = |_| StoreError::corrupt("devices", "link_id", link);
    Ok((link, u32::try_from(installs).map_err(many)?))
}

impl ClickTable for Tx {
    async fn insert_click(&self, click: &Click) -> Result<bool, Failure> {
        Ok(!clicks::insert(self, &[click]).await?.is_empty())
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
        let found = find(self, &[(command, wanted)]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        let taken = ((device.app, click), Some(device.key.as_str()));
        clicks::keep(self, &KeptClicks::from([taken])).await
    }

    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Failure> {
        clicks::keep(self, &KeptClicks::from([((app, click), None)])).await
    }

    async fn release_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Failure> {
        clicks::release(self, &[(device, click)]).await
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
