//! Finding the subscriptions that concern each other.
//!
//! Two subscriptions may concern each other when they share a person, a device or an advertising id, when a transfer
//! leads from one person to the other, or when a device links their people. A search asks a store for what it has to
//! know, in rounds, until nothing new is found.

use super::join::{AdvertisingLink, PersonLink};
use super::settlement::ConnectedSubscriptions;
use super::{Chain, Notification, advertising_key, device_key, person_key};
use crate::device::{AdvertisingId, DeviceKey, UserKey};
use std::collections::BTreeSet;

/// Notifications that are settled together. Where there are more, the search ends, and only the subscriptions that it
/// began with are written.
pub const CONNECTED_NOTIFICATIONS_MAX: usize = 4_000;
/// Subscriptions that one key connects. An id that more share is not one person's; the rest is treated as above.
pub const KEY_SUBSCRIPTIONS_MAX: usize = 50;

/// What a search has to know. Everything is of one app and environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchQuery {
    /// Subscriptions whose notifications are wanted.
    pub chains: BTreeSet<Chain>,
    /// Keys whose subscriptions are wanted, at most [`KEY_SUBSCRIPTIONS_MAX`] and one more for each.
    pub keys: BTreeSet<String>,
    /// People whose devices are wanted.
    pub people: BTreeSet<UserKey>,
    /// Devices whose people and advertising ids are wanted.
    pub devices: BTreeSet<DeviceKey>,
    /// Advertising ids whose devices are wanted.
    pub advertising: BTreeSet<AdvertisingId>,
}

/// What a store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchResult {
    /// Notifications of the wanted subscriptions.
    pub notifications: Vec<Notification>,
    /// The subscriptions of keys.
    pub keyed: Vec<(String, Chain)>,
    /// Links of the wanted people and devices.
    pub people: Vec<PersonLink>,
    /// Links of the wanted advertising ids and devices.
    pub advertising: Vec<AdvertisingLink>,
}

/// A search for connected subscriptions.
#[derive(Debug, Clone, Default)]
pub struct Search {
    queried: SearchQuery,
    pending: SearchQuery,
    connected: ConnectedSubscriptions,
    /// The subscriptions that the search is about.
    roots: BTreeSet<Chain>,
    is_cut_short: bool,
}

impl Search {
    /// Begins with subscriptions.
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

    /// Returns what has to be known next; nothing when the search is over.
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
        let need = SearchQuery {
            chains: new(&mut pending.chains, &mut asked.chains),
            keys: new(&mut pending.keys, &mut asked.keys),
            people: new(&mut pending.people, &mut asked.people),
            devices: new(&mut pending.devices, &mut asked.devices),
            advertising: new(&mut pending.advertising, &mut asked.advertising),
        };
        (need != SearchQuery::default()).then_some(need)
    }

    /// Takes what was found.
    pub fn add(&mut self, found: SearchResult) {
        let pending = &mut self.pending;
        for one in &found.notifications {
            let who = &one.content.subscriber;
            pending.keys.extend(one.keys());
            pending.people.extend(one.people().cloned());
            pending.advertising.extend(who.advertising.iter().cloned());
            pending.devices.extend(who.device.clone());
            pending
                .devices
                .extend(one.join.as_ref().map(|join| join.device.clone()));
        }
        for link in &found.people {
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

    /// Returns what was found, and which subscriptions may be written: all, or where there were too many only those
    /// that the search began with.
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
