//! Cohorts: what devices that were installed together do in the days after.
//!
//! A device's age counts whole days of 24 hours since its install, so that it is the same in every time zone. A
//! device is seen at an age when it has an event then, and counts once for it; money counts at the age of its
//! event. Website events belong to their click and not to an install, so they are in no cohort, and neither are
//! those of devices that never were configured.
//!
//! An event that becomes another device's, as those of a subscription may, takes its money along to the micro-unit.
//! Whether the device that it leaves was seen on that day by something else only its other events can tell: such an
//! age is a [`Doubt`], and whoever has the events is asked.

use super::cap::{Fates, Value};
use super::grain::Grain;
use super::rollup::Stretch;
use super::{Figures, OTHER, Period};
use crate::access::Environment;
use crate::device::DeviceKey;
use crate::event::{CREDITED_TO_ITS_OWN_CLICK, Credit, Event, name};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The last age that is counted: a little more than four months, and as many bits as a number has.
pub const AGE_DAYS_MAX: u8 = 127;
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

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
    fn note(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << age;
        self.0 != before
    }

    /// Forgets an age; false when it was not noted.
    fn forget(&mut self, age: u8) -> bool {
        let before = self.0;
        self.0 &= !(1 << age);
        self.0 != before
    }

    fn each(self) -> impl Iterator<Item = u8> {
        (0..=AGE_DAYS_MAX).filter(move |age| self.0 & (1 << age) != 0)
    }
}

/// How many whole days after its install something happened on a device; nothing when it is too long ago. What
/// happened before the first call counts as its first day.
pub fn age(installed_at: Timestamp, at: Timestamp) -> Option<u8> {
    let days = at.as_millis().saturating_sub(installed_at.as_millis()) / MILLIS_PER_DAY;
    let age = u8::try_from(days.max(0)).ok();
    age.filter(|age| *age <= AGE_DAYS_MAX)
}

/// A device of an app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct Member {
    pub app: AppId,
    pub environment: Environment,
    pub device: DeviceKey,
}

/// What a cohort's installs are credited to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortCredit {
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
}

impl From<&Credit> for CohortCredit {
    fn from(credit: &Credit) -> Self {
        Self {
            network: credit.network.as_str(),
            link: credit.link,
            campaign: credit.campaign.id.clone().unwrap_or_default(),
        }
    }
}

/// Something that a device did, as cohorts count it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortEntry {
    /// Which device.
    pub member: Member,
    /// When.
    pub at: Timestamp,
    /// Where; empty where that is not known.
    pub country: String,
    /// Whether it is the install itself.
    pub is_install: bool,
    /// What it brought.
    pub revenue_micros: i64,
    /// What was given back.
    pub refunded_micros: i64,
    /// What it was counted under before; nothing when it is new here.
    pub from: Option<CohortCredit>,
    /// What it counts under now; nothing when it is no longer the device's.
    pub to: Option<CohortCredit>,
}

impl CohortEntry {
    /// An event, where it belongs to an install.
    pub fn of(event: &Event) -> Option<Self> {
        let credit = event.credit.as_ref()?;
        let device = event.device.clone()?;
        if event.source == CREDITED_TO_ITS_OWN_CLICK {
            return None;
        }
        let figures = Figures::of_event(event);
        Some(Self {
            member: Member {
                app: event.app,
                environment: event.environment,
                device,
            },
            at: event.occurred_at,
            country: event.country.clone().unwrap_or_default(),
            is_install: event.own && event.name == name::INSTALL,
            revenue_micros: figures.revenue_micros,
            refunded_micros: figures.refunded_micros,
            from: None,
            to: Some(credit.into()),
        })
    }

    /// The same event when it was credited elsewhere before.
    #[must_use]
    pub fn moved(self, from: Option<Credit>) -> Self {
        Self {
            from: from.as_ref().map(CohortCredit::from),
            ..self
        }
    }

    /// An event that is no longer what it was counted as, be it by its device, its credit or its money.
    pub fn replaced(before: &Event, now: &Event) -> impl Iterator<Item = Self> {
        let (before, now) = (Self::of(before), Self::of(now));
        let differs = before != now;
        let pair = before.map(Self::left).into_iter().chain(now);
        pair.filter(move |_| differs)
    }

    /// The same event when it is no longer the device's.
    fn left(self) -> Self {
        Self {
            from: self.to,
            to: None,
            ..self
        }
    }

    const fn is_first(&self) -> bool {
        self.is_install && self.from.is_none()
    }
}

/// A device that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// When.
    pub installed_at: Timestamp,
    /// What the install is credited to now.
    pub credit: CohortCredit,
    /// Where it was installed.
    pub country: String,
    /// When it was seen since.
    pub ages: Ages,
}

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

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// By credit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortKey {
    /// When the devices were installed.
    pub at: Stretch,
    pub credit: CohortCredit,
    pub age: u8,
}

/// By country.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortPlaceKey {
    /// When the devices were installed.
    pub at: Stretch,
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
    fn add(
        &mut self,
        of: (&Member, &Enrolled),
        credit: &CohortCredit,
        age: u8,
        figures: &CohortFigures,
        sign: i64,
    ) {
        let (member, enrolled) = of;
        let at = Stretch::of(member.app, member.environment, enrolled.installed_at);
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
    pub fn values(&self) -> BTreeSet<Value> {
        let campaigns = self.credits.keys();
        campaigns
            .filter_map(|key| Value::campaign(&key.at, &key.credit.campaign))
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
    pub(super) fn correct(&mut self, stored: &Self) {
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

    fn drop_zeros(&mut self) {
        self.credits.retain(|_, figures| !figures.is_zero());
        self.places.retain(|_, figures| !figures.is_zero());
    }

    /// In every grain, and under the names that are told apart.
    pub(super) fn as_stored(&self, fates: &Fates) -> Self {
        let mut rows = Self::default();
        for (key, figures) in &self.credits {
            let mut credit = key.credit.clone();
            let campaign = Value::campaign(&key.at, &credit.campaign);
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

/// An age that a device was counted as seen at, and maybe was not: an event of that day is no longer its.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    /// Which device.
    pub member: Member,
    /// The first moment of that day.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
    age: u8,
}

impl Doubt {
    fn of(member: &Member, installed_at: Timestamp, age: u8) -> Self {
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
pub struct Enrollment {
    /// What is added to the cohorts.
    pub rows: CohortRows,
    /// The devices of which something else is known now.
    pub changed: BTreeSet<Member>,
    /// What is to be asked of the events, as they are after all that was counted. Nearly always nothing.
    pub doubts: BTreeSet<Doubt>,
}

impl Enrollment {
    /// The device has no event that counts on the day of a doubt: it was not seen then.
    pub fn unsee(&mut self, doubt: &Doubt, known: &mut BTreeMap<Member, Enrolled>) {
        if let Some(enrolled) = known.get_mut(&doubt.member)
            && enrolled.ages.forget(doubt.age)
        {
            let of = (&doubt.member, &*enrolled);
            self.rows.add(of, &enrolled.credit, doubt.age, &SEEN, -1);
            self.changed.insert(doubt.member.clone());
        }
    }

    /// Counts that a device was seen, and moves all its ages along with its install.
    fn see(&mut self, entry: &CohortEntry, to: &CohortCredit, age: u8, enrolled: &mut Enrolled) {
        if entry.is_install && entry.from.is_some() && enrolled.credit != *to {
            let of = (&entry.member, &*enrolled);
            for age in enrolled.ages.each() {
                self.rows.add(of, &enrolled.credit, age, &SEEN, -1);
                self.rows.add(of, to, age, &SEEN, 1);
            }
            enrolled.credit = to.clone();
            self.changed.insert(entry.member.clone());
        }
        if !self.doubts.is_empty() {
            let doubt = Doubt::of(&entry.member, enrolled.installed_at, age);
            self.doubts.remove(&doubt);
        }
        if enrolled.ages.note(age) {
            let of = (&entry.member, &*enrolled);
            self.rows.add(of, &enrolled.credit, age, &SEEN, 1);
            self.changed.insert(entry.member.clone());
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
pub fn enroll(entries: &[CohortEntry], known: &mut BTreeMap<Member, Enrolled>) -> Enrollment {
    let mut all = Enrollment::default();
    // Events that came before the first call are credited with it, and come before the install here.
    for entry in entries.iter().filter(|entry| entry.is_first()) {
        let Some(credit) = &entry.to else { continue };
        let enrolled = known.entry(entry.member.clone());
        enrolled.or_insert_with(|| Enrolled {
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
        let Some(age) = age(enrolled.installed_at, entry.at) else {
            continue;
        };
        match &entry.to {
            Some(to) => all.see(entry, to, age, enrolled),
            // The first day is that of the install, which stays.
            None if age == 0 => {}
            None => {
                let doubt = Doubt::of(&entry.member, enrolled.installed_at, age);
                all.doubts.insert(doubt);
            }
        }
        let money = CohortFigures {
            devices: 0,
            revenue_micros: entry.revenue_micros,
            refunded_micros: entry.refunded_micros,
        };
        if !money.is_zero() {
            let of = (&entry.member, &*enrolled);
            if let Some(from) = &entry.from {
                all.rows.add(of, from, age, &money, -1);
            }
            if let Some(to) = &entry.to {
                all.rows.add(of, to, age, &money, 1);
            }
        }
    }
    all
}

/// By what cohorts can be told apart, beside when they were installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CohortDimension {
    /// Who is credited.
    Network,
    /// Which link.
    Link,
    /// The campaign's id.
    Campaign,
    /// Two letters.
    Country,
}

impl CohortDimension {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Network, Self::Link, Self::Campaign, Self::Country];

    /// As asked for and answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Link => "link",
            Self::Campaign => "campaign",
            Self::Country => "country",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
    }
}

/// What is asked of the cohorts of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortQuestion {
    /// When the devices were installed: a period a cohort.
    pub periods: Vec<Period>,
    /// What else is told apart.
    pub by: Option<CohortDimension>,
    /// Ages up to this one.
    pub age_max: u8,
    /// Rows, at most.
    pub rows_max: u32,
}

/// What devices of one cohort did at one age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortRow {
    /// Which of the periods.
    pub period: usize,
    /// The value of the dimension that was asked for; empty where there is none.
    pub value: String,
    /// How many days after the install.
    pub age: u8,
    /// The figures.
    pub figures: CohortFigures,
}

#[cfg(test)]
mod tests;
