//! Key metrics and their change.

use super::load::RangeFigures;
use crate::metric::{Metric, MetricChange};
use tributary_domain::report::ReportFigures;

/// Cards with and without ad costs, in display order.
const COST_CARDS: [&str; 6] = [
    "cost",
    "installs",
    "paidCpi",
    "netRevenue",
    "paidRoas",
    "payingDevices",
];
const CARDS: [&str; 6] = [
    "clicks",
    "installs",
    "trials",
    "purchases",
    "netRevenue",
    "payingDevices",
];

/// A key metric and its change.
pub(super) struct Kpi {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) change: Option<MetricChange>,
    /// Whether the compared range had no value and this one has.
    pub(super) is_new: bool,
    /// Blended value below a paid one.
    pub(super) blended: Option<String>,
}

/// Returns whether a metric went from zero to a positive value.
fn is_new(metric: &Metric, before: &ReportFigures, now: &ReportFigures) -> bool {
    let value = |row| (metric.of)(row);
    metric.is_sum && value(before) == Some(0) && value(now).is_some_and(|now| now > 0)
}

/// Returns the blended counterpart of a paid metric.
fn blended(metric: &Metric, now: &ReportFigures) -> Option<String> {
    let word = match metric.word {
        "paidCpi" => "cpi",
        "paidRoas" => "roas",
        _ => return None,
    };
    Some(format!("{} blended", Metric::find(word)?.write_brief(now)))
}

/// Returns the cards.
pub(super) fn kpis(figures: &RangeFigures) -> Vec<Kpi> {
    let (now, before) = (&figures.total, figures.total_before.as_ref());
    let has_costs = now.cost.is_some_and(|cost| cost > 0);
    let cards = if has_costs { &COST_CARDS } else { &CARDS };
    let cards = Metric::select(cards).into_iter();
    cards
        .map(|metric| Kpi {
            word: metric.word,
            label: metric.label,
            value: metric.write_brief(now),
            change: before.and_then(|before| metric.change(before, now)),
            is_new: before.is_some_and(|before| is_new(metric, before, now)),
            blended: blended(metric, now),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::report::Figures;

    #[rstest]
    #[case::from_nothing(0, 5, true)]
    #[case::still_nothing(0, 0, false)]
    #[case::more(1, 5, false)]
    fn only_a_first_value_is_new(#[case] before: i64, #[case] now: i64, #[case] expected: bool) {
        let [before, now] = [before, now].map(|installs| ReportFigures {
            figures: Figures {
                installs,
                ..Figures::default()
            },
            ..ReportFigures::zero()
        });
        let metric = Metric::find("installs").unwrap();
        assert_eq!(is_new(metric, &before, &now), expected);
    }
}
