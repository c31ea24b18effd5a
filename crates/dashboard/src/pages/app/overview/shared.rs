//! `GET /shared/{token}` — the overview that a link shares, for people without an account. It shows
//! sums with fixed dates and filters.

use super::load::FigureReader;
use super::plot::{ChartChoice, plot};
use super::{Kpi, TopList, kpis, leader_rows, leaders};
use crate::analysis::{AnalysisBar, Obstacle, ReportKind};
use crate::chart::Chart;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::response::{page, try_again_after};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, authorize_share};
use tributary_domain::report::view::ShareLink;
use tributary_store::AppName;
use tributary_store::report_slots::SlotKind;

/// Keeps search engines away from a link that was published.
const ROBOTS: (&str, &str) = ("x-robots-tag", "noindex, nofollow");

#[derive(Template)]
#[template(path = "shared.html")]
struct SharedPage {
    name: String,
    app: String,
    is_test: bool,
    expires: String,
    bar: AnalysisBar,
    /// Why the figures cannot be shown with these filters.
    obstacle: Option<Obstacle>,
    kpis: Vec<Kpi>,
    chart: Chart,
    tables: Vec<TopList>,
}

impl SharedPage {
    async fn load(
        handles: &DashboardHandles,
        caller: &Authorized<AnalyticsRead>,
        app: &AppName,
        share: ShareLink,
    ) -> Result<Self, Failure> {
        let query = UrlQuery::of(Some(&share.query));
        let bar = AnalysisBar::for_app(ReportKind::Figures, handles, caller, app, query).await?;
        let query = UrlQuery::of(Some(&share.query));
        let choice = ChartChoice::of(&query, |metric| bar.has_value(metric));
        let reader = FigureReader {
            handles,
            caller,
            app: app.id,
            bar: &bar,
        };
        let (figures, rows) = tokio::try_join!(reader.load(), leader_rows(&reader))?;
        let chart = plot(&reader, &figures, &choice, &rows.value_names, &[]).await?;
        let tables = leaders(&reader, &figures, &rows).lists.into_iter();
        Ok(Self {
            name: share.name.as_str().to_owned(),
            app: app.name.as_str().to_owned(),
            is_test: caller.environment() == Environment::Test,
            expires: text::date(share.expires_at, &app.timezone),
            obstacle: bar.obstacle(&[]),
            kpis: kpis(&bar, &figures),
            // Zooming would choose other days.
            chart: Chart {
                can_zoom: false,
                ..chart
            },
            tables: tables.filter(|table| !table.rows.is_empty()).collect(),
            bar,
        })
    }
}

/// Shows the page. A link that is unknown, expired or revoked is not found.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    token: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let token = token.ok().and_then(|Path(text)| KeyText::parse(&text).ok());
    let token = token.filter(|token| token.kind == KeyKind::Share);
    let digest = token.ok_or(Failure::ShareClosed)?.digest();
    let share = handles.store.share(digest).await?;
    let share = share.ok_or(Failure::ShareClosed)?;
    let caller = authorize_share(&share, handles.runtime.now()).ok_or(Failure::ShareClosed)?;
    let holder = SlotHolder::of_share(&share);
    let admitted = handles.report_slots.admit(SlotKind::Report, holder).await;
    let _slot = admitted.map_err(|rejection| {
        let mut answer = Failure::from(rejection).into_response();
        try_again_after(&mut answer, rejection.kind.retry_seconds());
        Failure::Busy(Box::new(answer))
    })?;
    let apps = handles.store.app_names(&caller).await?;
    let app = apps.into_iter().find(|app| app.id == share.app);
    let app = app.ok_or(Failure::ShareClosed)?;
    let shared = SharedPage::load(&handles, &caller, &app, share).await?;
    let mut response = page(StatusCode::OK, &shared);
    let (name, value) = ROBOTS;
    let name = HeaderName::from_static(name);
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;

    #[tokio::test]
    async fn a_link_shows_sums_until_it_is_revoked() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let page = format!("/apps/{app}/shares");
        let form = "name=For+the+agency&days=7&query=range%3D7d%26network%3Dnetwork_a";
        let created = admin.post(&page, form).await;
        assert_eq!(created.status, StatusCode::OK, "{}", created.text);
        let url = created.element("share-url").to_owned();
        let path = url
            .split_once("/shared/")
            .map(|(_, token)| format!("/shared/{token}"));
        let path = path.unwrap();

        let shared = dashboard.get(&path).await;
        assert_eq!(shared.status, StatusCode::OK, "{}", shared.text);
        assert_eq!(shared.header("x-robots-tag"), "noindex, nofollow");
        assert!(shared.text.contains("For the agency") && shared.text.contains("Meta"));
        for part in ["/apps/", "formToken", "<a "] {
            assert!(!shared.text.contains(part), "{part}");
        }
        let listed = admin.get(&page).await;
        assert!(!listed.text.contains(&path), "the link is shown once");
        let revoke = listed.text.split("/shares/").nth(1).unwrap();
        let revoke = revoke.split_once("/revoke").unwrap().0;
        let revoked = admin.post(&format!("{page}/{revoke}/revoke"), "").await;
        assert_eq!(revoked.status, StatusCode::SEE_OTHER, "{}", revoked.text);
        for closed in [path.as_str(), "/shared/share_nonsense", "/shared/%ff"] {
            let response = dashboard.get(closed).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{closed}");
        }
    }

    #[tokio::test]
    async fn views_are_saved_and_deleted() {
        let dashboard = TestDashboard::start().await;
        let viewer = dashboard.sign_in_as(Role::Viewer).await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let views = format!("/apps/{app}/views");
        let form = "name=Spring&page=explore&query=range%3D7d%26groupBy%3Dday";
        let saved = viewer.post(&views, form).await;
        assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
        let location = saved.header("location");
        assert!(location.contains("/explore?range=7d"), "{location}");
        let overview = viewer.get(&format!("/apps/{app}")).await;
        assert!(overview.text.contains("Spring"));
        let others = admin.get(&format!("/apps/{app}")).await;
        assert!(!others.text.contains("Spring"));
        let id = overview.text.split("/views/").nth(1).unwrap();
        let id = id.split_once("/delete").unwrap().0;
        let deleted = viewer.post(&format!("{views}/{id}/delete"), "").await;
        assert_eq!(deleted.status, StatusCode::SEE_OTHER);
        let overview = viewer.get(&format!("/apps/{app}")).await;
        assert!(!overview.text.contains("Spring"));
        let unnamed = viewer.post(&views, "name=&page=explore").await;
        assert_eq!(unnamed.status, StatusCode::CONFLICT);
    }
}
