//! `GET /portfolio` — every app of the organization.

use crate::access::Reader;
use crate::shell::{Section, Shell};
use askama::Template;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

#[derive(Template)]
#[template(path = "portfolio.html")]
struct PortfolioPage {
    shell: Shell,
}

/// The page.
pub(crate) async fn show(reader: Reader<AnalyticsRead>) -> Response {
    reader.page(&PortfolioPage {
        shell: reader.shell(Section::Portfolio),
    })
}
