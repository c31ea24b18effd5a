//! Samples for tests.

use super::{NoticeTopic, Threshold, ThresholdCondition, ThresholdWindow, Weekday};
use crate::report::metric::Metric;
use crate::report::{Figures, ReportFigures};
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

pub(super) fn threshold(
    metric: &str,
    condition: ThresholdCondition,
    value: i64,
    window: ThresholdWindow,
) -> Threshold {
    Threshold {
        metric: Metric::find(metric).unwrap(),
        condition,
        value: Amount::from_micros(value * MICROS_PER_UNIT),
        window,
        network: None,
    }
}

pub(super) const fn weekly(weekday: Weekday, hour: u8) -> NoticeTopic {
    NoticeTopic::WeeklySummary { weekday, hour }
}

pub(super) fn figures(installs: i64, cost: Option<i64>) -> ReportFigures {
    ReportFigures {
        figures: Figures {
            installs,
            clicks: installs * 10,
            revenue_micros: installs * 2_500_000,
            ..Figures::default()
        },
        cost,
        organic_net: Some(0),
    }
}
