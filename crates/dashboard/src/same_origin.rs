//! The proof that a form was sent from a page of ours.
//!
//! Browsers say so with `Sec-Fetch-Site`, which no script can forge. To plain http on another machine they
//! do not send it; there, `Origin` must be our own address. A request with neither is no browser's, and is
//! refused: who writes requests by hand can write a header as well.

use crate::failure::Failure;
use crate::state::{DashboardHandles, OwnOrigin};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

const SEC_FETCH: &str = "sec-fetch-";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A handler that asks for this changes nothing on behalf of another site.
#[derive(Debug)]
pub(crate) struct SameOrigin;

impl FromRequestParts<DashboardHandles> for SameOrigin {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        if is_same_origin(&parts.headers, &handles.own_origin) {
            Ok(Self)
        } else {
            tracing::warn!("a form was not sent from its own page");
            Err(Failure::CrossOrigin(handles.base_url.clone()))
        }
    }
}

fn is_same_origin(headers: &HeaderMap, own: &OwnOrigin) -> bool {
    let says_whence = headers
        .keys()
        .any(|name| name.as_str().starts_with(SEC_FETCH));
    let (name, is_ours): (_, &dyn Fn(&str) -> bool) = if says_whence {
        // `none`: the person did it, by reloading for example.
        (SEC_FETCH_SITE, &|site| {
            matches!(site, "same-origin" | "none")
        })
    } else {
        (header::ORIGIN.as_str(), &|origin| own.matches(origin))
    };
    let mut values = headers.get_all(name).iter();
    let only = values.next().and_then(|value| value.to_str().ok());
    only.is_some_and(is_ours) && values.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BASE_URL, FORM, PASSWORD, TestDashboard};
    use axum::http::StatusCode;
    use rstest::rstest;

    #[rstest]
    #[case::same_origin(&[("sec-fetch-site", "same-origin")], true)]
    #[case::reloaded(&[("sec-fetch-site", "none")], true)]
    #[case::cross_site(&[("sec-fetch-site", "cross-site")], false)]
    #[case::same_site(&[("sec-fetch-site", "same-site")], false)]
    #[case::own_origin(&[("origin", BASE_URL)], true)]
    #[case::another_origin(&[("origin", "https://evil.test")], false)]
    #[case::another_port(&[("origin", "http://127.0.0.1:8081")], false)]
    #[case::hidden_origin(&[("origin", "null")], false)]
    #[case::neither(&[], false)]
    #[case::referer_is_no_proof(&[("referer", "http://127.0.0.1:8080/setup/x")], false)]
    #[case::browser_outweighs_origin(&[("sec-fetch-site", "cross-site"), ("origin", BASE_URL)], false)]
    #[case::hidden_origin_of_a_browser(&[("sec-fetch-site", "same-origin"), ("origin", "null")], true)]
    #[case::half_a_browser(&[("sec-fetch-mode", "navigate"), ("origin", BASE_URL)], false)]
    #[case::two_minds(&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false)]
    #[case::two_origins(&[("origin", BASE_URL), ("origin", "https://evil.test")], false)]
    #[case::empty(&[("sec-fetch-site", "")], false)]
    fn whence(#[case] pairs: &[(&'static str, &'static str)], #[case] ours: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        assert_eq!(is_same_origin(&headers, &OwnOrigin::of(BASE_URL)), ours);
    }

    #[rstest]
    #[case::cross_site(&[("sec-fetch-site", "cross-site"), ("origin", "https://evil.test")])]
    #[case::another_origin(&[("origin", "https://evil.test")])]
    #[case::curl(&[])]
    #[tokio::test]
    async fn a_form_from_elsewhere_is_refused(#[case] headers: &[(&str, &str)]) {
        let service = TestDashboard::start().await;
        let path = format!("/setup/{}", service.setup_link(|_| {}).await);
        let headers = [headers, &[FORM]].concat();
        let body = format!("email=you@example.com&password={PASSWORD}");
        let reply = service.post(&path, &headers, &body).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN);
        assert!(
            reply.text.contains("Sec-Fetch-Site: same-origin"),
            "it says why"
        );
        assert_eq!(
            service.get(&path).await.status,
            StatusCode::OK,
            "the link is still good"
        );
    }

    #[tokio::test]
    async fn a_browser_that_sends_only_its_origin_is_let_in() {
        let service = TestDashboard::start().await;
        let path = format!("/setup/{}", service.setup_link(|_| {}).await);
        let body = format!("email=you@example.com&password={PASSWORD}");
        let headers = [("origin", BASE_URL), FORM];
        let reply = service.post(&path, &headers, &body).await;
        assert_eq!(reply.status, StatusCode::OK);
    }
}
