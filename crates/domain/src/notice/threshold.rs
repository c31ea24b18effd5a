//! Thresholds on metrics.

use super::{DueCheck, NoticeProgress};
use crate::attribution::CreditedNetwork;
use crate::report::ReportFigures;
use crate::report::metric::{Metric, Unit};
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Which side of the value is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdCondition {
    /// More than the value.
    Over,
    /// Less than the value.
    Under,
}

crate::keywords! { ThresholdCondition[2] { Over => "over", Under => "under" } }

/// The days whose figures are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdWindow {
    /// One day.
    Day,
    /// Seven complete days.
    Week,
}

crate::keywords! { ThresholdWindow[2] { Day => "day", Week => "week" } }

/// A limit for a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// The metric.
    pub metric: &'static Metric,
    /// Over or under.
    pub condition: ThresholdCondition,
    /// The limit, in the metric's unit.
    pub value: Amount,
    /// The days.
    pub window: ThresholdWindow,
    /// Only figures of this network; `None` for all.
    pub network: Option<CreditedNetwork>,
}

impl Threshold {
    /// Returns whether a day is compared before it is over. Only the sum of a day tells early: once
    /// it is over the limit, the day is. Everything is under its limit in the morning, and a ratio of
    /// a few events says little.
    pub fn judges_running_day(&self) -> bool {
        self.window == ThresholdWindow::Day
            && self.condition == ThresholdCondition::Over
            && self.metric.is_sum
    }

    /// Returns the value that is beyond the limit, in millionths, if a message is due, and the new
    /// progress. A day reports once. Weeks overlap, so they report once per crossing. An unknown
    /// value changes nothing.
    pub fn judge(
        &self,
        check: &DueCheck,
        figures: &ReportFigures,
        progress: NoticeProgress,
    ) -> (Option<i64>, NoticeProgress) {
        let value = self.metric.micros(figures);
        let beyond = value.filter(|micros| self.is_beyond(*micros));
        let fired = match self.window {
            ThresholdWindow::Day => beyond,
            ThresholdWindow::Week => beyond.filter(|_| !progress.is_beyond),
        };
        let is_done = fired.is_some() || !check.is_running;
        let after = NoticeProgress {
            done_until: if is_done {
                progress.done_until.max(Some(check.range.to))
            } else {
                progress.done_until
            },
            is_beyond: value.map_or(progress.is_beyond, |_| beyond.is_some()),
        };
        (fired, after)
    }

    /// Returns whether a value, in millionths, is beyond the limit.
    pub fn is_beyond(&self, micros: i64) -> bool {
        match self.condition {
            ThresholdCondition::Over => micros > self.value.micros(),
            ThresholdCondition::Under => micros < self.value.micros(),
        }
    }

    /// Formats a value of the metric, given in millionths.
    pub fn write(&self, micros: i64) -> String {
        match self.metric.unit {
            Unit::Count if micros % MICROS_PER_UNIT == 0 => {
                Unit::Count.write(micros / MICROS_PER_UNIT)
            }
            Unit::Count => Amount::from_micros(micros).to_string(),
            unit @ (Unit::Money | Unit::Ratio | Unit::Share) => unit.write(micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{figures, threshold};
    use super::ThresholdCondition::{Over, Under};
    use super::*;
    use crate::report::range::DayRange;
    use crate::vocabulary::day::Day;
    use crate::vocabulary::timezone::Timezone;
    use rstest::rstest;

    fn check(day: i32, is_running: bool) -> DueCheck {
        let day = Day::from_days(day);
        DueCheck {
            range: DayRange {
                from: day,
                to: day,
                zone: Timezone::UTC,
            },
            is_running,
        }
    }

    fn progress(done: i32, is_beyond: bool) -> NoticeProgress {
        NoticeProgress {
            done_until: Some(Day::from_days(done)),
            is_beyond,
        }
    }

    #[rstest]
    #[case::over(Over, 11, Some(11_000_000))]
    #[case::equal_is_not_over(Over, 10, None)]
    #[case::under(Under, 9, Some(9_000_000))]
    #[case::equal_is_not_under(Under, 10, None)]
    fn a_complete_day_is_judged_once(
        #[case] condition: ThresholdCondition,
        #[case] installs: i64,
        #[case] expected: Option<i64>,
    ) {
        let limit = threshold("installs", condition, 10, ThresholdWindow::Day);
        let (fired, after) = limit.judge(
            &check(5, false),
            &figures(installs, None),
            progress(4, false),
        );
        assert_eq!(
            (fired, after.done_until),
            (expected, Some(Day::from_days(5)))
        );
    }

    #[test]
    fn a_running_day_stays_open_until_it_fires() {
        let limit = threshold("installs", Over, 10, ThresholdWindow::Day);
        let (fired, after) = limit.judge(&check(5, true), &figures(3, None), progress(4, false));
        assert_eq!((fired, after.done_until), (None, Some(Day::from_days(4))));
        let (fired, after) = limit.judge(&check(5, true), &figures(12, None), after);
        assert_eq!(
            (fired, after.done_until),
            (Some(12_000_000), Some(Day::from_days(5)))
        );
    }

    #[rstest]
    #[case::crossing(false, 11, Some(11_000_000), true)]
    #[case::still_over(true, 12, None, true)]
    #[case::back(true, 9, None, false)]
    fn overlapping_weeks_fire_once_per_crossing(
        #[case] was_beyond: bool,
        #[case] installs: i64,
        #[case] expected: Option<i64>,
        #[case] is_beyond: bool,
    ) {
        let limit = threshold("installs", Over, 10, ThresholdWindow::Week);
        let (fired, after) = limit.judge(
            &check(5, false),
            &figures(installs, None),
            progress(4, was_beyond),
        );
        assert_eq!((fired, after.is_beyond), (expected, is_beyond));
    }

    #[test]
    fn an_unknown_value_never_fires() {
        let limit = threshold("paidRoas", Under, 2, ThresholdWindow::Week);
        for was_beyond in [false, true] {
            let before = progress(4, was_beyond);
            let (fired, after) = limit.judge(&check(5, false), &figures(3, None), before);
            assert_eq!((fired, after.is_beyond), (None, was_beyond));
            assert_eq!(after.done_until, Some(Day::from_days(5)));
        }
    }

    #[test]
    fn values_have_the_unit_of_the_metric() {
        let write = |metric, micros| threshold(metric, Over, 1, ThresholdWindow::Day).write(micros);
        assert_eq!(write("installs", 12_345_000_000), "12,345");
        assert_eq!(write("cost", 1_234_500_000), "$1,234.50");
        assert_eq!(write("paidRoas", 2_510_000), "2.51");
    }
}
