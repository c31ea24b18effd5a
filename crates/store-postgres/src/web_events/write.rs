//! Writes the changes decided for a batch of web events.
//!
//! All transactions write tables and keys in the same order: event ids, payments, events, devices,
//! clicks, outbox, increments. The payments are already locked.

use super::facts::{ENVIRONMENT, LockedWebFacts};
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, clicks, devices, duplicates, event_rows, outbox_table, rollups};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::Row;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::web::{ExternalKey, RecordedWebEvent, RefundedPayment, WebChanges};
use tributary_recording::duplicates::{
    demote, find_billed_subscriptions, settle_billed_subscriptions,
};
use tributary_recording::{TransactionTally, settle_first_payment};
use tributary_store::records::PlannedRow;

/// Writes the changes.
pub(super) async fn write_changes(
    tx: &Tx,
    facts: &LockedWebFacts<'_>,
    changes: &WebChanges<'_>,
    needs_app_lock: &AtomicBool,
) -> Result<(), Failure> {
    if changes.recorded.is_empty() {
        return Ok(());
    }
    check_locks(facts, changes)?;
    let mut tally = TransactionTally::default();
    take_over(tx, changes).await?;
    demote(tx, &changes.demotions, &mut tally).await?;
    changes.count(&mut tally.increments);
    let mut recorded = changes.recorded.iter();
    let may_be_billed = recorded.any(|recorded| recorded.billed_payment().is_some());
    let is_settled = changes.unsettled.is_empty() && !may_be_billed;
    let keep = async {
        if is_settled {
            rollups::store_increments(tx, &tally.increments).await
        } else {
            Ok(())
        }
    };
    let events = changes.recorded.iter().map(|recorded| &recorded.event);
    let events: Vec<_> = events.collect();
    let planned: Vec<PlannedRow> = changes.recorded.iter().flat_map(planned_rows).collect();
    let kept = changes.clicks.iter().map(|key| (*key, None)).collect();
    // Pipelined in this order, which the server keeps. The event ids come first, so that if an id
    // is already in use, this conflict is found first and everything is rolled back.
    tokio::try_join!(
        biased;
        claim_ids(tx, changes),
        insert_refunded(tx, changes),
        update_refunded(tx, changes),
        event_rows::insert(tx, &events),
        devices::bulk::claim_first_payments(tx, &changes.payers),
        devices::bulk::check_first_payments(tx, &changes.payers),
        clicks::keep(tx, &kept),
        outbox_table::insert_rows(tx, &planned),
        keep,
    )?;
    if !is_settled {
        for (app, key) in &changes.unsettled {
            let device = DeviceRef {
                app: *app,
                environment: ENVIRONMENT,
                key,
            };
            settle_first_payment(tx, device, &mut tally).await?;
        }
        settle_billed(tx, changes, needs_app_lock, &mut tally).await?;
        rollups::store_increments(tx, &tally.increments).await?;
    }
    tally.write(tx).await?;
    Ok(())
}

/// Settles the subscriptions with payments that the new events report or refund. Reports a conflict
/// if the apps are not locked.
async fn settle_billed(
    tx: &Tx,
    changes: &WebChanges<'_>,
    needs_app_lock: &AtomicBool,
    tally: &mut TransactionTally,
) -> Result<(), Failure> {
    let billed = find_billed_subscriptions(tx, &changes.recorded).await?;
    let latest = changes.recorded.last().map(|last| last.event.received_at);
    let Some(now) = latest.filter(|_| !billed.is_empty()) else {
        return Ok(());
    };
    if !needs_app_lock.swap(true, Ordering::Relaxed) {
        return Err(Failure::Conflict);
    }
    settle_billed_subscriptions(tx, billed, now, tally).await
}

fn planned_rows(recorded: &RecordedWebEvent) -> impl Iterator<Item = PlannedRow> {
    let event = &recorded.event;
    let planned = recorded.planned.iter();
    planned.map(|one| PlannedRow::write(event, one, event.received_at))
}

/// Checks that all stored payments that are refunded here are locked. A payment that was stored
/// after the locks were taken is not locked, and locking it now could deadlock. So this
/// returns a conflict, and the caller retries the batch, which then locks the payment as well.
fn check_locks(facts: &LockedWebFacts<'_>, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let is_stored = |key: &&ExternalKey<'_>| facts.facts.events.contains_key(*key);
    let mut stored = changes.refunded.keys().filter(is_stored);
    if stored.all(|key| facts.locked.contains(key)) {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Reassigns reserved ids to the events of this batch.
async fn take_over(tx: &Tx, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let reserved = changes.recorded.iter().filter_map(|recorded| {
        let event = &recorded.event;
        let id = (event.app, ENVIRONMENT, event.external_id.as_str());
        Some((id, recorded.reserved_by?, event.id, recorded.fingerprint))
    });
    duplicates::take_over(tx, &reserved.collect::<Vec<_>>()).await
}

/// Reports a conflict if rows are missing, which means that another node was first.
fn require_all_rows(wanted: usize, written: &[Row]) -> Result<(), Failure> {
    if wanted == written.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Claims the event ids. Reports a conflict if another node claimed one of them first.
async fn claim_ids(tx: &Tx, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let free = changes.recorded.iter();
    let free = free.filter(|recorded| recorded.reserved_by.is_none());
    let keys: Vec<_> = free.map(RecordedWebEvent::key).collect();
    let claimed = event_rows::claim(tx, &keys).await?;
    if claimed.contains(&false) {
        return Err(Failure::Conflict);
    }
    Ok(())
}

type Refunded<'c> = (&'c ExternalKey<'c>, &'c RefundedPayment);

/// Inserts the refund totals of payments that had no refund before.
async fn insert_refunded(tx: &Tx, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let refunded = changes.refunded.iter();
    let first: Vec<Refunded<'_>> = refunded
        .filter(|(_, payment)| payment.version == 0)
        .collect();
    if first.is_empty() {
        return Ok(());
    }
    let written = tx
        .query(
            "insert into refunded_payments (app_id, given_id, refunded_micros, version)
             select * from unnest($1, $2, $3, $4)
             on conflict (app_id, given_id) do nothing returning version",
            &[
                &column(&first, |((app, _), _)| uuid(app.as_bytes())),
                &column(&first, |((_, external_id), _)| *external_id),
                &column(&first, |(_, payment)| payment.total.micros()),
                &column(&first, |(_, payment)| payment.refunds),
            ],
        )
        .await?;
    require_all_rows(first.len(), &written)
}

/// Updates refund totals. The payments are locked; the version check guards against bugs.
async fn update_refunded(tx: &Tx, changes: &WebChanges<'_>) -> Result<(), Failure> {
    let refunded = changes.refunded.iter();
    let again: Vec<Refunded<'_>> = refunded
        .filter(|(_, payment)| payment.version > 0)
        .collect();
    if again.is_empty() {
        return Ok(());
    }
    let written = tx
        .query(
            "update refunded_payments as stored
             set refunded_micros = new.refunded_micros, version = stored.version + new.refunds
             from unnest($1, $2, $3, $4, $5)
                  as new (app_id, given_id, seen, refunded_micros, refunds)
             where stored.app_id = new.app_id and stored.given_id = new.given_id
               and stored.version = new.seen
               /* distributed: and stored.app_id = any($1) */
             returning stored.version",
            &[
                &column(&again, |((app, _), _)| uuid(app.as_bytes())),
                &column(&again, |((_, external_id), _)| *external_id),
                &column(&again, |(_, payment)| payment.version),
                &column(&again, |(_, payment)| payment.total.micros()),
                &column(&again, |(_, payment)| payment.refunds),
            ],
        )
        .await?;
    require_all_rows(again.len(), &written)
}
