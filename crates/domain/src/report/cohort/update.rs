//! Counting what devices did.

use super::ages::{Ages, MILLIS_PER_DAY, age_in_days};
use super::entry::{CohortCredit, CohortEntry, CohortMember};
use super::rows::{CohortFigures, CohortRows};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A device that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortDevice {
    /// When.
    pub installed_at: Timestamp,
    /// What the install is credited to now.
    pub credit: CohortCredit,
    /// Where it was installed.
    pub country: String,
    /// When it was seen since.
    pub ages: Ages,
}

/// An age that a device was counted as seen at, and maybe was not: an event of that day is no longer its.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UncertainAge {
    /// Which device.
    pub member: CohortMember,
    /// The first moment of that day.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
    age: u8,
}

impl UncertainAge {
    fn of(member: &CohortMember, installed_at: Timestamp, age: u8) -> Self {
        let begin = |age: u8| {
            let after = i64::from(age) * MILLIS_PER_DAY;
            Timestamp::from_millis(installed_at.as_millis().saturating_add(after))
        };
        Self {
            member: member.clone(),
            from: begin(age),
            until: begin(age + 1),
            age,
        }
    }
}

/// What came of counting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortUpdate {
    /// What is added to the cohorts.
    pub rows: CohortRows,
    /// The devices of which something else is known now.
    pub changed_devices: BTreeSet<CohortMember>,
    /// What is to be asked of the events, as they are after all that was counted. Nearly always nothing.
    pub uncertain_ages: BTreeSet<UncertainAge>,
}

impl CohortUpdate {
    /// The device has no event that counts on the day of a doubt: it was not seen then.
    pub fn mark_inactive(
        &mut self,
        doubt: &UncertainAge,
        known: &mut BTreeMap<CohortMember, CohortDevice>,
    ) {
        if let Some(enrolled) = known.get_mut(&doubt.member)
            && enrolled.ages.remove(doubt.age)
        {
            let of = (&doubt.member, &*enrolled);
            self.rows.add(of, &enrolled.credit, doubt.age, &SEEN, -1);
            self.changed_devices.insert(doubt.member.clone());
        }
    }

    /// Counts that a device was seen, and moves all its ages along with its install.
    fn see(
        &mut self,
        entry: &CohortEntry,
        to: &CohortCredit,
        age: u8,
        enrolled: &mut CohortDevice,
    ) {
        if entry.is_install && entry.old_credit.is_some() && enrolled.credit != *to {
            let of = (&entry.member, &*enrolled);
            for age in enrolled.ages.iter() {
                self.rows.add(of, &enrolled.credit, age, &SEEN, -1);
                self.rows.add(of, to, age, &SEEN, 1);
            }
            enrolled.credit = to.clone();
            self.changed_devices.insert(entry.member.clone());
        }
        if !self.uncertain_ages.is_empty() {
            let doubt = UncertainAge::of(&entry.member, enrolled.installed_at, age);
            self.uncertain_ages.remove(&doubt);
        }
        if enrolled.ages.add(age) {
            let of = (&entry.member, &*enrolled);
            self.rows.add(of, &enrolled.credit, age, &SEEN, 1);
            self.changed_devices.insert(entry.member.clone());
        }
    }
}

/// A device that was seen.
const SEEN: CohortFigures = CohortFigures {
    devices: 1,
    revenue_micros: 0,
    refunded_micros: 0,
};

/// Counts what devices did. `known` holds those that were installed before, and afterwards those that are
/// installed with this too.
pub fn update_cohorts(
    entries: &[CohortEntry],
    known: &mut BTreeMap<CohortMember, CohortDevice>,
) -> CohortUpdate {
    let mut all = CohortUpdate::default();
    // Events that came before the first call are credited with it, and come before the install here.
    for entry in entries.iter().filter(|entry| entry.is_first_install()) {
        let Some(credit) = &entry.new_credit else {
            continue;
        };
        let enrolled = known.entry(entry.member.clone());
        enrolled.or_insert_with(|| CohortDevice {
            installed_at: entry.at,
            credit: credit.clone(),
            country: entry.country.clone(),
            ages: Ages::default(),
        });
    }
    for entry in entries {
        let Some(enrolled) = known.get_mut(&entry.member) else {
            continue;
        };
        let Some(age) = age_in_days(enrolled.installed_at, entry.at) else {
            continue;
        };
        match &entry.new_credit {
            Some(to) => all.see(entry, to, age, enrolled),
            // The first day is that of the install, which stays.
            None if age == 0 => {}
            None => {
                let doubt = UncertainAge::of(&entry.member, enrolled.installed_at, age);
                all.uncertain_ages.insert(doubt);
            }
        }
        let money = CohortFigures {
            devices: 0,
            revenue_micros: entry.revenue_micros,
            refunded_micros: entry.refunded_micros,
        };
        if !money.is_zero() {
            let of = (&entry.member, &*enrolled);
            if let Some(from) = &entry.old_credit {
                all.rows.add(of, from, age, &money, -1);
            }
            if let Some(to) = &entry.new_credit {
                all.rows.add(of, to, age, &money, 1);
            }
        }
    }
    all
}
