//! `GET /apps/{app}/links` — every link.

use crate::access::PageContext;
use crate::failure::Failure;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::AppsRead;
use tributary_domain::integration::Network;
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
    network: &'static str,
    active: bool,
    clicks: String,
    installs: String,
}

/// The days that a link's figures are of.
const DAYS: Duration = Duration::from_hours(30 * 24);
/// Links that figures are read of; those of a page are far fewer.
const LINKS_READ_MAX: u32 = 5_000;

/// Figures by link, of late.
async fn figures(
    handles: &DashboardHandles,
    reader: &PageContext<AppsRead>,
    app: AppId,
) -> Result<BTreeMap<String, Figures>, Failure> {
    let now = handles.source.now();
    let days = i64::try_from(DAYS.as_millis()).unwrap_or(i64::MAX);
    let from = Timestamp::from_millis(now.as_millis().saturating_sub(days));
    // The quarter of an hour that it is now is read too.
    let until = now.plus(Duration::from_mins(15));
    let question = ReportQuery {
        periods: vec![(from, until)],
        group_by: vec![Dimension::Link],
        filters: Vec::new(),
        rows_max: LINKS_READ_MAX,
    };
    let caller = reader.authorized.analytics_access();
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
            network: link.network.map_or("any", Network::as_str),
            active: link.active,
        }
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = reader.app()?.id;
    let app = handles.store.app(&reader.authorized, app).await?;
    let before = reader.query.get("before");
    let before = before.and_then(|text| LinkId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let found = handles
        .store
        .links(&reader.authorized, app.id, request)
        .await?;
    let figures = figures(&handles, &reader, app.id).await?;
    let base = app.link_base(&handles.base_url);
    let last = found.items.last().map(|link| link.id.to_string());
    let page = LinksPage {
        shell: reader.shell(Section::Links),
        links: found
            .items
            .iter()
            .map(|link| Row::of(link, &base, &figures))
            .collect(),
        older: paging::older(&reader.query, found.has_more, last),
    };
    Ok(reader.page(&page))
}
