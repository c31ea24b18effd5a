//! `GET /apps/{app}/links` — every link.

use crate::access::Reader;
use crate::failure::Failure;
use crate::paging;
use crate::shell::{Section, Shell};
use crate::state::Handles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsRead;
use tributary_domain::integration::Network;
use tributary_domain::link::{Link, LinkKind};
use tributary_domain::vocabulary::id::LinkId;

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
}

impl Row {
    fn of(link: &Link, base: &str) -> Self {
        Self {
            id: link.id.to_string(),
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
    State(handles): State<Handles>,
    reader: Reader<AppsRead>,
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
    let base = app.link_base(&handles.base_url);
    let last = found.items.last().map(|link| link.id.to_string());
    let page = LinksPage {
        shell: reader.shell(Section::Links),
        links: found.items.iter().map(|link| Row::of(link, &base)).collect(),
        older: paging::older(&reader.query, found.has_more, last),
    };
    Ok(reader.page(&page))
}
