//! Charts as inline SVG. Coordinates are computed here in hundredths of a unit; the template only
//! prints them. The drawing stretches to the width of the page, so all texts are outside of it.

use crate::metric::Unit;
use std::fmt::Write as _;
use tributary_domain::report::range::Span;
use tributary_domain::vocabulary::day::Day;

/// Size of the drawing in view-box units.
const WIDTH: i64 = 1_000;
const HEIGHT: i64 = 240;
/// How far the short line for a single value reaches to either side, in hundredths of a unit.
const SHORT_LINE_HALF: i64 = 10 * 100;
/// Free space above the highest value.
const TOP: i64 = 8;
/// Horizontal grid lines above the baseline.
const LINES: i64 = 4;
/// Approximate number of labels on the x-axis.
const LABELS: usize = 7;

/// A line or a part of a stack, with one value per point; `None` where it has none.
pub(crate) struct ChartSeries {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) values: Vec<Option<i64>>,
}

/// A point on the x-axis.
pub(crate) struct ChartPoint {
    pub(crate) label: String,
    /// First and last day to zoom in to; `None` for a point that is not a period.
    pub(crate) days: Option<(Day, Day)>,
    /// Whether the period is not over yet.
    pub(crate) is_unfinished: bool,
    /// What happened in the period.
    pub(crate) notes: Vec<String>,
}

impl ChartPoint {
    /// Returns the point of a period.
    pub(crate) fn of_span(span: &Span, is_unfinished: bool, notes: Vec<String>) -> Self {
        Self {
            label: span.label.clone(),
            days: Some((span.from, span.to)),
            is_unfinished,
            notes,
        }
    }
}

/// What a chart shows.
pub(crate) struct ChartData {
    pub(crate) label: String,
    /// What the points are: head of the table's first column.
    pub(crate) axis: &'static str,
    pub(crate) points: Vec<ChartPoint>,
    /// One series is a line; several are stacked.
    pub(crate) series: Vec<ChartSeries>,
    /// The range that the first series is compared with.
    pub(crate) before: Option<ChartSeries>,
    /// Another metric, on its own axis.
    pub(crate) second: Option<ChartSeries>,
    /// Whether a part of the chart can be selected to zoom in.
    pub(crate) can_zoom: bool,
}

/// A drawn chart.
pub(crate) struct Chart {
    pub(crate) label: String,
    pub(crate) axis: &'static str,
    pub(crate) series: Vec<String>,
    pub(crate) is_stacked: bool,
    pub(crate) line: String,
    /// The part of the line that leads to the unfinished period.
    pub(crate) dashed: String,
    pub(crate) area: String,
    pub(crate) before: String,
    pub(crate) second: String,
    pub(crate) before_label: Option<String>,
    pub(crate) second_label: Option<String>,
    pub(crate) bars: Vec<ChartBar>,
    /// Y coordinates of the grid lines.
    pub(crate) grid: Vec<String>,
    /// Labels of the y-axis from top to bottom.
    pub(crate) scale: Vec<String>,
    pub(crate) second_scale: Vec<String>,
    /// X coordinates of points with notes.
    pub(crate) notes: Vec<String>,
    pub(crate) columns: Vec<ChartColumn>,
    pub(crate) can_zoom: bool,
}

/// A part of a stack.
pub(crate) struct ChartBar {
    /// Number of its series, from 1.
    pub(crate) series: usize,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) width: String,
    pub(crate) height: String,
    pub(crate) is_unfinished: bool,
}

/// A point in the chart: hover area, tooltip and table row.
pub(crate) struct ChartColumn {
    pub(crate) x: String,
    pub(crate) width: String,
    pub(crate) tip: String,
    pub(crate) days: Option<(Day, Day)>,
    pub(crate) label: String,
    /// Label on the x-axis; empty for most points.
    pub(crate) mark: String,
    /// Whether narrow screens leave the mark out.
    pub(crate) is_minor: bool,
    pub(crate) values: Vec<String>,
    pub(crate) note: String,
}

/// Formats hundredths of a unit for SVG, without needless zeros.
pub(crate) fn coordinate(hundredths: i64) -> String {
    let (whole, part) = (hundredths / 100, hundredths % 100);
    if part == 0 {
        return whole.to_string();
    }
    format!("{whole}.{part:02}")
}

/// Steps of the y-axis in tenths of a power of ten: close enough that at most a third of the drawing
/// stays empty.
const STEPS: [i64; 9] = [10, 15, 20, 25, 30, 40, 50, 60, 80];

/// Rounds up to one of [`STEPS`].
fn round_up(value: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        for step in STEPS {
            let round = power.saturating_mul(step);
            // Steps of counts are whole numbers.
            if round % 10 == 0 && round / 10 >= value {
                return round / 10;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Returns the top of the y-axis: a multiple of a round step.
fn ceiling(highest: i64, unit: Unit) -> i64 {
    let least = match unit {
        Unit::Count => LINES,
        Unit::Money => LINES * 1_000_000,
        Unit::Ratio | Unit::Share => LINES * 10_000,
    };
    let step = round_up((highest.max(least) + LINES - 1) / LINES);
    step * LINES
}

/// Returns the middle of a point's column.
fn x_of(index: usize, points: usize) -> i64 {
    let (index, points) = (index_of(index), index_of(points).max(1));
    WIDTH * 100 * (2 * index + 1) / (2 * points)
}

fn index_of(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(0)
}

fn height_of(value: i64, ceiling: i64) -> i64 {
    let span = (HEIGHT - TOP) * 100;
    let share = i128::from(span) * i128::from(value.max(0)) / i128::from(ceiling.max(1));
    i64::try_from(share).unwrap_or(span)
}

fn y_of(value: i64, ceiling: i64) -> i64 {
    HEIGHT * 100 - height_of(value, ceiling)
}

/// Returns the points of a line that has values at these indexes. If it has one value in all, it becomes
/// a short line, because a line of one point is not drawn: an app's first day would look empty.
fn points(values: &[Option<i64>], range: std::ops::Range<usize>, count: usize, top: i64) -> String {
    let point = |index: usize| {
        let value = (*values.get(index)?)?;
        let (x, y) = (x_of(index, count), y_of(value, top));
        Some(format!("{},{}", coordinate(x), coordinate(y)))
    };
    if let Some((index, value)) = only_value(values).filter(|(index, _)| range.contains(index)) {
        return short_line(x_of(index, count), y_of(value, top));
    }
    let points: Vec<String> = range.filter_map(point).collect();
    points.join(" ")
}

/// Returns the index and value of a line that has one value.
fn only_value(values: &[Option<i64>]) -> Option<(usize, i64)> {
    let mut known = (0..)
        .zip(values)
        .filter_map(|(index, value)| Some((index, (*value)?)));
    known.next().filter(|_| known.next().is_none())
}

/// Returns a level line around a point, within the chart.
fn short_line(x: i64, y: i64) -> String {
    let [from, until] =
        [-SHORT_LINE_HALF, SHORT_LINE_HALF].map(|by| (x + by).clamp(0, WIDTH * 100));
    let y = coordinate(y);
    format!("{},{y} {},{y}", coordinate(from), coordinate(until))
}

fn highest(series: &ChartSeries) -> i64 {
    series.values.iter().flatten().copied().max().unwrap_or(0)
}

/// Returns the highest sum of a stack.
fn highest_stack(series: &[ChartSeries], count: usize) -> i64 {
    let value = |one: &ChartSeries, index: usize| one.values.get(index).copied().flatten();
    let sum = |index| {
        let values = series.iter().filter_map(|one| value(one, index));
        values.map(|value| value.max(0)).sum()
    };
    (0..count).map(sum).max().unwrap_or(0)
}

/// Returns the labels of the y-axis, without cents if no label has any.
fn scale(top: i64, unit: Unit) -> Vec<String> {
    let steps = (0..=LINES).rev().map(|step| top / LINES * step);
    let labels: Vec<String> = steps.map(|value| unit.write_brief(value)).collect();
    let without = |label: &String| label.strip_suffix(".00").map(str::to_owned);
    let whole: Option<Vec<String>> = labels
        .iter()
        .map(|label| {
            without(label).or_else(|| Some(label.clone()).filter(|one| !one.contains('.')))
        })
        .collect();
    whole.unwrap_or(labels)
}

fn written(series: &ChartSeries, index: usize) -> String {
    let value = series.values.get(index).copied().flatten();
    value.map_or_else(|| "–".to_owned(), |value| series.unit.write(value))
}

impl ChartData {
    fn bars(&self, top: i64) -> Vec<ChartBar> {
        let count = self.points.len();
        let width = WIDTH * 100 / index_of(count).max(1);
        let mut bars = Vec::new();
        for (index, point) in self.points.iter().enumerate() {
            let mut below = 0;
            for (number, series) in self.series.iter().enumerate() {
                let value = series.values.get(index).copied().flatten().unwrap_or(0);
                if value <= 0 {
                    continue;
                }
                let (floor, roof) = (y_of(below, top), y_of(below + value, top));
                below += value;
                bars.push(ChartBar {
                    series: number + 1,
                    x: coordinate(x_of(index, count) - width * 2 / 5),
                    y: coordinate(roof),
                    width: coordinate(width * 4 / 5),
                    height: coordinate((floor - roof).max(0)),
                    is_unfinished: point.is_unfinished,
                });
            }
        }
        bars
    }

    fn column(&self, index: usize, every: usize) -> ChartColumn {
        let count = self.points.len();
        let width = WIDTH * 100 / index_of(count).max(1);
        let point = &self.points[index];
        let others = self.before.iter().chain(&self.second);
        let all: Vec<&ChartSeries> = self.series.iter().chain(others).collect();
        let values: Vec<String> = all.iter().map(|one| written(one, index)).collect();
        let unfinished = if point.is_unfinished { " (so far)" } else { "" };
        let mut tip = format!("{}{unfinished}", point.label);
        for (series, value) in all.iter().zip(&values) {
            // Writing to a String cannot fail.
            let _infallible = write!(tip, "\n{}: {value}", series.label);
        }
        for note in &point.notes {
            let _infallible = write!(tip, "\n• {note}");
        }
        let mark = index.is_multiple_of(every);
        ChartColumn {
            x: coordinate(x_of(index, count) - width / 2),
            width: coordinate(width),
            tip,
            days: point.days,
            label: format!("{}{unfinished}", point.label),
            mark: if mark {
                point.label.clone()
            } else {
                String::new()
            },
            is_minor: !(index / every).is_multiple_of(2),
            values,
            note: point.notes.join(", "),
        }
    }

    /// Draws the chart.
    pub(crate) fn draw(self) -> Chart {
        let count = self.points.len();
        let is_stacked = self.series.len() > 1;
        let unit = self.series.first().map_or(Unit::Count, |one| one.unit);
        let before = self.before.iter();
        let highest_value = before
            .map(highest)
            .chain([highest_stack(&self.series, count)])
            .max();
        let top = ceiling(highest_value.unwrap_or(0), unit);
        let line = self.series.first().filter(|_| !is_stacked);
        let values: &[Option<i64>] = line.map_or(&[], |one| &one.values);
        // The unfinished period is last, because later ones have no values.
        let unfinished = self.points.iter().position(|point| point.is_unfinished);
        let known = values
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last + 1);
        let solid = unfinished.unwrap_or(known).min(known);
        let every = count.div_ceil(LABELS).max(1);
        let begin = values.iter().position(Option::is_some).unwrap_or(0);
        let (floor, first) = (coordinate(HEIGHT * 100), coordinate(x_of(begin, count)));
        let end = coordinate(x_of(known.saturating_sub(1), count));
        let whole = points(values, 0..known, count, top);
        let second_top = self
            .second
            .as_ref()
            .map(|one| (ceiling(highest(one), one.unit), one));
        Chart {
            line: points(values, 0..solid, count, top),
            dashed: points(values, solid.saturating_sub(1)..known, count, top),
            area: if whole.is_empty() || only_value(values).is_some() {
                String::new()
            } else {
                format!("{first},{floor} {whole} {end},{floor}")
            },
            before: self
                .before
                .as_ref()
                .map(|one| points(&one.values, 0..count, count, top))
                .unwrap_or_default(),
            second: second_top
                .map(|(top, one)| points(&one.values, 0..count, count, top))
                .unwrap_or_default(),
            before_label: self.before.as_ref().map(|one| one.label.clone()),
            second_label: self.second.as_ref().map(|one| one.label.clone()),
            bars: if is_stacked {
                self.bars(top)
            } else {
                Vec::new()
            },
            grid: (0..=LINES)
                .map(|step| coordinate(y_of(top / LINES * step, top)))
                .collect(),
            scale: scale(top, unit),
            second_scale: second_top
                .map(|(top, one)| scale(top, one.unit))
                .unwrap_or_default(),
            notes: (0..count)
                .filter(|index| !self.points[*index].notes.is_empty())
                .map(|index| coordinate(x_of(index, count)))
                .collect(),
            columns: (0..count).map(|index| self.column(index, every)).collect(),
            series: self.series.iter().map(|one| one.label.clone()).collect(),
            is_stacked,
            can_zoom: self.can_zoom,
            axis: self.axis,
            label: self.label,
        }
    }
}

impl Chart {
    pub(crate) fn view_box(&self) -> String {
        format!("0 0 {WIDTH} {HEIGHT}")
    }

    pub(crate) const fn width(&self) -> i64 {
        WIDTH
    }

    pub(crate) const fn height(&self) -> i64 {
        HEIGHT
    }

    /// Returns the headers of the table after the first column.
    pub(crate) fn heads(&self) -> Vec<&String> {
        let others = self.before_label.iter().chain(&self.second_label);
        self.series.iter().chain(others).collect()
    }

    /// Returns whether the chart needs a legend.
    pub(crate) const fn has_legend(&self) -> bool {
        self.is_stacked
            || self.before_label.is_some()
            || self.second_label.is_some()
            || self.has_notes()
    }

    pub(crate) const fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, 4)]
    #[case(4, 4)]
    #[case(5, 8)]
    #[case(17, 20)]
    #[case(81, 100)]
    #[case(9_000_000, 10_000_000)]
    #[case(13_000_000, 16_000_000)]
    fn the_y_axis_ends_at_a_round_number(#[case] highest: i64, #[case] expected: i64) {
        assert_eq!(ceiling(highest, Unit::Count), expected);
    }

    #[rstest]
    #[case::dollars(400_000_000, &["$400", "$300", "$200", "$100", "$0"])]
    #[case::cents(2_000_000, &["$2.00", "$1.50", "$1.00", "$0.50", "$0.00"])]
    #[case::thousands(2_000_000_000, &["$2,000", "$1,500", "$1,000", "$500", "$0"])]
    fn the_axis_has_no_needless_cents(#[case] top: i64, #[case] expected: &[&str]) {
        assert_eq!(scale(top, Unit::Money), expected);
    }

    fn series(label: &str, values: &[Option<i64>]) -> ChartSeries {
        ChartSeries {
            label: label.to_owned(),
            unit: Unit::Count,
            values: values.to_vec(),
        }
    }

    fn data(series: Vec<ChartSeries>, unfinished: Option<usize>) -> ChartData {
        let point = |index: i32| ChartPoint {
            label: format!("day {index}"),
            days: None,
            is_unfinished: usize::try_from(index).ok() == unfinished,
            notes: Vec::new(),
        };
        ChartData {
            label: "Installs".to_owned(),
            axis: "Time",
            points: (0..4).map(point).collect(),
            series,
            before: None,
            second: None,
            can_zoom: true,
        }
    }

    #[test]
    fn the_unfinished_period_is_dashed_and_later_ones_are_not_drawn() {
        let values = series("Installs", &[Some(0), Some(4), Some(2), None]);
        let chart = data(vec![values], Some(2)).draw();
        assert_eq!(chart.line, "125,240 375,8");
        assert_eq!(chart.dashed, "375,8 625,124");
        assert_eq!(chart.area, "125,240 125,240 375,8 625,124 625,240");
        assert_eq!(chart.columns[2].tip, "day 2 (so far)\nInstalls: 2");
        assert_eq!(chart.columns[3].values, ["–"]);
        assert_eq!(chart.grid.len(), 5);
    }

    #[test]
    fn several_series_are_stacked_on_each_other() {
        let values = [
            series("A", &[Some(1), None, Some(3)]),
            series("B", &[Some(3), Some(4), Some(0)]),
        ];
        let chart = data(values.into(), None).draw();
        let bars = |index: usize| {
            let bar = &chart.bars[index];
            (bar.series, &*bar.y, &*bar.height)
        };
        assert_eq!(bars(0), (1, "182", "58"));
        assert_eq!(bars(1), (2, "8", "174"));
        assert_eq!((chart.bars.len(), &*chart.line), (4, ""));
        assert_eq!(chart.columns[0].tip, "day 0\nA: 1\nB: 3");
    }

    #[test]
    fn the_comparison_and_the_notes_are_in_the_tip_and_the_table() {
        let mut data = data(vec![series("Installs", &[Some(1); 4])], None);
        data.before = Some(series("Previous period", &[Some(8), None]));
        data.points[0].notes.push("Link created".to_owned());
        let chart = data.draw();
        assert_eq!(chart.before, "115,8 135,8");
        let tip = "day 0\nInstalls: 1\nPrevious period: 8\n• Link created";
        assert_eq!(chart.columns[0].tip, tip);
        assert_eq!(chart.heads(), ["Installs", "Previous period"]);
        assert_eq!(chart.notes, ["125"]);
    }

    #[test]
    fn a_single_value_is_a_short_line() {
        let drawn = |unfinished| {
            let one = data(
                vec![series("Clicks", &[None, None, Some(4), None])],
                unfinished,
            )
            .draw();
            (one.line, one.dashed, one.area)
        };
        let short = "615,8 635,8".to_owned();
        let solid = (short.clone(), short.clone(), String::new());
        assert_eq!(drawn(None), solid);
        assert_eq!(drawn(Some(2)), (String::new(), short, String::new()));
    }

    #[test]
    fn a_line_begins_with_the_first_known_value() {
        let chart = data(vec![series("Installs", &[None; 4])], None).draw();
        assert_eq!((&*chart.line, &*chart.area), ("", ""));
        let values = [None, Some(1), Some(2), Some(2)];
        let chart = data(vec![series("Installs", &values)], None).draw();
        assert!(chart.area.starts_with("375,240 "), "{}", chart.area);
    }
}
