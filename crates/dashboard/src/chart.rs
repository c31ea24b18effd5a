//! Charts as inline SVG: every place is computed here, in whole hundredths of the drawing's units, and the template only
//! writes it out.

use crate::text;
use tributary_domain::vocabulary::money::Amount;

/// The drawing, in units of its view box.
const WIDTH: i64 = 960;
const HEIGHT: i64 = 240;
const LEFT: i64 = 64;
const RIGHT: i64 = 8;
const TOP: i64 = 12;
const BOTTOM: i64 = 28;
/// Lines across the drawing, the lowest not counted.
const LINES: i64 = 4;
/// Labels below it, about.
const LABELS: usize = 7;

/// The small drawing of a course.
const SPARK_WIDTH: i64 = 120;
const SPARK_HEIGHT: i64 = 32;

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    /// Millionths of a dollar.
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

/// A figure by day, with that of the period before behind it.
pub(crate) struct Chart {
    pub(crate) label: String,
    pub(crate) line: String,
    pub(crate) area: String,
    pub(crate) before: String,
    /// Height and words of the lines across.
    pub(crate) grid: Vec<(String, String)>,
    /// Place and words below.
    pub(crate) marks: Vec<(String, String)>,
    /// One per day.
    pub(crate) columns: Vec<ChartColumn>,
}

/// A day: where it is, what it says.
pub(crate) struct ChartColumn {
    pub(crate) x: String,
    pub(crate) width: String,
    pub(crate) tip: String,
    pub(crate) day: String,
    pub(crate) value: String,
    pub(crate) before: String,
}

/// A place in hundredths of a unit, as SVG writes it.
fn coordinate(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A round number that is not smaller: 1, 2 or 5 with zeros.
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

/// The top of a drawing whose highest value is this: a multiple of a round step.
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
    /// Of a figure by day. `before` is as long, or empty where nothing is compared.
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
            let earlier = was.as_ref().map(|was| format!("\nbefore: {was}"));
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

/// The course of a figure, without words.
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
    fn a_drawing_ends_at_a_round_number(#[case] highest: i64, #[case] expected: i64) {
        assert_eq!(ceiling(highest, Unit::Count), expected);
    }

    #[test]
    fn every_day_has_its_place_within_the_drawing() {
        let days: Vec<String> = (1..=3).map(|day| format!("day {day}")).collect();
        let chart = Chart::of("Installs", Unit::Count, &days, &[0, 4, 2], &[1, 1, 1]);
        assert_eq!(chart.line, "64.00,212.00 508.00,12.00 952.00,112.00");
        assert_eq!(chart.columns[1].tip, "day 2\nInstalls: 4\nbefore: 1");
        assert_eq!(chart.grid.len(), 5);
    }

    #[test]
    fn nothing_is_a_line_at_the_foot() {
        let chart = Chart::of("Installs", Unit::Count, &["one".to_owned()], &[0], &[]);
        assert_eq!(chart.line, "64.00,212.00");
        assert_eq!(chart.before, "");
        assert_eq!(sparkline(&[0, 0]), "0.00,30.00 120.00,30.00");
    }
}
