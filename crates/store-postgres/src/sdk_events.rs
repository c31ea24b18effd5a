//! Accepts SDK events, many requests per transaction.
//!
//! All events of an app update the same few roll-up rows, and an updated row stays locked until the
//! commit. With one transaction per request, an app could send only as many requests per second as
//! there are commits per second. So waiting requests are evaluated together, in order of arrival.
//! Facts are read with one statement per table, the domain rules are applied, and everything is
//! written at once. After locking a roll-up row, a transaction only commits.

use crate::batch_writer::{BatchItem, BatchWriter, CONCURRENT_BATCHES, ShardKey};
use crate::devices::bulk;
use crate::pool::Pool;
use crate::rates::imported_rates;
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, duplicates, event_rows, integrations, outbox_table, rollups};
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::sdk::{
    RecordedSdkEvent, SdkChanges, SdkEventOutcome, SdkFacts, SdkRequest, decide, planning_click,
};
use tributary_domain::event::{Event, SharedId};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_recording::{TransactionTally, settle_first_payment};
use tributary_store::records::PlannedRow;

impl BatchItem for SdkRequest {
    fn shard_key(&self) -> ShardKey {
        ShardKey::App(self.context.app)
    }

    fn rows(&self) -> usize {
        self.events.len()
    }
}

/// Starts the batch writer for SDK events.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<SdkRequest, Vec<SdkEventOutcome>> {
    let name = "accept_sdk_events";
    let write = move |requests: Arc<[SdkRequest]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, TransactionMode::Write, async move |tx| {
                accept(tx, &requests).await
            })
            .await
        }
    };
    BatchWriter::start_concurrent(name, CONCURRENT_BATCHES, write)
}

/// Records the new events in the requests, in order. Returns one result per request.
async fn accept(tx: &Tx, requests: &[SdkRequest]) -> Result<Vec<Vec<SdkEventOutcome>>, Failure> {
    let facts = gather(tx, requests).await?;
    let decisions = decide(requests, &facts);
    write(tx, &decisions.changes).await?;
    Ok(decisions.answers)
}

/// Reserves and claims the event ids, locks the devices and reads the facts that the rules need.
async fn gather<'a>(tx: &Tx, requests: &'a [SdkRequest]) -> Result<SdkFacts<'a>, Failure> {
    let verifiable: Vec<_> = requests.iter().flat_map(SdkRequest::verifiable).collect();
    let verified = duplicates::reserve(tx, &verifiable).await?;
    let senders = requests
        .iter()
        .map(|request| (request.sender(), request.context.received_at));
    let apps: BTreeSet<AppId> = requests.iter().map(|request| request.context.app).collect();
    // Pipelined in this order, which the server keeps: devices are locked before ids are claimed.
    let (devices, new_ids, integrations) = tokio::try_join!(
        biased;
        bulk::lock_and_read(tx, senders),
        claim_ids(tx, requests),
        integrations::find_configured(tx, &apps)
    )?;
    let rates = requests
        .iter()
        .flat_map(|request| request.exchange_days(&new_ids));
    let rates: BTreeSet<_> = rates.collect();
    let rates = imported_rates(tx, &rates.into_iter().collect::<Vec<_>>()).await?;
    let clicks = devices.iter().filter_map(|(device, state)| {
        let click = planning_click(state, integrations.get(&device.app)?)?;
        Some((device.app, click))
    });
    let clicks = outbox_table::find_clicks(tx, clicks.collect()).await?;
    Ok(SdkFacts {
        devices,
        new_ids,
        verified,
        rates,
        integrations,
        clicks,
    })
}

/// Claims the requests' event ids. Returns those that were free.
async fn claim_ids<'a>(
    tx: &Tx,
    requests: &'a [SdkRequest],
) -> Result<BTreeSet<SharedId<'a>>, Failure> {
    let keys: Vec<_> = requests.iter().flat_map(SdkRequest::keys).collect();
    let claimed = event_rows::claim(tx, &keys).await?;
    let claimed = keys.iter().zip(claimed).filter(|(_, claimed)| *claimed);
    Ok(claimed
        .map(|(key, _)| (key.app, key.environment, key.external_id))
        .collect())
}

/// Writes changes whose ids are claimed and whose devices are locked.
async fn write(tx: &Tx, changes: &SdkChanges<'_>) -> Result<(), Failure> {
    let events = changes.recorded.iter().map(|recorded| &recorded.event);
    let events: Vec<_> = events.collect();
    let planned: Vec<PlannedRow> = changes.recorded.iter().flat_map(planned_rows).collect();
    let mut tally = TransactionTally::default();
    changes.count(&mut tally.increments);
    let is_settled = changes.unsettled.is_empty();
    let increments = async {
        if is_settled {
            rollups::store_increments(tx, &tally.increments).await
        } else {
            Ok(())
        }
    };
    // Pipelined in this order, which the server keeps.
    tokio::try_join!(
        biased;
        event_rows::insert(tx, &events),
        bulk::note_first_payments(tx, changes.first_payments().filter_map(payer)),
        bulk::note_last_seen(tx, &changes.seen),
        outbox_table::insert_rows(tx, &planned),
        increments,
    )?;
    if is_settled {
        return Ok(());
    }
    for device in &changes.unsettled {
        settle_first_payment(tx, *device, &mut tally).await?;
    }
    rollups::store_increments(tx, &tally.increments).await
}

fn payer(event: &Event) -> Option<(DeviceRef<'_>, EventId)> {
    let device = DeviceRef {
        app: event.app,
        environment: event.environment,
        key: event.device.as_ref()?,
    };
    Some((device, event.id))
}

fn planned_rows(recorded: &RecordedSdkEvent) -> impl Iterator<Item = PlannedRow> {
    let event = &recorded.event;
    let planned = recorded.planned.iter();
    planned.map(|one| PlannedRow::write(event, one, event.received_at))
}
