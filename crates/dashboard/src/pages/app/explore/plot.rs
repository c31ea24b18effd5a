//! The chart of Explore: the metric that the table is sorted by, over time.

use super::report::ExploreReport;
use crate::access::PageContext;
use crate::analysis::AnalysisBar;
use crate::chart::Chart;
use crate::failure::Failure;
use crate::metric::{METRICS, Metric};
use crate::pages::app::overview::load::FigureReader;
use crate::pages::app::overview::plot::{ChartChoice, plot};
use crate::state::DashboardHandles;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::Dimension;

/// Returns whether a chart can be stacked by a dimension. Ads and ad sets have too many values per
/// day to read all of them for a chart.
const fn is_stackable(dimension: Dimension) -> bool {
    !matches!(dimension, Dimension::Adset | Dimension::Ad)
}

/// Returns the metric to draw: the one that the table is sorted by. Figures of events have no
/// installs.
fn metric(sort: Option<&'static Metric>, of_events: bool) -> &'static Metric {
    let default = if of_events { "events" } else { "installs" };
    let metric = sort.or_else(|| Metric::find(default));
    metric.unwrap_or(&METRICS[0])
}

/// Draws the chart, stacked by the first dimension of the report if the metric adds up. Returns `None`
/// for a searched report, whose rows are only a part of the figures.
pub(super) async fn chart(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    bar: &AnalysisBar,
    found: &ExploreReport,
) -> Result<Option<Chart>, Failure> {
    if context.query.get("search").is_some() || found.rows.is_empty() {
        return Ok(None);
    }
    let reader = FigureReader {
        handles,
        caller: &context.authorized,
        app: context.app()?.id,
        bar,
    };
    let dimensions = found.dimensions();
    let stack = dimensions.first().copied().filter(|one| is_stackable(*one));
    let choice = ChartChoice::stacked(metric(found.sort, found.of_events), stack);
    let figures = reader.load().await?;
    let chart = plot(&reader, &figures, &choice, found.names(), &[]).await?;
    Ok(Some(chart))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::default(None, false, "installs")]
    #[case::events(None, true, "events")]
    #[case::sorted(Some("clicks"), false, "clicks")]
    fn the_chart_shows_what_the_table_is_sorted_by(
        #[case] sort: Option<&str>,
        #[case] of_events: bool,
        #[case] expected: &str,
    ) {
        let sort = sort.and_then(Metric::find);
        assert_eq!(metric(sort, of_events).word, expected);
    }
}
