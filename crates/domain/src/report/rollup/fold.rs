//! Folding: values beyond the cardinality limits count under `(other)`.
//!
//! The figures of a folded value are also stored as details, under the value itself and in grains
//! that reports do not read. So a value can get its own rows back when it ranks higher later.

use super::{CreditKey, Increments, NameKey, PivotKey, RollupRows};
use crate::report::cardinality_cap::{CapDecisions, CappedValue, Placement};
use crate::report::cohort::{CohortFigures, CohortKey, CohortRows};
use crate::report::grain::Grain;
use crate::report::rollup::BucketKey;
use crate::report::{Figures, OTHER};
use std::collections::BTreeMap;

/// Figures of a row that may be folded.
pub(in crate::report) trait FoldableFigures: Default {
    fn add(&mut self, other: &Self, sign: i64);
    fn is_zero(&self) -> bool;
    /// Returns whether the figures are nothing but clicks.
    fn are_clicks_only(&self) -> bool;
}

impl FoldableFigures for Figures {
    fn add(&mut self, other: &Self, sign: i64) {
        Self::add(self, other, sign);
    }

    fn is_zero(&self) -> bool {
        Self::is_zero(self)
    }

    fn are_clicks_only(&self) -> bool {
        Self { clicks: 0, ..*self }.is_zero()
    }
}

impl FoldableFigures for CohortFigures {
    fn add(&mut self, other: &Self, sign: i64) {
        Self::add(self, other, sign);
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    fn are_clicks_only(&self) -> bool {
        false
    }
}

/// Key of a row that may be folded.
pub(in crate::report) trait FoldableKey: Ord + Clone {
    fn at(&self) -> &BucketKey;
    fn at_mut(&mut self) -> &mut BucketKey;
    /// Applies the cardinality limits.
    fn capped(&self, decisions: &CapDecisions) -> Self;
    /// Returns the key of the details; `None` if there are none.
    fn detail(&self, clicks_only: bool, decisions: &CapDecisions) -> Option<Self>;

    /// Returns the key in another grain.
    fn within(&self, grain: Grain) -> Self {
        let mut key = self.clone();
        *key.at_mut() = key.at().within(grain);
        key
    }

    /// Returns the keys of all rows that figures are added to.
    fn stored_keys<F: FoldableFigures>(&self, figures: &F, decisions: &CapDecisions) -> Vec<Self> {
        let capped = self.capped(decisions);
        let detail = self.detail(figures.are_clicks_only(), decisions);
        let rows = Grain::ALL.map(|grain| capped.within(grain));
        let details = detail.map(|key| Grain::FOLDED.map(|grain| key.within(grain)));
        rows.into_iter()
            .chain(details.into_iter().flatten())
            .collect()
    }
}

/// Returns where the figures of a campaign count.
fn campaign_placement(at: &BucketKey, campaign: &str, decisions: &CapDecisions) -> Placement {
    decisions.placement(CappedValue::campaign(at, campaign).as_ref())
}

impl CreditKey {
    fn campaign_placement(&self, decisions: &CapDecisions) -> Placement {
        campaign_placement(&self.at, &self.campaign, decisions)
    }

    fn ad_placement(&self, decisions: &CapDecisions) -> Placement {
        let ad = CappedValue::ad(&self.at, &self.campaign, &self.adset, &self.ad);
        decisions.placement(ad.as_ref())
    }

    fn without_ad(&self) -> Self {
        let mut key = self.clone();
        for id in [&mut key.adset, &mut key.ad] {
            OTHER.clone_into(id);
        }
        key
    }
}

impl FoldableKey for CreditKey {
    fn at(&self) -> &BucketKey {
        &self.at
    }

    fn at_mut(&mut self) -> &mut BucketKey {
        &mut self.at
    }

    /// An ad beyond the limit keeps its campaign; a campaign beyond the limit keeps its network and
    /// link.
    fn capped(&self, decisions: &CapDecisions) -> Self {
        if self.campaign == OTHER || self.campaign_placement(decisions).is_other() {
            let mut key = self.without_ad();
            OTHER.clone_into(&mut key.campaign);
            key
        } else if self.ad_placement(decisions).is_other() {
            self.without_ad()
        } else {
            self.clone()
        }
    }

    fn detail(&self, clicks_only: bool, decisions: &CapDecisions) -> Option<Self> {
        let (campaign, ad) = (
            self.campaign_placement(decisions),
            self.ad_placement(decisions),
        );
        let is_folded = self.campaign != OTHER && (campaign.is_other() || ad.is_other());
        if !is_folded || !campaign.keeps_details(clicks_only) {
            None
        } else if ad.keeps_details(clicks_only) {
            Some(self.clone())
        } else {
            // The campaign keeps its details, but not each of its ads.
            campaign.is_other().then(|| self.without_ad())
        }
    }
}

impl FoldableKey for NameKey {
    fn at(&self) -> &BucketKey {
        &self.at
    }

    fn at_mut(&mut self) -> &mut BucketKey {
        &mut self.at
    }

    fn capped(&self, decisions: &CapDecisions) -> Self {
        let mut key = self.clone();
        let name = CappedValue::name(&self.at, &self.name);
        if decisions.placement(name.as_ref()).is_other() {
            OTHER.clone_into(&mut key.name);
        }
        key
    }

    fn detail(&self, clicks_only: bool, decisions: &CapDecisions) -> Option<Self> {
        let name = CappedValue::name(&self.at, &self.name);
        let placement = decisions.placement(name.as_ref());
        (placement.is_other() && placement.keeps_details(clicks_only)).then(|| self.clone())
    }
}

impl FoldableKey for PivotKey {
    fn at(&self) -> &BucketKey {
        &self.at
    }

    fn at_mut(&mut self) -> &mut BucketKey {
        &mut self.at
    }

    fn capped(&self, decisions: &CapDecisions) -> Self {
        let mut key = self.clone();
        if campaign_placement(&self.at, &self.campaign, decisions).is_other() {
            OTHER.clone_into(&mut key.campaign);
        }
        key
    }

    fn detail(&self, clicks_only: bool, decisions: &CapDecisions) -> Option<Self> {
        let placement = campaign_placement(&self.at, &self.campaign, decisions);
        (placement.is_other() && placement.keeps_details(clicks_only)).then(|| self.clone())
    }
}

impl FoldableKey for CohortKey {
    fn at(&self) -> &BucketKey {
        &self.at
    }

    fn at_mut(&mut self) -> &mut BucketKey {
        &mut self.at
    }

    fn capped(&self, decisions: &CapDecisions) -> Self {
        let mut key = self.clone();
        if campaign_placement(&self.at, &self.credit.campaign, decisions).is_other() {
            OTHER.clone_into(&mut key.credit.campaign);
        }
        key
    }

    fn detail(&self, clicks_only: bool, decisions: &CapDecisions) -> Option<Self> {
        let placement = campaign_placement(&self.at, &self.credit.campaign, decisions);
        (placement.is_other() && placement.keeps_details(clicks_only)).then(|| self.clone())
    }
}

impl RollupRows {
    /// Returns the figures by quarter hour and value: the inverse of [`Self::of`] for the tables
    /// with limits. `decisions` are those that the rows were stored with. Figures under `(other)`
    /// that have no details stay there.
    pub fn unfold(&self, decisions: &CapDecisions) -> (Increments, CohortRows) {
        let increments = Increments {
            credits: unfold_rows(&self.credits, decisions),
            names: unfold_rows(&self.names, decisions),
            pivots: unfold_rows(&self.pivots, decisions),
            ..Increments::default()
        };
        let cohorts = CohortRows {
            credits: unfold_rows(&self.cohorts.credits, decisions),
            ..CohortRows::default()
        };
        (increments, cohorts)
    }

    /// Returns the rows that move when decisions change. These are the stored rows of the changed
    /// values.
    #[must_use]
    pub fn moved(&self, before: &CapDecisions, after: &CapDecisions) -> Self {
        let (increments, cohorts) = self.unfold(before);
        let mut moved = Self::of(&increments, after, &cohorts);
        moved.add(&Self::of(&increments, before, &cohorts), -1);
        moved
    }
}

fn unfold_rows<K: FoldableKey, F: FoldableFigures>(
    rows: &BTreeMap<K, F>,
    decisions: &CapDecisions,
) -> BTreeMap<K, F> {
    let mut unfolded: BTreeMap<K, F> = BTreeMap::new();
    for (key, figures) in rows {
        let is_detail = key.at().grain == Grain::FoldedQuarter;
        if !is_detail && key.at().grain != Grain::Quarter {
            continue;
        }
        let key = key.within(Grain::Quarter);
        if is_detail {
            let folded = unfolded.entry(key.capped(decisions)).or_default();
            folded.add(figures, -1);
        }
        unfolded.entry(key).or_default().add(figures, 1);
    }
    unfolded.retain(|_, figures| !figures.is_zero());
    unfolded
}
