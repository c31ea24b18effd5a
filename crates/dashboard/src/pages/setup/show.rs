//! `GET /setup/{token}` — the form. Looking at it changes nothing.

use super::ValidLink;
use super::form_page::{FormPage, SetupFormErrors};
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;

/// The form of a link that works.
pub(crate) async fn show(State(handles): State<DashboardHandles>, link: ValidLink) -> Response {
    FormPage::new(&link, "", SetupFormErrors::default()).answer(&handles.own_origin)
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
    async fn a_link_without_an_address_asks_for_one() {
        let service = TestDashboard::start().await;
        let token = service.setup_link(|_| {}).await;
        let reply = service.get(&format!("/setup/{token}")).await;
        assert_eq!(reply.status, StatusCode::OK);
        assert_eq!(reply.input("email").attribute("value"), Some(""));
        assert!(!reply.input("email").has("readonly"));
        let password = reply.input("password");
        assert_eq!(password.attribute("autocomplete"), Some("new-password"));
        assert_eq!(password.attribute("minlength"), Some("12"));
        assert_eq!(password.attribute("value"), None);
        // The form leads back to its own address, which need not be written into it.
        assert!(!reply.text.contains(&token));
    }

    #[tokio::test]
    async fn a_link_with_an_address_shows_it() {
        let service = TestDashboard::start().await;
        let named = |link: &mut SetupLink| link.email = Email::parse("a\"b@example.com").ok();
        let token = service.setup_link(named).await;
        let reply = service.get(&format!("/setup/{token}")).await;
        let email = reply.input("email");
        assert_eq!(email.attribute("value"), Some("a&#34;b@example.com"));
        assert!(email.has("readonly"));
    }

    #[rstest]
    #[case::used(|link: &mut SetupLink| link.used_at = Some(Timestamp::from_millis(1)))]
    #[case::expired(|link: &mut SetupLink| link.expires_at = NOW)]
    #[tokio::test]
    async fn a_link_that_is_over_leads_nowhere(#[case] change: fn(&mut SetupLink)) {
        let service = TestDashboard::start().await;
        let token = service.setup_link(change).await;
        let reply = service.get(&format!("/setup/{token}")).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
        assert!(reply.text.contains("tributary admin user create"));
    }

    #[rstest]
    #[case::garbage("nonsense")]
    #[case::markup("%3Cscript%3E")]
    #[case::not_text("%ff")]
    #[case::wrong_checksum("setup_000000000000000000000000000000000000000")]
    #[tokio::test]
    async fn nor_does_what_is_no_link(#[case] token: &str) {
        let service = TestDashboard::start().await;
        let reply = service.get(&format!("/setup/{token}")).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
        // Nothing of it is sent back, and one reason looks like another.
        assert_eq!(reply.text, service.get("/setup/0").await.text);
    }

    #[rstest]
    #[case::unknown(KeyKind::Setup)]
    #[case::a_key_of_another_kind(KeyKind::Private)]
    #[tokio::test]
    async fn nor_does_a_token_that_nobody_was_given(#[case] kind: KeyKind) {
        let service = TestDashboard::start().await;
        let token = service.source.new_key(kind, Environment::Live);
        let reply = service.get(&format!("/setup/{}", token.reveal())).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn without_a_database_a_link_is_to_be_tried_later() {
        let service = TestDashboard::start().await;
        let token = service.setup_link(|_| {}).await;
        service.store.close().await;
        let reply = service.get(&format!("/setup/{token}")).await;
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(reply.header("retry-after"), "5");
    }

    #[rstest]
    #[case::tls("https://example.com", "no-referrer")]
    #[case::loopback("http://localhost:8080", "no-referrer")]
    #[case::plain_http_elsewhere("http://192.168.1.5:8080", "same-origin")]
    #[tokio::test]
    async fn the_form_can_be_sent_from_wherever_it_is_served(
        #[case] base_url: &str,
        #[case] policy: &str,
    ) {
        let service = TestDashboard::at(base_url).await;
        let token = service.setup_link(|_| {}).await;
        let reply = service.get(&format!("/setup/{token}")).await;
        assert_eq!(reply.header("referrer-policy"), policy);
    }
}
