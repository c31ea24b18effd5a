//! `GET /setup/{token}` — the form. Opening it does not use the link.

use super::ValidLink;
use super::form_page::{FormPage, SetupFormErrors};
use crate::failure::Failure;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;

/// Shows the form.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    link: ValidLink,
) -> Result<Response, Failure> {
    if let Some(provider) = link.provider(&handles).await? {
        return Ok(see_other(&provider));
    }
    let page = FormPage::new(&handles, &link, "", SetupFormErrors::default());
    Ok(page.answer(&handles.own_origin))
}

#[cfg(test)]
mod tests {
    use crate::testing::{NOW, TestDashboard};
    use axum::http::StatusCode;
    use rstest::rstest;
    use tributary_domain::access::Environment;
    use tributary_domain::access::key::KeyKind;
    use tributary_domain::access::person::{Email, SetupLink};
    use tributary_domain::vocabulary::time::Timestamp;

    #[tokio::test]
    async fn asks_for_an_address_if_the_link_has_none() {
        let dashboard = TestDashboard::start().await;
        let token = dashboard.setup_link(|_| {}).await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.input("email").attribute("value"), Some(""));
        assert!(!response.input("email").has("readonly"));
        let password = response.input("password");
        assert_eq!(password.attribute("autocomplete"), Some("new-password"));
        assert_eq!(password.attribute("minlength"), Some("12"));
        assert_eq!(password.attribute("value"), None);
        // The form posts to its own URL, so the token does not appear in the page.
        assert!(!response.text.contains(&token));
    }

    #[tokio::test]
    async fn shows_the_address_in_the_link() {
        let dashboard = TestDashboard::start().await;
        let named = |link: &mut SetupLink| link.email = Email::parse("a\"b@example.com").ok();
        let token = dashboard.setup_link(named).await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        let email = response.input("email");
        assert_eq!(email.attribute("value"), Some("a&#34;b@example.com"));
        assert!(email.has("readonly"));
    }

    #[rstest]
    #[case::used(|link: &mut SetupLink| link.used_at = Some(Timestamp::from_millis(1)))]
    #[case::expired(|link: &mut SetupLink| link.expires_at = NOW)]
    #[tokio::test]
    async fn rejects_used_and_expired_links(#[case] change: fn(&mut SetupLink)) {
        let dashboard = TestDashboard::start().await;
        let token = dashboard.setup_link(change).await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        assert!(response.text.contains("tributary admin user create"));
    }

    #[rstest]
    #[case::garbage("nonsense")]
    #[case::markup("%3Cscript%3E")]
    #[case::not_text("%ff")]
    #[case::wrong_checksum("setup_000000000000000000000000000000000000000")]
    #[tokio::test]
    async fn rejects_malformed_tokens(#[case] token: &str) {
        let dashboard = TestDashboard::start().await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        // The token is not echoed, and all invalid links show the same page.
        assert_eq!(response.text, dashboard.get("/setup/0").await.text);
    }

    #[rstest]
    #[case::unknown(KeyKind::Setup)]
    #[case::a_key_of_another_kind(KeyKind::Private)]
    #[tokio::test]
    async fn rejects_unknown_tokens(#[case] kind: KeyKind) {
        let dashboard = TestDashboard::start().await;
        let token = dashboard.source.new_key(kind, Environment::Live);
        let response = dashboard.get(&format!("/setup/{}", token.reveal())).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn asks_to_retry_while_the_database_is_unavailable() {
        let dashboard = TestDashboard::start().await;
        let token = dashboard.setup_link(|_| {}).await;
        dashboard.store.close().await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.header("retry-after"), "5");
    }

    #[rstest]
    #[case::tls("https://example.com", "no-referrer")]
    #[case::loopback("http://localhost:8080", "no-referrer")]
    #[case::plain_http_elsewhere("http://192.168.1.5:8080", "same-origin")]
    #[tokio::test]
    async fn the_referrer_policy_allows_the_origin_check(
        #[case] base_url: &str,
        #[case] policy: &str,
    ) {
        let dashboard = TestDashboard::at(base_url).await;
        let token = dashboard.setup_link(|_| {}).await;
        let response = dashboard.get(&format!("/setup/{token}")).await;
        assert_eq!(response.header("referrer-policy"), policy);
    }
}
