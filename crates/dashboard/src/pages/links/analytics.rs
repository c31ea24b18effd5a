//! A link's figures in a period: clicks by day, installs, revenue, countries and platforms.

use crate::access::PageContext;
use crate::chart::{Chart, ChartData, ChartPoint, ChartSeries};
use crate::failure::Failure;
use crate::metric::Unit;
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use crate::text;
use tributary_domain::access::AppsRead;
use tributary_domain::link::Link;
use tributary_domain::report::range::Span;
use tributary_domain::report::{
    CLICKS_SCANNED_MAX, ClickBreakdown, Dimension, Figures, ReportQuery, TimeUnit,
};
use tributary_domain::vocabulary::country::country_label;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::timezone::Timezone;

/// Rows of the list of countries. The rest is one row.
const COUNTRIES_SHOWN: usize = 10;

/// The figures of a link.
pub(super) struct LinkAnalytics {
    pub(super) range: PageDateRange,
    query: UrlQuery,
    /// Label and value of each key metric.
    pub(super) metrics: Vec<(&'static str, String)>,
    pub(super) chart: Chart,
    pub(super) countries: Vec<ShareBar>,
    pub(super) platforms: Vec<ShareBar>,
    /// Says which clicks the two lists leave out, if any.
    pub(super) coverage: Option<String>,
}

/// A row of a list of shares.
pub(super) struct ShareBar {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) share: String,
    /// Width relative to all clicks, in tenths of a percent.
    pub(super) width: i64,
}

impl LinkAnalytics {
    /// Loads the figures for the range in the page's URL.
    pub(super) async fn load(
        handles: &DashboardHandles,
        context: &PageContext<AppsRead>,
        link: &Link,
        zone: &Timezone,
    ) -> Result<Self, Failure> {
        let caller = context.authorized.analytics_access();
        let range = PageDateRange::of(&context.query, handles.runtime.now(), zone);
        let mut spans = range.chart_spans();
        spans.retain(|span| !range.is_future(span.period));
        let question = ReportQuery {
            periods: spans.iter().map(|span| span.period).collect(),
            group_by: Vec::new(),
            filters: vec![(Dimension::Link, link.id.to_string())],
            rows_max: u32::MAX,
        };
        let rows = handles.store.stats(&caller, link.app, question).await?;
        let mut total = Figures::default();
        let mut clicks = vec![0; spans.len()];
        for row in rows {
            if let Some(number) = clicks.get_mut(row.period) {
                *number += row.figures.clicks;
            }
            total.add(&row.figures, 1);
        }
        let breakdown = handles
            .store
            .click_breakdown(&caller, link.app, link.id, range.whole())
            .await?;
        Ok(Self {
            chart: clicks_chart(&range, &spans, &clicks),
            range,
            query: context.query.clone(),
            metrics: metrics(&total),
            coverage: coverage(&breakdown, total.clicks),
            countries: countries(&breakdown),
            platforms: bars(&breakdown.platforms, breakdown.clicks, platform_label),
        })
    }

    pub(super) fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PageDateRange::presets()
    }

    pub(super) fn with_range(&self, preset: &str) -> String {
        PageDateRange::with_preset(&self.query, preset)
    }
}

fn clicks_chart(range: &PageDateRange, spans: &[Span], clicks: &[i64]) -> Chart {
    let point = |span: &Span| {
        let is_unfinished = range.is_unfinished(span.period);
        ChartPoint::of_span(span, is_unfinished, Vec::new())
    };
    let data = ChartData {
        label: "Clicks".to_owned(),
        axis: "Time",
        points: spans.iter().map(point).collect(),
        series: vec![ChartSeries {
            label: "Clicks".to_owned(),
            unit: Unit::Count,
            values: clicks.iter().copied().map(Some).collect(),
        }],
        before: None,
        second: None,
        can_zoom: range.chart_unit() != TimeUnit::Hour,
    };
    data.draw()
}

fn metrics(total: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("Clicks", text::count(total.clicks)),
        ("Installs", text::count(total.installs)),
        // As in the list of links.
        ("New payers", text::count(total.paying_devices)),
        (
            "Net revenue",
            text::usd(Amount::from_micros(total.net_micros())),
        ),
    ]
}

/// Returns a sentence if the lists contain fewer clicks than the chart.
fn coverage(breakdown: &ClickBreakdown, clicks: i64) -> Option<String> {
    (breakdown.clicks < clicks).then(|| {
        format!(
            "Covers {} of {} clicks. The lists are counted from the newest {} stored clicks of the \
             app, and clicks that led to no install are deleted after some time.",
            text::count(breakdown.clicks),
            text::count(clicks),
            text::count(CLICKS_SCANNED_MAX.into())
        )
    })
}

fn countries(breakdown: &ClickBreakdown) -> Vec<ShareBar> {
    let shown = breakdown.countries.len().min(COUNTRIES_SHOWN);
    let (first, rest) = breakdown.countries.split_at(shown);
    let mut rows = first.to_vec();
    if !rest.is_empty() {
        let clicks = rest.iter().map(|(_, clicks)| clicks).sum();
        rows.push((format!("{} others", rest.len()), clicks));
    }
    bars(&rows, breakdown.clicks, |country| match country {
        "" => "Unknown".to_owned(),
        country => country_label(country),
    })
}

fn platform_label(platform: &str) -> String {
    match platform {
        "ios" => "iPhone, iPad",
        "android" => "Android",
        _ => "Other devices",
    }
    .to_owned()
}

fn bars(rows: &[(String, i64)], clicks: i64, label: impl Fn(&str) -> String) -> Vec<ShareBar> {
    let bar = |(value, part): &(String, i64)| ShareBar {
        label: label(value),
        value: text::count(*part),
        share: text::percent(*part, clicks),
        width: i64::try_from(i128::from(*part) * 1_000 / i128::from(clicks.max(1))).unwrap_or(0),
    };
    rows.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_countries_are_one_row() {
        let groups = (0..12).map(|number| (Some(format!("C{number:02}")), "web".to_owned(), 5));
        let breakdown = ClickBreakdown::of(groups.chain([(None, "ios".to_owned(), 40)]));
        let rows = countries(&breakdown);
        assert_eq!(rows.len(), COUNTRIES_SHOWN + 1);
        assert_eq!((&*rows[0].label, rows[0].width), ("Unknown", 400));
        assert_eq!((&*rows[10].label, &*rows[10].share), ("3 others", "15.0 %"));
    }

    #[test]
    fn clicks_that_are_left_out_are_mentioned() {
        let breakdown = ClickBreakdown::of([(None, "web".to_owned(), 1_000)]);
        assert_eq!(coverage(&breakdown, 1_000), None);
        let sentence = coverage(&breakdown, 1_500).unwrap();
        assert!(
            sentence.starts_with("Covers 1,000 of 1,500 clicks."),
            "{sentence}"
        );
    }
}
