//! Bounds on what comes from outside. Campaign ids and names of events can be anything, and a table with a row
//! for each of them would grow with the traffic and not with the time. So a day of an app has so many of them,
//! and whatever comes later that day counts under [`OTHER`](super::OTHER).
//!
//! What becomes of a value is decided once, when it is first seen, and never again: a figure can then be taken
//! out of the very row that it was added to, and roll-ups that are made anew come out the same.

use super::rollup::BucketKey;
use crate::access::Environment;
use crate::event::name::STANDARD_NAMES;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::AppId;
use std::collections::BTreeMap;

/// Campaigns of an app that a day tells apart.
pub const CAMPAIGNS_PER_DAY_MAX: usize = 200;
/// Ads (each with its campaign and ad set) of an app that a day tells apart.
pub const ADS_PER_DAY_MAX: usize = 1_000;
/// Names of events of an app that a day tells apart, beside the standard ones.
pub const NAMES_PER_DAY_MAX: usize = 300;

/// What is bounded.
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
    /// How many of a day are told apart.
    pub const fn daily_limit(self) -> usize {
        match self {
            Self::Campaign => CAMPAIGNS_PER_DAY_MAX,
            Self::Ad => ADS_PER_DAY_MAX,
            Self::Name => NAMES_PER_DAY_MAX,
        }
    }
}

/// The values of one kind of a day of an app, which are bounded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct Quota {
    pub app: AppId,
    pub environment: Environment,
    pub day: Day,
    pub kind: ValueKind,
}

/// A value from outside, on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CappedValue {
    /// What bounds it.
    pub quota: Quota,
    /// What stands for it: values are long.
    pub digest: Digest,
}

impl CappedValue {
    /// A campaign; nothing is none.
    pub fn campaign(at: &BucketKey, campaign: &str) -> Option<Self> {
        let named = !campaign.is_empty();
        named.then(|| Self::new(at, ValueKind::Campaign, campaign))
    }

    /// An ad with its ad set and campaign; nothing where there is neither ad nor ad set.
    pub fn ad(at: &BucketKey, campaign: &str, adset: &str, ad: &str) -> Option<Self> {
        let named = !adset.is_empty() || !ad.is_empty();
        // No text that is recorded holds the character between them.
        named.then(|| Self::new(at, ValueKind::Ad, &format!("{campaign}\0{adset}\0{ad}")))
    }

    /// The name of an event; standard ones are not bounded.
    pub fn name(at: &BucketKey, name: &str) -> Option<Self> {
        let custom = !STANDARD_NAMES.contains(&name);
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

/// What became of values: true for those that count under `(other)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapDecisions(pub BTreeMap<CappedValue, bool>);

impl CapDecisions {
    /// Whether a value counts under `(other)`.
    pub fn is_other(&self, value: &CappedValue) -> bool {
        self.0.get(value).copied().unwrap_or(false)
    }

    /// Decides on values that nobody has seen before, by how many of their day are told apart already.
    pub fn decide(new: &[CappedValue], taken: &BTreeMap<Quota, usize>) -> Self {
        let mut taken = taken.clone();
        let decided = new.iter().map(|value| {
            let used = taken.entry(value.quota).or_default();
            let is_other = *used >= value.quota.kind.daily_limit();
            *used += usize::from(!is_other);
            (*value, is_other)
        });
        Self(decided.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::time::Timestamp;

    fn at() -> BucketKey {
        let app = AppId::from_bytes([1; 16]);
        BucketKey::of(app, Environment::Live, Timestamp::from_millis(5))
    }

    #[test]
    fn a_day_tells_so_many_apart_and_the_rest_is_other() {
        let names: Vec<CappedValue> = (0..=NAMES_PER_DAY_MAX)
            .filter_map(|number| CappedValue::name(&at(), &format!("name {number}")))
            .collect();
        let fates = CapDecisions::decide(&names, &BTreeMap::new());
        let others = fates.0.values().filter(|other| **other).count();
        assert_eq!((names.len(), others), (NAMES_PER_DAY_MAX + 1, 1));
        assert!(fates.is_other(names.last().unwrap()));
        let taken = BTreeMap::from([(names[0].quota, NAMES_PER_DAY_MAX - 1)]);
        let fates = CapDecisions::decide(&names[..2], &taken);
        assert_eq!(
            [false, true],
            [0, 1].map(|place| fates.is_other(&names[place]))
        );
    }

    #[test]
    fn what_is_known_beforehand_is_not_bounded() {
        assert_eq!(CappedValue::name(&at(), "purchase"), None);
        assert_eq!(CappedValue::campaign(&at(), ""), None);
        assert_eq!(CappedValue::ad(&at(), "campaign", "", ""), None);
        assert!(CappedValue::ad(&at(), "", "", "ad").is_some());
    }

    #[test]
    fn every_kind_is_read_again() {
        for kind in ValueKind::ALL {
            assert_eq!(ValueKind::parse(kind.as_str()), Some(kind));
        }
    }
}
