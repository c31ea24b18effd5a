//! Stored notifications and the subscriptions they belong to.

use super::people;
use crate::Failure;
use crate::params::column;
use crate::rows::{qualified, read_row, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::connected::{KEY_SUBSCRIPTIONS_MAX, SearchQuery, SearchResult};
use tributary_domain::billing::{CHAIN_NOTIFICATIONS_MAX, Chain, Notification};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::{BillingKeyTable, NotificationTable};
use tributary_store::records::{ChainRow, Columns, NotificationRow};

const COLUMNS: &str = NotificationRow::COLUMNS;

fn notification(row: &Row) -> Result<Notification, Failure> {
    Ok(read_row::<NotificationRow>(row)?.read()?)
}

impl NotificationTable for Tx {
    async fn notification_digest(
        &self,
        app: AppId,
        provider: BillingProvider,
        given_id: &str,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let row = self
            .query_opt(
                "select digest from notifications
             where app_id = $1 and provider = $2 and given_id = $3",
                &[&uuid(app.as_bytes()), &provider.as_str(), &given_id],
            )
            .await?;
        Ok(row.map(|row| row.try_get("digest")).transpose()?)
    }

    async fn insert_notification(
        &self,
        one: &Notification,
        digest: Digest,
        body: Option<&str>,
    ) -> Result<(), Failure> {
        let row = NotificationRow::write(one);
        self.execute(
        "insert into notifications (app_id, provider, given_id, environment, chain, happened_at,
                                    received_at, event_id, digest, facts, body)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (app_id, provider, given_id) do nothing",
        &[
            &uuid(&row.app_id),
            &row.provider,
            &row.given_id,
            &row.environment,
            &row.chain,
            &row.happened_at,
            &row.received_at,
            &uuid(&row.event_id),
            &digest.as_bytes().as_slice(),
            &row.facts,
            &body,
        ],
    )
    .await?;
        Ok(())
    }

    async fn remove_notification(&self, one: &Notification) -> Result<(), Failure> {
        self.execute(
            "delete from notifications where app_id = $1 and provider = $2 and given_id = $3",
            &[
                &uuid(one.app.as_bytes()),
                &one.provider.as_str(),
                &one.content.external_id,
            ],
        )
        .await?;
        Ok(())
    }

    async fn update_notification(&self, one: &Notification) -> Result<(), Failure> {
        let row = NotificationRow::write(one);
        self.execute(
            "update notifications set facts = $4
         where app_id = $1 and provider = $2 and given_id = $3",
            &[&uuid(&row.app_id), &row.provider, &row.given_id, &row.facts],
        )
        .await?;
        Ok(())
    }

    async fn notifications(&self, chains: &BTreeSet<Chain>) -> Result<Vec<Notification>, Failure> {
        if chains.is_empty() {
            return Ok(Vec::new());
        }
        // One index lookup per subscription, whatever plan the table statistics suggest. One
        // statement per app, because a distributed database rejects the limit otherwise.
        let sql = format!(
            "select {} from unnest($2, $3, $4) as wanted (environment, provider, chain)
         cross join lateral
              (select * from notifications
               where app_id = $1 and environment = wanted.environment
                 and provider = wanted.provider and chain = wanted.chain
               order by happened_at desc limit $5) as stored",
            qualified("stored", COLUMNS)
        );
        let limit = i64::try_from(CHAIN_NOTIFICATIONS_MAX).unwrap_or(i64::MAX);
        let mut by_app: BTreeMap<AppId, Vec<&Chain>> = BTreeMap::new();
        for chain in chains {
            by_app.entry(chain.app).or_default().push(chain);
        }
        let mut found = Vec::new();
        for (app, chains) in by_app {
            let rows = self
                .query(
                    &sql,
                    &[
                        &uuid(app.as_bytes()),
                        &column(&chains, |chain| chain.environment.as_str()),
                        &column(&chains, |chain| chain.provider.as_str()),
                        &column(&chains, |chain| chain.name.as_str()),
                        &limit,
                    ],
                )
                .await?;
            for row in &rows {
                found.push(notification(row)?);
            }
        }
        Ok(found)
    }

    async fn chains_with_pseudonyms(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<BTreeSet<Chain>, Failure> {
        let chains: Vec<&Chain> = chains.iter().collect();
        let numbers: Vec<i64> = (0..).take(chains.len()).collect();
        let rows = self
            .query(
                "select distinct wanted.number
                 from unnest($1, $2, $3, $4, $5)
                      as wanted (app_id, environment, provider, chain, number)
                 join notifications as stored
                   on stored.app_id = wanted.app_id and stored.environment = wanted.environment
                  and stored.provider = wanted.provider and stored.chain = wanted.chain
                 where strpos(stored.facts, '\"erased-') > 0
                   /* distributed: and stored.app_id = any($1) */",
                &[
                    &column(&chains, |chain| uuid(chain.app.as_bytes())),
                    &column(&chains, |chain| chain.environment.as_str()),
                    &column(&chains, |chain| chain.provider.as_str()),
                    &column(&chains, |chain| chain.name.as_str()),
                    &numbers,
                ],
            )
            .await?;
        let mut found = BTreeSet::new();
        for row in &rows {
            let index = usize::try_from(row.try_get::<_, i64>("number")?).unwrap_or(usize::MAX);
            found.extend(chains.get(index).copied().cloned());
        }
        Ok(found)
    }

    async fn find_connected(
        &self,
        of: (AppId, Environment),
        need: &SearchQuery,
    ) -> Result<SearchResult, Failure> {
        let wanted: Vec<String> = need.keys.iter().cloned().collect();
        let users: Vec<&str> = need.people.iter().map(UserKey::as_str).collect();
        let ids: Vec<&str> = need.advertising.iter().map(AdvertisingId::as_str).collect();
        let devices: Vec<&str> = need.devices.iter().map(DeviceKey::as_str).collect();
        // Pipelined: one round trip.
        let (notifications, keyed, people, advertising) = tokio::try_join!(
            self.notifications(&need.chains),
            self.chains_by_key(of, &wanted, KEY_SUBSCRIPTIONS_MAX + 1),
            people::find_person_links(self, of, users, devices.clone()),
            people::find_advertising_links(self, of, ids, devices)
        )?;
        Ok(SearchResult {
            notifications,
            keyed,
            people,
            advertising,
        })
    }

    async fn all_notifications(&self, chain: &Chain) -> Result<Vec<Notification>, Failure> {
        let sql = format!(
            "select {COLUMNS} from notifications
             where app_id = $1 and environment = $2 and provider = $3 and chain = $4"
        );
        let rows = self
            .query(
                &sql,
                &[
                    &uuid(chain.app.as_bytes()),
                    &chain.environment.as_str(),
                    &chain.provider.as_str(),
                    &chain.name,
                ],
            )
            .await?;
        rows.iter().map(notification).collect()
    }

    async fn chains_by_external_id(
        &self,
        of: (AppId, Environment),
        given_ids: &BTreeSet<&str>,
    ) -> Result<BTreeSet<Chain>, Failure> {
        let given_ids: Vec<&str> = given_ids.iter().copied().collect();
        chains_with(self, of, "given_id = any($4)", given_ids).await
    }

    async fn single_notification_chains(
        &self,
        of: (AppId, Environment),
        texts: &[String],
    ) -> Result<BTreeSet<Chain>, Failure> {
        let condition = "chain >= 'alone:' and chain < 'alone;'
                         and exists (select 1 from unnest($4) as wanted (text)
                                     where strpos(facts || coalesce(body, ''), wanted.text) > 0)";
        chains_with(self, of, condition, column(texts, String::as_str)).await
    }

    async fn erase_notifications(
        &self,
        chain: &Chain,
        remaining: &[Notification],
    ) -> Result<(), Failure> {
        let rows: Vec<NotificationRow> = remaining.iter().map(NotificationRow::write).collect();
        self.execute(
            "update notifications set facts = new.facts, body = null
             from unnest($3, $4) as new (given_id, facts)
             where notifications.app_id = $1 and notifications.provider = $2
               and notifications.given_id = new.given_id",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.provider.as_str(),
                &column(&rows, |row| row.given_id.as_str()),
                &column(&rows, |row| row.facts.as_str()),
            ],
        )
        .await?;
        Ok(())
    }
}

/// Finds the subscriptions of the notifications that match a condition.
async fn chains_with(
    tx: &Tx,
    of: (AppId, Environment),
    condition: &str,
    values: Vec<&str>,
) -> Result<BTreeSet<Chain>, Failure> {
    let sql = format!(
        "select distinct {} from notifications
         where app_id = $1 and environment = $2 and provider = any($3) and {condition}",
        ChainRow::COLUMNS
    );
    let providers = column(BillingProvider::ALL, |provider| provider.as_str());
    let (app, environment) = (uuid(of.0.as_bytes()), of.1.as_str());
    let rows = tx
        .query(&sql, &[&app, &environment, &providers, &values])
        .await?;
    let chain = |row| Ok(read_row::<ChainRow>(row)?.read(of)?);
    rows.iter().map(chain).collect()
}
