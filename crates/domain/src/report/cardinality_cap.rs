//! Cardinality limits for values that senders choose. Campaign ids and event names can be anything,
//! so a table with one row per value would grow with traffic. Each app therefore keeps a limited
//! number of distinct values per day; later ones count under [`OTHER`](super::OTHER).
//!
//! Whether a value is kept is decided once, when it is first seen. A figure can therefore be
//! subtracted from the same row that it was added to, and rebuilding the roll-ups gives the same
//! rows.

use super::rollup::BucketKey;
use crate::access::Environment;
use crate::event::name::STANDARD_NAMES;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::AppId;
use std::collections::BTreeMap;

/// Distinct campaigns kept per app and day.
pub const CAMPAIGNS_PER_DAY_MAX: usize = 200;
/// Distinct ads, with their campaign and ad set, kept per app and day.
pub const ADS_PER_DAY_MAX: usize = 1_000;
/// Distinct custom event names kept per app and day. Standard names are not limited.
pub const NAMES_PER_DAY_MAX: usize = 300;

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
    /// Returns the value for a campaign; `None` for an empty id.
    pub fn campaign(at: &BucketKey, campaign: &str) -> Option<Self> {
        let named = !campaign.is_empty();
        named.then(|| Self::new(at, ValueKind::Campaign, campaign))
    }

    /// Returns the value for an ad with its ad set and campaign; `None` if ad and ad set are empty.
    pub fn ad(at: &BucketKey, campaign: &str, adset: &str, ad: &str) -> Option<Self> {
        let named = !adset.is_empty() || !ad.is_empty();
        // Recorded text never contains NUL, so the separator is unambiguous.
        named.then(|| Self::new(at, ValueKind::Ad, &format!("{campaign}\0{adset}\0{ad}")))
    }

    /// Returns the value for a custom event name; `None` for standard names, which are not limited.
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

/// Decisions by value: `true` if the value counts under `(other)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapDecisions(pub BTreeMap<CappedValue, bool>);

impl CapDecisions {
    /// Returns whether a value counts under `(other)`.
    pub fn is_other(&self, value: &CappedValue) -> bool {
        self.0.get(value).copied().unwrap_or(false)
    }

    /// Decides which new values are kept. `taken` is the number of values already kept per quota.
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
    fn values_beyond_the_daily_limit_count_as_other() {
        let names: Vec<CappedValue> = (0..=NAMES_PER_DAY_MAX)
            .filter_map(|number| CappedValue::name(&at(), &format!("name {number}")))
            .collect();
        let decisions = CapDecisions::decide(&names, &BTreeMap::new());
        let others = decisions.0.values().filter(|other| **other).count();
        assert_eq!((names.len(), others), (NAMES_PER_DAY_MAX + 1, 1));
        assert!(decisions.is_other(names.last().unwrap()));
        let taken = BTreeMap::from([(names[0].quota, NAMES_PER_DAY_MAX - 1)]);
        let decisions = CapDecisions::decide(&names[..2], &taken);
        assert_eq!(
            [false, true],
            [0, 1].map(|index| decisions.is_other(&names[index]))
        );
    }

    #[test]
    fn standard_and_empty_values_are_not_limited() {
        assert_eq!(CappedValue::name(&at(), "purchase"), None);
        assert_eq!(CappedValue::campaign(&at(), ""), None);
        assert_eq!(CappedValue::ad(&at(), "campaign", "", ""), None);
        assert!(CappedValue::ad(&at(), "", "", "ad").is_some());
    }

    #[test]
    fn every_kind_parses_from_its_keyword() {
        for kind in ValueKind::ALL {
            assert_eq!(ValueKind::parse(kind.as_str()), Some(kind));
        }
    }
}
