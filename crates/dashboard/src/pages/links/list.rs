//! `GET /apps/{app}/links` — the list of links.

use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::AppsRead;
use tributary_domain::link::{Link, LinkKind};
use tributary_domain::report::{Dimension, Figures, ReportQuery};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Template)]
#[template(path = "links.html")]
struct LinksPage {
    shell: Shell,
    links: Vec<Row>,
    older: Option<String>,
}

struct Row {
    id: String,
    name: String,
    url: String,
    kind: &'static str,
    network: NetworkLabel,
    active: bool,
    clicks: String,
    installs: String,
}

/// Period of the displayed figures.
const DAYS: Duration = Duration::from_hours(30 * 24);
/// Maximum links in the report; a page has far fewer.
const LINKS_READ_MAX: u32 = 5_000;

/// Loads recent figures by link.
async fn figures(
    handles: &DashboardHandles,
    context: &PageContext<AppsRead>,
    app: AppId,
) -> Result<BTreeMap<String, Figures>, Failure> {
    let now = handles.runtime.now();
    let days = i64::try_from(DAYS.as_millis()).unwrap_or(i64::MAX);
    let from = Timestamp::from_millis(now.as_millis().saturating_sub(days));
    // Includes the current quarter of an hour.
    let until = now.plus(Duration::from_mins(15));
    let question = ReportQuery {
        periods: vec![(from, until)],
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
    fn of(link: &Link, base: &str, figures: &BTreeMap<String, Figures>) -> Self {
        let id = link.id.to_string();
        let found = figures.get(&id).copied().unwrap_or_default();
        Self {
            clicks: text::count(found.clicks),
            installs: text::count(found.installs),
            id,
            name: link.name.as_str().to_owned(),
            url: link.url(base),
            kind: match link.kind {
                LinkKind::AppInstall => "App install",
                LinkKind::WebFunnel => "Web funnel",
            },
            network: link.network.map_or(NetworkLabel::NONE, NetworkLabel::of),
            active: link.active,
        }
    }
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
    let found = handles
        .store
        .links(&context.authorized, app.id, request)
        .await?;
    let figures = figures(&handles, &context, app.id).await?;
    let base = app.link_base(&handles.base_url);
    let last = found.items.last().map(|link| link.id.to_string());
    let page = LinksPage {
        shell: context.shell(Section::Links),
        links: found
            .items
            .iter()
            .map(|link| Row::of(link, &base, &figures))
            .collect(),
        older: paging::older(&context.query, found.has_more, last),
    };
    Ok(context.page(&page))
}
