//! Search for subscriptions that affect each other.
//!
//! Two subscriptions may affect each other if they share a user, a device or an advertising id, if
//! purchases were transferred from one user to the other, or if a device links their users. A
//! search queries the store in rounds until it finds nothing new.

use super::join::{AdvertisingLink, PersonLink};
use super::settlement::ConnectedSubscriptions;
use super::{Chain, Notification, advertising_key, device_key, person_key};
use crate::device::{AdvertisingId, DeviceKey, UserKey};
use std::collections::BTreeSet;

/// Maximum number of notifications that are settled together. If a search finds more, it stops, and
/// changes are written only for the subscriptions that it started with.
pub const CONNECTED_NOTIFICATIONS_MAX: usize = 4_000;
/// Maximum number of subscriptions that one lookup key may connect. An id that more subscriptions
/// share does not identify a single user. A search that finds such an id is cut short in the same
/// way as for [`CONNECTED_NOTIFICATIONS_MAX`].
pub const KEY_SUBSCRIPTIONS_MAX: usize = 50;

/// Query for one round, within one app and environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchQuery {
    /// Subscriptions to load, with their notifications.
    pub chains: BTreeSet<Chain>,
    /// Keys to look up subscriptions by. The store returns at most one more than
    /// [`KEY_SUBSCRIPTIONS_MAX`] subscriptions per key.
    pub keys: BTreeSet<String>,
    /// Users to look up devices for.
    pub people: BTreeSet<UserKey>,
    /// Devices to look up users and advertising ids for.
    pub devices: BTreeSet<DeviceKey>,
    /// Advertising ids to look up devices for.
    pub advertising: BTreeSet<AdvertisingId>,
}

/// Result of one round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchResult {
    /// Notifications of the subscriptions.
    pub notifications: Vec<Notification>,
    /// Subscriptions found by key.
    pub keyed: Vec<(String, Chain)>,
    /// Links between users and devices.
    pub people: Vec<PersonLink>,
    /// Links between advertising ids and devices.
    pub advertising: Vec<AdvertisingLink>,
}

/// A search for connected subscriptions.
#[derive(Debug, Clone, Default)]
pub struct Search {
    queried: SearchQuery,
    pending: SearchQuery,
    connected: ConnectedSubscriptions,
    /// Subscriptions that the search started with.
    roots: BTreeSet<Chain>,
    is_cut_short: bool,
}

impl Search {
    /// Starts a search from these subscriptions.
    pub fn of(chains: BTreeSet<Chain>) -> Self {
        Self {
            roots: chains.clone(),
            pending: SearchQuery {
                chains,
                ..SearchQuery::default()
            },
            ..Self::default()
        }
    }

    /// Returns the next query; `None` when the search is complete.
    pub fn next_query(&mut self) -> Option<SearchQuery> {
        fn new<T: Ord + Clone>(pending: &mut BTreeSet<T>, asked: &mut BTreeSet<T>) -> BTreeSet<T> {
            let new: BTreeSet<T> = std::mem::take(pending).difference(asked).cloned().collect();
            asked.extend(new.iter().cloned());
            new
        }
        if self.connected.notifications.len() > CONNECTED_NOTIFICATIONS_MAX {
            self.is_cut_short |= !self.pending.chains.is_subset(&self.queried.chains);
            self.pending.chains.clear();
        }
        let (pending, asked) = (&mut self.pending, &mut self.queried);
        let query = SearchQuery {
            chains: new(&mut pending.chains, &mut asked.chains),
            keys: new(&mut pending.keys, &mut asked.keys),
            people: new(&mut pending.people, &mut asked.people),
            devices: new(&mut pending.devices, &mut asked.devices),
            advertising: new(&mut pending.advertising, &mut asked.advertising),
        };
        (query != SearchQuery::default()).then_some(query)
    }

    /// Adds the result of a query.
    pub fn add(&mut self, found: SearchResult) {
        let pending = &mut self.pending;
        for one in &found.notifications {
            let subscriber = &one.content.subscriber;
            pending.keys.extend(one.keys());
            pending.people.extend(one.people().cloned());
            pending
                .advertising
                .extend(subscriber.advertising.iter().cloned());
            pending.devices.extend(subscriber.device.clone());
            pending
                .devices
                .extend(one.join.as_ref().map(|join| join.device.clone()));
        }
        // A claim that is not used must not connect strangers' subscriptions.
        for link in found.people.iter().filter(|link| link.is_used) {
            pending.devices.insert(link.device.clone());
            pending.keys.insert(device_key(&link.device));
            pending.keys.insert(person_key(&link.id));
        }
        for link in &found.advertising {
            pending.devices.insert(link.device.clone());
            pending.keys.insert(device_key(&link.device));
            pending.keys.insert(advertising_key(&link.id));
        }
        let mut last: Option<(&str, usize)> = None;
        for (key, chain) in &found.keyed {
            let count = match last {
                Some((before, count)) if before == key => count + 1,
                _ => 1,
            };
            last = Some((key, count));
            if count > KEY_SUBSCRIPTIONS_MAX {
                self.is_cut_short |= !self.queried.chains.contains(chain);
            } else {
                pending.chains.insert(chain.clone());
            }
        }
        self.connected.notifications.extend(found.notifications);
        add_links(&mut self.connected.people, found.people);
        add_links(&mut self.connected.advertising, found.advertising);
    }

    /// Returns the connected subscriptions, and the subscriptions whose changes may be written:
    /// `None` for all, or only those that the search started with if it was cut short.
    pub fn finish(self) -> (ConnectedSubscriptions, Option<BTreeSet<Chain>>) {
        (self.connected, self.is_cut_short.then_some(self.roots))
    }
}

fn add_links<T: PartialEq>(all: &mut Vec<T>, found: Vec<T>) {
    for link in found {
        if !all.contains(&link) {
            all.push(link);
        }
    }
}
