//! Decodes a postback's conversion value with the documents that the device may have used.
//!
//! A postback contains a value but not the version of the document that produced it. The value is
//! therefore decoded with every version that can have produced it. If the versions give the value
//! different meanings, the postback is credited to none of them, because a guess in a report looks
//! like a fact.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::skan::document::{CoarseValue, Condition, ConversionValue, Document};
use crate::skan::postback::Postback;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Longest time from the replacement of a document to the last postback that it can have produced:
/// 7 days in the device's cache, 35 days to the end of the third window, and Apple's longest delay
/// of 6 days.
pub const HORIZON_DAYS: u64 = 48;
/// [`HORIZON_DAYS`] as a duration.
pub const HORIZON: Duration = Duration::from_hours(HORIZON_DAYS * 24);

/// A document and the time from which it applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentVersion {
    /// Version number.
    pub number: i64,
    /// Time from which the version applies. It stops applying when the next version starts.
    pub applies_from: Timestamp,
    /// The document.
    pub document: Document,
}

/// Conversion value of a postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedValue {
    /// No value: withheld by Apple, or never set. Not zero.
    Nothing,
    /// A fine value.
    Fine(u8),
    /// A coarse value.
    Coarse(CoarseValue),
}

impl ReportedValue {
    /// Returns the conversion value of a postback.
    pub fn of(postback: &Postback) -> Self {
        match (postback.fine_value, postback.coarse_value) {
            (Some(fine), _) => Self::Fine(fine),
            (None, Some(coarse)) => Self::Coarse(coarse),
            (None, None) => Self::Nothing,
        }
    }
}

/// Decoded conversion value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedValue {
    /// `withheld`: there is no value.
    Withheld,
    /// `undecoded`: no document maps the value to conditions.
    Undecoded,
    /// `decoded`: one meaning, with its newest names.
    Decoded(Interpretation),
    /// `ambiguous`: several meanings, newest first. The postback is credited to none of them.
    Ambiguous(Vec<Interpretation>),
}

impl DecodedValue {
    /// Returns the keyword.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Withheld => "withheld",
            Self::Undecoded => "undecoded",
            Self::Decoded(_) => "decoded",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}

/// Meaning of a value according to one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpretation {
    /// Version number.
    pub version: i64,
    /// Postback window.
    pub window: u8,
    /// Currency of the thresholds.
    pub currency: Currency,
    /// The document's values that match, at least one. If several have the same fine or coarse
    /// value, the device may have meant any of them.
    pub values: Vec<ConversionValue>,
}

/// Possible range of the revenue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevenueRange {
    /// Lower bound, inclusive.
    pub min: Amount,
    /// Upper bound, exclusive, if there is one.
    pub max: Option<Amount>,
}

impl Interpretation {
    /// Returns the names of the values, in order of priority.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.name.as_str())
    }

    /// Returns the smallest range that covers the revenue of all matching values; `None` if one of
    /// the values has no condition on revenue.
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

    /// Returns the parts that must be equal for two versions to give a value the same meaning. The
    /// currency matters only if a condition has an amount.
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

/// Returns the revenue range of a value, summed over its events.
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

/// Decodes the value of a postback received at `received_at`. `versions` may be in any order.
///
/// A version that gives the value no meaning cannot have produced it and is ignored. Adding a value
/// to a document therefore makes no value ambiguous.
pub fn decode(
    reported: ReportedValue,
    sequence_index: u8,
    received_at: Timestamp,
    versions: &[DocumentVersion],
) -> DecodedValue {
    if reported == ReportedValue::Nothing {
        return DecodedValue::Withheld;
    }
    let in_force = versions_in_force(versions, received_at);
    let mut interpretations: Vec<Interpretation> = Vec::new();
    for version in in_force {
        let Some(interpretation) = interpret(version, sequence_index, reported) else {
            continue;
        };
        if !interpretations
            .iter()
            .any(|one| one.meaning() == interpretation.meaning())
        {
            interpretations.push(interpretation);
        }
    }
    match interpretations.len() {
        0 => DecodedValue::Undecoded,
        1 => DecodedValue::Decoded(interpretations.remove(0)),
        _ => DecodedValue::Ambiguous(interpretations),
    }
}

/// Returns the versions that applied at any time within [`HORIZON`] before `received_at`, newest
/// first.
pub fn versions_in_force(
    versions: &[DocumentVersion],
    received_at: Timestamp,
) -> Vec<&DocumentVersion> {
    let mut sorted: Vec<&DocumentVersion> = versions.iter().collect();
    sorted.sort_by_key(|version| std::cmp::Reverse((version.applies_from, version.number)));
    let mut in_force = Vec::new();
    for version in sorted {
        if version.applies_from > received_at {
            continue;
        }
        in_force.push(version);
        // Older versions ended when this version started, at least `HORIZON` before `received_at`.
        if version.applies_from.plus(HORIZON) <= received_at {
            break;
        }
    }
    in_force
}

/// Splits a period into parts with the same versions in force. The versions in force change when a
/// version starts to apply, and again [`HORIZON`] later, when postbacks from the version before it
/// can no longer arrive.
pub fn split_by_versions(
    (from, until): (Timestamp, Timestamp),
    versions: &[DocumentVersion],
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

/// Returns the time until which postbacks from a replaced version may still arrive.
pub fn ambiguous_until(changed_at: Timestamp) -> Timestamp {
    changed_at.plus(HORIZON)
}

/// Interprets a value with one version. A disabled window sets nothing, so its values have no
/// meaning.
fn interpret(
    version: &DocumentVersion,
    sequence_index: u8,
    reported: ReportedValue,
) -> Option<Interpretation> {
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
