//! `GET /home` — redirects to the first page that the role may open.

use crate::access::PageContext;
use crate::response::see_other;
use axum::response::Response;
use tributary_domain::access::person::Role;
use tributary_domain::access::resource::{AccountRead, PortfolioRead};
use tributary_domain::access::{Scope as _, ScopeName};
use tributary_store::AppName;

/// Scope of the portfolio page.
const PORTFOLIO: ScopeName = PortfolioRead::NAME;

/// Redirects to the portfolio, or to an app's overview if the role may not compare apps.
pub(crate) async fn show(context: PageContext<AccountRead>) -> Response {
    see_other(&home(context.session.user.role, context.apps()))
}

fn home(role: Role, apps: &[AppName]) -> String {
    if role.grants(PORTFOLIO) {
        return "/portfolio".to_owned();
    }
    let first = apps.iter().find(|app| !app.archived);
    first.map_or_else(|| "/account".to_owned(), |app| format!("/apps/{}", app.id))
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use rstest::rstest;
    use tributary_domain::access::person::Role;

    #[rstest]
    #[case::owner(Role::Owner, "/portfolio")]
    #[case::analyst(Role::Analyst, "/portfolio")]
    #[case::viewer(Role::Viewer, "/apps/{app}")]
    #[tokio::test]
    async fn leads_to_a_page_that_the_role_may_open(#[case] role: Role, #[case] expected: &str) {
        let dashboard = TestDashboard::start().await;
        let user = dashboard.sign_in_as(role).await;
        if role == Role::Viewer {
            assert_eq!(user.get("/home").await.header("location"), "/account");
        }
        let app = dashboard.sign_in_as(Role::Owner).await.create_app().await;
        let response = user.get("/home").await;
        assert_eq!(response.status, StatusCode::SEE_OTHER);
        let expected = expected.replace("{app}", &app);
        assert_eq!(response.header("location"), expected);
        let page = user.get(&expected).await;
        assert_eq!(page.status, StatusCode::OK);
        let links_to_portfolio = page.text.contains("href=\"/portfolio");
        assert_eq!(links_to_portfolio, role != Role::Viewer, "{}", page.text);
    }
}
