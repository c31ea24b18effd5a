//! Traffic anomalies: hours with far more installs, events or revenue than the last weeks show.
//!
//! A figure is compared with the median and the median absolute deviation of the same figure. Both
//! ignore outliers, so one attack does not hide the next. Falls are not reported: they are outages,
//! which the integrations and the metrics show.

use super::Figures;
use crate::vocabulary::digest::{Digest, hex};
use crate::vocabulary::id::LinkId;
use crate::vocabulary::money::MICROS_PER_UNIT;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

const MILLIS_PER_HOUR: i64 = 60 * 60 * 1_000;
const HOURS_PER_WEEK: i64 = 7 * 24;

/// Hours of history that a figure is compared with: four weeks, so that every hour of the week
/// occurs four times.
pub const HISTORY_HOURS: i64 = 4 * HOURS_PER_WEEK;
/// Hours since the first activity that are needed for a comparison. A new app has no usual traffic.
const HISTORY_HOURS_MIN: i64 = 3 * 24;
/// Hours since the first activity from which the same hours of the week are compared.
const SEASONAL_HOURS_MIN: i64 = 3 * HOURS_PER_WEEK;
/// Hours before and after the same hour of the week that are compared too. With four weeks this
/// gives twelve samples.
const SEASONAL_MARGIN_HOURS: i64 = 1;
/// Links that are compared per app and hour: those with the highest figures. Each takes a query.
pub const LINKS_MAX: usize = 20;
/// Anomalies that are raised per app and hour, the most extreme first. More would only repeat the
/// message.
pub const RAISED_MAX: usize = 5;
/// Hours for which overviews show an anomaly: a week.
const SHOWN_HOURS: i64 = HOURS_PER_WEEK;
/// How long a subject raises no second anomaly: a day, in milliseconds.
const REPEAT_AFTER_MILLIS: i64 = 24 * MILLIS_PER_HOUR;

/// Deviations above the median from which an hour is an anomaly.
const DEVIATIONS: i128 = 6;
/// Ratio of the standard deviation to the median absolute deviation of a normal distribution, in
/// ten-thousandths.
const SIGMA_PER_MAD: i128 = 14_826;
/// Smallest deviation in ten-thousandths of the median. Steady figures would otherwise have none.
const DEVIATION_MIN: i128 = 2_500;
const TEN_THOUSAND: i128 = 10_000;

/// Returns the time since which overviews show anomalies.
pub const fn shown_since(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(
        now.as_millis()
            .saturating_sub(SHOWN_HOURS * MILLIS_PER_HOUR),
    )
}

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficFigure {
    /// Installs.
    Installs,
    /// Events.
    Events,
    /// Revenue, in millionths of a US dollar.
    Revenue,
}

crate::keywords! {
    TrafficFigure {
        Installs => "installs",
        Events => "events",
        Revenue => "revenue",
    }
}

impl TrafficFigure {
    /// Returns the figure's value. Held installs and their revenue count too: a flood is often held.
    pub const fn of(self, figures: &Figures) -> i64 {
        match self {
            Self::Installs => figures.installs.saturating_add(figures.held_installs),
            Self::Events => figures.events,
            Self::Revenue => figures
                .revenue_micros
                .saturating_add(figures.held_revenue_micros),
        }
    }

    /// Returns the value below which an hour is never an anomaly: what a small app can have on a
    /// good day.
    pub const fn floor(self) -> i64 {
        match self {
            Self::Installs => 50,
            Self::Events => 1_000,
            Self::Revenue => 500_000_000,
        }
    }
}

/// Installs from one address in an hour below which the address is never an anomaly. Offices and
/// carriers share addresses.
pub const ADDRESS_FLOOR: i64 = 30;

/// What an anomaly is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficSubject {
    /// The whole app.
    App,
    /// A link.
    Link(LinkId),
    /// An address range: an IPv4 address or an IPv6 /64 network, by its fingerprint. The fingerprint
    /// is derived from a keyed hash that changes daily, so it reveals no address.
    Address(String),
}

/// Bytes of an address's keyed hash that its fingerprint shows. Enough to tell the busy addresses of
/// a day apart.
const FINGERPRINT_BYTES: usize = 6;

impl TrafficSubject {
    /// Returns the subject for an address's keyed hash.
    pub fn address(hash: &Digest) -> Self {
        Self::Address(hex(&hash.as_bytes()[..FINGERPRINT_BYTES]))
    }

    /// Returns the stored kind: `app`, `link` or `address`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Link(_) => "link",
            Self::Address(_) => "address",
        }
    }

    /// Returns the link id or the fingerprint; empty for the app.
    pub fn id(&self) -> String {
        match self {
            Self::App => String::new(),
            Self::Link(link) => link.to_string(),
            Self::Address(fingerprint) => fingerprint.clone(),
        }
    }

    /// Reads a stored subject.
    pub fn parse(kind: &str, id: &str) -> Option<Self> {
        match kind {
            "app" => Some(Self::App),
            "link" => LinkId::parse(id).ok().map(Self::Link),
            "address" => Some(Self::Address(id.to_owned())),
            _ => None,
        }
    }
}

/// An anomaly of one subject, with the hour that raised it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficAnomaly {
    /// What it is about.
    pub subject: TrafficSubject,
    /// The figure that exceeded its limit most.
    pub figure: TrafficFigure,
    /// Start of the hour.
    pub hour: Timestamp,
    /// Value in the hour.
    pub value: i64,
    /// Median of the compared hours.
    pub expected: i64,
    /// When the subject's figures were normal again; `None` while they are not.
    pub ended_at: Option<Timestamp>,
}

/// Usual value of a figure, in quarters of a unit, so that medians of two values stay exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    median: i128,
    deviation: i128,
}

/// Quarters per unit: each median may halve once, and there are two.
const QUARTERS: i128 = 4;

/// Returns the median of values, doubled.
fn doubled_median(mut values: Vec<i128>) -> i128 {
    values.sort_unstable();
    let middle = values.len() / 2;
    let upper = values.get(middle).copied().unwrap_or(0);
    let lower = if values.len().is_multiple_of(2) && middle > 0 {
        values.get(middle - 1).copied().unwrap_or(upper)
    } else {
        upper
    };
    lower + upper
}

impl Baseline {
    /// Computes the usual value. The order of the samples does not matter.
    pub fn of(samples: &[i64]) -> Self {
        let median = doubled_median(samples.iter().map(|value| i128::from(*value)).collect());
        let distances = samples
            .iter()
            .map(|value| (2 * i128::from(*value) - median).abs());
        Self {
            median: 2 * median,
            deviation: doubled_median(distances.collect()),
        }
    }

    /// Returns the median, rounded down.
    pub fn expected(&self) -> i64 {
        i64::try_from(self.median.div_euclid(QUARTERS)).unwrap_or(i64::MAX)
    }

    /// Returns by how many ten-thousandths a value exceeds its limit; `None` if it does not.
    pub fn excess(&self, value: i64, floor: i64) -> Option<i128> {
        if value < floor {
            return None;
        }
        let spread = (self.deviation * SIGMA_PER_MAD).max(self.median.max(0) * DEVIATION_MIN);
        let limit = self.median * TEN_THOUSAND + DEVIATIONS * spread;
        let value = i128::from(value) * QUARTERS * TEN_THOUSAND;
        (value > limit).then(|| (value - limit) * TEN_THOUSAND / limit.max(QUARTERS * TEN_THOUSAND))
    }
}

/// Returns the values that an hour is compared with: hours without a value count as zero. With
/// enough history these are the same hours of the week, otherwise all hours since the first
/// activity. `None` if there is too little history.
pub fn samples(history: &[(Timestamp, i64)], hour: Timestamp) -> Option<Vec<i64>> {
    let age = |at: Timestamp| (hour.as_millis() - at.as_millis()).div_euclid(MILLIS_PER_HOUR);
    let known: BTreeMap<i64, i64> = history
        .iter()
        .map(|(at, value)| (age(*at), *value))
        .filter(|(age, _)| (1..=HISTORY_HOURS).contains(age))
        .collect();
    let active = known.iter().rev().find(|(_, value)| **value != 0);
    let oldest = *active?.0;
    if oldest < HISTORY_HOURS_MIN {
        return None;
    }
    let is_compared = |age: &i64| {
        let from_same_hour = (age + SEASONAL_MARGIN_HOURS).rem_euclid(HOURS_PER_WEEK);
        oldest < SEASONAL_HOURS_MIN || from_same_hour <= 2 * SEASONAL_MARGIN_HOURS
    };
    let ages = (1..=oldest).filter(is_compared);
    Some(
        ages.map(|age| known.get(&age).copied().unwrap_or(0))
            .collect(),
    )
}

/// A figure of a subject in one hour, with its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficSeries {
    /// What the figure is about.
    pub subject: TrafficSubject,
    /// The figure.
    pub figure: TrafficFigure,
    /// Value below which the hour is never an anomaly.
    pub floor: i64,
    /// Value in the hour.
    pub value: i64,
    /// Values in earlier hours; missing hours are zero.
    pub history: Vec<(Timestamp, i64)>,
}

impl TrafficSeries {
    /// Returns the anomaly of the hour and its excess; `None` if the hour is normal or cannot be
    /// compared.
    fn judge(&self, hour: Timestamp) -> Option<(i128, TrafficAnomaly)> {
        let baseline = Baseline::of(&samples(&self.history, hour)?);
        let excess = baseline.excess(self.value, self.floor)?;
        let anomaly = TrafficAnomaly {
            subject: self.subject.clone(),
            figure: self.figure,
            hour,
            value: self.value,
            expected: baseline.expected(),
            ended_at: None,
        };
        Some((excess, anomaly))
    }
}

/// Result of checking an app's hour.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficCheck {
    /// New anomalies, each with an alert.
    pub raised: Vec<TrafficAnomaly>,
    /// Subjects whose figures are normal again.
    pub ended: Vec<TrafficSubject>,
}

/// Checks an hour. `known` contains the latest anomaly of each subject. A subject raises one anomaly
/// until its figures are normal again, and at most one per day.
pub fn check_hour(
    hour: Timestamp,
    series: &[TrafficSeries],
    known: &[TrafficAnomaly],
) -> TrafficCheck {
    let mut found: Vec<(i128, TrafficAnomaly)> =
        series.iter().filter_map(|one| one.judge(hour)).collect();
    found.sort_by(|(one, first), (other, second)| {
        let order = other.cmp(one).then(first.subject.cmp(&second.subject));
        order.then(first.figure.cmp(&second.figure))
    });
    let mut check = TrafficCheck::default();
    let mut unusual: Vec<TrafficSubject> = Vec::new();
    for (_, anomaly) in found {
        if unusual.contains(&anomaly.subject) {
            continue;
        }
        unusual.push(anomaly.subject.clone());
        let is_new = known
            .iter()
            .filter(|one| one.subject == anomaly.subject)
            .all(|one| may_raise_again(one, hour));
        if is_new && check.raised.len() < RAISED_MAX {
            check.raised.push(anomaly);
        }
    }
    let is_over = |one: &&TrafficAnomaly| one.ended_at.is_none() && !unusual.contains(&one.subject);
    check.ended = known
        .iter()
        .filter(is_over)
        .map(|one| one.subject.clone())
        .collect();
    check
}

const fn may_raise_again(earlier: &TrafficAnomaly, hour: Timestamp) -> bool {
    let since = hour.as_millis().saturating_sub(earlier.hour.as_millis());
    earlier.ended_at.is_some() && since >= REPEAT_AFTER_MILLIS
}

/// Returns the message of an anomaly's alert. It contains no address.
pub fn message(anomaly: &TrafficAnomaly) -> String {
    let subject = match &anomaly.subject {
        TrafficSubject::App => "of the app".to_owned(),
        TrafficSubject::Link(link) => format!("of link {link}"),
        TrafficSubject::Address(fingerprint) => {
            format!("from one address range (fingerprint {fingerprint})")
        }
    };
    let figure = anomaly.figure;
    let text = |value: i64| match figure {
        TrafficFigure::Installs | TrafficFigure::Events => value.to_string(),
        TrafficFigure::Revenue => format!("{} USD", value / MICROS_PER_UNIT),
    };
    let hour = jiff::Timestamp::from_millisecond(anomaly.hour.as_millis()).unwrap_or_default();
    format!(
        "Unusual {} {subject} in the hour from {hour}: {}. Usual: {}.",
        figure.as_str(),
        text(anomaly.value),
        text(anomaly.expected)
    )
}

#[cfg(test)]
mod tests;
