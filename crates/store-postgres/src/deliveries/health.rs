//! How the integrations of an app do, in figures.

use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, queues};
use std::collections::BTreeMap;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Health;
use tributary_store::records::{day_before, queue_ref, whole};

/// One statement a table, for all networks.
pub(crate) async fn find(
    tx: &Tx,
    app: AppId,
    now: Timestamp,
) -> Result<Vec<(Network, Health)>, Failure> {
    let key = uuid(app.as_bytes());
    let mut states = queues::find_all(tx, app).await?;
    let sql = "select network, count(*) from outbox where app_id = $1 group by network";
    let mut pending = BTreeMap::new();
    for row in &tx.query(sql, &[&key]).await? {
        let queue = queue_ref(*app.as_bytes(), row.try_get(0)?)?;
        pending.insert(queue.network, row.try_get::<_, i64>(1)?);
    }
    // A sum of bigints is a numeric here, which we have no use for.
    let sql = "select network, sum(delivered)::bigint, sum(failed + expired + unconfirmed)::bigint
               from delivery_hours where app_id = $1 and hour >= $2 group by network";
    let since = day_before(now);
    let mut ends = BTreeMap::new();
    for row in &tx.query(sql, &[&key, &since]).await? {
        let queue = queue_ref(*app.as_bytes(), row.try_get(0)?)?;
        let counts: (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        ends.insert(queue.network, counts);
    }
    let mut health = |network| {
        let (delivered, failed) = ends.get(&network).copied().unwrap_or_default();
        let health = Health {
            state: states.remove(&network).unwrap_or_default(),
            pending: whole(pending.get(&network).copied().unwrap_or_default()),
            delivered: whole(delivered),
            failed: whole(failed),
            ..Health::default()
        };
        (network, health)
    };
    Ok(Network::ALL.into_iter().map(&mut health).collect())
}
