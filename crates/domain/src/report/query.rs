//! Queries over figures, and the roll-up that each query reads.

use super::{Figures, Period};
use crate::device::Platform;
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::time::Timestamp;

/// Maximum number of dimensions, and of filters, per query. More would give too many rows with
/// figures too small to mean anything.
pub const DIMENSIONS_MAX: usize = 3;

/// Number of values that the dimension network can have: each credited network, and none.
const NETWORK_VALUES_MAX: u32 = 8;

/// Label for values beyond the daily limit of distinct values.
pub const OTHER: &str = "(other)";

/// Filter by platform that matches apps, so without visitors of websites and their payments.
pub const APP_PLATFORMS: &str = "app";

/// Dimension to group figures by, besides time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Credited network.
    Network,
    /// Link.
    Link,
    /// Campaign id.
    Campaign,
    /// Ad set id.
    Adset,
    /// Ad id.
    Ad,
    /// Country, two letters.
    Country,
    /// Platform.
    Platform,
    /// Event name.
    Event,
    /// Event source.
    Source,
}

crate::keywords! {
    Dimension {
        Network => "network",
        Link => "link",
        Campaign => "campaign",
        Adset => "adset",
        Ad => "ad",
        Country => "country",
        Platform => "platform",
        Event => "event",
        Source => "source",
    }
}

impl Dimension {
    /// Returns the stored values that a filter matches.
    pub fn filter_values(self, wanted: &str) -> Vec<&str> {
        if self == Self::Platform && wanted == APP_PLATFORMS {
            let apps = Platform::ALL.iter().filter(|one| **one != Platform::Web);
            return apps.map(|one| one.as_str()).collect();
        }
        vec![wanted]
    }

    /// Returns whether a stored value passes a filter.
    pub fn passes(self, wanted: &str, value: &str) -> bool {
        self.filter_values(wanted).contains(&value)
    }
}

/// Calendar unit to group figures by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeUnit {
    /// An hour of local time.
    Hour,
    /// A day.
    Day,
    /// A week, from Monday.
    Week,
    /// A month.
    Month,
}

crate::keywords! {
    TimeUnit {
        Day => "day",
        Hour => "hour",
        Week => "week",
        Month => "month",
    }
}

/// Grouping of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupBy {
    /// Calendar unit, if any.
    pub time: Option<TimeUnit>,
    /// Dimensions, in the requested order.
    pub dimensions: Vec<Dimension>,
}

impl GroupBy {
    /// Parses a comma-separated list of names.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut group = Self::default();
        for word in text.split(',').map(str::trim) {
            if let Some(unit) = TimeUnit::parse(word) {
                if group.time.is_some_and(|other| other != unit) {
                    let message = "Must contain at most one of hour, day, week, month.";
                    return Err(Problem::new(FaultCode::OutOfRange, message));
                }
                group.time = Some(unit);
            } else if let Some(dimension) = Dimension::parse(word) {
                if !group.dimensions.contains(&dimension) {
                    group.dimensions.push(dimension);
                }
            } else {
                return Err(Problem::new(FaultCode::UnknownValue, unknown_dimension()));
            }
        }
        if group.dimensions.len() + usize::from(group.time.is_some()) > DIMENSIONS_MAX {
            let message = format!("Must contain at most {DIMENSIONS_MAX} dimensions.");
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        Ok(group)
    }
}

fn unknown_dimension() -> String {
    let units = TimeUnit::ALL.iter().map(|unit| unit.as_str());
    let dimensions = Dimension::ALL.iter().map(|dimension| dimension.as_str());
    let names: Vec<&str> = units.chain(dimensions).collect();
    format!("Must be a comma-separated list of: {}.", names.join(", "))
}

/// A roll-up table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rollup {
    /// By credited network only: queried most, with the fewest rows.
    Networks,
    /// By network, link and campaign; much smaller than the table by ad.
    Campaigns,
    /// By network, link, campaign, ad set and ad.
    Credits,
    /// By event name and source. Contains no clicks.
    Names,
    /// By country and platform.
    Places,
    /// By network, campaign, country and platform: the pivots of a credit with a place.
    Pivots,
}

impl Rollup {
    /// All roll-ups. A query reads the first one that has all its dimensions.
    pub const ALL: [Self; 6] = [
        Self::Networks,
        Self::Campaigns,
        Self::Credits,
        Self::Names,
        Self::Places,
        Self::Pivots,
    ];

    /// Returns the dimensions of the table.
    pub const fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::Networks => &[Dimension::Network],
            Self::Campaigns => &[Dimension::Network, Dimension::Link, Dimension::Campaign],
            Self::Credits => &[
                Dimension::Network,
                Dimension::Link,
                Dimension::Campaign,
                Dimension::Adset,
                Dimension::Ad,
            ],
            Self::Names => &[Dimension::Event, Dimension::Source],
            Self::Places => &[Dimension::Country, Dimension::Platform],
            Self::Pivots => &[
                Dimension::Network,
                Dimension::Campaign,
                Dimension::Country,
                Dimension::Platform,
            ],
        }
    }

    /// Returns the smallest table that has all these dimensions; `None` if no single table has
    /// them.
    pub fn for_dimensions(dimensions: &[Dimension]) -> Option<Self> {
        Self::ALL.into_iter().find(|table| {
            let known = table.dimensions();
            dimensions.iter().all(|dimension| known.contains(dimension))
        })
    }
}

impl Refusal {
    /// Returns the refusal for a combination of dimensions that no roll-up covers.
    pub fn no_rollup() -> Self {
        let mut faults = Faults::new();
        let message = "These dimensions cannot be combined. Request fewer dimensions.";
        faults.add("groupBy", Problem::new(FaultCode::OutOfRange, message));
        Self::Invalid(faults)
    }
}

/// A query over an app's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportQuery {
    /// Periods to report separately.
    pub periods: Vec<Period>,
    /// Dimensions to group by.
    pub group_by: Vec<Dimension>,
    /// Filters by dimension; an empty value matches rows without one.
    pub filters: Vec<(Dimension, String)>,
    /// Maximum number of rows.
    pub rows_max: u32,
}

impl ReportQuery {
    /// Returns every dimension used for grouping or filtering.
    pub fn dimensions(&self) -> Vec<Dimension> {
        let filtered = self.filters.iter().map(|(dimension, _)| *dimension);
        self.group_by.iter().copied().chain(filtered).collect()
    }

    /// Returns whether the query reads the pivots, whose history may be incomplete.
    pub fn reads_pivots(&self) -> bool {
        Rollup::for_dimensions(&self.dimensions()) == Some(Rollup::Pivots)
    }

    /// Returns the time from which the figures are complete, if they lack earlier ones.
    /// `pivots_from` is the time from which the app's pivots are complete.
    pub fn complete_from(&self, pivots_from: Option<Timestamp>) -> Option<Timestamp> {
        let first = self.periods.iter().map(|(from, _)| *from).min()?;
        pivots_from.filter(|from| self.reads_pivots() && first < *from)
    }

    /// Returns the query that reads the same figures split by network, so that
    /// [`report_rows`](super::report_rows) can tell paid from organic revenue. The network is the
    /// last value of each row, unless the query names it already.
    #[must_use]
    pub fn split_by_network(&self) -> Self {
        let mut split = self.clone();
        if !self.dimensions().contains(&Dimension::Network) {
            split.group_by.push(Dimension::Network);
            split.rows_max = self.rows_max.saturating_mul(NETWORK_VALUES_MAX);
        }
        split
    }

    /// Returns the network of a row that [`Self::split_by_network`] read; `None` if unknown.
    /// `values` are the row's values by the dimensions of the split query.
    pub(super) fn network_of<'a>(&'a self, values: &'a [String]) -> Option<&'a str> {
        let is_network = |one: &Dimension| *one == Dimension::Network;
        let filter = self.filters.iter().find(|(one, _)| is_network(one));
        let place = self.group_by.iter().position(is_network);
        let value = values.get(place.unwrap_or(self.group_by.len()));
        let value = value.or_else(|| filter.map(|(_, value)| value));
        value.map(String::as_str)
    }
}

/// One row of figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsRow {
    /// Index of the period.
    pub period: usize,
    /// One value per dimension of `group_by`, in order; empty if there is none.
    pub values: Vec<String>,
    /// The figures.
    pub figures: Figures,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::time_only("day", Some(TimeUnit::Day), &[])]
    #[case::keeps_the_requested_order("network, day,event", Some(TimeUnit::Day), &[Dimension::Network, Dimension::Event])]
    #[case::removes_duplicates("ad,ad", None, &[Dimension::Ad])]
    fn parses_group_by(
        #[case] text: &str,
        #[case] time: Option<TimeUnit>,
        #[case] by: &[Dimension],
    ) {
        let group = GroupBy::parse(text).unwrap();
        assert_eq!((group.time, group.dimensions.as_slice()), (time, by));
    }

    #[rstest]
    #[case::app(Dimension::Platform, "app", &["ios", "android"])]
    #[case::web(Dimension::Platform, "web", &["web"])]
    #[case::unknown_platform(Dimension::Platform, "", &[""])]
    #[case::another_dimension(Dimension::Campaign, "app", &["app"])]
    fn a_filter_matches_stored_values(
        #[case] dimension: Dimension,
        #[case] wanted: &str,
        #[case] expected: &[&str],
    ) {
        assert_eq!(dimension.filter_values(wanted), expected);
        assert!(expected.iter().all(|value| dimension.passes(wanted, value)));
        assert!(!dimension.passes(wanted, "other"));
    }

    #[rstest]
    #[case::unknown("days")]
    #[case::nothing("")]
    #[case::empty_word("day,")]
    #[case::two_units("day,week")]
    #[case::too_many("day,network,link,campaign")]
    fn rejects_an_invalid_group_by(#[case] text: &str) {
        assert!(GroupBy::parse(text).is_err());
    }

    #[rstest]
    #[case::nothing_else(&[], Some(Rollup::Networks))]
    #[case::network(&[Dimension::Network], Some(Rollup::Networks))]
    #[case::link(&[Dimension::Link], Some(Rollup::Campaigns))]
    #[case::campaign(&[Dimension::Campaign, Dimension::Network], Some(Rollup::Campaigns))]
    #[case::adset(&[Dimension::Link, Dimension::Adset], Some(Rollup::Credits))]
    #[case::credit(&[Dimension::Ad, Dimension::Network], Some(Rollup::Credits))]
    #[case::name(&[Dimension::Event], Some(Rollup::Names))]
    #[case::place(&[Dimension::Platform, Dimension::Country], Some(Rollup::Places))]
    #[case::pivot(&[Dimension::Country, Dimension::Network], Some(Rollup::Pivots))]
    #[case::pivot_of_a_campaign(&[Dimension::Campaign, Dimension::Platform], Some(Rollup::Pivots))]
    #[case::link_and_country(&[Dimension::Link, Dimension::Country], None)]
    #[case::event_and_country(&[Dimension::Event, Dimension::Country], None)]
    fn picks_the_smallest_table(
        #[case] dimensions: &[Dimension],
        #[case] expected: Option<Rollup>,
    ) {
        assert_eq!(Rollup::for_dimensions(dimensions), expected);
    }

    #[rstest]
    #[case::complete(Dimension::Country, None, None)]
    #[case::lacks_earlier_events(Dimension::Country, Some(11), Some(11))]
    #[case::lacks_only_events_before_the_range(Dimension::Country, Some(10), None)]
    #[case::another_table(Dimension::Link, Some(11), None)]
    fn a_pivot_says_from_when_on_it_is_complete(
        #[case] dimension: Dimension,
        #[case] pivots_from: Option<i64>,
        #[case] expected: Option<i64>,
    ) {
        let at = Timestamp::from_millis;
        let query = ReportQuery {
            periods: vec![(at(10), at(20)), (at(20), at(30))],
            group_by: vec![Dimension::Network],
            filters: vec![(dimension, String::new())],
            rows_max: 1,
        };
        assert_eq!(query.complete_from(pivots_from.map(at)), expected.map(at));
    }

    #[test]
    fn every_keyword_round_trips() {
        for one in Dimension::ALL {
            assert_eq!(Dimension::parse(one.as_str()), Some(*one));
        }
        for one in TimeUnit::ALL {
            assert_eq!(TimeUnit::parse(one.as_str()), Some(*one));
        }
    }
}
