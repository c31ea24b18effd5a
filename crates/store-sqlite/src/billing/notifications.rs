//! Stored notifications and the subscriptions they belong to.

use super::people::{self, LinkSearch};
use crate::Failure;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::connected::{KEY_SUBSCRIPTIONS_MAX, SearchQuery, SearchResult};
use tributary_domain::billing::{CHAIN_NOTIFICATIONS_MAX, Chain, Notification};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::{BillingKeyTable, NotificationTable};
use tributary_store::records::{ChainRow, Columns, NotificationRow};

const COLUMNS: &str = NotificationRow::COLUMNS;

impl NotificationTable for SqliteTables<'_> {
    async fn notification_digest(
        &self,
        app: AppId,
        provider: BillingProvider,
        given_id: &str,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let key = params![app.as_bytes(), provider.as_str(), given_id];
        let digest = self
            .0
            .prepare_cached(
                "select digest from notifications
                 where app_id = ?1 and provider = ?2 and given_id = ?3",
            )?
            .query_row(key, |row| row.get("digest"))
            .optional()?;
        Ok(digest)
    }

    async fn insert_notification(
        &self,
        one: &Notification,
        digest: Digest,
        body: Option<&str>,
    ) -> Result<(), Failure> {
        let row = NotificationRow::write(one);
        self.0
            .prepare_cached(
                "insert into notifications (app_id, provider, given_id, environment, chain,
                                            happened_at, received_at, event_id, digest, facts, body)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing",
            )?
            .execute(params![
                row.app_id,
                row.provider,
                row.given_id,
                row.environment,
                row.chain,
                row.happened_at,
                row.received_at,
                row.event_id,
                digest.as_bytes(),
                row.facts,
                body
            ])?;
        Ok(())
    }

    async fn update_notification(&self, one: &Notification) -> Result<(), Failure> {
        let row = NotificationRow::write(one);
        self.0
            .prepare_cached(
                "update notifications set facts = ?4
                 where app_id = ?1 and provider = ?2 and given_id = ?3",
            )?
            .execute(params![row.app_id, row.provider, row.given_id, row.facts])?;
        Ok(())
    }

    async fn remove_notification(&self, one: &Notification) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "delete from notifications where app_id = ?1 and provider = ?2 and given_id = ?3",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.provider.as_str(),
                one.content.external_id
            ])?;
        Ok(())
    }

    async fn notifications(&self, chains: &BTreeSet<Chain>) -> Result<Vec<Notification>, Failure> {
        let limit = i64::try_from(CHAIN_NOTIFICATIONS_MAX).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        for chain in chains {
            found.extend(latest(self.0, chain, limit)?);
        }
        Ok(found)
    }

    async fn chains_with_pseudonyms(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<BTreeSet<Chain>, Failure> {
        let mut find = self.0.prepare_cached(
            "select 1 from notifications
             where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4
               and instr(facts, '\"erased-') > 0",
        )?;
        let mut found = BTreeSet::new();
        for chain in chains {
            if find.exists(params![
                chain.app.as_bytes(),
                chain.environment.as_str(),
                chain.provider.as_str(),
                chain.name
            ])? {
                found.insert(chain.clone());
            }
        }
        Ok(found)
    }

    async fn find_connected(
        &self,
        of: (AppId, Environment),
        need: &SearchQuery,
    ) -> Result<SearchResult, Failure> {
        let keys: Vec<String> = need.keys.iter().cloned().collect();
        let mut found = SearchResult {
            notifications: self.notifications(&need.chains).await?,
            keyed: self
                .chains_by_key(of, &keys, KEY_SUBSCRIPTIONS_MAX + 1)
                .await?,
            ..SearchResult::default()
        };
        for person in &need.people {
            let by = LinkSearch::Id(person.as_str());
            found
                .people
                .extend(people::find_person_links(self.0, of, &by)?);
        }
        for id in &need.advertising {
            let by = LinkSearch::Id(id.as_str());
            found
                .advertising
                .extend(people::find_advertising_links(self.0, of, &by)?);
        }
        for device in &need.devices {
            let by = LinkSearch::Device(device);
            found
                .people
                .extend(people::find_person_links(self.0, of, &by)?);
            found
                .advertising
                .extend(people::find_advertising_links(self.0, of, &by)?);
        }
        Ok(found)
    }

    async fn all_notifications(&self, chain: &Chain) -> Result<Vec<Notification>, Failure> {
        latest(self.0, chain, i64::MAX)
    }

    async fn chains_by_external_id(
        &self,
        of: (AppId, Environment),
        given_ids: &BTreeSet<&str>,
    ) -> Result<BTreeSet<Chain>, Failure> {
        let mut chains = BTreeSet::new();
        for given_id in given_ids {
            for provider in BillingProvider::ALL {
                let condition = "provider = ?3 and given_id = ?4";
                chains.extend(chains_with(self.0, of, condition, *provider, given_id)?);
            }
        }
        Ok(chains)
    }

    async fn single_notification_chains(
        &self,
        of: (AppId, Environment),
        texts: &[String],
    ) -> Result<BTreeSet<Chain>, Failure> {
        let mut chains = BTreeSet::new();
        for text in texts {
            for provider in BillingProvider::ALL {
                let condition = "provider = ?3 and chain >= 'alone:' and chain < 'alone;'
                                 and instr(facts || coalesce(body, ''), ?4) > 0";
                chains.extend(chains_with(self.0, of, condition, *provider, text)?);
            }
        }
        Ok(chains)
    }

    async fn erase_notifications(
        &self,
        chain: &Chain,
        remaining: &[Notification],
    ) -> Result<(), Failure> {
        let mut update = self.0.prepare_cached(
            "update notifications set facts = ?4, body = null
             where app_id = ?1 and provider = ?2 and given_id = ?3",
        )?;
        let (app, provider) = (chain.app.as_bytes(), chain.provider.as_str());
        for one in remaining {
            let row = NotificationRow::write(one);
            update.execute(params![app, provider, row.given_id, row.facts])?;
        }
        Ok(())
    }
}

/// Finds a subscription's latest notifications.
fn latest(
    connection: &Connection,
    chain: &Chain,
    limit: i64,
) -> Result<Vec<Notification>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4
         order by happened_at desc limit ?5"
    );
    let (app, environment) = (chain.app.as_bytes(), chain.environment.as_str());
    let of = params![app, environment, chain.provider.as_str(), chain.name, limit];
    let rows: Vec<NotificationRow> = connection
        .prepare_cached(&sql)?
        .query_map(of, read_row::<NotificationRow>)?
        .collect::<Result<_, _>>()?;
    let read = rows.into_iter().map(NotificationRow::read);
    Ok(read.collect::<Result<_, _>>()?)
}

/// Finds a provider's subscriptions that have a notification matching a condition.
fn chains_with(
    connection: &Connection,
    of: (AppId, Environment),
    condition: &str,
    provider: BillingProvider,
    value: &str,
) -> Result<BTreeSet<Chain>, Failure> {
    let sql = format!(
        "select distinct {} from notifications
         where app_id = ?1 and environment = ?2 and {condition}",
        ChainRow::COLUMNS
    );
    let values = params![of.0.as_bytes(), of.1.as_str(), provider.as_str(), value];
    let mut find = connection.prepare_cached(&sql)?;
    let rows = find.query_map(values, read_row::<ChainRow>)?;
    rows.map(|row| Ok(row?.read(of)?)).collect()
}
