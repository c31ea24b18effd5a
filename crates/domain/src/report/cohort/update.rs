//! Updating cohorts from device activity.

use super::ages::{Ages, MILLIS_PER_DAY, age_in_days};
use super::entry::{CohortCredit, CohortEntry, CohortMember};
use super::rows::{CohortFigures, CohortRows};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// An installed device, as recorded for its cohort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortDevice {
    /// Time of the install.
    pub installed_at: Timestamp,
    /// Current credit of the install.
    pub credit: CohortCredit,
    /// Country of the install.
    pub country: String,
    /// Days since install on which the device was active.
    pub ages: Ages,
    /// Days since install with a counted payment.
    pub paid_ages: Ages,
}

/// A day on which a device was counted as active or as paying, although it may not have been: an
/// event on that day no longer belongs to the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UncertainAge {
    /// The device.
    pub member: CohortMember,
    /// Start of that day.
    pub from: Timestamp,
    /// End of that day, exclusive.
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

    /// Returns a day with a payment. Events before the install count as day 0.
    fn of_payment(member: &CohortMember, installed_at: Timestamp, age: u8) -> Self {
        let mut day = Self::of(member, installed_at, age);
        if age == 0 {
            day.from = Timestamp::from_millis(0);
        }
        day
    }
}

/// Result of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortUpdate {
    /// Figures to add to the cohorts.
    pub rows: CohortRows,
    /// Devices whose record changed.
    pub changed_devices: BTreeSet<CohortMember>,
    /// Active days to check against the events once the update is written. Nearly always empty.
    pub uncertain_ages: BTreeSet<UncertainAge>,
    /// Days with payments to check in the same way.
    pub uncertain_payments: BTreeSet<UncertainAge>,
}

impl CohortUpdate {
    /// Marks a device as inactive on an uncertain day, because the device has no other event on
    /// that day.
    pub fn mark_inactive(
        &mut self,
        uncertain: &UncertainAge,
        known: &mut BTreeMap<CohortMember, CohortDevice>,
    ) {
        if let Some(device) = known.get_mut(&uncertain.member)
            && device.ages.remove(uncertain.age)
        {
            let of = (&uncertain.member, &*device);
            self.rows
                .add(of, &device.credit, uncertain.age, &ONE_DEVICE, -1);
            self.changed_devices.insert(uncertain.member.clone());
        }
    }

    /// Removes an uncertain payment, because the device has no other payment on that day.
    pub fn mark_unpaid(
        &mut self,
        uncertain: &UncertainAge,
        known: &mut BTreeMap<CohortMember, CohortDevice>,
    ) {
        if let Some(device) = known.get_mut(&uncertain.member) {
            let mut ages = device.paid_ages;
            if ages.remove(uncertain.age) {
                self.set_paid_ages(&uncertain.member, device, ages);
            }
        }
    }

    /// Sets the days on which a device paid. The device is a payer from the first one on.
    fn set_paid_ages(&mut self, member: &CohortMember, device: &mut CohortDevice, ages: Ages) {
        let (before, now) = (device.paid_ages.first(), ages.first());
        if before != now {
            let of = (member, &*device);
            for (first, sign) in [(before, -1), (now, 1)] {
                if let Some(age) = first {
                    self.rows.add(of, &device.credit, age, &ONE_PAYER, sign);
                }
            }
        }
        device.paid_ages = ages;
        self.changed_devices.insert(member.clone());
    }

    /// Replaces the days on which a device paid with those of a complete count.
    pub fn correct_payments(
        &mut self,
        member: &CohortMember,
        device: &mut CohortDevice,
        counted: &CohortDevice,
    ) {
        if device.paid_ages != counted.paid_ages {
            self.set_paid_ages(member, device, counted.paid_ages);
        }
    }

    /// Counts a payment of a device.
    fn mark_paid(&mut self, entry: &CohortEntry, age: u8, device: &mut CohortDevice) {
        if !self.uncertain_payments.is_empty() {
            let day = UncertainAge::of_payment(&entry.member, device.installed_at, age);
            self.uncertain_payments.remove(&day);
        }
        let mut ages = device.paid_ages;
        if ages.add(age) {
            self.set_paid_ages(&entry.member, device, ages);
        }
    }

    /// Removes a device whose install no longer counts from all its active days. Its record stays,
    /// for the case that the install counts again.
    fn withdraw(&mut self, entry: &CohortEntry, device: &mut CohortDevice) {
        self.set_paid_ages(&entry.member, device, Ages::default());
        let of = (&entry.member, &*device);
        for age in device.ages.iter() {
            self.rows.add(of, &device.credit, age, &ONE_DEVICE, -1);
        }
        device.ages = Ages::default();
        self.changed_devices.insert(entry.member.clone());
    }

    /// Counts a device as active. If the credit of the device's install changed, moves all its
    /// active days to the new credit.
    fn mark_active(
        &mut self,
        entry: &CohortEntry,
        to: &CohortCredit,
        age: u8,
        device: &mut CohortDevice,
    ) {
        if entry.is_install && device.credit != *to {
            let of = (&entry.member, &*device);
            for age in device.ages.iter() {
                self.rows.add(of, &device.credit, age, &ONE_DEVICE, -1);
                self.rows.add(of, to, age, &ONE_DEVICE, 1);
            }
            if let Some(age) = device.paid_ages.first() {
                self.rows.add(of, &device.credit, age, &ONE_PAYER, -1);
                self.rows.add(of, to, age, &ONE_PAYER, 1);
            }
            device.credit = to.clone();
            self.changed_devices.insert(entry.member.clone());
        }
        if !self.uncertain_ages.is_empty() {
            let uncertain = UncertainAge::of(&entry.member, device.installed_at, age);
            self.uncertain_ages.remove(&uncertain);
        }
        if device.ages.add(age) {
            let of = (&entry.member, &*device);
            self.rows.add(of, &device.credit, age, &ONE_DEVICE, 1);
            self.changed_devices.insert(entry.member.clone());
        }
    }
}

/// Figures for one active device.
const ONE_DEVICE: CohortFigures = CohortFigures {
    devices: 1,
    revenue_micros: 0,
    refunded_micros: 0,
    payers: 0,
};
/// Figures for one device that pays for the first time.
const ONE_PAYER: CohortFigures = CohortFigures {
    devices: 0,
    revenue_micros: 0,
    refunded_micros: 0,
    payers: 1,
};

/// Counts the activity of devices. `known` contains the installed devices; devices whose install is
/// among `entries` are added to it.
pub fn update_cohorts(
    entries: &[CohortEntry],
    known: &mut BTreeMap<CohortMember, CohortDevice>,
) -> CohortUpdate {
    let mut update = CohortUpdate::default();
    // A device's events that were received before its first `configure` call get their credit from
    // that call. In `entries` these events come before the install, so all installs are added
    // first.
    for entry in entries.iter().filter(|entry| entry.is_first_install()) {
        let Some(credit) = &entry.new_credit else {
            continue;
        };
        let device = known.entry(entry.member.clone());
        device.or_insert_with(|| CohortDevice {
            installed_at: entry.at,
            credit: credit.clone(),
            country: entry.country.clone(),
            ages: Ages::default(),
            paid_ages: Ages::default(),
        });
    }
    for entry in entries {
        let Some(device) = known.get_mut(&entry.member) else {
            continue;
        };
        let Some(age) = age_in_days(device.installed_at, entry.at) else {
            continue;
        };
        match &entry.new_credit {
            Some(to) => update.mark_active(entry, to, age, device),
            None if entry.is_install => update.withdraw(entry, device),
            // Day 0 is the day of the install, which stays with the device.
            None if age == 0 => {}
            None => {
                let uncertain = UncertainAge::of(&entry.member, device.installed_at, age);
                update.uncertain_ages.insert(uncertain);
            }
        }
        if entry.revenue_micros > 0 {
            if entry.new_credit.is_some() {
                update.mark_paid(entry, age, device);
            } else if device.paid_ages.has(age) {
                let day = UncertainAge::of_payment(&entry.member, device.installed_at, age);
                update.uncertain_payments.insert(day);
            }
        }
        let money = CohortFigures {
            revenue_micros: entry.revenue_micros,
            refunded_micros: entry.refunded_micros,
            ..CohortFigures::default()
        };
        if !money.is_zero() {
            let of = (&entry.member, &*device);
            if let Some(from) = &entry.old_credit {
                update.rows.add(of, from, age, &money, -1);
            }
            if let Some(to) = &entry.new_credit {
                update.rows.add(of, to, age, &money, 1);
            }
        }
    }
    update
}
