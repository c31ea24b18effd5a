//! Lookup keys for finding subscriptions.

use crate::Failure;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::params;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::BillingKeyTable;
use tributary_store::records::ChainRow;

const BY_KEY: &str = "select provider, chain from billing_keys
     where app_id = ?1 and environment = ?2 and lookup_key = ?3
     order by provider, chain limit ?4";

impl BillingKeyTable for SqliteTables<'_> {
    async fn insert_keys(&self, chain: &Chain, keys: &BTreeSet<String>) -> Result<(), Failure> {
        let mut insert = self.0.prepare_cached(
            "insert into billing_keys (app_id, environment, lookup_key, provider, chain)
             values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
        )?;
        for key in keys {
            insert.execute(params![
                chain.app.as_bytes(),
                chain.environment.as_str(),
                key,
                chain.provider.as_str(),
                chain.name
            ])?;
        }
        Ok(())
    }

    async fn chains_by_key(
        &self,
        of: (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Failure> {
        let mut find = self.0.prepare_cached(BY_KEY)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        for key in keys {
            let values = params![of.0.as_bytes(), of.1.as_str(), key, limit];
            for row in find.query_map(values, read_row::<ChainRow>)? {
                found.push((key.clone(), row?.read(of)?));
            }
        }
        Ok(found)
    }

    async fn remove_keys(&self, chain: &Chain, keys: &BTreeSet<String>) -> Result<(), Failure> {
        let mut remove = self.0.prepare_cached(
            "delete from billing_keys where app_id = ?1 and environment = ?2 and lookup_key = ?3
               and provider = ?4 and chain = ?5",
        )?;
        for key in keys {
            remove.execute(params![
                chain.app.as_bytes(),
                chain.environment.as_str(),
                key,
                chain.provider.as_str(),
                chain.name
            ])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use rusqlite::{Connection, StatementStatus};
    use std::sync::Arc;
    use tributary_store::contract::fixtures::SharedStore;
    use tributary_store::contract::sdk_fixtures::tenant;

    #[tokio::test]
    async fn a_first_open_looks_for_waiting_subscriptions_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        let store = Arc::new(opened.unwrap().unwrap());
        let shared: SharedStore = store.clone();
        let one = tenant(&shared).await;
        let lookups = || {
            let count = |connection: &Connection| {
                let statement = connection.prepare_cached(BY_KEY)?;
                Ok(statement.get_status(StatementStatus::Run))
            };
            store.write("test", count)
        };
        let before = lookups().await.unwrap();
        let first_open = one.configure("device-1", 10);
        let keys = first_open.possible_identifiers().keys(&first_open.device);
        one.call_configure(first_open).await;
        let expected = i32::try_from(keys.len()).unwrap();
        assert_eq!(lookups().await.unwrap() - before, expected);
    }
}
