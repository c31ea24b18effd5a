//! Figures that are counted but not yet merged into the roll-ups.
//!
//! A report reads the roll-ups and these figures in one snapshot and adds them up here, so it
//! requires no write access. A background worker merges the increments. A report adds the few that
//! are not merged yet.

use super::cardinality_cap::{CapDecisions, KnownValue};
use super::cohort::{
    CohortDevice, CohortFigures, CohortKey, CohortMember, CohortPlaceKey, CohortReportQuery,
    CohortRow, CohortTable,
};
use super::{
    Bucket, BucketKey, Dimension, Figures, Grain, Period, ReportQuery, Rollup, RollupRows,
    StatsRow, split_by_grain,
};
use crate::access::Environment;
use crate::refusal::Refusal;
use crate::vocabulary::id::{AppId, LinkId};
use std::collections::{BTreeMap, BTreeSet};

/// Changes made by merging increments. A report uses only the rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollupMerge {
    /// Rows to add to the roll-ups.
    pub rows: RollupRows,
    /// Devices whose cohort or ages change.
    pub devices: BTreeMap<CohortMember, CohortDevice>,
    /// Decisions on values that are new, or that now count elsewhere.
    pub cap_decisions: CapDecisions,
    /// Values that are known from now on.
    pub known: BTreeSet<KnownValue>,
}

/// A row's values by dimension.
type Values = Vec<(Dimension, String)>;

impl RollupRows {
    /// Returns the rows in one roll-up with their values by dimension.
    fn rows_of(&self, rollup: Rollup) -> Vec<(BucketKey, Values, Figures)> {
        let text = |dimension, value: &str| (dimension, value.to_owned());
        let network = |network| text(Dimension::Network, network);
        match rollup {
            Rollup::Networks => list(&self.networks, |key| (key.at, vec![network(key.network)])),
            Rollup::Campaigns => list(&self.campaigns, |key| {
                let campaign = text(Dimension::Campaign, &key.campaign);
                (
                    key.at,
                    vec![network(key.network), link_value(key.link), campaign],
                )
            }),
            Rollup::Credits => list(&self.credits, |key| {
                let values = vec![
                    network(key.network),
                    link_value(key.link),
                    text(Dimension::Campaign, &key.campaign),
                    text(Dimension::Adset, &key.adset),
                    text(Dimension::Ad, &key.ad),
                ];
                (key.at, values)
            }),
            Rollup::Names => list(&self.names, |key| {
                let source = text(Dimension::Source, key.source.as_str());
                (key.at, vec![text(Dimension::Event, &key.name), source])
            }),
            Rollup::Places => list(&self.places, |key| {
                let platform = text(Dimension::Platform, key.platform);
                (
                    key.at,
                    vec![text(Dimension::Country, &key.country), platform],
                )
            }),
            Rollup::Pivots => list(&self.pivots, |key| {
                let values = vec![
                    network(key.network),
                    text(Dimension::Campaign, &key.campaign),
                    text(Dimension::Country, &key.country),
                    text(Dimension::Platform, key.platform),
                ];
                (key.at, values)
            }),
        }
    }

    /// Adds the matching rows to those read from the roll-ups. Refuses a combination of dimensions
    /// that no roll-up covers.
    pub fn add_to_stats(
        &self,
        (app, environment): (AppId, Environment),
        query: &ReportQuery,
        mut stored: Vec<StatsRow>,
    ) -> Result<Vec<StatsRow>, Refusal> {
        let rollup = Rollup::for_dimensions(&query.dimensions()).ok_or_else(Refusal::no_rollup)?;
        let wanted = self.rows_of(rollup).into_iter().filter(|(at, values, _)| {
            let passes = |(dimension, wanted): &(Dimension, String)| {
                dimension.passes(wanted, value_of(values, *dimension))
            };
            at.app == app && at.environment == environment && query.filters.iter().all(passes)
        });
        let wanted = wanted.map(|(at, values, figures)| (at, (values, figures)));
        let mut added: BTreeMap<usize, BTreeMap<Vec<String>, Figures>> = BTreeMap::new();
        for (period, (values, figures)) in in_periods(&query.periods, wanted) {
            let values = query
                .group_by
                .iter()
                .map(|dimension| value_of(&values, *dimension).to_owned());
            let sum = added.entry(period).or_default().entry(values.collect());
            sum.or_default().add(&figures, 1);
        }
        for row in &mut stored {
            let figures = added
                .get_mut(&row.period)
                .and_then(|rows| rows.remove(&row.values));
            row.figures.add(&figures.unwrap_or_default(), 1);
        }
        for (period, rows) in added {
            stored.extend(rows.into_iter().map(|(values, figures)| StatsRow {
                period,
                values,
                figures,
            }));
        }
        stored.retain(|row| !row.figures.is_zero());
        stored.sort_by(|one, other| (one.period, &one.values).cmp(&(other.period, &other.values)));
        stored.truncate(row_limit(query.rows_max));
        Ok(stored)
    }

    /// Adds the matching cohort rows to those read from the roll-ups. Refuses a combination of
    /// dimensions that no table covers.
    pub fn add_to_cohorts(
        &self,
        (app, environment): (AppId, Environment),
        query: &CohortReportQuery,
        mut stored: Vec<CohortRow>,
    ) -> Result<Vec<CohortRow>, Refusal> {
        let table = query.table().ok_or_else(Refusal::no_rollup)?;
        let filters = &query.report.filters;
        let wanted = self.cohort_rows(table).into_iter();
        let wanted = wanted.filter(|(at, values, age, _)| {
            let passes = |(dimension, wanted): &(Dimension, String)| {
                dimension.passes(wanted, value_of(values, *dimension))
            };
            let is_in_scope = at.app == app && at.environment == environment;
            is_in_scope && *age <= query.age_max && filters.iter().all(passes)
        });
        let wanted = wanted.map(|(at, values, age, figures)| (at, (values, age, figures)));
        let mut added: BTreeMap<(usize, u8), BTreeMap<Vec<String>, CohortFigures>> =
            BTreeMap::new();
        for (period, (values, age, figures)) in in_periods(&query.report.periods, wanted) {
            let group_by = query.report.group_by.iter();
            let values = group_by.map(|dimension| value_of(&values, *dimension).to_owned());
            let rows = added.entry((period, age)).or_default();
            let sum = rows.entry(values.collect()).or_default();
            sum.add(&figures, 1);
        }
        for row in &mut stored {
            let rows = added.get_mut(&(row.period, row.age));
            let figures = rows.and_then(|rows| rows.remove(&row.values));
            row.figures.add(&figures.unwrap_or_default(), 1);
        }
        for ((period, age), rows) in added {
            stored.extend(rows.into_iter().map(|(values, figures)| CohortRow {
                period,
                values,
                age,
                figures,
            }));
        }
        stored.retain(|row| row.figures != CohortFigures::default());
        stored.truncate(row_limit(query.report.rows_max));
        Ok(stored)
    }

    /// Returns the rows in one cohort table with their values by dimension and their age.
    fn cohort_rows(&self, table: CohortTable) -> Vec<(BucketKey, Values, u8, CohortFigures)> {
        let text = |dimension, value: &str| (dimension, value.to_owned());
        match table {
            CohortTable::Places => {
                let row = |(key, figures): (&CohortPlaceKey, &CohortFigures)| {
                    let values = vec![text(Dimension::Country, &key.country)];
                    (key.at, values, key.age, *figures)
                };
                self.cohorts.places.iter().map(row).collect()
            }
            CohortTable::Credits => {
                let row = |(key, figures): (&CohortKey, &CohortFigures)| {
                    let values = vec![
                        text(Dimension::Network, key.credit.network),
                        link_value(key.credit.link),
                        text(Dimension::Campaign, &key.credit.campaign),
                    ];
                    (key.at, values, key.age, *figures)
                };
                self.cohorts.credits.iter().map(row).collect()
            }
        }
    }
}

fn link_value(link: Option<LinkId>) -> (Dimension, String) {
    let id = link.map(|link| link.to_string());
    (Dimension::Link, id.unwrap_or_default())
}

fn list<K>(
    rows: &BTreeMap<K, Figures>,
    read: impl Fn(&K) -> (BucketKey, Values),
) -> Vec<(BucketKey, Values, Figures)> {
    rows.iter()
        .map(|(key, figures)| {
            let (at, values) = read(key);
            (at, values, *figures)
        })
        .collect()
}

fn value_of(values: &Values, dimension: Dimension) -> &str {
    let found = values.iter().find(|(one, _)| *one == dimension);
    found.map_or("", |(_, value)| value)
}

fn row_limit(rows_max: u32) -> usize {
    usize::try_from(rows_max).unwrap_or(usize::MAX)
}

/// Returns each row once for every period that contains it.
fn in_periods<T: Clone>(
    periods: &[Period],
    rows: impl Iterator<Item = (BucketKey, T)>,
) -> Vec<(usize, T)> {
    let mut by_bucket: BTreeMap<(Grain, Bucket), Vec<T>> = BTreeMap::new();
    for (at, row) in rows {
        let bucket = by_bucket.entry((at.grain, at.bucket));
        bucket.or_default().push(row);
    }
    if by_bucket.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for piece in split_by_grain(periods) {
        let (from, until) = (Bucket::of(piece.from), Bucket::of(piece.until));
        for (_, rows) in by_bucket.range((piece.grain, from)..(piece.grain, until)) {
            found.extend(rows.iter().map(|row| (piece.period, row.clone())));
        }
    }
    found
}

#[cfg(test)]
mod tests;
