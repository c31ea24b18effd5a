//! Cardinality limits for values that senders choose. Campaign ids and event names can be anything,
//! so a table with one row per value would grow with traffic. Each app therefore keeps a limited
//! number of distinct values per day; the others count under [`OTHER`].
//!
//! Which values are kept depends only on the day's values and their figures, never on the order in
//! which they arrived ([`kept_values`]). Otherwise a stranger could hide an app's real campaigns
//! behind invented ones by sending those first.

use super::rollup::BucketKey;
use super::{Figures, OTHER};
use crate::access::Environment;
use crate::event::name::STANDARD_NAMES;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::AppId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Distinct campaigns kept per app and day.
pub const CAMPAIGNS_PER_DAY_MAX: usize = 200;
/// Distinct ads, with their campaign and ad set, kept per app and day.
pub const ADS_PER_DAY_MAX: usize = 1_000;
/// Distinct custom event names kept per app and day. Standard names are not limited.
pub const NAMES_PER_DAY_MAX: usize = 300;
/// Number of day-long detail rows per app and day after which clicks on values that are unknown and
/// have no events leave no details. Bounds the storage that anonymous taps can use up, and the rows
/// that a merge reads.
pub const CLICK_DETAILS_PER_DAY_MAX: usize = 10_000;
/// Number of day-long detail rows per app and day after which only known values, and values that
/// already have rows, leave details. Higher than the limit for clicks, because events require a key.
pub const DETAILS_PER_DAY_MAX: usize = 20_000;

/// Kind of value whose cardinality is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// A campaign.
    Campaign,
    /// An ad in its ad set and campaign.
    Ad,
    /// The name of an event.
    Name,
}

crate::keywords! {
    ValueKind[3] {
        Campaign => "campaign",
        Ad => "ad",
        Name => "name",
    }
}

impl ValueKind {
    /// Returns how many distinct values are kept per app and day.
    pub const fn daily_limit(self) -> usize {
        match self {
            Self::Campaign => CAMPAIGNS_PER_DAY_MAX,
            Self::Ad => ADS_PER_DAY_MAX,
            Self::Name => NAMES_PER_DAY_MAX,
        }
    }
}

/// Scope of a limit: one kind of value, per app, environment and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct Quota {
    pub app: AppId,
    pub environment: Environment,
    pub day: Day,
    pub kind: ValueKind,
}

/// A value chosen by a sender, as seen on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CappedValue {
    /// The limit that the value counts against.
    pub quota: Quota,
    /// Digest of the value, because values may be long.
    pub digest: Digest,
}

impl CappedValue {
    /// Returns the value for a campaign; `None` for an empty id and for `(other)`.
    pub fn campaign(at: &BucketKey, campaign: &str) -> Option<Self> {
        let named = !campaign.is_empty() && campaign != OTHER;
        named.then(|| Self::new(at, ValueKind::Campaign, campaign))
    }

    /// Returns the value for an ad with its ad set and campaign; `None` if ad and ad set are empty
    /// or both `(other)`.
    pub fn ad(at: &BucketKey, campaign: &str, adset: &str, ad: &str) -> Option<Self> {
        let named = (!adset.is_empty() || !ad.is_empty()) && (adset, ad) != (OTHER, OTHER);
        // Recorded text never contains NUL, so the separator is unambiguous.
        named.then(|| Self::new(at, ValueKind::Ad, &format!("{campaign}\0{adset}\0{ad}")))
    }

    /// Returns the value for a custom event name; `None` for standard names, which are not limited,
    /// and for `(other)`.
    pub fn name(at: &BucketKey, name: &str) -> Option<Self> {
        let custom = !STANDARD_NAMES.contains(&name) && name != OTHER;
        custom.then(|| Self::new(at, ValueKind::Name, name))
    }

    fn new(at: &BucketKey, kind: ValueKind, text: &str) -> Self {
        Self {
            quota: Quota {
                app: at.app,
                environment: at.environment,
                day: Day::of(at.bucket.begins_at()),
                kind,
            },
            digest: Digest::of(text.as_bytes()),
        }
    }
}

/// A value that the app's settings mention: a campaign in a link or cost, an event name in a mapping.
/// A value stays known when the setting changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct KnownValue {
    pub app: AppId,
    pub kind: ValueKind,
    pub value: String,
}

/// Rows in which the figures of a value count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In rows with the value.
    #[default]
    Own,
    /// Under `(other)`, with details from which the value's rows can be restored.
    Other,
    /// Under `(other)`, with details except for clicks.
    OtherWithoutClicks,
    /// Under `(other)`, without details.
    OtherWithoutDetails,
}

impl Placement {
    /// Reads a stored placement.
    pub const fn stored(is_other: bool) -> Self {
        if is_other { Self::Other } else { Self::Own }
    }

    /// Returns whether the value counts under `(other)`.
    pub const fn is_other(self) -> bool {
        !matches!(self, Self::Own)
    }

    /// Returns whether figures leave details. `clicks_only` says that they are nothing but clicks.
    pub const fn keeps_details(self, clicks_only: bool) -> bool {
        match self {
            Self::Own | Self::Other => true,
            Self::OtherWithoutClicks => !clicks_only,
            Self::OtherWithoutDetails => false,
        }
    }
}

/// Placements by value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapDecisions(pub BTreeMap<CappedValue, Placement>);

impl CapDecisions {
    /// Returns the placement of a value. A value without a decision has its own rows.
    pub fn placement(&self, value: Option<&CappedValue>) -> Placement {
        let found = value.and_then(|value| self.0.get(value));
        found.copied().unwrap_or_default()
    }

    /// Returns the decisions that move a value of `before` to or from `(other)`.
    #[must_use]
    pub fn differing_from(&self, before: &Self) -> Self {
        let moves = |(value, placement): &(&CappedValue, &Placement)| {
            let before = before.0.get(value);
            before.is_some_and(|before| before.is_other() != placement.is_other())
        };
        let moved = self.0.iter().filter(moves);
        Self(
            moved
                .map(|(value, placement)| (*value, *placement))
                .collect(),
        )
    }
}

/// Facts that a value is ranked by, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueStanding {
    /// Whether the app's settings mention the value.
    pub is_known: bool,
    /// Events with the value, installs included.
    pub conversions: i64,
    /// Clicks with the value.
    pub clicks: i64,
}

impl ValueStanding {
    /// Returns the standing of a value with these figures.
    pub const fn of(is_known: bool, figures: &Figures) -> Self {
        Self {
            is_known,
            conversions: figures.events,
            clicks: figures.clicks,
        }
    }
}

/// Returns the values that are kept: known values first, then by conversions, by clicks and by
/// name.
pub fn kept_values<V: Ord>(values: &BTreeMap<V, ValueStanding>, limit: usize) -> BTreeSet<&V> {
    let mut ranked: Vec<(Reverse<ValueStanding>, &V)> = values
        .iter()
        .map(|(value, standing)| (Reverse(*standing), value))
        .collect();
    if ranked.len() > limit {
        ranked.sort_unstable();
    }
    ranked
        .into_iter()
        .take(limit)
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::time::Timestamp;
    use proptest::prelude::*;
    use rstest::rstest;

    fn at() -> BucketKey {
        let app = AppId::from_bytes([1; 16]);
        BucketKey::of(app, Environment::Live, Timestamp::from_millis(5))
    }

    const fn standing(is_known: bool, conversions: i64, clicks: i64) -> ValueStanding {
        ValueStanding {
            is_known,
            conversions,
            clicks,
        }
    }

    #[rstest]
    #[case::known_beats_conversions(standing(true, 0, 1), standing(false, 9, 9))]
    #[case::conversions_beat_clicks(standing(false, 1, 0), standing(false, 0, 99))]
    #[case::clicks_beat_the_name(standing(false, 0, 2), standing(false, 0, 1))]
    #[case::known_values_rank_by_conversions(standing(true, 2, 0), standing(true, 1, 9))]
    #[case::known_values_rank_by_clicks(standing(true, 1, 2), standing(true, 1, 1))]
    fn values_are_ranked(#[case] kept: ValueStanding, #[case] dropped: ValueStanding) {
        // The name that sorts last wins by its standing only.
        let values = BTreeMap::from([("a", dropped), ("z", kept)]);
        assert_eq!(kept_values(&values, 1), BTreeSet::from([&"z"]));
        let values = BTreeMap::from([("a", kept), ("z", kept)]);
        assert_eq!(kept_values(&values, 1), BTreeSet::from([&"a"]));
        assert_eq!(kept_values(&values, 2).len(), 2);
        assert_eq!(kept_values(&values, 0).len(), 0);
    }

    proptest! {
        #[test]
        fn invented_values_never_displace_known_or_converting_ones(
            real in prop::collection::btree_map(0_u16..500, (any::<bool>(), 0_i64..4, 0_i64..9), 0..20),
            invented in prop::collection::btree_map(500_u16..2_000, 1_i64..1_000, 0..200),
        ) {
            const LIMIT: usize = 20;
            let real: BTreeMap<u16, ValueStanding> = real
                .into_iter()
                .map(|(value, (known, events, clicks))| (value, standing(known, events, clicks)))
                .collect();
            let mut all = real.clone();
            all.extend(invented.iter().map(|(value, clicks)| (*value, standing(false, 0, *clicks))));
            let kept = kept_values(&all, LIMIT);
            prop_assert_eq!(kept.len(), all.len().min(LIMIT));
            for (value, found) in &real {
                prop_assert!(!found.is_known && found.conversions == 0 || kept.contains(value));
            }
        }
    }

    #[test]
    fn standard_and_empty_values_are_not_limited() {
        assert_eq!(CappedValue::name(&at(), "purchase"), None);
        assert_eq!(CappedValue::campaign(&at(), ""), None);
        assert_eq!(CappedValue::ad(&at(), "campaign", "", ""), None);
        assert!(CappedValue::ad(&at(), "", "", "ad").is_some());
        assert_eq!(CappedValue::name(&at(), OTHER), None);
        assert_eq!(CappedValue::campaign(&at(), OTHER), None);
        assert_eq!(CappedValue::ad(&at(), "campaign", OTHER, OTHER), None);
    }

    #[test]
    fn every_kind_parses_from_its_keyword() {
        for kind in ValueKind::ALL {
            assert_eq!(ValueKind::parse(kind.as_str()), Some(kind));
        }
    }
}
