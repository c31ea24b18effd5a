//! A day's distinct values with their figures, and the decision which of them are kept.

use super::cardinality_cap::{
    ADS_PER_DAY_MAX, CAMPAIGNS_PER_DAY_MAX, CLICK_DETAILS_PER_DAY_MAX, CapDecisions, CappedValue,
    DETAILS_PER_DAY_MAX, KnownValue, NAMES_PER_DAY_MAX, Placement, ValueKind, ValueStanding,
    kept_values,
};
use super::{BucketKey, CreditKey, Figures, Grain, Increments, RollupRows};
use crate::access::Environment;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::AppId;
use std::collections::{BTreeMap, BTreeSet};

/// Campaign, ad set and ad.
type AdIds = (String, String, String);

/// A value's figures on a day.
#[derive(Debug, Clone, Copy, Default)]
struct DayValue {
    /// Figures in rows with the value.
    own: Figures,
    /// Figures in details.
    folded: Figures,
    /// Figures that are not merged yet.
    added: Figures,
}

impl DayValue {
    /// Returns whether the value has stored figures.
    fn has_rows(&self) -> bool {
        !self.own.is_zero() || !self.folded.is_zero()
    }

    /// Returns whether the stored figures count under `(other)`.
    fn is_folded(&self) -> bool {
        self.own.is_zero() && !self.folded.is_zero()
    }

    /// Returns all figures. The rows of a campaign include its folded ads, so details only count
    /// for a value without rows.
    fn total(&self) -> Figures {
        let mut total = if self.is_folded() {
            self.folded
        } else {
            self.own
        };
        total.add(&self.added, 1);
        total
    }
}

/// Values whose placement changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedValues {
    /// Campaigns that changed, or whose ads did.
    pub campaigns: BTreeSet<String>,
    /// Event names.
    pub names: BTreeSet<String>,
}

/// The distinct values of an app, environment and day.
#[derive(Debug, Clone)]
pub struct DayValues {
    at: BucketKey,
    campaigns: BTreeMap<String, DayValue>,
    ads: BTreeMap<AdIds, DayValue>,
    names: BTreeMap<String, DayValue>,
    /// Number of day-long detail rows.
    details: usize,
}

impl DayValues {
    /// Returns a day without values.
    pub fn new(app: AppId, environment: Environment, day: Day) -> Self {
        Self {
            at: BucketKey::of(app, environment, day.begins_at()),
            campaigns: BTreeMap::new(),
            ads: BTreeMap::new(),
            names: BTreeMap::new(),
            details: 0,
        }
    }

    /// Adds stored figures. Only rows that cover the whole day are used.
    pub fn add_stored(&mut self, rows: &RollupRows) {
        for (key, figures) in &rows.credits {
            match key.at.grain {
                Grain::Day => self.each_credit(key, |value| value.own.add(figures, 1)),
                Grain::FoldedDay => {
                    self.details += usize::from(!figures.is_zero());
                    self.each_credit(key, |value| value.folded.add(figures, 1));
                }
                Grain::Quarter | Grain::Hour | Grain::FoldedQuarter => {}
            }
        }
        for (key, figures) in &rows.names {
            let value = match key.at.grain {
                Grain::Day => self.name(&key.name).map(|value| &mut value.own),
                Grain::FoldedDay => {
                    self.details += usize::from(!figures.is_zero());
                    self.name(&key.name).map(|value| &mut value.folded)
                }
                Grain::Quarter | Grain::Hour | Grain::FoldedQuarter => None,
            };
            if let Some(value) = value {
                value.add(figures, 1);
            }
        }
    }

    /// Adds figures that are not merged yet. Those of other days, and those that change nothing, are
    /// left out.
    pub fn add_increments(&mut self, increments: &Increments) {
        let at = self.at;
        let is_included = |key: &BucketKey, figures: &Figures| {
            (key.app, key.environment) == (at.app, at.environment)
                && key.bucket.within(Grain::Day) == at.bucket
                && !figures.is_zero()
        };
        for (key, figures) in &increments.credits {
            if is_included(&key.at, figures) {
                self.each_credit(key, |value| value.added.add(figures, 1));
            }
        }
        for (key, figures) in &increments.names {
            if is_included(&key.at, figures)
                && let Some(value) = self.name(&key.name)
            {
                value.added.add(figures, 1);
            }
        }
    }

    /// Changes the campaign and the ad of a credit.
    fn each_credit(&mut self, key: &CreditKey, change: impl Fn(&mut DayValue)) {
        if CappedValue::campaign(&self.at, &key.campaign).is_some() {
            change(self.campaigns.entry(key.campaign.clone()).or_default());
        }
        if CappedValue::ad(&self.at, &key.campaign, &key.adset, &key.ad).is_some() {
            let ids = (key.campaign.clone(), key.adset.clone(), key.ad.clone());
            change(self.ads.entry(ids).or_default());
        }
    }

    fn name(&mut self, name: &str) -> Option<&mut DayValue> {
        let value = CappedValue::name(&self.at, name);
        value.map(|_| self.names.entry(name.to_owned()).or_default())
    }

    /// Returns the values that may be known to the app's settings.
    pub fn knowable(&self) -> BTreeSet<KnownValue> {
        let value = |kind, value: &String| KnownValue {
            app: self.at.app,
            kind,
            value: value.clone(),
        };
        let campaigns = self.campaigns.keys();
        let names = self.names.keys();
        campaigns
            .map(|one| value(ValueKind::Campaign, one))
            .chain(names.map(|one| value(ValueKind::Name, one)))
            .collect()
    }

    /// Returns the decisions that the stored rows reflect.
    pub fn stored_decisions(&self) -> CapDecisions {
        self.decisions(|value, _| {
            let placement = if value.is_folded() {
                Placement::Other
            } else {
                Placement::Own
            };
            value.has_rows().then_some(placement)
        })
    }

    /// Decides which values are kept. An ad is known if its campaign is. The ads of a campaign that
    /// is not kept do not count against the limit.
    pub fn decide(&self, known: &BTreeSet<KnownValue>) -> CapDecisions {
        let is_known = |kind, value: &str| {
            let value = value.to_owned();
            let app = self.at.app;
            known.contains(&KnownValue { app, kind, value })
        };
        let known_campaign = |campaign: &String| is_known(ValueKind::Campaign, campaign);
        let campaigns = standings(&self.campaigns, known_campaign);
        let kept_campaigns = kept_values(&campaigns, CAMPAIGNS_PER_DAY_MAX);
        let mut ads = standings(&self.ads, |(campaign, _, _)| known_campaign(campaign));
        ads.retain(|(campaign, _, _), _| {
            !campaigns.contains_key(campaign) || kept_campaigns.contains(campaign)
        });
        let kept_ads = kept_values(&ads, ADS_PER_DAY_MAX);
        let names = standings(&self.names, |name| is_known(ValueKind::Name, name));
        let kept_names = kept_values(&names, NAMES_PER_DAY_MAX);
        self.decisions(|value, text| {
            let (is_kept, is_known) = match text {
                ValueText::Campaign(text) => (kept_campaigns.contains(text), known_campaign(text)),
                ValueText::Ad(ids) => (kept_ads.contains(ids), false),
                ValueText::Name(text) => {
                    (kept_names.contains(text), is_known(ValueKind::Name, text))
                }
            };
            Some(if is_kept || value.total().is_zero() {
                Placement::Own
            } else if is_known {
                Placement::Other
            } else {
                self.placement_of_unknown(value)
            })
        })
    }

    /// Decides what details a folded, unknown value leaves.
    fn placement_of_unknown(&self, value: &DayValue) -> Placement {
        let has_events = value.total().events > 0;
        if self.details >= DETAILS_PER_DAY_MAX && !(has_events && value.has_rows()) {
            Placement::OtherWithoutDetails
        } else if self.details >= CLICK_DETAILS_PER_DAY_MAX && !has_events {
            Placement::OtherWithoutClicks
        } else {
            Placement::Other
        }
    }

    /// Decides the placement of every value. Values without a decision are left out.
    fn decisions(
        &self,
        decide: impl Fn(&DayValue, ValueText<'_>) -> Option<Placement>,
    ) -> CapDecisions {
        let campaigns = self.campaigns.iter().map(|(campaign, value)| {
            let capped = CappedValue::campaign(&self.at, campaign);
            capped.zip(decide(value, ValueText::Campaign(campaign)))
        });
        let ads = self.ads.iter().map(|(ids, value)| {
            let capped = CappedValue::ad(&self.at, &ids.0, &ids.1, &ids.2);
            capped.zip(decide(value, ValueText::Ad(ids)))
        });
        let names = self.names.iter().map(|(name, value)| {
            let capped = CappedValue::name(&self.at, name);
            capped.zip(decide(value, ValueText::Name(name)))
        });
        CapDecisions(campaigns.chain(ads).chain(names).flatten().collect())
    }

    /// Returns the values with stored rows whose placement changed.
    pub fn changed(&self, before: &CapDecisions, after: &CapDecisions) -> ChangedValues {
        let moved = after.differing_from(before);
        let is_moved = |value: Option<CappedValue>| {
            let value = value.as_ref();
            value.is_some_and(|value| moved.0.contains_key(value))
        };
        let campaign = |text: &String| CappedValue::campaign(&self.at, text);
        let mut changed = ChangedValues::default();
        let campaigns = self.campaigns.keys();
        let campaigns = campaigns.filter(|text| is_moved(campaign(text)));
        changed.campaigns.extend(campaigns.cloned());
        for (of, adset, ad) in self.ads.keys() {
            let is_folded = after.placement(campaign(of).as_ref()).is_other();
            if !is_folded && is_moved(CappedValue::ad(&self.at, of, adset, ad)) {
                changed.campaigns.insert(of.clone());
            }
        }
        let names = self.names.keys();
        let names = names.filter(|text| is_moved(CappedValue::name(&self.at, text)));
        changed.names.extend(names.cloned());
        changed
    }
}

/// The text of a value.
#[derive(Clone, Copy)]
enum ValueText<'a> {
    Campaign(&'a String),
    Ad(&'a AdIds),
    Name(&'a String),
}

/// Returns the standings of the values that have figures.
fn standings<V: Ord + Clone>(
    values: &BTreeMap<V, DayValue>,
    is_known: impl Fn(&V) -> bool,
) -> BTreeMap<V, ValueStanding> {
    let standings = values.iter().filter_map(|(value, figures)| {
        let total = figures.total();
        let standing = || ValueStanding::of(is_known(value), &total);
        (!total.is_zero()).then(|| (value.clone(), standing()))
    });
    standings.collect()
}

#[cfg(test)]
mod tests;
