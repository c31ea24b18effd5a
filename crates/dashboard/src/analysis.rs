//! The filter bar and date control that Overview, Explore and Cohorts share. The URL holds the whole
//! state.

use crate::access::PageContext;
use crate::data_begin::data_begin;
use crate::failure::Failure;
use crate::filter_value::normalized;
use crate::metric::{METRICS, Metric};
use crate::pages::app::group_label;
use crate::query::UrlQuery;
use crate::range::{COMPARE, FROM, PageDateRange, RANGE, TO};
use crate::state::DashboardHandles;
use crate::value_names::ValueNames;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::Platform;
use tributary_domain::integration::Network;
use tributary_domain::report::cohort::CohortTable;
use tributary_domain::report::range::Comparison;
use tributary_domain::report::{APP_PLATFORMS, DIMENSIONS_MAX, Dimension, Rollup};
use tributary_domain::vocabulary::country::country_label;
use tributary_domain::vocabulary::day::Day;
use tributary_store::AppName;

/// Dimensions with a field in the filter form. Others can be filtered by clicking a value.
const FIELDS: [Dimension; 7] = [
    Dimension::Network,
    Dimension::Campaign,
    Dimension::Adset,
    Dimension::Link,
    Dimension::Country,
    Dimension::Platform,
    Dimension::Event,
];
/// Maximum number of suggested values per field.
const SUGGESTIONS_MAX: usize = 50;

/// Parameters of the date control.
const DATES: [&str; 4] = [RANGE, FROM, TO, COMPARE];
/// Filters that mean the same in every app.
const COMMON_FILTERS: [Dimension; 4] = [
    Dimension::Network,
    Dimension::Country,
    Dimension::Platform,
    Dimension::Event,
];

/// Returns the parameters that stay when the user goes to another report of the same app.
pub(crate) fn kept_in_app(query: &UrlQuery) -> UrlQuery {
    let filters = Dimension::ALL.iter().map(|one| one.as_str());
    query.only(&DATES.into_iter().chain(filters).collect::<Vec<_>>())
}

/// Returns the parameters that stay when the user goes to another app.
pub(crate) fn kept_between_apps(query: &UrlQuery) -> UrlQuery {
    let filters = COMMON_FILTERS.iter().map(|one| one.as_str());
    query.only(&DATES.into_iter().chain(filters).collect::<Vec<_>>())
}

/// An active filter, shown as a removable tag.
pub(crate) struct FilterTag {
    dimension: Dimension,
    value: String,
    /// Name and value for people.
    pub(crate) text: String,
    /// Query without this filter.
    pub(crate) without: String,
    /// Why the value cannot be read.
    fault: Option<String>,
}

/// A field of the filter form.
pub(crate) struct FilterField {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    /// Values with their labels.
    pub(crate) choices: Vec<(String, String)>,
    /// Whether the choices are complete, so that the field is a list and not a text field.
    pub(crate) is_list: bool,
    /// Why the value cannot be read.
    pub(crate) fault: Option<String>,
}

/// Why a report cannot be shown, with links that make it possible.
pub(crate) struct Obstacle {
    pub(crate) message: String,
    /// Text and query of each way out.
    pub(crate) ways: Vec<(String, String)>,
}

/// The filter bar and date control of a page.
pub(crate) struct AnalysisBar {
    pub(crate) range: PageDateRange,
    pub(crate) tags: Vec<FilterTag>,
    pub(crate) fields: Vec<FilterField>,
    /// Labels of the filters in the URL that the report does not know.
    pub(crate) unknown: Vec<&'static str>,
    /// Day on which the app's data begins, if the compared range has earlier days.
    pub(crate) data_begin: Option<Day>,
    report: ReportKind,
    query: UrlQuery,
}

/// The report of a bar, which decides the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportKind {
    /// Figures by any dimension.
    Figures,
    /// Cohorts, whose roll-ups have fewer dimensions.
    Cohorts,
}

impl ReportKind {
    /// Returns whether the report can be grouped and filtered by all these dimensions together.
    fn covers(self, dimensions: &[Dimension]) -> bool {
        match self {
            Self::Figures => Rollup::for_dimensions(dimensions).is_some(),
            Self::Cohorts => CohortTable::for_dimensions(dimensions).is_some(),
        }
    }
}

impl AnalysisBar {
    /// Reads the state of a bar for figures from the URL.
    pub(crate) async fn load(
        handles: &DashboardHandles,
        context: &PageContext<AnalyticsRead>,
    ) -> Result<Self, Failure> {
        Self::for_report(ReportKind::Figures, handles, context, &context.authorized).await
    }

    /// Reads the state of a report's bar from the URL.
    pub(crate) async fn for_report<S>(
        report: ReportKind,
        handles: &DashboardHandles,
        context: &PageContext<S>,
        caller: &Authorized<AnalyticsRead>,
    ) -> Result<Self, Failure> {
        let query = context.query.clone();
        Self::for_app(report, handles, caller, context.app()?, query).await
    }

    /// Reads the state of a report's bar for an app from a query.
    pub(crate) async fn for_app(
        report: ReportKind,
        handles: &DashboardHandles,
        caller: &Authorized<AnalyticsRead>,
        app: &AppName,
        query: UrlQuery,
    ) -> Result<Self, Failure> {
        let range = PageDateRange::of(&query, handles.runtime.now(), &app.timezone);
        let filter = |one: &Dimension| Some((*one, query.get(one.as_str())?.to_owned()));
        let filters: Vec<(Dimension, String)> = Dimension::ALL.iter().filter_map(filter).collect();
        let filters = filters.iter().map(|(one, value)| (*one, value));
        let names = ValueNames::load(handles, caller, app.id, range.whole(), filters).await?;
        let mut bar = Self::new(report, range, &names, query);
        if bar.has_comparison() {
            bar.data_begin = data_begin(handles, caller, app.id, &bar.range).await?;
        }
        Ok(bar)
    }

    fn new(report: ReportKind, range: PageDateRange, names: &ValueNames, query: UrlQuery) -> Self {
        let (tags, unknown): (Vec<FilterTag>, Vec<FilterTag>) = tags(&query, names)
            .into_iter()
            .partition(|tag| report.covers(&[tag.dimension]));
        let fields = FIELDS.iter().filter(|one| report.covers(&[**one]));
        Self {
            range,
            tags,
            unknown: unknown
                .iter()
                .map(|tag| group_label(tag.dimension.as_str()))
                .collect(),
            fields: fields.map(|one| field(*one, &query)).collect(),
            data_begin: None,
            report,
            query,
        }
    }

    /// Returns whether the value of a field cannot be read.
    pub(crate) fn has_fault(&self) -> bool {
        self.fields.iter().any(|field| field.fault.is_some())
    }

    /// Returns whether the report can be compared with another range.
    pub(crate) const fn has_comparison(&self) -> bool {
        matches!(self.report, ReportKind::Figures)
    }

    /// Returns the days that the range is compared with.
    pub(crate) fn compared_label(&self) -> Option<String> {
        self.range
            .compared_label()
            .filter(|_| self.has_comparison())
    }

    /// Returns why nothing is compared although a comparison was chosen.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.data_begin.map(PageDateRange::incomplete)
    }

    /// Returns whether a metric has a value with the filters.
    pub(crate) fn has_value(&self, metric: &Metric) -> bool {
        let filters = self.tags.iter();
        metric.has_value_for(filters.map(|tag| (tag.dimension, tag.value.as_str())))
    }

    /// Returns the metrics that have a value with the filters.
    pub(crate) fn metrics(&self) -> Vec<&'static Metric> {
        let metrics = METRICS.iter();
        metrics.filter(|metric| self.has_value(metric)).collect()
    }

    /// Returns the filters of the report.
    pub(crate) fn filters(&self) -> Vec<(Dimension, String)> {
        let tags = self.tags.iter();
        tags.map(|tag| (tag.dimension, tag.value.clone())).collect()
    }

    /// Suggests values for a field.
    pub(crate) fn suggest(
        &mut self,
        dimension: Dimension,
        values: impl IntoIterator<Item = (String, String)>,
    ) {
        let mut fields = self.fields.iter_mut();
        if let Some(field) = fields.find(|one| one.name == dimension.as_str() && !one.is_list) {
            let values = values.into_iter().filter(|(value, _)| !value.is_empty());
            // Countries are chosen by name, which the field accepts.
            let values = values.map(|(value, label)| match dimension {
                Dimension::Country => (label, value),
                _ => (value, label),
            });
            field.choices = values.take(SUGGESTIONS_MAX).collect();
        }
    }

    /// Returns the query that adds a filter, or replaces the one of the same dimension.
    pub(crate) fn filtered(&self, dimension: Dimension, value: &str) -> String {
        self.query
            .with(&[(dimension.as_str(), Some(value)), ("search", None)])
    }

    /// Returns the query without filters.
    pub(crate) fn unfiltered(&self) -> String {
        let filters = Dimension::ALL.iter().map(|one| (one.as_str(), None));
        self.query.with(&filters.collect::<Vec<_>>())
    }

    /// Returns why figures by these dimensions cannot be combined with the filters; `None` if they
    /// can.
    pub(crate) fn obstacle(&self, by: &[Dimension]) -> Option<Obstacle> {
        let is_available = |filters: &[&FilterTag]| {
            let filters = filters.iter().map(|tag| tag.dimension);
            let all: Vec<Dimension> = by.iter().copied().chain(filters).collect();
            self.report.covers(&all)
        };
        let all: Vec<&FilterTag> = self.tags.iter().collect();
        if let Some((tag, fault)) = all.iter().find_map(|tag| Some((tag, tag.fault.clone()?))) {
            return Some(Obstacle {
                message: fault,
                ways: vec![(format!("Remove {}", tag.text), tag.without.clone())],
            });
        }
        let message = if all.len() > DIMENSIONS_MAX {
            "At most three filters can be combined. Remove a filter."
        } else if !is_available(&all) {
            "These dimensions cannot be combined. Remove a filter or group by something else."
        } else {
            return None;
        };
        let without = |removed: &&&FilterTag| {
            let others = all.iter().filter(|tag| tag.dimension != removed.dimension);
            is_available(&others.copied().collect::<Vec<_>>())
        };
        let way = |tag: &&FilterTag| (format!("Remove {}", tag.text), tag.without.clone());
        let mut ways: Vec<(String, String)> = all.iter().filter(without).map(way).collect();
        if ways.is_empty() && !all.is_empty() {
            ways.push(("Remove all filters".to_owned(), self.unfiltered()));
        }
        Some(Obstacle {
            message: message.to_owned(),
            ways,
        })
    }

    /// Returns the presets: label, query and whether it is the current one.
    pub(crate) fn presets(&self) -> Vec<(&'static str, String, bool)> {
        let presets = PageDateRange::presets().into_iter();
        let link = |(word, label)| {
            let query = PageDateRange::with_preset(&self.query, word);
            (label, query, self.range.is(word))
        };
        presets.map(link).collect()
    }

    /// Returns the comparisons: label, query and whether it is the current one.
    pub(crate) fn comparisons(&self) -> Vec<(&'static str, String, bool)> {
        let link = |one: Comparison| {
            let query = self.query.with(&[(COMPARE, Some(one.as_str()))]);
            (one.label(), query, self.range.comparison == one)
        };
        Comparison::ALL.into_iter().map(link).collect()
    }

    /// Returns the fields that the form for days keeps.
    pub(crate) fn kept_by_dates(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&[RANGE, FROM, TO])
    }

    /// Returns the fields that the form for filters keeps.
    pub(crate) fn kept_by_filters(&self) -> Vec<(&str, &str)> {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        self.query.fields_except(&fields)
    }
}

/// Returns the filters in the query, even if they cannot be combined, so that the user can remove
/// them.
fn tags(query: &UrlQuery, names: &ValueNames) -> Vec<FilterTag> {
    let tag = |dimension: &Dimension| {
        let name = dimension.as_str();
        let (value, fault) = normalized(*dimension, query.get(name)?);
        let label = names.label(*dimension, &value);
        Some(FilterTag {
            dimension: *dimension,
            text: format!("{}: {label}", group_label(name)),
            without: query.with(&[(name, None)]),
            value,
            fault,
        })
    };
    Dimension::ALL.iter().filter_map(tag).collect()
}

fn field(dimension: Dimension, query: &UrlQuery) -> FilterField {
    let name = dimension.as_str();
    let names = ValueNames::default();
    let choice = |value: &str| (value.to_owned(), names.label(dimension, value));
    let choices: Vec<(String, String)> = match dimension {
        Dimension::Network => {
            let ads = Network::ALL.into_iter().map(CreditedNetwork::Ad);
            let others = [
                CreditedNetwork::AppleAds,
                CreditedNetwork::Other,
                CreditedNetwork::Organic,
            ];
            let all = ads.chain(others).map(CreditedNetwork::as_str);
            all.map(choice).collect()
        }
        Dimension::Platform => {
            let all = Platform::ALL.iter().map(|one| one.as_str());
            std::iter::once(APP_PLATFORMS)
                .chain(all)
                .map(choice)
                .collect()
        }
        _ => Vec::new(),
    };
    let (value, fault) = query
        .get(name)
        .map(|value| normalized(dimension, value))
        .unwrap_or_default();
    FilterField {
        name,
        label: group_label(name),
        value: match dimension {
            Dimension::Country => country_label(&value),
            _ => value,
        },
        fault,
        is_list: !choices.is_empty(),
        choices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::vocabulary::time::Timestamp;
    use tributary_domain::vocabulary::timezone::Timezone;

    fn bar_of(report: ReportKind, query: &str) -> AnalysisBar {
        let query = UrlQuery::of(Some(query));
        let now = Timestamp::from_millis(1_763_173_020_007);
        let range = PageDateRange::of(&query, now, &Timezone::UTC);
        AnalysisBar::new(report, range, &ValueNames::default(), query)
    }

    fn bar(query: &str) -> AnalysisBar {
        bar_of(ReportKind::Figures, query)
    }

    #[test]
    fn cohorts_know_fewer_filters_and_name_the_others() {
        let bar = bar_of(
            ReportKind::Cohorts,
            "network=organic&platform=ios&event=purchase",
        );
        let fields: Vec<&str> = bar.fields.iter().map(|field| field.name).collect();
        assert_eq!(fields, ["network", "campaign", "link", "country"]);
        assert_eq!(bar.filters(), [(Dimension::Network, "organic".to_owned())]);
        assert_eq!(bar.unknown, ["Platform", "Event"]);
        let kept = [("platform", "ios"), ("event", "purchase")];
        assert_eq!(bar.kept_by_filters(), kept, "other reports use them");
        assert!(bar.obstacle(&[Dimension::Campaign]).is_none());
        let ways = bar.obstacle(&[Dimension::Country]).unwrap().ways;
        let without = "platform=ios&event=purchase".to_owned();
        assert_eq!(ways, [("Remove Network: Organic".to_owned(), without)]);
    }

    #[test]
    fn filters_are_tags_that_can_be_removed() {
        let bar = bar("country=de&network=network_c&groupBy=day");
        let tags: Vec<(&str, &str)> = bar
            .tags
            .iter()
            .map(|one| (&*one.text, &*one.without))
            .collect();
        let expected = [
            ("Network: TikTok", "country=de&groupBy=day"),
            ("Country: Germany (DE)", "network=network_c&groupBy=day"),
        ];
        assert_eq!(tags, expected);
        assert_eq!(bar.unfiltered(), "groupBy=day");
        let filtered = bar.filtered(Dimension::Country, "FR");
        assert_eq!(filtered, "network=network_c&groupBy=day&country=FR");
    }

    #[rstest]
    #[case::available("network=organic", &[Dimension::Campaign], None)]
    #[case::one_way("event=purchase", &[Dimension::Link], Some(1))]
    #[case::only_without_all("event=purchase&country=DE", &[Dimension::Link], Some(1))]
    #[case::too_many("network=organic&campaign=1&adset=2&ad=3", &[Dimension::Link], Some(4))]
    fn an_obstacle_offers_ways_out(
        #[case] query: &str,
        #[case] by: &[Dimension],
        #[case] expected: Option<usize>,
    ) {
        let ways = bar(query).obstacle(by).map(|found| found.ways.len());
        assert_eq!(ways, expected);
    }

    #[test]
    fn dates_and_filters_stay_between_reports() {
        let query = UrlQuery::of(Some("range=7d&link=lnk_1&country=DE&sort=installs"));
        let kept = |kept: UrlQuery| kept.with(&[]);
        assert_eq!(kept(kept_in_app(&query)), "range=7d&link=lnk_1&country=DE");
        assert_eq!(kept(kept_between_apps(&query)), "range=7d&country=DE");
    }
}
