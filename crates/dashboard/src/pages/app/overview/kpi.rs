//! Key metrics and their change.

use super::load::RangeFigures;
use crate::analysis::AnalysisBar;
use crate::metric::{ComparedFigure, Metric, MetricChange, Unit};
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

/// Card that comes first if the filters leave others out.
const FIRST_OF_PART: &str = "events";
/// Note on ratios of a day that is not over: the costs may be those of the whole day.
const SO_FAR: &str = "so far";

/// A key metric and its change.
pub(super) struct Kpi {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) change: Option<MetricChange>,
    /// The figure of the compared range, if it is known.
    pub(super) before: Option<String>,
    /// Whether the compared range had no value and this one has.
    pub(super) is_new: bool,
    /// Text beside the change: the blended value of a paid one, and whether the day is not over.
    pub(super) note: Option<String>,
    /// What the metric means, in one or two sentences; empty if its name says it.
    pub(super) help: &'static [&'static str],
}

/// Returns whether a metric went from zero to a positive value.
fn is_new(metric: &Metric, before: &ReportFigures, now: &ReportFigures) -> bool {
    let value = |row| (metric.of)(row);
    metric.is_sum && value(before) == Some(0) && value(now).is_some_and(|now| now > 0)
}

/// What paid and blended figures count.
const PAID: &str = "Paid: only installs and revenue that an ad or a link is credited with. Organic \
                    installs are left out.";
const BLENDED: &str = "Blended: all installs and all revenue, also organic ones.";

/// Explains a metric whose name does not say enough.
fn help(metric: &Metric) -> &'static [&'static str] {
    match metric.word {
        "cost" => &["Spend: what the ads of this period cost, imported or entered under Costs."],
        "paidCpi" => &[
            "CPI, cost per install: spend divided by installs. 2 means that an install cost $2.",
            PAID,
            BLENDED,
        ],
        "paidRoas" => &[
            "ROAS, return on ad spend: net revenue divided by spend. 1 means that ads brought in \
             what they cost.",
            PAID,
            BLENDED,
        ],
        "netRevenue" => &[
            "Net revenue: payments minus refunds in this period, in US dollars, from the app, its \
             billing providers and websites.",
            "A payment of more than 2,000 USD does not count, because it is most likely a mistake. \
             It is stored, and the event's page says so.",
        ],
        "payingDevices" => &["New payers: devices whose first payment of all is in this period."],
        _ => &[],
    }
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

/// Returns the metrics of the cards. Those without a value with the filters are left out.
fn cards(bar: &AnalysisBar, has_costs: bool) -> Vec<&'static Metric> {
    let all = Metric::select(if has_costs { &COST_CARDS } else { &CARDS });
    let known: Vec<&'static Metric> = all
        .iter()
        .copied()
        .filter(|metric| bar.has_value(metric))
        .collect();
    if known.len() == all.len() {
        return known;
    }
    let first = Metric::select(&[FIRST_OF_PART]).into_iter();
    first.chain(known).collect()
}

/// Returns the cards.
pub(super) fn kpis(bar: &AnalysisBar, figures: &RangeFigures) -> Vec<Kpi> {
    let (now, before) = (&figures.total, figures.total_before.as_ref());
    let has_costs = now.cost.is_some_and(|cost| cost > 0);
    let is_day_so_far = bar.range.is_day_so_far();
    let note = |metric: &Metric| {
        let is_ratio = metric.needs_cost && !metric.is_sum;
        let so_far = (is_day_so_far && is_ratio).then(|| SO_FAR.to_owned());
        let parts: Vec<String> = blended(metric, now).into_iter().chain(so_far).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let cards = cards(bar, has_costs).into_iter();
    let kpi = |metric: &'static Metric| {
        let compared =
            before.and_then(|before| ComparedFigure::of(metric, before, now, Unit::write_brief));
        let (before_text, change) =
            compared.map_or((None, None), |one| (Some(one.before), one.change));
        Kpi {
            word: metric.word,
            label: metric.label,
            value: metric.write_brief(now),
            change,
            before: before_text,
            is_new: before.is_some_and(|before| is_new(metric, before, now)),
            note: note(metric),
            help: help(metric),
        }
    };
    cards.map(kpi).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::report::Figures;

    #[test]
    fn every_card_with_jargon_is_explained() {
        for metric in Metric::select(&COST_CARDS) {
            let is_plain = metric.word == "installs";
            assert_eq!(help(metric).is_empty(), is_plain, "{}", metric.word);
        }
        for word in ["paidCpi", "paidRoas"] {
            let text = help(Metric::find(word).unwrap()).join(" ");
            assert!(
                text.contains("Paid:") && text.contains("Blended:"),
                "{text}"
            );
        }
    }

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
