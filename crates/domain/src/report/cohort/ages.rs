//! Age of a device: whole days since its install.

use crate::vocabulary::time::Timestamp;

/// Highest number of days since install that cohorts count: a little over four months, one bit of a
/// `u128` per day.
pub const AGE_DAYS_MAX: u8 = 127;
pub(super) const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Days of a device, as days since its install, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ages(u128);

impl Ages {
    /// Returns the stored form.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads the form written by [`Self::to_bytes`].
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Adds an active day; returns false if the day was already present.
    pub(super) fn add(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << age;
        self.0 != before
    }

    /// Removes an active day; returns false if the day was not present.
    pub(super) fn remove(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 &= !(1 << age);
        self.0 != before
    }

    pub(super) const fn has(self, age: u8) -> bool {
        self.0 & (1 << age) != 0
    }

    /// Returns the lowest age; `None` if there is none.
    pub(super) fn first(self) -> Option<u8> {
        u8::try_from(self.0.trailing_zeros())
            .ok()
            .filter(|age| *age <= AGE_DAYS_MAX)
    }

    /// Returns the active days, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=AGE_DAYS_MAX).filter(move |age| self.has(*age))
    }
}

/// Returns the whole days between the install and `at`; `None` beyond [`AGE_DAYS_MAX`]. Events
/// before the install count as day 0.
pub fn age_in_days(installed_at: Timestamp, at: Timestamp) -> Option<u8> {
    let days = at.as_millis().saturating_sub(installed_at.as_millis()) / MILLIS_PER_DAY;
    let age = u8::try_from(days.max(0)).ok();
    age.filter(|age| *age <= AGE_DAYS_MAX)
}
