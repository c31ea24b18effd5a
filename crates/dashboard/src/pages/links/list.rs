//! `GET /apps/{app}/links` — the list of links.

use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::query::UrlQuery;
use crate::range::{FROM, PageDateRange, RANGE, TO};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use tributary_domain::access::AppsRead;
use tributary_domain::app::App;
use tributary_domain::link::{Link, LinkFilter, LinkKind, LinkLabels, folder, link_search, tag};
use tributary_domain::report::{Dimension, Figures, ReportQuery};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::money::Amount;

#[derive(Template)]
#[template(path = "links.html")]
struct LinksPage {
    shell: Shell,
    links: Vec<Row>,
    older: Option<String>,
    query: UrlQuery,
    form: FormState,
    labels: LinkLabels,
    is_filtered: bool,
    /// Days of the figures.
    range: PageDateRange,
}

impl LinksPage {
    /// Returns the query string with one filter replaced.
    fn narrowed(&self, name: &str, value: impl AsRef<str>) -> String {
        let changes = [(name, Some(value.as_ref())), ("before", None)];
        self.query.with(&changes)
    }

    fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PageDateRange::presets()
    }

    fn with_range(&self, preset: &str) -> String {
        PageDateRange::with_preset(&self.query, preset)
    }

    /// Returns the fields that the filter form keeps.
    fn kept_by_filters(&self) -> Vec<(&str, &str)> {
        self.query
            .fields_except(&["search", "folder", "tag", "before", "environment"])
    }

    /// Returns the query of Explore with the links of the same days, best first.
    fn ranking(&self) -> String {
        let query = self.query.only(&[RANGE, FROM, TO, "environment"]);
        query.with(&[("groupBy", Some("link")), ("sort", Some("netRevenue"))])
    }

    fn folders(&self) -> Vec<(&str, &str)> {
        choices("All folders", &self.labels.folders)
    }

    fn tags(&self) -> Vec<(&str, &str)> {
        choices("All tags", &self.labels.tags)
    }
}

fn choices<'a>(all: &'a str, labels: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let labels = labels.iter().map(|label| (label.as_str(), label.as_str()));
    std::iter::once(("", all)).chain(labels).collect()
}

struct Row {
    id: String,
    name: String,
    url: String,
    kind: &'static str,
    network: NetworkLabel,
    active: bool,
    is_test: bool,
    tags: Vec<String>,
    folder: Option<String>,
    created: String,
    clicks: String,
    installs: String,
    revenue: String,
    payers: String,
}

/// Maximum links in the report; a page has far fewer.
const LINKS_READ_MAX: u32 = 5_000;

/// Loads the figures of a range by link.
async fn figures(
    handles: &DashboardHandles,
    context: &PageContext<AppsRead>,
    app: AppId,
    range: &PageDateRange,
) -> Result<BTreeMap<String, Figures>, Failure> {
    let question = ReportQuery {
        periods: vec![range.whole()],
        group_by: vec![Dimension::Link],
        filters: Vec::new(),
        rows_max: LINKS_READ_MAX,
    };
    let caller = context.authorized.analytics_access();
    let rows = handles.store.stats(&caller, app, question).await?;
    let named = rows
        .into_iter()
        .filter_map(|row| Some((row.values.into_iter().next()?, row.figures)));
    Ok(named.collect())
}

impl Row {
    fn of(link: &Link, app: &App, base: &str, figures: &BTreeMap<String, Figures>) -> Self {
        let id = link.id.to_string();
        let found = figures.get(&id).copied().unwrap_or_default();
        Self {
            clicks: text::count(found.clicks),
            installs: text::count(found.installs),
            payers: text::count(found.paying_devices),
            revenue: text::usd(Amount::from_micros(found.net_micros())),
            id,
            name: link.name.as_str().to_owned(),
            url: link.url(base),
            kind: match link.kind {
                LinkKind::AppInstall => "App install",
                LinkKind::WebFunnel => "Web funnel",
            },
            network: link.network.map_or(NetworkLabel::NONE, NetworkLabel::of),
            active: link.active,
            is_test: link.is_test,
            tags: link.tags.clone(),
            folder: link.folder.clone(),
            created: text::date(link.created_at, &app.timezone),
        }
    }
}

/// Reads the filter from the query. Unreadable values are ignored.
fn filter(query: &UrlQuery) -> LinkFilter {
    LinkFilter {
        search: query.get("search").and_then(|text| link_search(text).ok()),
        tag: query.get("tag").and_then(|text| tag(text).ok()),
        folder: query.get("folder").and_then(|text| folder(text).ok()),
    }
}

/// Fills the filter form. Labels are compared without case, so that the list offers the chosen one.
fn filters_shown(query: &UrlQuery, labels: &LinkLabels) -> FormState {
    let chosen = |name: &str, labels: &[String]| {
        let wanted = query.get(name)?.to_lowercase();
        let mut labels = labels.iter();
        labels.find(|label| label.to_lowercase() == wanted).cloned()
    };
    FormState::default()
        .with_optional("search", query.get("search"))
        .with_optional("folder", chosen("folder", &labels.folders))
        .with_optional("tag", chosen("tag", &labels.tags))
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?.id;
    let app = handles.store.app(&context.authorized, app).await?;
    let before = context.query.get("before");
    let before = before.and_then(|text| LinkId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let filter = filter(&context.query);
    let is_filtered = !filter.is_empty();
    let caller = &context.authorized;
    let found = handles.store.links(caller, app.id, filter, request).await?;
    let labels = handles.store.link_labels(caller, app.id).await?;
    let range = PageDateRange::of(&context.query, handles.runtime.now(), &app.timezone);
    let figures = figures(&handles, &context, app.id, &range).await?;
    let base = app.link_base(&handles.base_url);
    let last = found.items.last().map(|link| link.id.to_string());
    let page = LinksPage {
        shell: context.shell(Section::Links),
        links: found
            .items
            .iter()
            .map(|link| Row::of(link, &app, &base, &figures))
            .collect(),
        older: paging::older(&context.query, found.has_more, last),
        form: filters_shown(&context.query, &labels),
        query: context.query.clone(),
        labels,
        is_filtered,
        range,
    };
    Ok(context.page(&page))
}
