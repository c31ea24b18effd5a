//! Events from apps' SDKs: many requests to a transaction.
//!
//! The events of one app all count in the same few roll-up rows, and a row is held from its update to the
//! commit. A transaction for each request would let an app send only as many a second as commits fit into
//! one, one after the other. Here the requests that wait together are decided together, in the order of their
//! arrival: what is known is read for all of them, a statement a table, the rules say what each event is, and
//! all of it is written at once. Whoever holds a roll-up row then does nothing more but commit.

use crate::batch_writer::{BatchItem, BatchWriter};
use crate::devices::bulk;
use crate::pool::Pool;
use crate::rates::imported_rates;
use crate::tx::{self, Mode, Tx};
use crate::{Failure, duplicates, event_rows, integrations, outbox_table, rollups};
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::sdk::{
    Acceptance, RecordedSdkEvent, SdkChanges, SdkFacts, SdkRequest, decide, planning_click,
};
use tributary_domain::event::{Event, SharedId};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_recording::{TransactionTally, settle_first_payment};
use tributary_store::records::PlannedRow;

impl BatchItem for SdkRequest {
    fn rows(&self) -> usize {
        self.events.len()
    }
}

/// Where events are written in batches.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<SdkRequest, Vec<Acceptance>> {
    let name = "accept_sdk_events";
    BatchWriter::start(name, move |requests: Arc<[SdkRequest]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::Write, async move |tx| {
                accept(tx, &requests).await
            })
            .await
        }
    })
}

/// Records the events of some requests that are new, in order. One answer per request.
async fn accept(tx: &Tx, requests: &[SdkRequest]) -> Result<Vec<Vec<Acceptance>>, Failure> {
    let facts = gather(tx, requests).await?;
    let decisions = decide(requests, &facts);
    write(tx, &decisions.changes).await?;
    Ok(decisions.answers)
}

/// Reserves and claims the ids of requests, locks their devices, and reads what the rules need to know.
async fn gather<'a>(tx: &Tx, requests: &'a [SdkRequest]) -> Result<SdkFacts<'a>, Failure> {
    let verifiable: Vec<_> = requests.iter().flat_map(SdkRequest::verifiable).collect();
    let verified = duplicates::reserve(tx, &verifiable).await?;
    let senders = requests
        .iter()
        .map(|request| (request.sender(), request.context.received_at));
    let devices = bulk::lock_and_read(tx, senders).await?;
    let new_ids = claim_ids(tx, requests).await?;
    let rates = requests
        .iter()
        .flat_map(|request| request.exchange_days(&new_ids));
    let rates: BTreeSet<_> = rates.collect();
    let rates = imported_rates(tx, &rates.into_iter().collect::<Vec<_>>()).await?;
    let apps: BTreeSet<AppId> = new_ids.iter().map(|(app, ..)| *app).collect();
    let integrations = integrations::find_configured(tx, &apps).await?;
    let clicks = devices.iter().filter_map(|(device, known)| {
        let click = planning_click(known, integrations.get(&device.app)?)?;
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

/// Takes the ids that the senders gave, and returns those that were free.
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
    event_rows::insert(tx, &events.collect::<Vec<_>>()).await?;
    bulk::note_first_payments(tx, changes.first_payments().filter_map(payer)).await?;
    bulk::note_last_seen(tx, &changes.seen).await?;
    let mut tally = TransactionTally::default();
    changes.count(&mut tally.increments);
    for device in &changes.unsettled {
        settle_first_payment(tx, *device, &mut tally).await?;
    }
    let planned: Vec<PlannedRow> = changes.recorded.iter().flat_map(planned_rows).collect();
    outbox_table::insert_rows(tx, &planned).await?;
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
