//! How long after its install a device does something.

use crate::vocabulary::time::Timestamp;

/// The last age that is counted: a little more than four months, and as many bits as a number has.
pub const AGE_DAYS_MAX: u8 = 127;
pub(super) const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// The ages that a device was seen at, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ages(u128);

impl Ages {
    /// As stored.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Notes an age; false when it was noted before.
    pub(super) fn add(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << age;
        self.0 != before
    }

    /// Forgets an age; false when it was not noted.
    pub(super) fn remove(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 &= !(1 << age);
        self.0 != before
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=AGE_DAYS_MAX).filter(move |age| self.0 & (1 << age) != 0)
    }
}

/// How many whole days after its install something happened on a device; nothing when it is too long ago. What
/// happened before the first call counts as its first day.
pub fn age_in_days(installed_at: Timestamp, at: Timestamp) -> Option<u8> {
    let days = at.as_millis().saturating_sub(installed_at.as_millis()) / MILLIS_PER_DAY;
    let age = u8::try_from(days.max(0)).ok();
    age.filter(|age| *age <= AGE_DAYS_MAX)
}
