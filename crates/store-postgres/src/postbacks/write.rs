//! Writes evaluated postbacks: deduplication keys, postbacks and counts, each with one statement
//! and in key order.

use super::accept::DecidedPostback;
use crate::Failure;
use crate::params::{Param, column, placeholders};
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::report::postback::{
    PostbackCounts, PostbackFigures, PostbackSlice, ReceivedPostback,
};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::counting::Trust;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::records::{Columns, PostbackRow, UnclaimedRow};

/// Inserts unclaimed postbacks, except those that another node has stored meanwhile.
pub(super) async fn insert_unclaimed(
    tx: &Tx,
    postbacks: &[&ReceivedPostback],
) -> Result<(), Failure> {
    if postbacks.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<UnclaimedRow> = postbacks
        .iter()
        .map(|one| UnclaimedRow::write(one))
        .collect();
    // The sort is stable, so the first of two identical postbacks is kept.
    rows.sort_by(|one, other| {
        let key = |row: &UnclaimedRow| (row.app_store_id.clone(), row.key_digest.clone());
        key(one).cmp(&key(other))
    });
    let sql = format!(
        "insert into unclaimed_postbacks ({}) select * from unnest({})
         on conflict (app_store_id, key_digest, body_digest) do nothing",
        UnclaimedRow::COLUMNS,
        placeholders(UnclaimedRow::COUNT)
    );
    tx.execute(
        &sql,
        &[
            &column(&rows, |row| row.app_store_id.as_str()),
            &column(&rows, |row| uuid(&row.postback_id)),
            &column(&rows, |row| row.received_at),
            &column(&rows, |row| row.signature.as_str()),
            &column(&rows, |row| row.key_digest.as_slice()),
            &column(&rows, |row| row.body_digest.as_slice()),
            &column(&rows, |row| row.postback.as_str()),
            &column(&rows, |row| row.body.as_str()),
        ],
    )
    .await?;
    Ok(())
}

/// Inserts postbacks. Reports a conflict when another node stored the same deduplication key or
/// body first.
pub(super) async fn insert_postbacks(
    tx: &Tx,
    decided: &[DecidedPostback<'_>],
) -> Result<(), Failure> {
    if decided.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<PostbackRow> = decided
        .iter()
        .map(|one| PostbackRow::write(one.app, one.postback, one.counting))
        .collect();
    rows.sort_by_key(|row| (row.app_id, row.key_digest, row.trust, row.body_digest));
    let firsts: Vec<&PostbackRow> = rows.iter().filter(|row| !row.conflicting).collect();
    if insert_keys(tx, &firsts).await? != firsts.len() || insert(tx, &rows).await? != rows.len() {
        return Err(Failure::Conflict);
    }
    Ok(())
}

/// Returns the number of inserted deduplication keys.
async fn insert_keys(tx: &Tx, rows: &[&PostbackRow]) -> Result<usize, Failure> {
    if rows.is_empty() {
        return Ok(0);
    }
    let inserted = tx
        .query(
            "insert into postback_keys (app_id, key_digest, trust, body_digest, postback_id)
         select * from unnest($1, $2, $3, $4, $5)
         on conflict (app_id, key_digest, trust) do nothing returning postback_id",
            &[
                &column(rows, |row| uuid(&row.app_id)),
                &column(rows, |row| row.key_digest.as_slice()),
                &column(rows, |row| row.trust),
                &column(rows, |row| row.body_digest.as_slice()),
                &column(rows, |row| uuid(&row.postback_id)),
            ],
        )
        .await?;
    Ok(inserted.len())
}

/// Returns the number of inserted postbacks.
async fn insert(tx: &Tx, rows: &[PostbackRow]) -> Result<usize, Failure> {
    let sql = format!(
        "insert into postbacks ({}) select * from unnest({})
         on conflict (app_id, key_digest, body_digest) do nothing returning postback_id",
        PostbackRow::COLUMNS,
        placeholders(PostbackRow::COLUMNS_COUNT)
    );
    let inserted = tx
        .query(
            &sql,
            &[
                &column(rows, |row| uuid(&row.app_id)),
                &column(rows, |row| uuid(&row.postback_id)),
                &column(rows, |row| row.received_at),
                &column(rows, |row| row.protocol),
                &column(rows, |row| row.signature),
                &column(rows, |row| row.trust),
                &column(rows, |row| row.counting),
                &column(rows, |row| row.conflicting),
                &column(rows, |row| row.key_digest.as_slice()),
                &column(rows, |row| row.body_digest.as_slice()),
                &column(rows, |row| row.ad_network_id.as_str()),
                &column(rows, |row| row.source_identifier.as_deref()),
                &column(rows, |row| row.sequence_index),
                &column(rows, |row| row.did_win),
                &column(rows, |row| row.conversion_type),
                &column(rows, |row| row.postback.as_str()),
                &column(rows, |row| row.body.as_str()),
            ],
        )
        .await?;
    Ok(inserted.len())
}

/// Adds the counts to `postback_counts`.
pub(super) async fn add_counts(tx: &Tx, counts: &PostbackCounts) -> Result<(), Failure> {
    let rows: Vec<(&PostbackSlice, &PostbackFigures)> = counts.0.iter().collect();
    if rows.is_empty() {
        return Ok(());
    }
    let figures: Vec<Vec<i64>> = (0..PostbackFigures::COUNT)
        .map(|figure| column(&rows, |(_, figures)| figures.values()[figure]))
        .collect();
    let keys: [&dyn Param; 10] = [
        &column(&rows, |(slice, _)| uuid(slice.app.as_bytes())),
        &column(&rows, |(slice, _)| slice.bucket.begins_at().as_millis()),
        &column(&rows, |(slice, _)| slice.counting.as_str()),
        &column(&rows, |(slice, _)| slice.protocol.as_str()),
        &column(&rows, |(slice, _)| slice.ad_network_id.as_str()),
        &column(&rows, |(slice, _)| slice.source_identifier.as_str()),
        &column(&rows, |(slice, _)| slice.campaign_id),
        &column(&rows, |(slice, _)| i64::from(slice.sequence_index)),
        &column(&rows, |(slice, _)| slice.fine_value.map_or(-1, i64::from)),
        &column(&rows, |(slice, _)| {
            slice.coarse_value.map_or("", CoarseValue::as_str)
        }),
    ];
    let mut params = keys.to_vec();
    params.extend(figures.iter().map(|figures| figures as &dyn Param));
    let key = "app_id, bucket, counting, protocol, ad_network_id, source_identifier, campaign_id,
               sequence_index, fine_value, coarse_value";
    let columns = PostbackFigures::COLUMNS.join(", ");
    let sums: Vec<String> = PostbackFigures::COLUMNS
        .iter()
        .map(|column| format!("{column} = stored.{column} + excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into postback_counts as stored ({key}, {columns}) select * from unnest({})
         on conflict ({key}) do update set {}",
        placeholders(params.len()),
        sums.join(", ")
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}

/// Notes which apps have received a genuine postback, which protects them from later claims of
/// their App Store ids. The rows are locked in a fixed order, because another node may note the
/// same apps.
pub(super) async fn note_genuine(
    tx: &Tx,
    postbacks: &[(AppId, &ReceivedPostback)],
) -> Result<(), Failure> {
    let genuine: BTreeSet<(String, AppId)> = postbacks
        .iter()
        .filter(|(_, postback)| postback.trust() == Trust::Trusted)
        .map(|(app, postback)| (postback.app_store_id(), *app))
        .collect();
    if genuine.is_empty() {
        return Ok(());
    }
    let genuine: Vec<(String, AppId)> = genuine.into_iter().collect();
    tx.execute(
        "update app_store_claims set has_postback = true
         from (select claim.app_store_id, claim.app_id from app_store_claims as claim
               join unnest($1, $2) as genuine (app_store_id, app_id)
                 on genuine.app_store_id = claim.app_store_id and genuine.app_id = claim.app_id
               where not claim.has_postback
               order by claim.app_store_id, claim.app_id for update of claim) as new
         where app_store_claims.app_store_id = new.app_store_id
           and app_store_claims.app_id = new.app_id",
        &[
            &column(&genuine, |(id, _)| id.as_str()),
            &column(&genuine, |(_, app)| uuid(app.as_bytes())),
        ],
    )
    .await?;
    Ok(())
}
