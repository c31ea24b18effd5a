//! Finds the shards of apps, so that a batch of items needs one shard.

use crate::batch_writer::{Lane, ShardKey};
use crate::pool::Pool;
use crate::rows::uuid;
use crate::tx::{self, TransactionMode, Tx};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreResult;

/// The shards of the apps that this node has written to. After a shard was split, a batch may need
/// two shards until the node is started again. That is slower, but correct.
#[derive(Debug, Default)]
pub(crate) struct KnownShards(Mutex<HashMap<AppId, i64>>);

impl KnownShards {
    fn find(&self, app: AppId) -> Option<i64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&app).copied()
    }

    fn insert(&self, app: AppId, shard: i64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(app, shard);
    }
}

/// Returns the lane of an item. The coordinator knows the shard of an app, so this works while the
/// app's worker is down.
pub(crate) async fn lane_of(pool: &Pool, key: ShardKey) -> StoreResult<Lane> {
    let Some(shards) = pool.shards.get() else {
        return Ok(Lane::Shared);
    };
    let app = match key {
        ShardKey::App(app) => app,
        ShardKey::Name(name) => return Ok(Lane::Name(name)),
    };
    if let Some(shard) = shards.find(app) {
        return Ok(Lane::Shard(shard));
    }
    let find = async move |tx: &Tx| {
        let sql = "select get_shard_id_for_distribution_column('apps', $1)";
        let row = tx.query_one(sql, &[&uuid(app.as_bytes())]).await?;
        Ok(row.try_get::<_, i64>(0)?)
    };
    let shard = tx::run(pool, "find_shard", TransactionMode::Read, find).await?;
    shards.insert(app, shard);
    Ok(Lane::Shard(shard))
}
