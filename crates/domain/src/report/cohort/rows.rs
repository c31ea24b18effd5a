//! Figures of cohorts, and the rows that they are added to.

use super::entry::{CohortCredit, CohortMember};
use super::update::CohortDevice;
use crate::report::OTHER;
use crate::report::cardinality_cap::{CapDecisions, CappedValue};
use crate::report::grain::Grain;
use crate::report::rollup::BucketKey;
use std::collections::{BTreeMap, BTreeSet};

/// What cohorts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the figure it is named after")]
pub struct CohortFigures {
    pub devices: i64,
    pub revenue_micros: i64,
    pub refunded_micros: i64,
}

impl CohortFigures {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// The columns, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] =
        ["devices", "revenue_micros", "refunded_micros"];

    /// One number a column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [self.devices, self.revenue_micros, self.refunded_micros]
    }

    /// Reads what [`Self::values`] gave.
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            devices: values[0],
            revenue_micros: values[1],
            refunded_micros: values[2],
        }
    }

    /// Adds others, or takes them out again where `sign` is negative.
    pub fn add(&mut self, other: &Self, sign: i64) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value.saturating_mul(sign));
        }
        *self = Self::from_values(sum);
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// By credit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortKey {
    /// When the devices were installed.
    pub at: BucketKey,
    pub credit: CohortCredit,
    pub age: u8,
}

/// By country.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortPlaceKey {
    /// When the devices were installed.
    pub at: BucketKey,
    pub country: String,
    pub age: u8,
}

/// What is added to the cohorts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortRows {
    /// By credit.
    pub credits: BTreeMap<CohortKey, CohortFigures>,
    /// By country.
    pub places: BTreeMap<CohortPlaceKey, CohortFigures>,
}

impl CohortRows {
    pub(super) fn add(
        &mut self,
        of: (&CohortMember, &CohortDevice),
        credit: &CohortCredit,
        age: u8,
        figures: &CohortFigures,
        sign: i64,
    ) {
        let (member, enrolled) = of;
        let at = BucketKey::of(member.app, member.environment, enrolled.installed_at);
        let key = CohortKey {
            at,
            credit: credit.clone(),
            age,
        };
        self.credits.entry(key).or_default().add(figures, sign);
        let key = CohortPlaceKey {
            at,
            country: enrolled.country.clone(),
            age,
        };
        self.places.entry(key).or_default().add(figures, sign);
    }

    /// The campaigns that it counts under, whose number is bounded.
    pub fn capped_values(&self) -> BTreeSet<CappedValue> {
        let campaigns = self.credits.keys();
        campaigns
            .filter_map(|key| CappedValue::campaign(&key.at, &key.credit.campaign))
            .collect()
    }

    /// Takes others along.
    pub fn merge(&mut self, other: Self) {
        for (key, figures) in other.credits {
            self.credits.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.places {
            self.places.entry(key).or_default().add(&figures, 1);
        }
    }

    /// Takes out what is stored.
    pub(in crate::report) fn subtract_stored(&mut self, stored: &Self) {
        for (key, figures) in &stored.credits {
            self.credits
                .entry(key.clone())
                .or_default()
                .add(figures, -1);
        }
        for (key, figures) in &stored.places {
            self.places.entry(key.clone()).or_default().add(figures, -1);
        }
        self.drop_zeros();
    }

    pub(super) fn drop_zeros(&mut self) {
        self.credits.retain(|_, figures| !figures.is_zero());
        self.places.retain(|_, figures| !figures.is_zero());
    }

    /// In every grain, and under the names that are told apart.
    pub(in crate::report) fn to_stored_rows(&self, fates: &CapDecisions) -> Self {
        let mut rows = Self::default();
        for (key, figures) in &self.credits {
            let mut credit = key.credit.clone();
            let campaign = CappedValue::campaign(&key.at, &credit.campaign);
            if campaign.is_some_and(|campaign| fates.is_other(&campaign)) {
                OTHER.clone_into(&mut credit.campaign);
            }
            for grain in Grain::ALL {
                let key = CohortKey {
                    at: key.at.within(grain),
                    credit: credit.clone(),
                    age: key.age,
                };
                rows.credits.entry(key).or_default().add(figures, 1);
            }
        }
        for (key, figures) in &self.places {
            for grain in Grain::ALL {
                let key = CohortPlaceKey {
                    at: key.at.within(grain),
                    ..key.clone()
                };
                rows.places.entry(key).or_default().add(figures, 1);
            }
        }
        rows.drop_zeros();
        rows
    }
}
