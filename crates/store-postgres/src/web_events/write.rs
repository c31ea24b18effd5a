//! What was decided about a batch of posts, written in bulk.
//!
//! Tables and keys have one order, which is the order of everybody who writes them: clicks, the events' ids,
//! payments, events, devices, the outbox, and roll-ups last. Devices and payments are locked by then.

use super::decide::{Decisions, Row};
use super::facts::{ENVIRONMENT, SOURCE};
use crate::event_rows::EventKey;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, devices, event_rows, planned, rollups};
use tributary_domain::event::web::Posted;
use tributary_domain::vocabulary::digest::Digest;

/// Writes what was accepted.
pub(super) async fn all(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    if decisions.posts.is_empty() {
        return Ok(());
    }
    keep_clicks(tx, decisions).await?;
    // Sent together, in the order above, in which the server does them: the ids first, by which the rows that follow
    // are ours. If one of the ids is taken, that is found first, and all of it is undone.
    tokio::try_join!(
        biased;
        claim_ids(tx, &decisions.posts),
        insert_payments(tx, decisions),
        refund_payments(tx, decisions),
        event_rows::insert(tx, &decisions.events),
        insert_web_events(tx, &decisions.posts),
        devices::locked::write_noted(tx, decisions.facts.devices.values()),
        planned::insert(tx, &decisions.planned),
        rollups::add(tx, &decisions.increments),
    )?;
    Ok(())
}

/// All rows must be there still; if not, another node was first.
fn all_of(wanted: usize, rows: u64) -> Result<(), Failure> {
    if u64::try_from(wanted) == Ok(rows) {
        Ok(())
    } else {
        Err(Failure::Overtaken)
    }
}

/// Keeps the clicks that nothing referred to so far. One of them may have been removed just now.
async fn keep_clicks(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let clicks: Vec<_> = decisions.clicks.iter().collect();
    if clicks.is_empty() {
        return Ok(());
    }
    let kept = tx
        .execute(
            "update clicks set kept = true
             from unnest($1, $2) as referred (app_id, click_id)
             where clicks.app_id = referred.app_id and clicks.click_id = referred.click_id",
            &[
                &column(&clicks, |(app, _)| uuid(app.as_bytes())),
                &column(&clicks, |(_, click)| uuid(click.as_bytes())),
            ],
        )
        .await?;
    all_of(clicks.len(), kept)
}

/// Takes the ids that the senders gave, or finds that another node has given one of them away.
async fn claim_ids(tx: &Tx, posts: &[(&Posted, Digest)]) -> Result<(), Failure> {
    let keys = column(posts, |(posted, fingerprint)| EventKey {
        app: posted.app,
        environment: ENVIRONMENT,
        source: SOURCE,
        given_id: &posted.given_id,
        event: posted.id,
        fingerprint: Some(fingerprint),
    });
    let claimed = event_rows::claim(tx, &keys).await?;
    if claimed.contains(&false) {
        return Err(Failure::Overtaken);
    }
    Ok(())
}

/// Stores new payments, less what was given back already.
async fn insert_payments(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let new: Vec<_> = decisions
        .facts
        .payments
        .iter()
        .filter_map(|(key, payment)| match payment.row {
            Row::New(event) => Some((key, payment, event)),
            Row::Stored { .. } => None,
        })
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    tx.execute(
        "insert into receipts (app_id, given_id, event_id, kind, refunded_micros, version)
         select * from unnest($1, $2, $3, $4, $5, $6)",
        &[
            &column(&new, |((app, _), ..)| uuid(app.as_bytes())),
            &column(&new, |((_, given), ..)| *given),
            &column(&new, |(_, _, event)| uuid(event.as_bytes())),
            &column(&new, |(_, payment, _)| payment.receipt.kind.as_str()),
            &column(&new, |(_, payment, _)| payment.receipt.refunded.micros()),
            &column(&new, |(_, payment, _)| payment.refunds),
        ],
    )
    .await?;
    Ok(())
}

/// Writes what was given back of stored payments. They are locked; the version has the last word all the same.
async fn refund_payments(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let refunded: Vec<_> = decisions
        .facts
        .payments
        .iter()
        .filter_map(|(key, payment)| match payment.row {
            Row::Stored { version, .. } if payment.refunds > 0 => Some((key, payment, version)),
            _ => None,
        })
        .collect();
    if refunded.is_empty() {
        return Ok(());
    }
    let written = tx
        .execute(
            "update receipts as stored
             set refunded_micros = new.refunded_micros, version = stored.version + new.refunds
             from unnest($1, $2, $3, $4, $5)
                  as new (app_id, given_id, seen, refunded_micros, refunds)
             where stored.app_id = new.app_id and stored.given_id = new.given_id
               and stored.version = new.seen",
            &[
                &column(&refunded, |((app, _), ..)| uuid(app.as_bytes())),
                &column(&refunded, |((_, given), ..)| *given),
                &column(&refunded, |(_, _, version)| *version),
                &column(&refunded, |(_, payment, _)| {
                    payment.receipt.refunded.micros()
                }),
                &column(&refunded, |(_, payment, _)| payment.refunds),
            ],
        )
        .await?;
    all_of(refunded.len(), written)
}

/// Stores what only website events have.
async fn insert_web_events(tx: &Tx, posts: &[(&Posted, Digest)]) -> Result<(), Failure> {
    tx.execute(
        "insert into web_events (app_id, event_id, source_url, parent_given_id, email_sha256)
         select * from unnest($1, $2, $3, $4, $5)",
        &[
            &column(posts, |(posted, _)| uuid(posted.app.as_bytes())),
            &column(posts, |(posted, _)| uuid(posted.id.as_bytes())),
            &column(posts, |(posted, _)| posted.source_url.as_str()),
            &column(posts, |(posted, _)| posted.parent.as_deref()),
            &column(posts, |(posted, _)| posted.email_sha256.as_deref()),
        ],
    )
    .await?;
    Ok(())
}
