//! The metrics that pages show: in cards, charts and table columns.

pub(crate) use tributary_domain::report::metric::{METRICS, Metric, MetricChange, Unit};
