//! The metrics that pages show: in cards, charts and table columns.

use tributary_domain::report::ReportFigures;
pub(crate) use tributary_domain::report::metric::{METRICS, Metric, MetricChange, Unit};

/// The figure of the compared range, and the change from it.
pub(crate) struct ComparedFigure {
    pub(crate) before: String,
    /// `None` if the figure before was not positive.
    pub(crate) change: Option<MetricChange>,
}

impl ComparedFigure {
    /// Returns the figure that a metric had before; `None` if either figure is not known.
    pub(crate) fn of(
        metric: &Metric,
        before: &ReportFigures,
        now: &ReportFigures,
        write: fn(Unit, i64) -> String,
    ) -> Option<Self> {
        let value = (metric.of)(before)?;
        (metric.of)(now)?;
        Some(Self {
            before: write(metric.unit, value),
            change: metric.change(before, now),
        })
    }
}
