//! Counts events that were not delivered, by network, event name and reason.

use super::skipped::SKIPPED_EVENTS;
use crate::Failure;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::forwarding::skipped::SKIPPED_SCANNED_MAX;
use tributary_domain::forwarding::undelivered::{
    UNDELIVERED_STATUSES, UndeliveredCounts, UndeliveredEvents, UndeliveredReason,
};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{count_to_u64, skipped_from_json_lossy};

/// Counts finished deliveries with one status. One condition on the status is redundant, but makes
/// the planner use the partial index.
const ENDED: &str = "select newest.network, newest.reason, events.name, count(*) from (
         select network, reason, event_id from deliveries
         where app_id = $1 and status = $2 and status <> 'delivered' and delivery_id >= $3
         order by delivery_id desc limit $4) as newest
     left join events on events.app_id = $1 and events.environment = $5
         and events.event_id = newest.event_id
     group by newest.network, newest.reason, events.name";

/// Counts an app's live events since a time that were not delivered.
pub(super) async fn find(
    tx: &Tx,
    app: AppId,
    since: Timestamp,
) -> Result<UndeliveredCounts, Failure> {
    let key = uuid(app.as_bytes());
    let (live, limit) = (Environment::Live.as_str(), i64::from(SKIPPED_SCANNED_MAX));
    let mut counts = UndeliveredCounts::default();
    let mut scanned = 0;
    let first = uuid(EventId::first_at(since).as_bytes());
    for row in &tx
        .query(SKIPPED_EVENTS, &[&key, &live, &first, &limit])
        .await?
    {
        let (name, count) = (row.try_get(0)?, count_to_u64(row.try_get(2)?));
        scanned += count;
        counts.add_skipped(name, &skipped_from_json_lossy(row.try_get(1)?), count);
    }
    counts.note_scanned(scanned);
    let first = uuid(DeliveryId::first_at(since).as_bytes());
    for status in UNDELIVERED_STATUSES {
        let mut scanned = 0;
        for row in &tx
            .query(ENDED, &[&key, &status.as_str(), &first, &limit, &live])
            .await?
        {
            let count = count_to_u64(row.try_get(3)?);
            scanned += count;
            if let Some(network) = Network::parse(row.try_get(0)?) {
                let events = UndeliveredEvents {
                    network,
                    event: row.try_get(2)?,
                    reason: UndeliveredReason::Ended(status, row.try_get(1)?),
                };
                counts.add(events, count);
            }
        }
        counts.note_scanned(scanned);
    }
    Ok(counts)
}
