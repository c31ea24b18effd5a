//! Cohort figures and the rows that they are added to.

use super::entry::{CohortCredit, CohortMember};
use super::update::CohortDevice;
use crate::report::cardinality_cap::{CapDecisions, CappedValue};
use crate::report::grain::Grain;
use crate::report::rollup::{BucketKey, FoldableKey};
use std::collections::{BTreeMap, BTreeSet};

/// Figures that cohorts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each field is named after its figure")]
pub struct CohortFigures {
    pub devices: i64,
    pub revenue_micros: i64,
    pub refunded_micros: i64,
    /// Devices whose first counted payment was on this day.
    pub payers: i64,
}

impl CohortFigures {
    /// Number of figures.
    pub const COUNT: usize = 4;
    /// Column names, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] =
        ["devices", "revenue_micros", "refunded_micros", "payers"];

    /// Returns one number per column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [
            self.devices,
            self.revenue_micros,
            self.refunded_micros,
            self.payers,
        ]
    }

    /// Builds figures from the numbers of [`Self::values`].
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            devices: values[0],
            revenue_micros: values[1],
            refunded_micros: values[2],
            payers: values[3],
        }
    }

    /// Adds `other` times `sign`; a negative sign subtracts.
    pub fn add(&mut self, other: &Self, sign: i64) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value.saturating_mul(sign));
        }
        *self = Self::from_values(sum);
    }

    /// Returns revenue minus refunds.
    pub const fn net_micros(&self) -> i64 {
        self.revenue_micros.saturating_sub(self.refunded_micros)
    }

    /// Returns whether all figures are zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Key of a cohort row by credit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortKey {
    /// Bucket of the install time.
    pub at: BucketKey,
    pub credit: CohortCredit,
    pub age: u8,
}

/// Key of a cohort row by country.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortPlaceKey {
    /// Bucket of the install time.
    pub at: BucketKey,
    pub country: String,
    pub age: u8,
}

/// Rows to add to the cohorts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortRows {
    /// Rows by credit.
    pub credits: BTreeMap<CohortKey, CohortFigures>,
    /// Rows by country.
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
        let (member, device) = of;
        let at = BucketKey::of(member.app, member.environment, device.installed_at);
        let key = CohortKey {
            at,
            credit: credit.clone(),
            age,
        };
        self.credits.entry(key).or_default().add(figures, sign);
        let key = CohortPlaceKey {
            at,
            country: device.country.clone(),
            age,
        };
        self.places.entry(key).or_default().add(figures, sign);
    }

    /// Returns the campaigns in these rows, whose cardinality is limited.
    pub fn capped_values(&self) -> BTreeSet<CappedValue> {
        let campaigns = self.credits.keys();
        campaigns
            .filter_map(|key| CappedValue::campaign(&key.at, &key.credit.campaign))
            .collect()
    }

    /// Adds the rows of `other`.
    pub fn merge(&mut self, other: Self) {
        for (key, figures) in other.credits {
            self.credits.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.places {
            self.places.entry(key).or_default().add(&figures, 1);
        }
    }

    /// Adds rows times `sign`; a negative sign subtracts.
    pub(in crate::report) fn add_rows(&mut self, other: &Self, sign: i64) {
        for (key, figures) in &other.credits {
            let row = self.credits.entry(key.clone()).or_default();
            row.add(figures, sign);
        }
        for (key, figures) in &other.places {
            let row = self.places.entry(key.clone()).or_default();
            row.add(figures, sign);
        }
        self.drop_zeros();
    }

    pub(super) fn drop_zeros(&mut self) {
        self.credits.retain(|_, figures| !figures.is_zero());
        self.places.retain(|_, figures| !figures.is_zero());
    }

    /// Returns the rows as stored: in every grain, with capped campaign ids and their details.
    pub(in crate::report) fn to_stored_rows(&self, decisions: &CapDecisions) -> Self {
        let mut rows = Self::default();
        for (key, figures) in &self.credits {
            for stored in key.stored_keys(figures, decisions) {
                rows.credits.entry(stored).or_default().add(figures, 1);
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
