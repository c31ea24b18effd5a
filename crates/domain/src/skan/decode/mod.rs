//! What a number in a postback says, through the documents that the device may have held.
//!
//! A postback carries a number and not the version of the document that made it. So every version
//! that can have made it is asked. Where they disagree, nobody is credited: a guess in a report
//! looks like a fact.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::skan::document::{CoarseValue, Condition, ConversionValue, Document};
use crate::skan::postback::Postback;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// The longest way from a document to a postback: 7 days that a device keeps it, 35 to the end of
/// the third window, 6 of Apple's longest delay.
pub const HORIZON_DAYS: u64 = 48;
/// The same as a duration.
pub const HORIZON: Duration = Duration::from_hours(HORIZON_DAYS * 24);

/// A document, and the moment from which it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub number: i64,
    /// It held until the next one.
    pub applies_from: Timestamp,
    /// What it says.
    pub document: Document,
}

/// The number of a postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedValue {
    /// None: withheld by Apple, or never set. Not zero.
    Nothing,
    /// A fine value.
    Fine(u8),
    /// A coarse value.
    Coarse(CoarseValue),
}

impl ReportedValue {
    /// The number of a postback.
    pub fn of(postback: &Postback) -> Self {
        match (postback.fine_value, postback.coarse_value) {
            (Some(fine), _) => Self::Fine(fine),
            (None, Some(coarse)) => Self::Coarse(coarse),
            (None, None) => Self::Nothing,
        }
    }
}

/// What a number says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedValue {
    /// `withheld`: there is no number.
    Withheld,
    /// `undecoded`: no document gives it a meaning.
    Undecoded,
    /// `decoded`: one meaning, under its newest names.
    Decoded(Interpretation),
    /// `ambiguous`: several meanings, newest first. Credited to none of them.
    Ambiguous(Vec<Interpretation>),
}

impl DecodedValue {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Withheld => "withheld",
            Self::Undecoded => "undecoded",
            Self::Decoded(_) => "decoded",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}

/// What one version says of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpretation {
    /// Which version.
    pub version: i64,
    /// Of which window.
    pub window: u8,
    /// The currency of its thresholds.
    pub currency: Currency,
    /// At least one; several where they share the number. Any of them may be meant.
    pub values: Vec<ConversionValue>,
}

/// What the revenue must have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevenueRange {
    /// This or more.
    pub min: Amount,
    /// Less than this, where there is a bound.
    pub max: Option<Amount>,
}

impl Interpretation {
    /// The names of its values, in order of priority.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.name.as_str())
    }

    /// The range that holds the revenue whichever of the values is meant; `None` where one of them
    /// says nothing about revenue.
    pub fn revenue(&self) -> Option<RevenueRange> {
        let mut ranges = self.values.iter().map(revenue_of);
        let first = ranges.next()??;
        ranges.try_fold(first, |known, next| {
            let next = next?;
            Some(RevenueRange {
                min: known.min.min(next.min),
                max: known.max.zip(next.max).map(|(one, other)| one.max(other)),
            })
        })
    }

    /// What must be the same in two versions for a number to mean the same. The currency counts where
    /// an amount is in it.
    fn meaning(&self) -> (Option<Currency>, BTreeSet<BTreeSet<&Condition>>) {
        let mut conditions = self.values.iter().flat_map(|value| &value.conditions);
        let priced = conditions.any(bounds_revenue);
        let sets = self.values.iter().map(|value| value.conditions.iter());
        (
            priced.then_some(self.currency),
            sets.map(Iterator::collect).collect(),
        )
    }
}

fn bounds_revenue(condition: &Condition) -> bool {
    condition.min_revenue.is_some() || condition.max_revenue.is_some()
}

/// The sum over the events that a value bounds the revenue of.
fn revenue_of(value: &ConversionValue) -> Option<RevenueRange> {
    let mut events: BTreeMap<&str, (i64, Option<i64>)> = BTreeMap::new();
    for condition in value.conditions.iter().filter(|one| bounds_revenue(one)) {
        let (min, max) = events.entry(&condition.event).or_default();
        *min = (*min).max(condition.min_revenue.map_or(0, Amount::micros));
        let bound = condition.max_revenue.map(Amount::micros);
        *max = max.map_or(bound, |max| Some(bound.map_or(max, |bound| max.min(bound))));
    }
    if events.is_empty() {
        return None;
    }
    let sum = |total: i64, one: i64| total.saturating_add(one);
    let min = events.values().map(|(min, _)| *min).fold(0, sum);
    let max: Option<Vec<i64>> = events.values().map(|(_, max)| *max).collect();
    Some(RevenueRange {
        min: Amount::from_micros(min),
        max: max.map(|bounds| Amount::from_micros(bounds.into_iter().fold(0, sum))),
    })
}

/// Decodes the number of a postback received at a moment, by the versions there have been, in any
/// order.
///
/// A version that gives the number no meaning cannot have made it, and has no say: adding a value
/// to a document makes no other number ambiguous, nor its own.
pub fn decode(
    reported: ReportedValue,
    sequence_index: u8,
    received_at: Timestamp,
    versions: &[Version],
) -> DecodedValue {
    if reported == ReportedValue::Nothing {
        return DecodedValue::Withheld;
    }
    let held = versions_in_force(versions, received_at);
    let mut readings: Vec<Interpretation> = Vec::new();
    for version in held {
        let Some(reading) = read(version, sequence_index, reported) else {
            continue;
        };
        if !readings
            .iter()
            .any(|one| one.meaning() == reading.meaning())
        {
            readings.push(reading);
        }
    }
    match readings.len() {
        0 => DecodedValue::Undecoded,
        1 => DecodedValue::Decoded(readings.remove(0)),
        _ => DecodedValue::Ambiguous(readings),
    }
}

/// The versions that held at any moment of the horizon before `received_at`, newest first.
pub fn versions_in_force(versions: &[Version], received_at: Timestamp) -> Vec<&Version> {
    let mut sorted: Vec<&Version> = versions.iter().collect();
    sorted.sort_by_key(|version| std::cmp::Reverse((version.applies_from, version.number)));
    let mut held = Vec::new();
    for version in sorted {
        if version.applies_from > received_at {
            continue;
        }
        held.push(version);
        // What came before it ended with it, and so outside the horizon.
        if version.applies_from.plus(HORIZON) <= received_at {
            break;
        }
    }
    held
}

/// The parts of a period in each of which the same versions were in force: that changes when one begins to apply, and a
/// horizon later, when the one before it no longer can have made anything.
pub fn split_by_versions(
    (from, until): (Timestamp, Timestamp),
    versions: &[Version],
) -> Vec<(Timestamp, Timestamp)> {
    let starts = versions.iter().map(|version| version.applies_from);
    let mut changes: Vec<Timestamp> = starts
        .flat_map(|start| [start, start.plus(HORIZON)])
        .filter(|change| from < *change && *change < until)
        .collect();
    changes.extend([from, until]);
    changes.sort_unstable();
    changes.dedup();
    changes.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Until when the postbacks of a version that was just replaced may still arrive.
pub fn ambiguous_until(changed_at: Timestamp) -> Timestamp {
    changed_at.plus(HORIZON)
}

/// What one version says. A disabled window sets nothing, so nothing in it has a meaning.
fn read(version: &Version, sequence_index: u8, reported: ReportedValue) -> Option<Interpretation> {
    let document = &version.document;
    let mut windows = document.windows.iter();
    let window = windows.find(|window| window.enabled && window.index == sequence_index)?;
    let means = |value: &&ConversionValue| match reported {
        ReportedValue::Nothing => false,
        ReportedValue::Fine(fine) => value.fine_value == Some(fine),
        ReportedValue::Coarse(coarse) => value.coarse_value == coarse,
    };
    let values: Vec<ConversionValue> = window.values.iter().filter(means).cloned().collect();
    (!values.is_empty()).then_some(Interpretation {
        version: version.number,
        window: sequence_index,
        currency: document.currency,
        values,
    })
}

#[cfg(test)]
mod tests;
