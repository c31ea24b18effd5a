//! What can be asked of figures, and which roll-up answers it.

use super::{Figures, Period};
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Dimensions that one question groups by, and filters that it has, at most each. The rows of more are too many
/// to be read, and their figures too small to mean anything.
pub const DIMENSIONS_MAX: usize = 3;

/// What stands for everything beyond the limit of distinct values of a day.
pub const OTHER: &str = "(other)";

/// By what figures can be told apart, beside time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Who is credited.
    Network,
    /// Which link.
    Link,
    /// The campaign's id.
    Campaign,
    /// The ad set's id.
    Adset,
    /// The ad's id.
    Ad,
    /// Two letters.
    Country,
    /// What it ran on.
    Platform,
    /// The event's name.
    Event,
    /// Where the event came from.
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

/// Stretches of the calendar that figures can be told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeUnit {
    /// An hour of the zone's clocks.
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

/// What figures are grouped by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupBy {
    /// By which stretch of time, if by any.
    pub time: Option<TimeUnit>,
    /// By what else, in the order that was asked for.
    pub dimensions: Vec<Dimension>,
}

impl GroupBy {
    /// Reads names with commas between.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut group = Self::default();
        for word in text.split(',').map(str::trim) {
            if let Some(unit) = TimeUnit::parse(word) {
                if group.time.is_some_and(|other| other != unit) {
                    let message = "Must name one of hour, day, week and month, not several.";
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
            let message = format!("Must name at most {DIMENSIONS_MAX} dimensions.");
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        Ok(group)
    }
}

fn unknown_dimension() -> String {
    let units = TimeUnit::ALL.iter().map(|unit| unit.as_str());
    let dimensions = Dimension::ALL.iter().map(|dimension| dimension.as_str());
    let names: Vec<&str> = units.chain(dimensions).collect();
    format!("Must be one of {}, with commas between.", names.join(", "))
}

/// A table of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rollup {
    /// By credited network alone: what is asked for most, and has the fewest rows.
    Networks,
    /// By network, link and campaign: an app has many times as many ads.
    Campaigns,
    /// By network, link, campaign, ad set and ad.
    Credits,
    /// By the event's name and source. Clicks are no events, so they are not in it.
    Names,
    /// By country and platform.
    Places,
}

impl Rollup {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Networks,
        Self::Campaigns,
        Self::Credits,
        Self::Names,
        Self::Places,
    ];

    /// What it tells apart.
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
        }
    }

    /// The smallest table that tells all of these apart; none where they stand in different ones.
    pub fn for_dimensions(dimensions: &[Dimension]) -> Option<Self> {
        Self::ALL.into_iter().find(|table| {
            let known = table.dimensions();
            dimensions.iter().all(|dimension| known.contains(dimension))
        })
    }
}

impl Refusal {
    /// What is said of dimensions that no roll-up tells apart together.
    pub fn no_rollup() -> Self {
        let mut faults = Faults::new();
        let message = "These dimensions are not counted together; ask for fewer of them.";
        faults.add("groupBy", Problem::new(FaultCode::OutOfRange, message));
        Self::Invalid(faults)
    }
}

/// What is asked of the figures of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportQuery {
    /// Periods that are told apart.
    pub periods: Vec<Period>,
    /// What else is told apart.
    pub group_by: Vec<Dimension>,
    /// Only what has these values; an empty one is nothing.
    pub filters: Vec<(Dimension, String)>,
    /// Rows, at most.
    pub rows_max: u32,
}

impl ReportQuery {
    /// Every dimension that it names.
    pub fn dimensions(&self) -> Vec<Dimension> {
        let filtered = self.filters.iter().map(|(dimension, _)| *dimension);
        self.group_by.iter().copied().chain(filtered).collect()
    }
}

/// One row of figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsRow {
    /// Which of the periods.
    pub period: usize,
    /// A value for each dimension that was asked for, in their order; empty where there is none.
    pub values: Vec<String>,
    /// The figures.
    pub figures: Figures,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::the_time_alone("day", Some(TimeUnit::Day), &[])]
    #[case::in_the_order_asked_for("network, day,event", Some(TimeUnit::Day), &[Dimension::Network, Dimension::Event])]
    #[case::twice_is_once("ad,ad", None, &[Dimension::Ad])]
    fn groups(#[case] text: &str, #[case] time: Option<TimeUnit>, #[case] by: &[Dimension]) {
        let group = GroupBy::parse(text).unwrap();
        assert_eq!((group.time, group.dimensions.as_slice()), (time, by));
    }

    #[rstest]
    #[case::unknown("days")]
    #[case::nothing("")]
    #[case::empty_word("day,")]
    #[case::two_stretches("day,week")]
    #[case::too_many("day,network,link,campaign")]
    fn refused(#[case] text: &str) {
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
    #[case::of_two_tables(&[Dimension::Network, Dimension::Country], None)]
    fn the_table_that_answers(#[case] asked: &[Dimension], #[case] expected: Option<Rollup>) {
        assert_eq!(Rollup::for_dimensions(asked), expected);
    }

    #[test]
    fn every_word_is_read_again() {
        for one in Dimension::ALL {
            assert_eq!(Dimension::parse(one.as_str()), Some(*one));
        }
        for one in TimeUnit::ALL {
            assert_eq!(TimeUnit::parse(one.as_str()), Some(*one));
        }
    }
}
