//! The menu of saved views on report pages.

use crate::access::PageContext;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::state::DashboardHandles;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::view::{ReportPage, SavedView};
use tributary_domain::vocabulary::id::AppId;

/// The user's views of an app, and the current page to save as another.
pub(crate) struct ViewMenu {
    pub(crate) views: Vec<ViewEntry>,
    pub(crate) page: &'static str,
    /// Query of the current page.
    pub(crate) query: String,
}

/// A saved view.
pub(crate) struct ViewEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) url: String,
    /// Whether the current page shows the view.
    pub(crate) is_current: bool,
}

impl ViewMenu {
    /// Loads the menu for a report page.
    pub(crate) async fn load<S>(
        handles: &DashboardHandles,
        context: &PageContext<S>,
        caller: &Authorized<AnalyticsRead>,
        page: ReportPage,
    ) -> Result<Self, Failure> {
        let app = context.app()?.id;
        let user = context.session.user.id;
        let query = view_query(&context.query);
        let views = handles.store.views(caller, app, user).await?;
        let entry = |view: SavedView| ViewEntry {
            id: view.id.to_string(),
            name: view.name.as_str().to_owned(),
            url: report_url(app, view.page, &view.query),
            is_current: view.page == page && view.query == query,
        };
        Ok(Self {
            views: views.into_iter().map(entry).collect(),
            page: page.as_str(),
            query,
        })
    }
}

/// Returns the part of a page's query that a view keeps: everything but the message about a form.
pub(crate) fn view_query(query: &UrlQuery) -> String {
    query.with(&[])
}

/// Returns the URL of a report with a query.
pub(crate) fn report_url(app: AppId, page: ReportPage, query: &str) -> String {
    let path = match page {
        ReportPage::Overview => "",
        ReportPage::Explore => "/explore",
        ReportPage::Cohorts => "/cohorts",
    };
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/apps/{app}{path}{mark}{query}")
}
