//! Accepts postbacks.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::report::postback::{
    EarlierPostbacks, PostbackCounting, PostbackCounts, PostbackDecision, PostbackFigures,
    PostbackSlice, ReceivedPostback, UnclaimedDecision, VARIANTS_MAX, decide_postback,
    decide_unclaimed,
};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::counting::Trust;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::records::{Columns, PostbackRow, UnclaimedRow};
use tributary_store::{PostbackOutcome, StoreError};

/// Stores a postback for the app with the postback's App Store id, or as unclaimed.
pub(super) fn accept(
    connection: &Connection,
    postback: &ReceivedPostback,
) -> Result<PostbackOutcome, Failure> {
    match app_of(connection, &postback.app_store_id())? {
        None => insert_unclaimed(connection, postback),
        Some(app) => {
            if postback.trust() == Trust::Trusted {
                note_postback(connection, app, &postback.app_store_id())?;
            }
            store(connection, app, postback)
        }
    }
}

/// Notes that an app has received a genuine postback, which protects it from later claims of its
/// App Store id.
fn note_postback(connection: &Connection, app: AppId, app_store_id: &str) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "update app_store_claims set has_postback = 1
             where app_store_id = ?1 and app_id = ?2 and has_postback = 0",
        )?
        .execute(params![app_store_id, app.as_bytes()])?;
    Ok(())
}

fn app_of(connection: &Connection, app_store_id: &str) -> Result<Option<AppId>, Failure> {
    let app = connection
        .prepare_cached("select app_id from app_store_ids where app_store_id = ?1")?
        .query_row([app_store_id], |row| row.get(0))
        .optional()?;
    Ok(app.map(AppId::from_bytes))
}

fn insert_unclaimed(
    connection: &Connection,
    postback: &ReceivedPostback,
) -> Result<PostbackOutcome, Failure> {
    let row = UnclaimedRow::write(postback);
    match decide_unclaimed(postback, &find_waiting(connection, &row)?) {
        UnclaimedDecision::Duplicate => return Ok(PostbackOutcome::Duplicate),
        UnclaimedDecision::TooManyVariants => return Ok(PostbackOutcome::Dropped),
        UnclaimedDecision::Waiting => {}
    }
    let sql = format!(
        "insert into unclaimed_postbacks ({}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         on conflict (app_store_id, key_digest, body_digest) do nothing",
        UnclaimedRow::COLUMNS
    );
    let stored = connection.prepare_cached(&sql)?.execute(params![
        row.app_store_id,
        row.postback_id,
        row.received_at,
        row.signature,
        row.key_digest,
        row.body_digest,
        row.postback,
        row.body
    ])?;
    Ok(if stored == 0 {
        PostbackOutcome::Duplicate
    } else {
        PostbackOutcome::Unclaimed
    })
}

/// Finds the bodies of waiting postbacks with the same deduplication key and state of the signature.
fn find_waiting(connection: &Connection, row: &UnclaimedRow) -> Result<Vec<Digest>, Failure> {
    let digests = connection
        .prepare_cached(
            "select body_digest from unclaimed_postbacks
             where app_store_id = ?1 and key_digest = ?2 and signature = ?3 limit ?4",
        )?
        .query_map(
            params![
                row.app_store_id,
                row.key_digest,
                row.signature,
                VARIANTS_MAX
            ],
            |row| Ok(Digest::from_bytes(row.get(0)?)),
        )?
        .collect::<Result<_, _>>()?;
    Ok(digests)
}

/// Stores a postback unless it is a duplicate, and counts it.
pub(super) fn store(
    connection: &Connection,
    app: AppId,
    postback: &ReceivedPostback,
) -> Result<PostbackOutcome, Failure> {
    let before = find_before(connection, app, postback)?;
    let counting = match decide_postback(postback, &before) {
        PostbackDecision::Duplicate => return Ok(PostbackOutcome::Duplicate),
        PostbackDecision::TooManyVariants => return Ok(PostbackOutcome::Dropped),
        PostbackDecision::First(counting) => Some(counting),
        PostbackDecision::Conflicting => None,
    };
    let row = PostbackRow::write(app, postback, counting);
    insert(connection, &row)?;
    if let Some(counting) = counting {
        connection
            .prepare_cached(
                "insert into postback_keys (app_id, key_digest, trust, body_digest, postback_id)
                 values (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                row.app_id,
                row.key_digest,
                row.trust,
                row.body_digest,
                row.postback_id
            ])?;
        count(connection, app, postback, counting)?;
    }
    Ok(PostbackOutcome::Stored)
}

fn find_before(
    connection: &Connection,
    app: AppId,
    postback: &ReceivedPostback,
) -> Result<EarlierPostbacks, Failure> {
    let (key, body) = (postback.key_digest(), postback.body_digest());
    let same_body = connection
        .prepare_cached(
            "select 1 from postbacks where app_id = ?1 and key_digest = ?2 and body_digest = ?3",
        )?
        .exists(params![app.as_bytes(), key.as_bytes(), body.as_bytes()])?;
    let rows: Vec<(String, [u8; 32])> = connection
        .prepare_cached(
            "select trust, body_digest from postback_keys where app_id = ?1 and key_digest = ?2",
        )?
        .query_map(params![app.as_bytes(), key.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let variants = connection
        .prepare_cached(
            "select count(*) from (select 1 from postbacks
                                   where app_id = ?1 and key_digest = ?2 limit ?3)",
        )?
        .query_row(
            params![app.as_bytes(), key.as_bytes(), VARIANTS_MAX],
            |row| row.get(0),
        )?;
    let read = |(trust, body): (String, [u8; 32])| {
        let trust = Trust::parse(&trust);
        let trust = trust.ok_or_else(|| StoreError::corrupt("postback_keys", "trust", app))?;
        Ok::<_, Failure>((trust, Digest::from_bytes(body)))
    };
    Ok(EarlierPostbacks {
        has_same_body: same_body,
        first_by_trust: rows.into_iter().map(read).collect::<Result<_, _>>()?,
        variants,
    })
}

fn insert(connection: &Connection, row: &PostbackRow) -> Result<(), Failure> {
    let marks = vec!["?"; PostbackRow::COLUMNS_COUNT].join(", ");
    let sql = format!(
        "insert into postbacks ({}) values ({marks})",
        PostbackRow::COLUMNS
    );
    connection.prepare_cached(&sql)?.execute(params![
        row.app_id,
        row.postback_id,
        row.received_at,
        row.protocol,
        row.signature,
        row.trust,
        row.counting,
        row.conflicting,
        row.key_digest,
        row.body_digest,
        row.ad_network_id,
        row.source_identifier,
        row.sequence_index,
        row.did_win,
        row.conversion_type,
        row.postback,
        row.body
    ])?;
    Ok(())
}

fn count(
    connection: &Connection,
    app: AppId,
    postback: &ReceivedPostback,
    counting: PostbackCounting,
) -> Result<(), Failure> {
    let mut counts = PostbackCounts::default();
    counts.add(app, postback, counting);
    for (slice, figures) in &counts.0 {
        add(connection, slice, figures)?;
    }
    Ok(())
}

fn add(
    connection: &Connection,
    slice: &PostbackSlice,
    figures: &PostbackFigures,
) -> Result<(), Failure> {
    let [installs, redownloads, reengagements, later, losses] = figures.values();
    connection
        .prepare_cached(
            "insert into postback_counts
                 (app_id, bucket, counting, protocol, ad_network_id, source_identifier, campaign_id,
                  sequence_index, fine_value, coarse_value,
                  installs, redownloads, reengagements, later, losses)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             on conflict do update set installs = installs + excluded.installs,
                 redownloads = redownloads + excluded.redownloads,
                 reengagements = reengagements + excluded.reengagements,
                 later = later + excluded.later, losses = losses + excluded.losses",
        )?
        .execute(params![
            slice.app.as_bytes(),
            slice.bucket.begins_at().as_millis(),
            slice.counting.as_str(),
            slice.protocol.as_str(),
            slice.ad_network_id,
            slice.source_identifier,
            slice.campaign_id,
            slice.sequence_index,
            slice.fine_value.map_or(-1, i64::from),
            slice.coarse_value.map_or("", CoarseValue::as_str),
            installs,
            redownloads,
            reengagements,
            later,
            losses
        ])?;
    Ok(())
}
