//! The keys that lead to subscriptions.

use super::notifications::provider_of;
use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::KeyTable;

impl KeyTable for Tx {
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

    async fn keyed_chains(
        &self,
        (app, environment): (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Failure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .query(
                "select wanted.lookup_key, found.provider, found.chain
             from unnest($3) as wanted (lookup_key)
             cross join lateral
                  (select provider, chain from billing_keys
                   where app_id = $1 and environment = $2 and lookup_key = wanted.lookup_key
                   order by provider, chain limit $4) as found
             order by wanted.lookup_key, found.provider, found.chain",
                &[
                    &uuid(app.as_bytes()),
                    &environment.as_str(),
                    &column(keys, String::as_str),
                    &limit,
                ],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let chain = Chain {
                    app,
                    environment,
                    provider: provider_of(app, row.try_get("provider")?)?,
                    name: row.try_get("chain")?,
                };
                Ok((row.try_get("lookup_key")?, chain))
            })
            .collect()
    }
}

/// Removes keys of a subscription.
pub(super) async fn remove(tx: &Tx, chain: &Chain, keys: &[&str]) -> Result<(), Failure> {
    tx.execute(
        "delete from billing_keys where app_id = $1 and environment = $2 and lookup_key = any($3)
           and provider = $4 and chain = $5",
        &[
            &uuid(chain.app.as_bytes()),
            &chain.environment.as_str(),
            &keys.to_vec(),
            &chain.provider.as_str(),
            &chain.name,
        ],
    )
    .await?;
    Ok(())
}
