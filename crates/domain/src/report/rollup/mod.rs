//! Roll-ups: figures that grow with every click and event. What is counted is stored in the transaction that records it.
//!
//! A report then costs the same on a thousand events and on a hundred million. There are a few tables, each for
//! the questions it answers: who is it credited to, what happened, where. An event counts once in each, in the
//! quarter of an hour of its own time, and in the hour and the day around it ([`super::grain`]). What comes from
//! outside is bounded on the way ([`super::cap`]), and what devices do in the days after their install is counted
//! apart ([`super::cohort`]).

use super::cardinality_cap::{CapDecisions, CappedValue};
use super::cohort::{CohortEntry, CohortRows};
use super::grain::{Bucket, Grain};
use super::{Figures, OTHER};
use crate::access::Environment;
use crate::click::Click;
use crate::event::{Credit, Event, EventSource};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Whose figures, and of which stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct BucketKey {
    pub app: AppId,
    pub environment: Environment,
    pub grain: Grain,
    pub bucket: Bucket,
}

impl BucketKey {
    /// The quarter of an hour that a moment falls into.
    pub const fn of(app: AppId, environment: Environment, moment: Timestamp) -> Self {
        Self {
            app,
            environment,
            grain: Grain::Quarter,
            bucket: Bucket::of(moment),
        }
    }

    /// The longer one that it is a part of.
    #[must_use]
    pub const fn within(self, grain: Grain) -> Self {
        Self {
            grain,
            bucket: self.bucket.within(grain),
            ..self
        }
    }
}

/// Who it is credited to, in one word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct NetworkKey {
    pub at: BucketKey,
    pub network: &'static str,
}

/// Who it is credited to, without its ad. Texts are empty where there is none: a key has no nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CampaignKey {
    pub at: BucketKey,
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
}

/// Who it is credited to. Texts are empty where there is none: a key has no nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CreditKey {
    pub at: BucketKey,
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
    pub adset: String,
    pub ad: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct NameKey {
    pub at: BucketKey,
    pub source: EventSource,
    pub name: String,
}

/// Where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct PlaceKey {
    pub at: BucketKey,
    pub country: String,
    pub platform: &'static str,
}

/// What a transaction counted, by the quarter of an hour and under the names that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Increments {
    /// By who it is credited to.
    pub credits: BTreeMap<CreditKey, Figures>,
    /// By what happened.
    pub names: BTreeMap<NameKey, Figures>,
    /// By where.
    pub places: BTreeMap<PlaceKey, Figures>,
    /// What devices did, for the cohorts that they belong to, in the order that it was counted in.
    pub cohorts: Vec<CohortEntry>,
}

impl Increments {
    /// True when there is nothing to be written.
    pub fn is_empty(&self) -> bool {
        self.credits.is_empty() && self.cohorts.is_empty()
    }

    /// Counts a click, unless it was no person's, in the environment that it counts in.
    pub fn add_click(&mut self, click: &Click) {
        if click.bot.is_some() {
            return;
        }
        let at = BucketKey::of(click.app, click.report_environment(), click.clicked_at);
        let figures = Figures {
            clicks: 1,
            ..Figures::default()
        };
        let id = |text: &Option<String>| text.clone().unwrap_or_default();
        let campaign = click.campaign();
        let key = CreditKey {
            at,
            // As an install would be credited: a link of no network is somebody else's.
            network: click
                .network
                .map_or("other", crate::integration::Network::as_str),
            link: Some(click.link),
            campaign: id(&campaign.id),
            adset: id(&campaign.adset_id),
            ad: id(&campaign.ad_id),
        };
        self.credits.entry(key).or_default().add(&figures, 1);
        let key = PlaceKey {
            at,
            country: id(&click.country),
            platform: click.platform().as_str(),
        };
        self.places.entry(key).or_default().add(&figures, 1);
    }

    /// Counts an event.
    pub fn add_event(&mut self, event: &Event) {
        self.count(event, 1);
        self.cohorts.extend(CohortEntry::of(event));
    }

    /// Moves an event that was counted to where it is credited now.
    pub fn move_event(&mut self, event: &mut Event, credit: &Credit) {
        self.count(event, -1);
        let from = event.credit.replace(credit.clone());
        self.count(event, 1);
        let entry = CohortEntry::of(event);
        self.cohorts
            .extend(entry.map(|entry| entry.moved_from(from)));
    }

    /// Counts an event that is no longer what it was counted as.
    pub fn replace_event(&mut self, before: &Event, now: &Event) {
        self.count(before, -1);
        self.count(now, 1);
        self.cohorts
            .extend(CohortEntry::for_replacement(before, now));
    }

    /// Counts an event no more.
    pub fn remove_event(&mut self, event: &Event) {
        self.count(event, -1);
        self.cohorts.extend(CohortEntry::for_removal(event));
    }

    /// Takes another transaction's increments along.
    pub fn merge(&mut self, other: Self) {
        for (key, figures) in other.credits {
            self.credits.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.names {
            self.names.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.places {
            self.places.entry(key).or_default().add(&figures, 1);
        }
        self.cohorts.extend(other.cohorts);
    }

    /// How much it is: rows of every table, and what devices did.
    pub fn len(&self) -> usize {
        self.credits.len() + self.names.len() + self.places.len() + self.cohorts.len()
    }

    /// Each app's own part.
    pub fn by_app(self) -> BTreeMap<AppId, Self> {
        let mut parts: BTreeMap<AppId, Self> = BTreeMap::new();
        for (key, figures) in self.credits {
            let part = parts.entry(key.at.app).or_default();
            part.credits.insert(key, figures);
        }
        for (key, figures) in self.names {
            let part = parts.entry(key.at.app).or_default();
            part.names.insert(key, figures);
        }
        for (key, figures) in self.places {
            let part = parts.entry(key.at.app).or_default();
            part.places.insert(key, figures);
        }
        for entry in self.cohorts {
            let part = parts.entry(entry.member.app).or_default();
            part.cohorts.push(entry);
        }
        parts
    }

    /// The values from outside that it counts under, whose number is bounded.
    pub fn capped_values(&self) -> BTreeSet<CappedValue> {
        let mut values = BTreeSet::new();
        for key in self.credits.keys() {
            values.extend(CappedValue::campaign(&key.at, &key.campaign));
            values.extend(CappedValue::ad(&key.at, &key.campaign, &key.adset, &key.ad));
        }
        for key in self.names.keys() {
            values.extend(CappedValue::name(&key.at, &key.name));
        }
        values
    }

    fn count(&mut self, event: &Event, sign: i64) {
        let figures = Figures::of_event(event);
        let at = BucketKey::of(event.app, event.environment, event.occurred_at);
        let credit = event.credit.as_ref();
        let id = |pick: fn(&crate::link::Campaign) -> &Option<String>| {
            let found = credit.and_then(|credit| pick(&credit.campaign).clone());
            found.unwrap_or_default()
        };
        let key = CreditKey {
            at,
            network: credit.map_or("", |credit| credit.network.as_str()),
            link: credit.and_then(|credit| credit.link),
            campaign: id(|campaign| &campaign.id),
            adset: id(|campaign| &campaign.adset_id),
            ad: id(|campaign| &campaign.ad_id),
        };
        self.credits.entry(key).or_default().add(&figures, sign);
        let key = NameKey {
            at,
            source: event.source,
            name: event.name.clone(),
        };
        self.names.entry(key).or_default().add(&figures, sign);
        let key = PlaceKey {
            at,
            country: event.country.clone().unwrap_or_default(),
            platform: event.platform.map_or("", crate::device::Platform::as_str),
        };
        self.places.entry(key).or_default().add(&figures, sign);
    }
}

/// The rows that a transaction adds to, of every grain, each table sorted by key: everybody writes them in the
/// same order, so that two transactions never wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollupRows {
    /// By network.
    pub networks: BTreeMap<NetworkKey, Figures>,
    /// By who it is credited to, without its ad.
    pub campaigns: BTreeMap<CampaignKey, Figures>,
    /// By who it is credited to.
    pub credits: BTreeMap<CreditKey, Figures>,
    /// By what happened.
    pub names: BTreeMap<NameKey, Figures>,
    /// By where.
    pub places: BTreeMap<PlaceKey, Figures>,
    /// By when the device was installed, and how long ago that was.
    pub cohorts: CohortRows,
}

impl RollupRows {
    /// What was counted, as it is stored.
    pub fn of(increments: &Increments, fates: &CapDecisions, cohorts: &CohortRows) -> Self {
        let mut rows = Self::default();
        for (key, figures) in &increments.credits {
            let capped = key.capped(fates);
            for grain in Grain::ALL {
                let credit = CreditKey {
                    at: key.at.within(grain),
                    ..capped.clone()
                };
                let network = rows.networks.entry(NetworkKey::of(&credit)).or_default();
                network.add(figures, 1);
                let campaign = rows.campaigns.entry(CampaignKey::of(&credit)).or_default();
                campaign.add(figures, 1);
                rows.credits.entry(credit).or_default().add(figures, 1);
            }
        }
        for (key, figures) in &increments.names {
            let other =
                CappedValue::name(&key.at, &key.name).is_some_and(|name| fates.is_other(&name));
            for grain in Grain::ALL {
                let key = NameKey {
                    at: key.at.within(grain),
                    source: key.source,
                    name: if other { OTHER } else { &key.name }.to_owned(),
                };
                rows.names.entry(key).or_default().add(figures, 1);
            }
        }
        for (key, figures) in &increments.places {
            for grain in Grain::ALL {
                let key = PlaceKey {
                    at: key.at.within(grain),
                    ..key.clone()
                };
                rows.places.entry(key).or_default().add(figures, 1);
            }
        }
        rows.cohorts = cohorts.to_stored_rows(fates);
        rows.drop_zeros();
        rows
    }

    /// What has to be added to rows that are stored so that they become the ones that were counted from the
    /// events. Clicks stay as they are by ad and by place, since what they were counted from is forgotten after a
    /// while; networks and campaigns have those of their ads.
    #[must_use]
    pub fn correction_from(mut self, stored: &Self) -> Self {
        for (key, figures) in &stored.credits {
            let clicks = Figures {
                clicks: figures.clicks,
                ..Figures::default()
            };
            let network = self.networks.entry(NetworkKey::of(key)).or_default();
            network.add(&clicks, 1);
            let campaign = self.campaigns.entry(CampaignKey::of(key)).or_default();
            campaign.add(&clicks, 1);
        }
        correct(&mut self.networks, &stored.networks, |figures| *figures);
        correct(&mut self.campaigns, &stored.campaigns, |figures| *figures);
        let events_alone = |figures: &Figures| Figures {
            clicks: 0,
            ..*figures
        };
        correct(&mut self.credits, &stored.credits, events_alone);
        correct(&mut self.names, &stored.names, events_alone);
        correct(&mut self.places, &stored.places, events_alone);
        self.cohorts.subtract_stored(&stored.cohorts);
        self.drop_zeros();
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let cohorts = self.cohorts.credits.len() + self.cohorts.places.len();
        let credits = self.networks.len() + self.campaigns.len() + self.credits.len();
        credits + self.names.len() + self.places.len() + cohorts
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What would change nothing is not written.
    fn drop_zeros(&mut self) {
        self.networks.retain(|_, figures| !figures.is_zero());
        self.campaigns.retain(|_, figures| !figures.is_zero());
        self.credits.retain(|_, figures| !figures.is_zero());
        self.names.retain(|_, figures| !figures.is_zero());
        self.places.retain(|_, figures| !figures.is_zero());
    }
}

fn correct<K: Ord + Clone>(
    counted: &mut BTreeMap<K, Figures>,
    stored: &BTreeMap<K, Figures>,
    of: impl Fn(&Figures) -> Figures,
) {
    for (key, figures) in stored {
        let stored = of(figures);
        counted.entry(key.clone()).or_default().add(&stored, -1);
    }
}

impl NetworkKey {
    /// The network of a credit.
    fn of(credit: &CreditKey) -> Self {
        Self {
            at: credit.at,
            network: credit.network,
        }
    }
}

impl CampaignKey {
    /// A credit without its ad.
    fn of(credit: &CreditKey) -> Self {
        Self {
            at: credit.at,
            network: credit.network,
            link: credit.link,
            campaign: credit.campaign.clone(),
        }
    }
}

impl CreditKey {
    /// Under which names it is stored. An ad beyond the limit keeps its campaign; a campaign beyond it keeps
    /// its network and link.
    fn capped(&self, fates: &CapDecisions) -> Self {
        let other = |value: Option<CappedValue>| value.is_some_and(|value| fates.is_other(&value));
        let mut key = self.clone();
        if other(CappedValue::campaign(&self.at, &self.campaign)) {
            for id in [&mut key.campaign, &mut key.adset, &mut key.ad] {
                OTHER.clone_into(id);
            }
        } else if other(CappedValue::ad(
            &self.at,
            &self.campaign,
            &self.adset,
            &self.ad,
        )) {
            for id in [&mut key.adset, &mut key.ad] {
                OTHER.clone_into(id);
            }
        }
        key
    }
}

#[cfg(test)]
mod tests;
