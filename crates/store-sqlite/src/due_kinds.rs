//! Which kinds of work are due.

use crate::outbox::due_queues::IS_DUE;
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::Connection;
use std::collections::BTreeSet;
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{DueKinds, StoreError, StoreResult};

fn find_kinds(connection: &Connection, now: Timestamp) -> Result<BTreeSet<WorkKind>, Failure> {
    let mut statement = connection.prepare_cached(&format!(
        "select distinct integrations.network from integrations
         left join queues on queues.app_id = integrations.app_id
                         and queues.network = integrations.network
         where {IS_DUE}
         union all
         select 'trials' where exists (select 1 from trials where state = 'held' and due_at <= ?1)
         union all
         select 'tokens' where exists (select 1 from ad_services_tokens where due_at <= ?1)
         union all
         select 'alerts' where exists (select 1 from alerts where due_at <= ?1)"
    ))?;
    let mut rows = statement.query([now.as_millis()])?;
    let mut kinds = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let kind: String = row.get(0)?;
        let parsed = WorkKind::parse(&kind);
        kinds.insert(parsed.ok_or_else(|| StoreError::corrupt("integrations", "network", kind))?);
    }
    Ok(kinds)
}

#[async_trait]
impl DueKinds for SqliteStore {
    async fn due_kinds(&self, now: Timestamp) -> StoreResult<BTreeSet<WorkKind>> {
        self.read("due_kinds", move |connection| find_kinds(connection, now))
            .await
    }
}
