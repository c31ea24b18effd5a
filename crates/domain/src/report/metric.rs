//! The metrics of reports: names, labels, units and values. Pages, messages and thresholds use them.

use super::{Dimension, ReportFigures, number_text as text};
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A whole number.
    Count,
    /// Amount in millionths of a dollar.
    Money,
    /// Ratio in millionths.
    Ratio,
    /// Share in millionths, shown in percent.
    Share,
}

impl Unit {
    /// Formats a value with all digits that matter.
    pub fn write(self, value: i64) -> String {
        match self {
            Self::Count => text::count(value),
            Self::Money => text::usd(Amount::from_micros(value)),
            Self::Ratio => text::ratio(Amount::from_micros(value)),
            Self::Share => text::share(value),
        }
    }

    /// Formats a value for places with little space.
    pub fn write_brief(self, value: i64) -> String {
        match self {
            Self::Money => text::usd_brief(Amount::from_micros(value)),
            Self::Count | Self::Ratio | Self::Share => self.write(value),
        }
    }

    /// Formats a value for a CSV file.
    pub fn plain(self, value: i64) -> String {
        match self {
            Self::Count => value.to_string(),
            Self::Money | Self::Ratio | Self::Share => Amount::from_micros(value).to_string(),
        }
    }
}

/// What a higher value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// More is better.
    MoreIsBetter,
    /// Less is better.
    LessIsBetter,
    /// Neither is better.
    Neutral,
}

/// What a metric counts, which decides whether it has a value for a part of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Events of any name.
    Events,
    /// Events of one name.
    Named(&'static str),
    /// Clicks, or a ratio of figures that come from different events.
    Other,
}

/// Ratios from fewer installs change a lot with a single payment.
pub const SMALL_SAMPLE_INSTALLS: i64 = 30;

/// A metric. Its value is `None` if it cannot be computed.
#[derive(Debug)]
pub struct Metric {
    /// Name in the URL and in CSV files, as in the REST API.
    pub word: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Unit.
    pub unit: Unit,
    /// What a higher value means.
    pub trend: Trend,
    /// Whether the values of parts add up to the value of the whole.
    pub is_sum: bool,
    /// Whether the metric needs ad costs.
    pub needs_cost: bool,
    /// What the metric counts.
    pub counted: Counted,
    /// Reads the value.
    pub of: fn(&ReportFigures) -> Option<i64>,
}

const fn sum(
    word: &'static str,
    label: &'static str,
    unit: Unit,
    of: fn(&ReportFigures) -> Option<i64>,
) -> Metric {
    Metric {
        word,
        label,
        unit,
        trend: Trend::MoreIsBetter,
        is_sum: true,
        needs_cost: false,
        counted: Counted::Events,
        of,
    }
}

const fn count(
    word: &'static str,
    label: &'static str,
    of: fn(&ReportFigures) -> Option<i64>,
) -> Metric {
    sum(word, label, Unit::Count, of)
}

/// Restricts a metric to the events of one name.
const fn of_event(name: &'static str, metric: Metric) -> Metric {
    Metric {
        counted: Counted::Named(name),
        ..metric
    }
}

/// Marks a metric that has no value for a part of the events.
const fn of_no_event(metric: Metric) -> Metric {
    Metric {
        counted: Counted::Other,
        ..metric
    }
}

const fn ratio(
    word: &'static str,
    label: &'static str,
    unit: Unit,
    of: fn(&ReportFigures) -> Option<i64>,
) -> Metric {
    Metric {
        is_sum: false,
        counted: Counted::Other,
        ..sum(word, label, unit, of)
    }
}

const fn with_cost(metric: Metric, trend: Trend) -> Metric {
    Metric {
        trend,
        needs_cost: true,
        ..metric
    }
}

const fn neutral(metric: Metric) -> Metric {
    Metric {
        trend: Trend::Neutral,
        ..metric
    }
}

const fn less_is_better(metric: Metric) -> Metric {
    Metric {
        trend: Trend::LessIsBetter,
        ..metric
    }
}

/// All metrics, in the order of the table columns.
pub static METRICS: [Metric; 22] = [
    with_cost(
        of_no_event(sum("cost", "Spend", Unit::Money, |one| one.cost)),
        Trend::Neutral,
    ),
    of_no_event(count("clicks", "Clicks", |one| Some(one.figures.clicks))),
    of_event(
        "install",
        count("installs", "Installs", |one| Some(one.figures.installs)),
    ),
    with_cost(
        ratio("paidCpi", "CPI (paid)", Unit::Money, |one| {
            one.paid_cpi().map(Amount::micros)
        }),
        Trend::LessIsBetter,
    ),
    sum("netRevenue", "Net revenue", Unit::Money, |one| {
        Some(one.figures.net_micros())
    }),
    with_cost(
        ratio("paidRoas", "ROAS (paid)", Unit::Ratio, |one| {
            one.paid_roas().map(Amount::micros)
        }),
        Trend::MoreIsBetter,
    ),
    ratio("arpu", "Revenue per install", Unit::Money, |one| {
        one.arpu().map(Amount::micros)
    }),
    count("payingDevices", "New payers", |one| {
        Some(one.figures.paying_devices)
    }),
    ratio("conversionRate", "Installs per click", Unit::Ratio, |one| {
        one.conversion_rate().map(Amount::micros)
    }),
    of_event(
        "install",
        neutral(count("organicInstalls", "Organic installs", |one| {
            Some(one.figures.organic_installs)
        })),
    ),
    of_event(
        "sign_up",
        count("signUps", "Sign-ups", |one| Some(one.figures.sign_ups)),
    ),
    of_event(
        "start_trial",
        count("trials", "Trials", |one| Some(one.figures.trials)),
    ),
    of_event(
        "qualified_trial",
        count("qualifiedTrials", "Qualified trials", |one| {
            Some(one.figures.qualified_trials)
        }),
    ),
    of_event(
        "subscribe",
        count("subscriptions", "Subscriptions", |one| {
            Some(one.figures.subscriptions)
        }),
    ),
    of_event(
        "purchase",
        count("purchases", "Purchases", |one| Some(one.figures.purchases)),
    ),
    of_event(
        "renewal",
        count("renewals", "Renewals", |one| Some(one.figures.renewals)),
    ),
    of_event(
        "refund",
        less_is_better(count("refunds", "Refunds", |one| Some(one.figures.refunds))),
    ),
    neutral(count("events", "Events", |one| Some(one.figures.events))),
    with_cost(
        ratio("cpi", "CPI (blended)", Unit::Money, |one| {
            one.cpi().map(Amount::micros)
        }),
        Trend::LessIsBetter,
    ),
    with_cost(
        ratio("roas", "ROAS (blended)", Unit::Ratio, |one| {
            one.roas().map(Amount::micros)
        }),
        Trend::MoreIsBetter,
    ),
    of_event(
        "install",
        less_is_better(count("heldInstalls", "Held installs", |one| {
            Some(one.figures.held_installs)
        })),
    ),
    less_is_better(sum("heldRevenue", "Held revenue", Unit::Money, |one| {
        Some(one.figures.held_revenue_micros)
    })),
];

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for Metric {}

impl Metric {
    /// Finds a metric by its name in the URL.
    pub fn find(word: &str) -> Option<&'static Self> {
        METRICS.iter().find(|one| one.word == word)
    }

    /// Returns the metrics with these names.
    pub fn select(words: &[&str]) -> Vec<&'static Self> {
        let found = words.iter();
        found.filter_map(|word| Self::find(word)).collect()
    }

    /// Returns whether the metric has a value for rows with these values. Figures of one event name
    /// or source contain no clicks, and only the counts of that event: a zero of another count would
    /// look like a measured one.
    pub fn has_value_for<'a>(
        &self,
        values: impl IntoIterator<Item = (Dimension, &'a str)>,
    ) -> bool {
        values
            .into_iter()
            .all(|(dimension, value)| match dimension {
                Dimension::Event => match self.counted {
                    Counted::Events => true,
                    Counted::Named(name) => name == value,
                    Counted::Other => false,
                },
                Dimension::Source => self.counted != Counted::Other,
                _ => true,
            })
    }

    /// Returns whether the value is a ratio from so few installs that a single payment changes it a
    /// lot.
    pub fn is_from_small_sample(&self, row: &ReportFigures) -> bool {
        let installs = match self.word {
            "arpu" | "cpi" => row.figures.installs,
            "paidCpi" | "paidRoas" => row.paid_installs(),
            _ => return false,
        };
        (self.of)(row).is_some() && installs < SMALL_SAMPLE_INSTALLS
    }

    /// Returns the value in millionths, the unit of amounts; `None` if it cannot be computed.
    pub fn micros(&self, row: &ReportFigures) -> Option<i64> {
        let value = (self.of)(row)?;
        Some(match self.unit {
            Unit::Count => value.saturating_mul(MICROS_PER_UNIT),
            Unit::Money | Unit::Ratio | Unit::Share => value,
        })
    }

    /// Formats the value for a page.
    pub fn write(&self, row: &ReportFigures) -> String {
        (self.of)(row).map_or_else(|| "–".to_owned(), |value| self.unit.write(value))
    }

    /// Formats the value for places with little space.
    pub fn write_brief(&self, row: &ReportFigures) -> String {
        let value = (self.of)(row);
        value.map_or_else(|| "–".to_owned(), |value| self.unit.write_brief(value))
    }

    /// Formats the value for a CSV file; empty if it cannot be computed.
    pub fn plain(&self, row: &ReportFigures) -> String {
        let value = (self.of)(row);
        value
            .map(|value| self.unit.plain(value))
            .unwrap_or_default()
    }

    /// Returns the change from the previous period; `None` if either value is missing or the
    /// previous one is not positive.
    pub fn change(&self, before: &ReportFigures, now: &ReportFigures) -> Option<MetricChange> {
        let (before, now) = ((self.of)(before)?, (self.of)(now)?);
        let text = text::change(before, now)?;
        let is_better = match self.trend {
            Trend::MoreIsBetter => now > before,
            Trend::LessIsBetter => now < before,
            Trend::Neutral => {
                return Some(MetricChange {
                    text,
                    tone: "quiet",
                });
            }
        };
        let tone = match is_better {
            _ if text.starts_with('±') => "quiet",
            true => "good",
            false => "bad",
        };
        Some(MetricChange { text, tone })
    }
}

/// Change of a metric from the compared range: text and colour.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricChange {
    /// Text, such as `+12 %`.
    pub text: String,
    /// Colour: `good`, `bad` or `quiet`.
    pub tone: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Figures;
    use rstest::rstest;

    fn row(installs: i64, cost: Option<i64>) -> ReportFigures {
        ReportFigures {
            figures: Figures {
                installs,
                revenue_micros: 10_000_000,
                ..Figures::default()
            },
            cost,
            organic_net: Some(0),
        }
    }

    fn written(row: &ReportFigures, word: &str) -> (String, String) {
        let metric = Metric::find(word).unwrap();
        (metric.write(row), metric.plain(row))
    }

    #[test]
    fn an_unknown_value_is_not_shown_as_zero() {
        let nothing = ("–".to_owned(), String::new());
        assert_eq!(written(&row(3, None), "paidCpi"), nothing);
        assert_eq!(written(&row(3, None), "conversionRate"), nothing);
        let row = row(3, Some(4_000_000));
        assert_eq!(written(&row, "cpi").0, "$1.33");
        assert_eq!(
            written(&row, "paidRoas"),
            ("2.50".to_owned(), "2.5".to_owned())
        );
        assert_eq!(written(&row, "arpu").1, "3.333333");
    }

    #[rstest]
    #[case::clicks_have_no_event("clicks", "purchase", false)]
    #[case::own_event("purchases", "purchase", true)]
    #[case::another_event("installs", "purchase", false)]
    #[case::installs("installs", "install", true)]
    #[case::revenue_of_any("netRevenue", "purchase", true)]
    #[case::custom("events", "boss_defeated", true)]
    #[case::ratio_of_several("arpu", "purchase", false)]
    #[case::first_payments("payingDevices", "purchase", true)]
    fn figures_of_one_event_lack_the_counts_of_others(
        #[case] word: &str,
        #[case] event: &str,
        #[case] expected: bool,
    ) {
        let metric = Metric::find(word).unwrap();
        assert_eq!(
            metric.has_value_for([(Dimension::Country, "DE"), (Dimension::Event, event)]),
            expected
        );
        assert!(metric.has_value_for([(Dimension::Network, "organic")]));
    }

    #[test]
    fn figures_of_a_source_have_no_clicks() {
        let has = |word: &str| {
            let metric = Metric::find(word).unwrap();
            metric.has_value_for([(Dimension::Source, "billing")])
        };
        assert_eq!(
            ["clicks", "conversionRate", "purchases", "netRevenue"].map(has),
            [false, false, true, true]
        );
    }

    #[rstest]
    #[case::few("arpu", 29, true)]
    #[case::enough("arpu", 30, false)]
    #[case::a_count("installs", 1, false)]
    #[case::unknown("arpu", 0, false)]
    #[case::few_paid("paidRoas", 2, true)]
    fn a_ratio_of_few_installs_is_a_small_sample(
        #[case] word: &str,
        #[case] installs: i64,
        #[case] expected: bool,
    ) {
        let row = row(installs, Some(10_000_000));
        assert_eq!(
            Metric::find(word).unwrap().is_from_small_sample(&row),
            expected
        );
    }

    /// Installs before and now, at a cost of $10.
    #[rstest]
    #[case::more_is_better("installs", 4, 5, Some(("+25 %", "good")))]
    #[case::less_is_worse("installs", 5, 4, Some(("−20 %", "bad")))]
    #[case::cheaper_is_better("paidCpi", 4, 5, Some(("−20 %", "good")))]
    #[case::spend_is_neutral("cost", 4, 5, Some(("±0 %", "quiet")))]
    #[case::unknown_before("paidCpi", 0, 5, None)]
    fn a_change_has_the_colour_of_its_meaning(
        #[case] word: &str,
        #[case] before: i64,
        #[case] now: i64,
        #[case] expected: Option<(&str, &'static str)>,
    ) {
        let [before, now] = [before, now].map(|installs| row(installs, Some(10_000_000)));
        let change = Metric::find(word).unwrap().change(&before, &now);
        let expected = expected.map(|(text, tone)| MetricChange {
            text: text.to_owned(),
            tone,
        });
        assert_eq!(change, expected);
    }
}
