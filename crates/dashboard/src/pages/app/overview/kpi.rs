//! Key metrics and their change.

use crate::chart::Unit;
use tributary_domain::report::Figures;

/// A key metric and its change.
pub(crate) struct Kpi {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) change: Option<KpiChange>,
    /// Whether the previous period had no value and this one has.
    pub(crate) is_new: bool,
}

/// Returns whether a metric went from zero to a positive value.
pub(super) const fn is_new(before: i64, now: i64) -> bool {
    before == 0 && now > 0
}

/// Change from the previous period: text and colour.
pub(crate) struct KpiChange {
    pub(crate) text: String,
    pub(crate) tone: &'static str,
}

impl KpiChange {
    /// Computes the change. Returns `None` if the previous value is not positive.
    pub(crate) fn of(before: i64, now: i64) -> Option<Self> {
        if before <= 0 {
            return None;
        }
        let tenths = (i128::from(now) - i128::from(before)) * 1_000 / i128::from(before);
        let sign = match tenths {
            1.. => "+",
            0 => "±",
            _ => "−",
        };
        let tenths = tenths.unsigned_abs();
        Some(Self {
            text: format!("{sign}{}.{} %", tenths / 10, tenths % 10),
            tone: match sign {
                "+" => "good",
                "−" => "bad",
                _ => "quiet",
            },
        })
    }
}

/// A metric for the main chart.
pub(crate) struct Metric {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) of: fn(&Figures) -> i64,
}

/// The key metrics in display order.
pub(crate) const METRICS: [Metric; 6] = [
    Metric {
        word: "clicks",
        label: "Clicks",
        unit: Unit::Count,
        of: |one| one.clicks,
    },
    Metric {
        word: "installs",
        label: "Installs",
        unit: Unit::Count,
        of: |one| one.installs,
    },
    Metric {
        word: "trials",
        label: "Trials",
        unit: Unit::Count,
        of: |one| one.trials,
    },
    Metric {
        word: "purchases",
        label: "Purchases",
        unit: Unit::Count,
        of: |one| one.purchases,
    },
    Metric {
        word: "revenue",
        label: "Net revenue",
        unit: Unit::Money,
        of: |one| one.net_micros(),
    },
    Metric {
        word: "payers",
        label: "New payers",
        unit: Unit::Count,
        of: |one| one.paying_devices,
    },
];
/// Index of the default metric.
pub(super) const METRIC_DEFAULT: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::more(100, 150, Some("+50.0 %"))]
    #[case::less(3, 2, Some("−33.3 %"))]
    #[case::the_same(5, 5, Some("±0.0 %"))]
    #[case::from_nothing(0, 5, None)]
    fn formats_changes(#[case] before: i64, #[case] now: i64, #[case] expected: Option<&str>) {
        let change = KpiChange::of(before, now);
        assert_eq!(change.as_ref().map(|change| change.text.as_str()), expected);
    }

    #[rstest]
    #[case::from_nothing(0, 5, true)]
    #[case::still_nothing(0, 0, false)]
    #[case::more(1, 5, false)]
    #[case::from_a_loss(-1, 5, false)]
    fn only_a_first_value_is_new(#[case] before: i64, #[case] now: i64, #[case] expected: bool) {
        assert_eq!(is_new(before, now), expected);
    }
}
