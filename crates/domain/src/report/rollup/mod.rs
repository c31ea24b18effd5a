//! Roll-ups: sums of figures per bucket. The transaction that records a click or an event also
//! stores its figures.
//!
//! A report then costs the same for a thousand events and for a hundred million. There are a few
//! tables with different dimensions: credit, event name, country and platform, and the pivots of
//! network and campaign with country and platform. An event counts once
//! in each table, in the quarter hour of its event time and in the hour and day that contain it
//! ([`super::grain`]). The cardinality of values that senders choose is limited
//! ([`super::cardinality_cap`]). Activity after the install is counted separately
//! ([`super::cohort`]).

mod fold;
mod keys;

use super::Figures;
use super::cardinality_cap::{CapDecisions, CappedValue, KnownValue};
use super::cohort::{CohortEntry, CohortRows};
use super::grain::Grain;
use crate::click::Click;
use crate::event::{Credit, Event};
use crate::vocabulary::id::AppId;
use std::collections::{BTreeMap, BTreeSet};

pub(in crate::report) use fold::FoldableKey;
pub use keys::{BucketKey, CampaignKey, CreditKey, NameKey, NetworkKey, PivotKey, PlaceKey};

/// Figures that a transaction counted, per quarter hour and before the cardinality limits apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Increments {
    /// Figures by full credit.
    pub credits: BTreeMap<CreditKey, Figures>,
    /// Figures by event name and source.
    pub names: BTreeMap<NameKey, Figures>,
    /// Figures by country and platform.
    pub places: BTreeMap<PlaceKey, Figures>,
    /// Figures by network, campaign, country and platform.
    pub pivots: BTreeMap<PivotKey, Figures>,
    /// Device activity for the cohorts, in counting order.
    pub cohorts: Vec<CohortEntry>,
    /// Values that the app's settings mention for the first time. They may get their own rows on
    /// days on which they count under `(other)`.
    pub known: BTreeSet<KnownValue>,
}

impl Increments {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a click in its environment, unless it came from a bot.
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
        let credit = CreditKey {
            at,
            // An install through a link without a network is credited to `other`, too.
            network: click
                .network
                .map_or("other", crate::integration::Network::as_str),
            link: Some(click.link),
            campaign: id(&campaign.id),
            adset: id(&campaign.adset_id),
            ad: id(&campaign.ad_id),
        };
        let place = PlaceKey {
            at,
            country: id(&click.country),
            platform: click.platform().as_str(),
        };
        self.add_to_credit_and_place(credit, place, &figures, 1);
    }

    fn add_to_credit_and_place(
        &mut self,
        credit: CreditKey,
        place: PlaceKey,
        figures: &Figures,
        sign: i64,
    ) {
        let pivot = PivotKey::of(&credit, &place);
        self.credits.entry(credit).or_default().add(figures, sign);
        self.places.entry(place).or_default().add(figures, sign);
        self.pivots.entry(pivot).or_default().add(figures, sign);
    }

    /// Counts an event.
    pub fn add_event(&mut self, event: &Event) {
        self.count(event, 1);
        self.cohorts.extend(CohortEntry::of(event));
    }

    /// Counts an event of a device whose install is not stored, so that no cohort contains it.
    pub fn add_event_outside_cohorts(&mut self, event: &Event) {
        self.count(event, 1);
    }

    /// Adds an event that was counted outside the cohorts, because the install of its device is
    /// stored now.
    pub fn add_to_cohort(&mut self, event: &Event) {
        self.cohorts.extend(CohortEntry::of(event));
    }

    /// Moves a counted event to its new credit.
    pub fn move_event(&mut self, event: &mut Event, credit: &Credit) {
        self.count(event, -1);
        let before = CohortEntry::of(event);
        event.credit = Some(credit.clone());
        self.count(event, 1);
        self.cohorts
            .extend(CohortEntry::for_move(before, CohortEntry::of(event)));
    }

    /// Replaces a counted event with its new version.
    pub fn replace_event(&mut self, before: &Event, now: &Event) {
        self.count(before, -1);
        self.count(now, 1);
        self.cohorts
            .extend(CohortEntry::for_replacement(before, now));
    }

    /// Removes a counted event.
    pub fn remove_event(&mut self, event: &Event) {
        self.count(event, -1);
        self.cohorts.extend(CohortEntry::for_removal(event));
    }

    /// Adds the increments from another transaction.
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
        for (key, figures) in other.pivots {
            self.pivots.entry(key).or_default().add(&figures, 1);
        }
        self.cohorts.extend(other.cohorts);
        self.known.extend(other.known);
    }

    /// Adds the clicks from stored figures, which cannot be counted again because retention deletes
    /// clicks.
    pub fn keep_clicks(&mut self, stored: &Self) {
        for (key, figures) in &stored.credits {
            if figures.clicks != 0 {
                self.credits.entry(key.clone()).or_default().clicks += figures.clicks;
            }
        }
        for (key, figures) in &stored.pivots {
            if figures.clicks != 0 {
                self.pivots.entry(key.clone()).or_default().clicks += figures.clicks;
            }
        }
    }

    /// Returns the number of rows in all tables plus the cohort entries and known values.
    pub fn len(&self) -> usize {
        let places = self.places.len() + self.pivots.len();
        let rows = self.credits.len() + self.names.len() + places;
        rows + self.cohorts.len() + self.known.len()
    }

    /// Splits the increments by app.
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
        for (key, figures) in self.pivots {
            let part = parts.entry(key.at.app).or_default();
            part.pivots.insert(key, figures);
        }
        for entry in self.cohorts {
            let part = parts.entry(entry.member.app).or_default();
            part.cohorts.push(entry);
        }
        for value in self.known {
            parts.entry(value.app).or_default().known.insert(value);
        }
        parts
    }

    /// Returns the values whose cardinality is limited. Values whose figures do not change, such as
    /// those of rejected installs and duplicates, are left out: they have no rows.
    pub fn capped_values(&self) -> BTreeSet<CappedValue> {
        let mut values = BTreeSet::new();
        for (key, figures) in &self.credits {
            if !figures.is_zero() {
                values.extend(CappedValue::campaign(&key.at, &key.campaign));
                values.extend(CappedValue::ad(&key.at, &key.campaign, &key.adset, &key.ad));
            }
        }
        for (key, figures) in &self.names {
            if !figures.is_zero() {
                values.extend(CappedValue::name(&key.at, &key.name));
            }
        }
        for (key, figures) in &self.pivots {
            if !figures.is_zero() {
                values.extend(CappedValue::campaign(&key.at, &key.campaign));
            }
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
        let by_credit = CreditKey {
            at,
            network: credit.map_or("", |credit| credit.network.as_str()),
            link: credit.and_then(|credit| credit.link),
            campaign: id(|campaign| &campaign.id),
            adset: id(|campaign| &campaign.adset_id),
            ad: id(|campaign| &campaign.ad_id),
        };
        let place = PlaceKey {
            at,
            country: event.country.clone().unwrap_or_default(),
            platform: event.platform.map_or("", crate::device::Platform::as_str),
        };
        self.add_to_credit_and_place(by_credit, place, &figures, sign);
        let key = NameKey {
            at,
            source: event.source,
            name: event.name.clone(),
        };
        self.names.entry(key).or_default().add(&figures, sign);
    }
}

/// Rows that a transaction adds to, in every grain. Each table is sorted by key: all transactions
/// lock rows in the same order, so they cannot deadlock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollupRows {
    /// Figures by network.
    pub networks: BTreeMap<NetworkKey, Figures>,
    /// Figures by network, link and campaign.
    pub campaigns: BTreeMap<CampaignKey, Figures>,
    /// Figures by full credit.
    pub credits: BTreeMap<CreditKey, Figures>,
    /// Figures by event name and source.
    pub names: BTreeMap<NameKey, Figures>,
    /// Figures by country and platform.
    pub places: BTreeMap<PlaceKey, Figures>,
    /// Figures by network, campaign, country and platform.
    pub pivots: BTreeMap<PivotKey, Figures>,
    /// Cohort figures by install time and age.
    pub cohorts: CohortRows,
}

impl RollupRows {
    /// Converts increments to stored rows: in every grain, with the cardinality limits applied, and
    /// with details of the figures that count under `(other)`.
    pub fn of(increments: &Increments, decisions: &CapDecisions, cohorts: &CohortRows) -> Self {
        let mut rows = Self::default();
        for (key, figures) in &increments.credits {
            for credit in key.stored_keys(figures, decisions) {
                if Grain::ALL.contains(&credit.at.grain) {
                    let network = rows.networks.entry(NetworkKey::of(&credit)).or_default();
                    network.add(figures, 1);
                    let campaign = rows.campaigns.entry(CampaignKey::of(&credit)).or_default();
                    campaign.add(figures, 1);
                }
                rows.credits.entry(credit).or_default().add(figures, 1);
            }
        }
        for (key, figures) in &increments.names {
            for name in key.stored_keys(figures, decisions) {
                rows.names.entry(name).or_default().add(figures, 1);
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
        for (key, figures) in &increments.pivots {
            for pivot in key.stored_keys(figures, decisions) {
                rows.pivots.entry(pivot).or_default().add(figures, 1);
            }
        }
        rows.cohorts = cohorts.to_stored_rows(decisions);
        rows.drop_zeros();
        rows
    }

    /// Returns the rows to add to `stored` so that it equals these rows. Click counts by country
    /// stay as stored, because retention deletes clicks. Other click counts are part of the counted
    /// increments ([`Increments::keep_clicks`]).
    #[must_use]
    pub fn correction_from(mut self, stored: &Self) -> Self {
        for (key, figures) in &stored.places {
            self.places.entry(key.clone()).or_default().clicks += figures.clicks;
        }
        self.add(stored, -1);
        self
    }

    /// Adds `other` times `sign`; a negative sign subtracts.
    pub fn add(&mut self, other: &Self, sign: i64) {
        add_rows(&mut self.networks, &other.networks, sign);
        add_rows(&mut self.campaigns, &other.campaigns, sign);
        add_rows(&mut self.credits, &other.credits, sign);
        add_rows(&mut self.names, &other.names, sign);
        add_rows(&mut self.places, &other.places, sign);
        add_rows(&mut self.pivots, &other.pivots, sign);
        self.cohorts.add_rows(&other.cohorts, sign);
        self.drop_zeros();
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        let cohorts = self.cohorts.credits.len() + self.cohorts.places.len();
        let credits = self.networks.len() + self.campaigns.len() + self.credits.len();
        let places = self.places.len() + self.pivots.len();
        credits + self.names.len() + places + cohorts
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops rows that would change nothing.
    fn drop_zeros(&mut self) {
        self.networks.retain(|_, figures| !figures.is_zero());
        self.campaigns.retain(|_, figures| !figures.is_zero());
        self.credits.retain(|_, figures| !figures.is_zero());
        self.names.retain(|_, figures| !figures.is_zero());
        self.places.retain(|_, figures| !figures.is_zero());
        self.pivots.retain(|_, figures| !figures.is_zero());
    }
}

fn add_rows<K: Ord + Clone>(
    rows: &mut BTreeMap<K, Figures>,
    other: &BTreeMap<K, Figures>,
    sign: i64,
) {
    for (key, figures) in other {
        rows.entry(key.clone()).or_default().add(figures, sign);
    }
}

#[cfg(test)]
mod tests;
