//! Queues of deliveries: taking one, and settling what its attempts came to.

use crate::admin::integration;
use crate::tables::Tables;
use std::collections::BTreeMap;
use tributary_domain::forwarding::queue::{LeaseDecision, lease as decide};
use tributary_domain::forwarding::settlement::SettlementFacts;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::EndCounts;
use tributary_store::{LeaseId, LeasedQueue, QueueRef, Settlement, StoreError};

/// Takes a queue that has something to do; nothing when another process holds it, or it has to wait.
pub async fn lease_queue<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<LeasedQueue>, T::Failure> {
    let integration = integration(tables, queue).await?;
    match decide(Some(&integration), now) {
        LeaseDecision::Take => {}
        LeaseDecision::Rest(until) => {
            tables.rest_queue(queue, now, until).await?;
            return Ok(None);
        }
        LeaseDecision::Refuse => return Ok(None),
    }
    let Some(state) = tables.take_queue(queue, lease, now, until).await? else {
        return Ok(None);
    };
    let missing = || StoreError::corrupt("queues", "app_id", queue.app);
    Ok(Some(LeasedQueue {
        app: tables.app(queue.app).await?.ok_or_else(missing)?,
        integration,
        state,
    }))
}

/// Settles what attempts came to; false, and nothing is written, when another process holds the queue by now.
pub async fn settle_deliveries<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    settlement: &Settlement,
) -> Result<bool, T::Failure> {
    if !tables.lock_lease(queue, lease).await? {
        return Ok(false);
    }
    let at = settlement.at;
    tables.write_settled(queue, &settlement.settled, at).await?;
    tables.insert_checks(queue, &settlement.checks).await?;
    let ends = BTreeMap::from([(queue, EndCounts::of(settlement.counted_ends()))]);
    let failures = tables.count_ends(&ends, at).await?;
    let facts = SettlementFacts {
        failures: failures.get(&queue).copied().unwrap_or_default(),
        version: if settlement.stops_queue() {
            tables.integration_version(queue).await?
        } else {
            None
        },
    };
    let (state, alerts) = settlement.decide(facts);
    for alert in alerts {
        tables.insert_alert(alert).await?;
    }
    tables.write_queue(queue, &state, true).await?;
    Ok(true)
}
