//! The cohort report: cohorts with their costs, the measures by age, and the weighted average.

use super::{CohortReportQuery, CohortRow};
use crate::report::range::Span;
use crate::report::{Period, Spend, is_paid_network, ratio, share};
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};
use crate::vocabulary::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// A measure of a cohort at an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CohortMeasure {
    /// Devices active on the day, per install.
    Retention,
    /// Devices with a payment up to and including the day, per install.
    PayerShare,
    /// Net revenue up to and including the day, per install.
    RevenuePerInstall,
    /// Net revenue up to and including the day.
    CumulativeRevenue,
    /// Paid net revenue up to and including the day, per dollar of cost.
    PaidRoas,
    /// Net revenue up to and including the day, per dollar of cost, including organic revenue.
    Roas,
}

crate::keywords! {
    CohortMeasure {
        Retention => "retention",
        PayerShare => "payerShare",
        RevenuePerInstall => "revenuePerInstall",
        CumulativeRevenue => "cumulativeRevenue",
        PaidRoas => "paidRoas",
        Roas => "roas",
    }
}

impl CohortMeasure {
    /// Returns whether the measure needs ad costs.
    pub const fn needs_cost(self) -> bool {
        matches!(self, Self::PaidRoas | Self::Roas)
    }

    /// Returns the value; `None` if it cannot be computed.
    pub fn of(self, sums: &CohortSums) -> Option<Amount> {
        match self {
            Self::Retention => ratio(sums.devices.saturating_mul(MICROS_PER_UNIT), sums.installs),
            Self::PayerShare => ratio(sums.payers?.saturating_mul(MICROS_PER_UNIT), sums.installs),
            Self::RevenuePerInstall => ratio(sums.revenue_micros, sums.installs),
            Self::CumulativeRevenue => Some(Amount::from_micros(sums.revenue_micros)),
            Self::PaidRoas => share(sums.paid_micros?, sums.cost_micros?),
            Self::Roas => share(sums.revenue_micros, sums.cost_micros?),
        }
    }
}

/// What the measures at an age are computed from: of one cohort, or the sum of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CohortSums {
    /// Number of cohorts.
    pub cohorts: u32,
    /// Installs, whether active on the day or not.
    pub installs: i64,
    /// Devices active on the day.
    pub devices: i64,
    /// Devices with a payment up to and including the day; `None` if not all of them are counted yet.
    pub payers: Option<i64>,
    /// Net revenue up to and including the day, in millionths of a US dollar.
    pub revenue_micros: i64,
    /// Part of it that an ad or a link is credited with; `None` if the network is unknown.
    pub paid_micros: Option<i64>,
    /// Ad cost in millionths of a US dollar; `None` if unknown.
    pub cost_micros: Option<i64>,
}

impl CohortSums {
    /// Adds `other`. Payers, paid revenue and cost of the sum are unknown if either is.
    fn add(&mut self, other: &Self) {
        let sum = |one: Option<i64>, other: Option<i64>| Some(one?.saturating_add(other?));
        *self = Self {
            cohorts: self.cohorts.saturating_add(other.cohorts),
            installs: self.installs.saturating_add(other.installs),
            devices: self.devices.saturating_add(other.devices),
            payers: sum(self.payers, other.payers),
            revenue_micros: self.revenue_micros.saturating_add(other.revenue_micros),
            paid_micros: sum(self.paid_micros, other.paid_micros),
            cost_micros: sum(self.cost_micros, other.cost_micros),
        };
    }
}

/// Net revenue, active devices and new payers of a cohort on one day since install.
#[derive(Debug, Clone, Copy, Default)]
struct DayFigures {
    devices: i64,
    payers: i64,
    net: i64,
    organic_net: Option<i64>,
}

/// Devices that installed in the same period, and with the same value if the report is grouped.
#[derive(Debug, Clone)]
pub struct Cohort {
    /// Index of the install period.
    pub period: usize,
    /// One value per dimension of `group_by`.
    pub values: Vec<String>,
    /// Number of devices.
    pub installs: i64,
    /// Ad cost in millionths of a US dollar; `None` if unknown.
    pub cost: Option<i64>,
    /// Ages from 0 up to the latest that the first device may have reached.
    pub ages: Vec<CohortAge>,
}

/// A cohort at an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CohortAge {
    /// Days since the install.
    pub age: u8,
    /// Whether all devices have completed this day. If not, the figures are not final.
    pub is_complete: bool,
    /// Net revenue on this day, in millionths of a US dollar.
    pub net_micros: i64,
    /// What the measures are computed from.
    pub sums: CohortSums,
}

impl Cohort {
    /// Returns the cohort at an age; `None` if not even its first device can have reached it.
    pub fn at(&self, age: u8) -> Option<&CohortAge> {
        self.ages.get(usize::from(age))
    }

    /// Returns the highest age that all devices have completed.
    pub fn complete_age(&self) -> Option<u8> {
        let complete = self.ages.iter().filter(|one| one.is_complete);
        complete.map(|one| one.age).max()
    }
}

/// Returns whether every device of an install period has lived through the whole day of an age.
pub(super) fn is_complete((_, end): Period, age: u8, now: Timestamp) -> bool {
    end.plus(days(age.saturating_add(1))) <= now
}

fn days(number: u8) -> Duration {
    Duration::from_hours(24 * u64::from(number))
}

/// Joins rows and costs into cohorts, newest period first, then by value. A cost without installs
/// has its own cohort, so that the average includes it. With costs, `rows` come from
/// [`CohortReportQuery::split_by_network`]. `payers_from` is the time from which on the payers of all
/// installs are counted; `None` if all are.
pub fn cohort_report(
    rows: Vec<CohortRow>,
    query: &CohortReportQuery,
    spans: &[Span],
    spend: Option<&Spend>,
    payers_from: Option<Timestamp>,
    now: Timestamp,
) -> Vec<Cohort> {
    type Key = (Reverse<usize>, Vec<String>);
    let mut figures: BTreeMap<Key, BTreeMap<u8, DayFigures>> = BTreeMap::new();
    for mut row in rows {
        let network = query.report.network_of(&row.values);
        let is_paid = network.map(is_paid_network);
        row.values.truncate(query.report.group_by.len());
        let net = row.figures.net_micros();
        let organic = is_paid.map(|is_paid| if is_paid { 0 } else { net });
        let ages = figures
            .entry((Reverse(row.period), row.values))
            .or_default();
        let day = ages.entry(row.age).or_insert(DayFigures {
            organic_net: Some(0),
            ..DayFigures::default()
        });
        day.devices = day.devices.saturating_add(row.figures.devices);
        day.payers = day.payers.saturating_add(row.figures.payers);
        day.net = day.net.saturating_add(net);
        day.organic_net = day
            .organic_net
            .and_then(|sum| Some(sum.saturating_add(organic?)));
    }
    let mut costs: BTreeMap<Key, i64> = BTreeMap::new();
    for (span, values, cost) in spend
        .iter()
        .flat_map(|spend| spend.rows(spans, &query.report))
    {
        let sum = costs.entry((Reverse(span), values)).or_default();
        *sum = sum.saturating_add(cost);
    }
    for key in costs.keys() {
        figures.entry(key.clone()).or_default();
    }
    let cohort = |(key, ages): (Key, BTreeMap<u8, DayFigures>)| {
        let cost = spend.map(|_| costs.get(&key).copied().unwrap_or(0));
        let (Reverse(period), values) = key;
        let span = spans.get(period)?;
        // The install itself is an event on day 0.
        let installs = ages.get(&0).map_or(0, |first| first.devices);
        let knows_payers = payers_from.is_none_or(|from| from <= span.period.0);
        let start = CohortSums {
            cohorts: 1,
            installs,
            devices: 0,
            payers: knows_payers.then_some(0),
            revenue_micros: 0,
            paid_micros: Some(0),
            cost_micros: cost,
        };
        Some(Cohort {
            period,
            values,
            installs,
            cost,
            ages: accumulate(&ages, start, span.period, query.age_max, now),
        })
    };
    figures.into_iter().filter_map(cohort).collect()
}

/// Adds up revenue and payers by age, until the first device cannot have reached an age.
fn accumulate(
    by_day: &BTreeMap<u8, DayFigures>,
    mut sums: CohortSums,
    period: Period,
    age_max: u8,
    now: Timestamp,
) -> Vec<CohortAge> {
    let reached = (0..=age_max).take_while(|age| period.0.plus(days(*age)) <= now);
    let at = |age: u8| {
        let day = by_day.get(&age).copied().unwrap_or(DayFigures {
            organic_net: Some(0),
            ..DayFigures::default()
        });
        let paid = day
            .organic_net
            .map(|organic| day.net.saturating_sub(organic));
        let add = |sum: Option<i64>, more: Option<i64>| Some(sum?.saturating_add(more?));
        sums.devices = day.devices;
        sums.payers = add(sums.payers, Some(day.payers));
        sums.revenue_micros = sums.revenue_micros.saturating_add(day.net);
        sums.paid_micros = add(sums.paid_micros, paid);
        CohortAge {
            age,
            is_complete: is_complete(period, age, now),
            net_micros: day.net,
            sums,
        }
    };
    reached.map(at).collect()
}

/// Returns the sums over the cohorts in which every device has completed an age; `None` if there is
/// no such cohort. A measure of these sums is the weighted average: large cohorts weigh more, and
/// cohorts that are too young weigh nothing, neither in the numerator nor in the denominator.
pub fn weighted_average<'a>(
    cohorts: impl IntoIterator<Item = &'a Cohort>,
    age: u8,
) -> Option<CohortSums> {
    let at = cohorts.into_iter().filter_map(|cohort| cohort.at(age));
    let complete = at.filter(|one| one.is_complete).map(|one| one.sums);
    complete.reduce(|mut sum, one| {
        sum.add(&one);
        sum
    })
}

/// The same cohorts are followed to the highest age that at least one in this number of their
/// installs has completed. A smaller part says little about the others.
const FOLLOWED_PART: i64 = 4;

/// Returns the sums of the same cohorts at every age, from 0 on: of those that have completed the last
/// of these ages. Unlike those of [`weighted_average`], these sums never change from one age to the
/// next because other installs are counted, so a cumulative total falls only by refunds. Empty if no
/// cohort with installs has completed day 0.
pub fn same_cohorts(cohorts: &[Cohort], age_max: u8) -> Vec<CohortSums> {
    let installs = |age| weighted_average(cohorts, age).map_or(0, |sums| sums.installs);
    let at_start = installs(0);
    let is_large_enough = |age: &u8| {
        let installs = installs(*age);
        installs > 0 && installs.saturating_mul(FOLLOWED_PART) >= at_start
    };
    let Some(last) = (0..=age_max).rev().find(is_large_enough) else {
        return Vec::new();
    };
    let is_followed = |cohort: &&Cohort| cohort.at(last).is_some_and(|at| at.is_complete);
    let followed: Vec<&Cohort> = cohorts.iter().filter(is_followed).collect();
    let sums = |age| weighted_average(followed.iter().copied(), age);
    (0..=last).filter_map(sums).collect()
}

#[cfg(test)]
mod tests;
