//! The chart of the overview: metrics by time, optionally stacked.

use super::load::{FigureReader, RangeFigures};
use crate::chart::{Chart, ChartData, ChartPoint, ChartSeries};
use crate::failure::Failure;
use crate::metric::Metric;
use crate::query::UrlQuery;
use crate::value_names::ValueNames;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::report::range::Span;
use tributary_domain::report::{Dimension, ReportFigures, StatsRow, TimeUnit};
use tributary_domain::vocabulary::time::Timestamp;

/// Metric of a chart if none is chosen.
const METRIC_DEFAULT: &str = "installs";
/// Metric of a chart if the default has no value with the filters.
const METRIC_OF_PART: &str = "events";
/// Parts of a stack; the rest is added up as one more.
const STACK_MAX: usize = 5;
/// Notes of one point. A bulk import alone may leave hundreds.
const NOTES_SHOWN_MAX: usize = 5;

/// What the chart shows, as chosen in the URL.
pub(in crate::pages::app) struct ChartChoice {
    pub(in crate::pages::app) metric: &'static Metric,
    pub(in crate::pages::app) second: Option<&'static Metric>,
    pub(in crate::pages::app) stack: Option<Dimension>,
}

impl ChartChoice {
    /// Reads the choice. Metrics without a value are replaced.
    pub(super) fn of(query: &UrlQuery, has_value: impl Fn(&Metric) -> bool) -> Self {
        let find = |word: &str| Metric::find(word).filter(|metric| has_value(metric));
        let metric = query.get("metric").map(former_word).and_then(find);
        let metric = metric.or_else(|| find(METRIC_DEFAULT));
        let metric = metric.or_else(|| find(METRIC_OF_PART));
        let metric = metric.unwrap_or(&crate::metric::METRICS[0]);
        let second = query.get("second").and_then(find);
        let stack = match query.get("stack") {
            Some("network") => Some(Dimension::Network),
            Some("campaign") => Some(Dimension::Campaign),
            _ => None,
        };
        let second = second.filter(|second| second.word != metric.word);
        Self {
            second,
            ..Self::stacked(metric, stack)
        }
    }

    /// Chooses one metric. Only metrics that add up can be stacked.
    pub(in crate::pages::app) fn stacked(
        metric: &'static Metric,
        stack: Option<Dimension>,
    ) -> Self {
        Self {
            metric,
            second: None,
            stack: stack.filter(|_| metric.is_sum && !metric.needs_cost),
        }
    }
}

/// Translates names of metrics in earlier URLs.
fn former_word(word: &str) -> &str {
    match word {
        "revenue" => "netRevenue",
        "payers" => "payingDevices",
        other => other,
    }
}

/// Returns the largest values and the rest, each with one number per span.
fn stack(
    rows: &[StatsRow],
    spans: usize,
    value: impl Fn(&ReportFigures) -> i64,
) -> Vec<(Option<String>, Vec<i64>)> {
    let mut sums: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for row in rows {
        let name = row.values.first().map_or("", String::as_str);
        let numbers = sums.entry(name).or_insert_with(|| vec![0; spans]);
        let mut figures = ReportFigures::zero();
        figures.figures = row.figures;
        if let Some(number) = numbers.get_mut(row.period) {
            *number = number.saturating_add(value(&figures));
        }
    }
    let has_values = |(_, numbers): &(&str, Vec<i64>)| numbers.iter().any(|number| *number != 0);
    let mut sums: Vec<(&str, Vec<i64>)> = sums.into_iter().filter(has_values).collect();
    sums.sort_by_key(|(_, numbers)| Reverse(numbers.iter().sum::<i64>()));
    // One more is shown by its name, because a rest of one would only hide it.
    let shown = if sums.len() == STACK_MAX + 1 {
        sums.len()
    } else {
        sums.len().min(STACK_MAX)
    };
    let rest = sums.split_off(shown);
    let mut parts: Vec<(Option<String>, Vec<i64>)> = sums
        .into_iter()
        .map(|(name, numbers)| (Some(name.to_owned()), numbers))
        .collect();
    if !rest.is_empty() {
        let other = |index: usize| rest.iter().map(|(_, numbers)| numbers[index]).sum();
        parts.push((None, (0..spans).map(other).collect()));
    }
    parts
}

/// Draws the chart.
pub(in crate::pages::app) async fn plot(
    reader: &FigureReader<'_>,
    figures: &RangeFigures,
    choice: &ChartChoice,
    names: &ValueNames,
    notes: &[(Timestamp, String)],
) -> Result<Chart, Failure> {
    let range = &reader.bar.range;
    let metric = choice.metric;
    let spans = figures.spans.len();
    let known = |index: usize, value| {
        let span = figures.spans.get(index);
        let is_known = |span: &Span| !range.is_future(span.period) && reader.has_begun(span.period);
        Some(value).filter(|_| span.is_some_and(is_known))
    };
    let rows = match choice.stack {
        Some(Dimension::Network) => figures.by_network.clone(),
        Some(dimension) => {
            let periods = figures.spans.iter().map(|span| span.period).collect();
            reader.rows(periods, &[dimension]).await?
        }
        None => None,
    };
    let of_metric = |metric: &'static Metric, label: &str, rows: &[ReportFigures]| ChartSeries {
        label: label.to_owned(),
        unit: metric.unit,
        values: rows.iter().map(metric.of).collect(),
    };
    let with_gaps = |mut series: ChartSeries| {
        for (index, value) in series.values.iter_mut().enumerate() {
            *value = known(index, *value).flatten();
        }
        series
    };
    let stacked = rows.zip(choice.stack).map(|(rows, dimension)| {
        let parts = stack(&rows, spans, |row| (metric.of)(row).unwrap_or(0));
        let series = |(name, values): (Option<String>, Vec<i64>)| ChartSeries {
            label: match name.as_deref() {
                None => "All others".to_owned(),
                Some(name) => names.label_or_missing(dimension, name),
            },
            unit: metric.unit,
            values: values.into_iter().map(Some).collect(),
        };
        parts
            .into_iter()
            .map(series)
            .map(with_gaps)
            .collect::<Vec<_>>()
    });
    let line = || vec![with_gaps(of_metric(metric, metric.label, &figures.series))];
    let series = stacked.filter(|parts| parts.len() > 1).unwrap_or_else(line);
    let before = range.compared.is_some().then(|| {
        let label = range.comparison.label();
        let mut series = of_metric(metric, label, &figures.series_before);
        for (value, span) in series.values.iter_mut().zip(&figures.spans_before) {
            *value = value.filter(|_| reader.has_begun(span.period));
        }
        series
    });
    let before = before.filter(|series| series.values.iter().any(Option::is_some));
    let data = ChartData {
        label: metric.label.to_owned(),
        axis: "Time",
        before: before.filter(|_| series.len() == 1),
        series,
        second: choice
            .second
            .map(|second| with_gaps(of_metric(second, second.label, &figures.series))),
        points: points(reader, figures, notes),
        can_zoom: range.chart_unit() != TimeUnit::Hour,
    };
    Ok(data.draw())
}

fn points(
    reader: &FigureReader<'_>,
    figures: &RangeFigures,
    notes: &[(Timestamp, String)],
) -> Vec<ChartPoint> {
    let spans = figures.spans.iter();
    let point = |span: &Span| {
        let is_unfinished = reader.bar.range.is_unfinished(span.period);
        ChartPoint::of_span(span, is_unfinished, notes_within(span, notes))
    };
    spans.map(point).collect()
}

/// Returns the first notes of a span, and how many more there are.
fn notes_within(span: &Span, notes: &[(Timestamp, String)]) -> Vec<String> {
    let within = notes
        .iter()
        .filter(|(at, _)| (span.period.0..span.period.1).contains(at));
    let mut shown: Vec<String> = within.map(|(_, note)| note.clone()).collect();
    if shown.len() > NOTES_SHOWN_MAX {
        let more = shown.len() - NOTES_SHOWN_MAX;
        shown.truncate(NOTES_SHOWN_MAX);
        shown.push(format!("and {more} more"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::report::Figures;
    use tributary_domain::vocabulary::day::Day;

    #[test]
    fn many_notes_of_a_point_are_counted() {
        let (from, until) = (Timestamp::from_millis(10), Timestamp::from_millis(20));
        let day = Day::of(from);
        let span = Span {
            label: String::new(),
            from: day,
            to: day,
            period: (from, until),
        };
        let note = |at: i64| (Timestamp::from_millis(at), format!("note {at}"));
        let notes: Vec<_> = (8..18).map(note).collect();
        let shown = notes_within(&span, &notes);
        assert_eq!(shown.len(), NOTES_SHOWN_MAX + 1);
        assert_eq!(
            (&*shown[0], &*shown[NOTES_SHOWN_MAX]),
            ("note 10", "and 3 more")
        );
        assert_eq!(notes_within(&span, &notes[..3]), ["note 10"]);
    }

    fn row(period: usize, network: &str, installs: i64) -> StatsRow {
        StatsRow {
            period,
            values: vec![network.to_owned()],
            figures: Figures {
                installs,
                ..Figures::default()
            },
        }
    }

    #[test]
    fn a_stack_has_the_largest_five_and_the_rest() {
        let rows: Vec<StatsRow> = (1..=7)
            .map(|number| row(0, &format!("n{number}"), number))
            .chain([row(1, "n1", 100), row(0, "n8", 0)])
            .collect();
        let parts = stack(&rows, 2, |row| row.figures.installs);
        let names: Vec<&str> = parts
            .iter()
            .map(|(name, _)| name.as_deref().unwrap_or("Other"))
            .collect();
        assert_eq!(names, ["n1", "n7", "n6", "n5", "n4", "Other"]);
        assert_eq!(parts[0].1, [1, 100]);
        assert_eq!(parts[5].1, [5, 0]);
    }

    #[test]
    fn a_rest_of_one_is_shown_by_its_name() {
        let row = |number: i64| row(0, &format!("n{number}"), number);
        let rows: Vec<StatsRow> = (1..=6).map(row).collect();
        let parts = stack(&rows, 1, |row| row.figures.installs);
        assert_eq!(parts.len(), 6);
        assert!(parts.iter().all(|(name, _)| name.is_some()));
    }

    #[test]
    fn a_metric_without_a_value_is_replaced() {
        let query = UrlQuery::of(Some("metric=clicks&second=installs"));
        let choice = ChartChoice::of(&query, |metric| metric.word == "events");
        assert_eq!((choice.metric.word, choice.second), ("events", None));
    }

    #[test]
    fn ratios_cannot_be_stacked() {
        let choice = |query: &str| ChartChoice::of(&UrlQuery::of(Some(query)), |_| true);
        assert_eq!(choice("metric=arpu&stack=network").stack, None);
        let chosen = choice("metric=revenue&stack=network&second=installs");
        assert_eq!(chosen.metric.word, "netRevenue");
        assert_eq!(chosen.stack, Some(Dimension::Network));
        assert_eq!(chosen.second.map(|one| one.word), Some("installs"));
        assert!(choice("metric=installs&second=installs").second.is_none());
    }
}
