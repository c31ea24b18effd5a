//! Assigns unclaimed postbacks to apps and deletes old postbacks.

use super::accept;
use crate::Failure;
use crate::params::column;
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::counting::Trust;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, UnclaimedRow};
use uuid::Uuid;

/// Assigns unclaimed postbacks to the app with their App Store id, in order of arrival. Skips
/// postbacks that another node is assigning.
pub(crate) async fn claim(
    tx: &Tx,
    app: AppId,
    app_store_id: &str,
    limit: u32,
) -> Result<u64, Failure> {
    let sql = format!(
        "select {} from unclaimed_postbacks where app_store_id = $1
         order by postback_id limit $2 for update skip locked",
        UnclaimedRow::COLUMNS
    );
    let rows = tx.query(&sql, &[&app_store_id, &i64::from(limit)]).await?;
    let mut ids: Vec<Uuid> = Vec::new();
    let mut postbacks: Vec<ReceivedPostback> = Vec::new();
    for row in &rows {
        let row = read_row::<UnclaimedRow>(row)?;
        ids.push(uuid(&row.postback_id));
        postbacks.push(row.read()?);
    }
    if postbacks.is_empty() {
        return Ok(0);
    }
    tx.execute(
        "delete from unclaimed_postbacks where app_store_id = $1 and postback_id = any($2)",
        &[&app_store_id, &ids],
    )
    .await?;
    let postbacks: Vec<_> = postbacks.iter().map(|postback| (app, postback)).collect();
    accept::store(tx, &postbacks).await?;
    Ok(ids.len() as u64)
}

/// Assigns unclaimed postbacks to all apps.
pub(super) async fn claim_all(tx: &Tx, limit: u32) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_store_id, app_id from app_store_ids
             where exists (select 1 from unclaimed_postbacks as one
                           where one.app_store_id = app_store_ids.app_store_id)
             order by app_store_id",
            &[],
        )
        .await?;
    let mut claimed = 0;
    for row in &rows {
        let left = u64::from(limit).saturating_sub(claimed);
        let left = u32::try_from(left).unwrap_or(limit);
        let app = AppId::from_bytes(id(row, 1)?);
        claimed += claim(tx, app, row.try_get(0)?, left).await?;
    }
    Ok(claimed)
}

/// Deletes postbacks received before a timestamp. The deduplication keys of verified postbacks and
/// of test postbacks are kept forever, so that no postback counts twice. The deduplication keys of
/// unverified postbacks are deleted.
pub(super) async fn remove(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_id, postback_id, key_digest from postbacks where received_at < $1 limit $2",
            &[&before.as_millis(), &i64::from(limit)],
        )
        .await?;
    let mut old: Vec<(Uuid, Uuid, &[u8])> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    old.sort_unstable();
    let apps = column(&old, |(app, _, _)| *app);
    let ids = column(&old, |(_, postback, _)| *postback);
    tx.execute(
        "delete from postback_keys
         using unnest($1, $2, $3) as old (app_id, postback_id, key_digest)
         where postback_keys.app_id = old.app_id and postback_keys.key_digest = old.key_digest
           and postback_keys.trust = $4 and postback_keys.postback_id = old.postback_id
           /* distributed: and postback_keys.app_id = any($1) */",
        &[
            &apps,
            &ids,
            &column(&old, |(_, _, key)| *key),
            &Trust::Untrusted.as_str(),
        ],
    )
    .await?;
    tx.execute_counting(
        "delete from postbacks using unnest($1, $2) as old (app_id, postback_id)
         where postbacks.app_id = old.app_id and postbacks.postback_id = old.postback_id
           /* distributed: and postbacks.app_id = any($1) */",
        &[&apps, &ids],
    )
    .await
}

/// Deletes old unclaimed postbacks.
pub(super) async fn remove_unclaimed(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_store_id, postback_id from unclaimed_postbacks
             where received_at < $1 order by received_at limit $2",
            &[&before.as_millis(), &i64::from(limit)],
        )
        .await?;
    let mut old: Vec<(&str, Uuid)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    old.sort_unstable();
    tx.execute_counting(
        "delete from unclaimed_postbacks as stored
         using unnest($1, $2) as old (app_store_id, postback_id)
         where stored.app_store_id = old.app_store_id and stored.postback_id = old.postback_id",
        &[
            &column(&old, |(store_id, _)| *store_id),
            &column(&old, |(_, postback)| *postback),
        ],
    )
    .await
}
