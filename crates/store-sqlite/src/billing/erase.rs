//! Erasing whose subscriptions were whose. They go on under the device's pseudonym; what comes of them later is kept
//! without who it is about.

use super::{keys, notifications};
use crate::Failure;
use crate::tables::{Tables, run};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{Chain, advertising_key, device_key, person_key};
use tributary_domain::device::UserKey;
use tributary_domain::erasure::Erasure;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::KeyTable;
use tributary_store::records::{NotificationRow, within_json};

/// Erases who subscriptions belong to. `billed` are the providers' ids of the events that are erased.
pub(crate) fn erase(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    erasure: &Erasure,
    billed: &BTreeSet<&str>,
) -> Result<(), Failure> {
    let of = Of {
        connection,
        app,
        environment,
        erasure,
    };
    for chain in of.chains(billed)? {
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        for one in notifications::whole_chain(connection, &chain)? {
            before.extend(one.keys());
            let remains = erasure.notification(one);
            after.extend(remains.keys());
            run(Tables(connection).insert_keys(&chain, &remains.lookup_keys()))?;
            let row = NotificationRow::write(&remains);
            connection
                .prepare_cached(
                    "update notifications set facts = ?4, body = null
                     where app_id = ?1 and provider = ?2 and given_id = ?3",
                )?
                .execute(params![row.app_id, row.provider, row.given_id, row.facts])?;
        }
        for key in before.difference(&after) {
            keys::remove(connection, &chain, key)?;
        }
    }
    of.forget_people()
}

/// Who is erased, and where.
struct Of<'a> {
    connection: &'a Connection,
    app: AppId,
    environment: Environment,
    erasure: &'a Erasure,
}

impl Of<'_> {
    /// The keys that go beside the device's.
    fn keys(&self) -> Vec<String> {
        let people = self.erasure.people.iter().map(person_key);
        let advertising = self.erasure.advertising.iter().map(advertising_key);
        people.chain(advertising).collect()
    }

    /// The subscriptions that may say whose they are.
    fn chains(&self, billed: &BTreeSet<&str>) -> Result<BTreeSet<Chain>, Failure> {
        let (app, environment) = (self.app.as_bytes(), self.environment.as_str());
        let mut chains = BTreeSet::new();
        for given_id in billed {
            for provider in BillingProvider::ALL {
                chains.extend(notifications::chain_of(
                    self.connection,
                    self.app,
                    *provider,
                    given_id,
                )?);
            }
        }
        let mut keyed = self.connection.prepare_cached(
            "select provider, chain from billing_keys
             where app_id = ?1 and environment = ?2 and lookup_key = ?3",
        )?;
        let mut keys = self.keys();
        keys.push(device_key(&self.erasure.device));
        for key in keys {
            let key = params![app, environment, key];
            for found in keyed.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))? {
                let (provider, name): (String, String) = found?;
                chains.insert(self.chain(notifications::provider_of(self.app, &provider)?, name));
            }
        }
        self.lone_ones(&mut chains)?;
        chains.retain(|chain| chain.environment == self.environment);
        Ok(chains)
    }

    /// Those that belong to no subscription, transfers above all: no key leads to them, and there are few. Some say who
    /// they are about in what was received alone.
    fn lone_ones(&self, chains: &mut BTreeSet<Chain>) -> Result<(), Failure> {
        let mut lone = self.connection.prepare_cached(
            "select chain from notifications
             where app_id = ?1 and environment = ?2 and provider = ?3
               and chain >= 'alone:' and chain < 'alone;' and instr(facts || coalesce(body, ''), ?4) > 0",
        )?;
        let people = self.erasure.people.iter().map(UserKey::as_str);
        let (app, environment) = (self.app.as_bytes(), self.environment.as_str());
        for text in people.chain([self.erasure.device.as_str()]) {
            for provider in BillingProvider::ALL {
                let key = params![app, environment, provider.as_str(), within_json(text)];
                for name in lone.query_map(key, |row| row.get(0))? {
                    chains.insert(self.chain(*provider, name?));
                }
            }
        }
        Ok(())
    }

    fn chain(&self, provider: BillingProvider, name: String) -> Chain {
        Chain {
            app: self.app,
            environment: self.environment,
            provider,
            name,
        }
    }

    fn forget_people(&self) -> Result<(), Failure> {
        let (app, environment) = (self.app.as_bytes(), self.environment.as_str());
        self.connection
            .prepare_cached(
                "delete from user_links
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![app, environment, self.erasure.device.as_str()])?;
        Ok(())
    }
}
