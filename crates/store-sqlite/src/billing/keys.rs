//! The keys that lead to subscriptions.

use super::notifications::provider_of;
use crate::Failure;
use crate::tables::Tables;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::KeyTable;

impl KeyTable for Tables<'_> {
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

    async fn keyed_chains(
        &self,
        (app, environment): (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Failure> {
        let mut find = self.0.prepare_cached(
            "select provider, chain from billing_keys
             where app_id = ?1 and environment = ?2 and lookup_key = ?3
             order by provider, chain limit ?4",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        for key in keys {
            let of = params![app.as_bytes(), environment.as_str(), key, limit];
            let rows = find.query_map(of, |row| Ok((row.get("provider")?, row.get("chain")?)))?;
            for row in rows {
                let (provider, name): (String, String) = row?;
                let chain = Chain {
                    app,
                    environment,
                    provider: provider_of(app, &provider)?,
                    name,
                };
                found.push((key.clone(), chain));
            }
        }
        Ok(found)
    }
}

/// Removes a key of a subscription.
pub(super) fn remove(connection: &Connection, chain: &Chain, key: &str) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from billing_keys where app_id = ?1 and environment = ?2 and lookup_key = ?3
               and provider = ?4 and chain = ?5",
        )?
        .execute(params![
            chain.app.as_bytes(),
            chain.environment.as_str(),
            key,
            chain.provider.as_str(),
            chain.name
        ])?;
    Ok(())
}
