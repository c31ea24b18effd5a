//! Assigns unclaimed postbacks to apps and deletes old postbacks.

use super::accept;
use crate::Failure;
use crate::rows::read_row;
use rusqlite::{Connection, params};
use tributary_domain::skan::counting::Trust;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, UnclaimedRow};

/// Assigns at most `limit` unclaimed postbacks to the app with their App Store id, in order of
/// arrival.
pub(crate) fn claim(
    connection: &Connection,
    app: AppId,
    app_store_id: &str,
    limit: u32,
) -> Result<u64, Failure> {
    let sql = format!(
        "select {} from unclaimed_postbacks where app_store_id = ?1 order by postback_id limit ?2",
        UnclaimedRow::COLUMNS
    );
    let rows: Vec<UnclaimedRow> = connection
        .prepare_cached(&sql)?
        .query_map(params![app_store_id, limit], read_row::<UnclaimedRow>)?
        .collect::<Result<_, _>>()?;
    let mut claimed = 0;
    for row in rows {
        connection
            .prepare_cached(
                "delete from unclaimed_postbacks where app_store_id = ?1 and postback_id = ?2",
            )?
            .execute(params![app_store_id, row.postback_id])?;
        accept::store(connection, app, &row.read()?)?;
        claimed += 1;
    }
    Ok(claimed)
}

/// Assigns unclaimed postbacks to all apps.
pub(super) fn claim_all(connection: &Connection, limit: u32) -> Result<u64, Failure> {
    let waiting: Vec<(String, [u8; 16])> = connection
        .prepare_cached(
            "select app_store_id, app_id from app_store_ids
             where exists (select 1 from unclaimed_postbacks as one
                           where one.app_store_id = app_store_ids.app_store_id)
             order by app_store_id",
        )?
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut claimed = 0;
    for (app_store_id, app) in waiting {
        let left = u64::from(limit).saturating_sub(claimed);
        let left = u32::try_from(left).unwrap_or(limit);
        claimed += claim(connection, AppId::from_bytes(app), &app_store_id, left)?;
    }
    Ok(claimed)
}

/// Deletes postbacks received before a timestamp. The deduplication keys of verified postbacks and
/// of test postbacks are kept forever, so that no postback counts twice. The deduplication keys of
/// unverified postbacks are deleted.
pub(super) fn remove(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let old: Vec<([u8; 16], [u8; 16], [u8; 32])> = connection
        .prepare_cached(
            "select app_id, postback_id, key_digest from postbacks
             where received_at < ?1 order by received_at limit ?2",
        )?
        .query_map(params![before.as_millis(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut removed = 0;
    for (app, postback, key) in old {
        connection
            .prepare_cached("delete from postbacks where app_id = ?1 and postback_id = ?2")?
            .execute(params![app, postback])?;
        connection
            .prepare_cached(
                "delete from postback_keys
                 where app_id = ?1 and key_digest = ?2 and trust = ?3 and postback_id = ?4",
            )?
            .execute(params![app, key, Trust::Untrusted.as_str(), postback])?;
        removed += 1;
    }
    Ok(removed)
}

/// Deletes old unclaimed postbacks.
pub(super) fn remove_unclaimed(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let removed = connection
        .prepare_cached(
            "delete from unclaimed_postbacks where (app_store_id, postback_id) in (
                 select app_store_id, postback_id from unclaimed_postbacks
                 where received_at < ?1 order by received_at limit ?2)",
        )?
        .execute(params![before.as_millis(), limit])?;
    Ok(u64::try_from(removed).unwrap_or(0))
}
