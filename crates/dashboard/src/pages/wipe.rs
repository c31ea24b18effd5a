//! `POST /apps/{app}/settings/test-data/wipe` — wipes an app's test data.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::TestDataWipe;
use tributary_store::{WIPE_REQUEST_TIME_MAX, run_wipe};

/// Wipes the test data and shows the settings again.
pub(crate) async fn wipe(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<TestDataWipe>,
) -> Result<Response, Failure> {
    let (app, origin) = (submission.app()?.id, submission.origin(&handles));
    let (store, caller) = (handles.store.as_ref(), &submission.authorized);
    let report = run_wipe(store, caller, app, origin, WIPE_REQUEST_TIME_MAX).await?;
    let notice = if report.is_complete {
        "wiped"
    } else {
        "wiped-partly"
    };
    submission.redirect("settings", notice)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;

    #[tokio::test]
    async fn a_wipe_is_confirmed_audited_and_keeps_the_environment() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let page = admin.get(&format!("/apps/{app}/settings")).await;
        let form = format!("action=\"/apps/{app}/settings/test-data/wipe\" data-confirm=");
        assert!(page.text.contains(&form), "{}", page.text);
        let path = format!("/apps/{app}/settings/test-data/wipe?environment=test");
        let wiped = admin.post(&path, "").await;
        assert_eq!(wiped.status, StatusCode::SEE_OTHER, "{}", wiped.text);
        let location = wiped.header("location");
        let expected = format!("/apps/{app}/settings?notice=wiped&environment=test");
        assert_eq!(location, expected);
        let page = admin.get(location).await;
        assert!(page.text.contains("Test data wiped."), "{}", page.text);
        let log = admin.get("/audit-log").await.text;
        assert!(log.contains("Test data wiped"), "{log}");
    }

    #[tokio::test]
    async fn an_analyst_sees_no_form_to_wipe() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let analyst = dashboard.sign_in_as(Role::Analyst).await;
        let page = analyst.get(&format!("/apps/{app}/settings")).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(!page.text.contains("test-data/wipe"));
    }
}
