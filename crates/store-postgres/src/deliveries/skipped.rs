//! Counts conversions that were not sent, by network, reason and event name.

use crate::Failure;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::skipped::{SKIPPED_SCANNED_MAX, SkippedCounts, skipped_since};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{count_to_u64, skipped_from_json_lossy};

/// Counts events by name and the networks skipped for them. The newest events are found through the primary
/// key.
const SKIPPED_EVENTS: &str = "select name, skipped, count(*) from (
         select name, skipped from events where app_id = $1 and environment = $2 and event_id >= $3
         order by event_id desc limit $4) as newest
     group by name, skipped";
/// Counts deliveries that failed before their first attempt. One condition on the status is
/// redundant, but makes the planner use the partial index.
const UNSENDABLE: &str =
    "select network, case when attempts_made = 0 then reason end as unsendable, count(*) from (
         select network, reason, attempts_made from deliveries
         where app_id = $1 and status = $2 and status <> 'delivered' and delivery_id >= $3
         order by delivery_id desc limit $4) as newest
     group by network, unsendable";

/// Counts an app's conversions that were not sent.
pub(crate) async fn find(tx: &Tx, app: AppId, now: Timestamp) -> Result<SkippedCounts, Failure> {
    let (key, since) = (uuid(app.as_bytes()), skipped_since(now));
    let (live, limit) = (Environment::Live.as_str(), i64::from(SKIPPED_SCANNED_MAX));
    let mut counts = SkippedCounts::default();
    let mut scanned = 0;
    let first = uuid(EventId::first_at(since).as_bytes());
    for row in &tx
        .query(SKIPPED_EVENTS, &[&key, &live, &first, &limit])
        .await?
    {
        let (name, count) = (row.try_get(0)?, count_to_u64(row.try_get(2)?));
        scanned += count;
        counts.add_planned(name, &skipped_from_json_lossy(row.try_get(1)?), count);
    }
    counts.note_scanned(scanned);
    let mut scanned = 0;
    let failed = DeliveryStatus::Failed.as_str();
    let first = uuid(DeliveryId::first_at(since).as_bytes());
    for row in &tx
        .query(UNSENDABLE, &[&key, &failed, &first, &limit])
        .await?
    {
        let count = count_to_u64(row.try_get(2)?);
        scanned += count;
        let network = Network::parse(row.try_get(0)?);
        if let (Some(network), Some(reason)) = (network, row.try_get(1)?) {
            counts.add_unsendable(network, reason, count);
        }
    }
    counts.note_scanned(scanned);
    Ok(counts)
}
