//! What was decided about a batch of posts, written in bulk.
//!
//! Tables and keys have one order, which is the order of everybody who writes them: the events' ids, payments, events,
//! devices, clicks, the outbox, and what was counted. Payments are locked by then.

use super::GivenKey;
use super::decide::{Decisions, Payment, Row};
use super::facts::{ENVIRONMENT, SOURCE, given};
use crate::event_rows::EventKey;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, devices, duplicates, event_rows, planned, rollups};
use tributary_domain::device::DeviceRef;
use tributary_domain::event::web::Posted;
use tributary_domain::vocabulary::digest::Digest;
use tributary_recording::duplicates::demote;
use tributary_recording::{Tally, settle_first_payment};

/// Writes what was accepted.
pub(super) async fn all(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    if decisions.posts.is_empty() {
        return Ok(());
    }
    let mut tally = Tally::default();
    if !decisions.facts.reserved.is_empty() {
        let reserved = decisions.posts.iter().filter_map(|(posted, fingerprint)| {
            let by = decisions.facts.reserved.get(&given(posted))?;
            let id = (posted.app, ENVIRONMENT, posted.given_id.as_str());
            Some((id, *by, posted.id, *fingerprint))
        });
        duplicates::take_over(tx, &reserved.collect::<Vec<_>>()).await?;
        demote(tx, &decisions.demotions, &mut tally).await?;
    }
    let is_settled = decisions.unsettled.is_empty();
    let keep = async {
        if is_settled {
            rollups::keep(tx, &decisions.increments).await
        } else {
            Ok(())
        }
    };
    // Sent together, in the order above, in which the server does them: the ids first, by which the rows that follow
    // are ours. If one of the ids is taken, that is found first, and all of it is undone.
    tokio::try_join!(
        biased;
        claim_ids(tx, decisions),
        insert_refunded(tx, decisions),
        update_refunded(tx, decisions),
        event_rows::insert(tx, &decisions.events),
        devices::locked::claim_first_payments(tx, &decisions.paying),
        devices::locked::check_first_payments(tx, &decisions.paying),
        keep_clicks(tx, decisions),
        planned::insert(tx, &decisions.planned),
        keep,
    )?;
    if !is_settled {
        settle_first_payments(tx, decisions).await?;
    }
    if let Some((_, at)) = decisions.demotions.first() {
        tally.write(tx, *at).await?;
    }
    Ok(())
}

/// Moves the flags of first payments, and keeps what was counted.
async fn settle_first_payments(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let mut tally = Tally::default();
    for (app, device) in &decisions.unsettled {
        let device = DeviceRef {
            app: *app,
            environment: ENVIRONMENT,
            key: device,
        };
        settle_first_payment(tx, device, &mut tally).await?;
    }
    let mut increments = decisions.increments.clone();
    increments.merge(tally.increments);
    rollups::keep(tx, &increments).await
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
async fn claim_ids(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let reserved = &decisions.facts.reserved;
    let new = |(posted, _): &&(&Posted, Digest)| !reserved.contains_key(&given(posted));
    let posts: Vec<_> = decisions.posts.iter().filter(new).collect();
    let keys = column(&posts, |(posted, fingerprint)| EventKey {
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

/// Payments of which something is given back here, each with how often that was done before.
fn refunded<'d>(
    decisions: &'d Decisions<'_>,
) -> impl Iterator<Item = (&'d GivenKey<'d>, &'d Payment, i64)> {
    let payments = decisions.facts.payments.iter();
    payments
        .filter(|(_, payment)| payment.refunds > 0)
        .map(|(key, payment)| match payment.row {
            Row::Stored { version, .. } => (key, payment, version),
            Row::New => (key, payment, 0),
        })
}

/// Writes what was given back of payments of which nothing was before.
async fn insert_refunded(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let first: Vec<_> = refunded(decisions)
        .filter(|(.., before)| *before == 0)
        .collect();
    if first.is_empty() {
        return Ok(());
    }
    let written = tx
        .execute(
            "insert into refunded_payments (app_id, given_id, refunded_micros, version)
             select * from unnest($1, $2, $3, $4) on conflict do nothing",
            &[
                &column(&first, |((app, _), ..)| uuid(app.as_bytes())),
                &column(&first, |((_, given), ..)| *given),
                &column(&first, |(_, payment, _)| payment.receipt.refunded.micros()),
                &column(&first, |(_, payment, _)| payment.refunds),
            ],
        )
        .await?;
    all_of(first.len(), written)
}

/// Writes what was given back of others. They are locked; the version has the last word all the same.
async fn update_refunded(tx: &Tx, decisions: &Decisions<'_>) -> Result<(), Failure> {
    let again: Vec<_> = refunded(decisions)
        .filter(|(.., before)| *before > 0)
        .collect();
    if again.is_empty() {
        return Ok(());
    }
    let written = tx
        .execute(
            "update refunded_payments as stored
             set refunded_micros = new.refunded_micros, version = stored.version + new.refunds
             from unnest($1, $2, $3, $4, $5)
                  as new (app_id, given_id, seen, refunded_micros, refunds)
             where stored.app_id = new.app_id and stored.given_id = new.given_id
               and stored.version = new.seen",
            &[
                &column(&again, |((app, _), ..)| uuid(app.as_bytes())),
                &column(&again, |((_, given), ..)| *given),
                &column(&again, |(_, _, version)| *version),
                &column(&again, |(_, payment, _)| payment.receipt.refunded.micros()),
                &column(&again, |(_, payment, _)| payment.refunds),
            ],
        )
        .await?;
    all_of(again.len(), written)
}
