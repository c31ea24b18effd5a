//! Lookup keys for finding subscriptions.

use crate::Failure;
use crate::params::column;
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::BillingKeyTable;
use tributary_store::records::ChainRow;

impl BillingKeyTable for Tx {
    async fn insert_keys(&self, chain: &Chain, keys: &BTreeSet<String>) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.execute(
            "insert into billing_keys (app_id, environment, lookup_key, provider, chain)
             select $1, $2, lookup_key, $4, $5 from unnest($3) as new (lookup_key)
             on conflict (app_id, environment, lookup_key, provider, chain) do nothing",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.environment.as_str(),
                &keys,
                &chain.provider.as_str(),
                &chain.name,
            ],
        )
        .await?;
        Ok(())
    }

    async fn chains_by_key(
        &self,
        of: (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Failure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .query(
                "select found.provider, found.chain, wanted.lookup_key
             from unnest($3) as wanted (lookup_key)
             cross join lateral
                  (select provider, chain from billing_keys
                   where app_id = $1 and environment = $2 and lookup_key = wanted.lookup_key
                   order by provider, chain limit $4) as found
             order by wanted.lookup_key, found.provider, found.chain",
                &[
                    &uuid(of.0.as_bytes()),
                    &of.1.as_str(),
                    &column(keys, String::as_str),
                    &limit,
                ],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let chain = read_row::<ChainRow>(row)?.read(of)?;
                Ok((row.try_get("lookup_key")?, chain))
            })
            .collect()
    }

    async fn remove_keys(&self, chain: &Chain, keys: &BTreeSet<String>) -> Result<(), Failure> {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.execute(
            "delete from billing_keys where app_id = $1 and environment = $2
               and lookup_key = any($3) and provider = $4 and chain = $5",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.environment.as_str(),
                &keys,
                &chain.provider.as_str(),
                &chain.name,
            ],
        )
        .await?;
        Ok(())
    }
}
