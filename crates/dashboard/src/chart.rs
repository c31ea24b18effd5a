//! Charts as inline SVG. Coordinates are computed here in hundredths of a unit; the template only
//! prints them.

use crate::text;
use tributary_domain::vocabulary::money::Amount;

/// Size and margins of the chart, in view-box units.
const WIDTH: i64 = 960;
const HEIGHT: i64 = 240;
const LEFT: i64 = 64;
const RIGHT: i64 = 8;
const TOP: i64 = 12;
const BOTTOM: i64 = 28;
/// Horizontal grid lines above the baseline.
const LINES: i64 = 4;
/// Approximate number of labels on the x-axis.
const LABELS: usize = 7;

/// Size of a sparkline.
const SPARK_WIDTH: i64 = 120;
const SPARK_HEIGHT: i64 = 32;

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    /// Amount in millionths of a dollar.
    Money,
}

impl Unit {
    pub(crate) fn write(self, value: i64) -> String {
        match self {
            Self::Count => text::count(value),
            Self::Money => text::usd_brief(Amount::from_micros(value)),
        }
    }
}

/// A metric by day, with the previous period in the background.
pub(crate) struct Chart {
    pub(crate) label: String,
    pub(crate) line: String,
    pub(crate) area: String,
    pub(crate) before: String,
    /// Y coordinate and label of each grid line.
    pub(crate) grid: Vec<(String, String)>,
    /// X coordinate and label of each mark on the x-axis.
    pub(crate) marks: Vec<(String, String)>,
    /// One column per day.
    pub(crate) columns: Vec<ChartColumn>,
}

/// A day in the chart: hover area, tooltip and table row.
pub(crate) struct ChartColumn {
    pub(crate) x: String,
    pub(crate) width: String,
    pub(crate) tip: String,
    pub(crate) day: String,
    pub(crate) value: String,
    pub(crate) before: String,
}

/// Formats hundredths of a unit for SVG.
fn coordinate(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(value: i64) -> i64 {
    let mut step = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            let round = step.saturating_mul(factor);
            if round >= value {
                return round;
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Returns the top of the y-axis: a multiple of a round step.
fn ceiling(highest: i64, unit: Unit) -> i64 {
    let least = match unit {
        Unit::Count => LINES,
        Unit::Money => LINES * 1_000_000,
    };
    let step = round_up((highest.max(least) + LINES - 1) / LINES);
    step * LINES
}

fn x_of(index: usize, days: usize) -> i64 {
    let span = (WIDTH - LEFT - RIGHT) * 100;
    let steps = i64::try_from(days.saturating_sub(1)).unwrap_or(1).max(1);
    LEFT * 100 + span * i64::try_from(index).unwrap_or(0) / steps
}

fn y_of(value: i64, ceiling: i64) -> i64 {
    let span = (HEIGHT - TOP - BOTTOM) * 100;
    let share = i128::from(span) * i128::from(value.max(0)) / i128::from(ceiling.max(1));
    (HEIGHT - BOTTOM) * 100 - i64::try_from(share).unwrap_or(span)
}

fn points(values: &[i64], ceiling: i64) -> String {
    let point = |(index, value): (usize, &i64)| {
        let (x, y) = (x_of(index, values.len()), y_of(*value, ceiling));
        format!("{},{}", coordinate(x), coordinate(y))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    points.join(" ")
}

impl Chart {
    /// Builds a chart of daily values. `before` has the same length, or is empty.
    pub(crate) fn of(
        label: &str,
        unit: Unit,
        days: &[String],
        now: &[i64],
        before: &[i64],
    ) -> Self {
        let highest = now.iter().chain(before).copied().max().unwrap_or(0);
        let top = ceiling(highest, unit);
        let line = points(now, top);
        let floor = coordinate((HEIGHT - BOTTOM) * 100);
        let (first, last) = (
            coordinate(x_of(0, now.len())),
            coordinate(x_of(now.len().saturating_sub(1), now.len())),
        );
        let every = (days.len() / LABELS).max(1);
        let width = (WIDTH - LEFT - RIGHT) * 100 / i64::try_from(days.len().max(1)).unwrap_or(1);
        let column = |(index, day): (usize, &String)| {
            let value = unit.write(now.get(index).copied().unwrap_or(0));
            let was = before.get(index).map(|was| unit.write(*was));
            let earlier = was.as_ref().map(|was| format!("\nprevious period: {was}"));
            ChartColumn {
                x: coordinate((x_of(index, days.len()) - width / 2).max(0)),
                width: coordinate(width),
                tip: format!("{day}\n{label}: {value}{}", earlier.unwrap_or_default()),
                day: day.clone(),
                value,
                before: was.unwrap_or_default(),
            }
        };
        Self {
            label: label.to_owned(),
            area: format!("{first},{floor} {line} {last},{floor}"),
            line,
            before: points(before, top),
            grid: (0..=LINES)
                .map(|step| {
                    let value = top / LINES * step;
                    (coordinate(y_of(value, top)), unit.write(value))
                })
                .collect(),
            marks: days
                .iter()
                .enumerate()
                .filter(|(index, _)| index.is_multiple_of(every))
                .map(|(index, day)| (coordinate(x_of(index, days.len())), day.clone()))
                .collect(),
            columns: days.iter().enumerate().map(column).collect(),
        }
    }

    pub(crate) fn view_box(&self) -> String {
        format!("0 0 {WIDTH} {HEIGHT}")
    }

    pub(crate) const fn left(&self) -> i64 {
        LEFT
    }

    pub(crate) const fn right(&self) -> i64 {
        WIDTH - RIGHT
    }

    pub(crate) const fn floor(&self) -> i64 {
        HEIGHT - BOTTOM
    }

    pub(crate) const fn top(&self) -> i64 {
        TOP
    }

    pub(crate) const fn foot(&self) -> i64 {
        HEIGHT - 8
    }
}

/// Returns the points of a sparkline.
pub(crate) fn sparkline(values: &[i64]) -> String {
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let steps = i64::try_from(values.len().saturating_sub(1))
        .unwrap_or(1)
        .max(1);
    let point = |(index, value): (usize, &i64)| {
        let x = SPARK_WIDTH * 100 * i64::try_from(index).unwrap_or(0) / steps;
        let share = i128::from((SPARK_HEIGHT - 4) * 100) * i128::from((*value).max(0))
            / i128::from(highest);
        let y = (SPARK_HEIGHT - 2) * 100 - i64::try_from(share).unwrap_or(0);
        format!("{},{}", coordinate(x), coordinate(y))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    points.join(" ")
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
    #[case(81, 200)]
    fn the_y_axis_ends_at_a_round_number(#[case] highest: i64, #[case] expected: i64) {
        assert_eq!(ceiling(highest, Unit::Count), expected);
    }

    #[test]
    fn all_days_lie_within_the_chart() {
        let days: Vec<String> = (1..=3).map(|day| format!("day {day}")).collect();
        let chart = Chart::of("Installs", Unit::Count, &days, &[0, 4, 2], &[1, 1, 1]);
        assert_eq!(chart.line, "64.00,212.00 508.00,12.00 952.00,112.00");
        assert_eq!(
            chart.columns[1].tip,
            "day 2\nInstalls: 4\nprevious period: 1"
        );
        assert_eq!(chart.grid.len(), 5);
    }

    #[test]
    fn zero_values_lie_on_the_baseline() {
        let chart = Chart::of("Installs", Unit::Count, &["one".to_owned()], &[0], &[]);
        assert_eq!(chart.line, "64.00,212.00");
        assert_eq!(chart.before, "");
        assert_eq!(sparkline(&[0, 0]), "0.00,30.00 120.00,30.00");
    }
}
