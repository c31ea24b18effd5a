//! Rejects forms submitted from other origins (CSRF protection).
//!
//! Browsers send `Sec-Fetch-Site`, which page scripts cannot forge. Over plain HTTP they send it
//! only to the local host. If it is missing, `Origin` must match the base URL. A request with
//! neither header is rejected; command-line clients can add one.

use crate::failure::Failure;
use crate::state::{DashboardHandles, OwnOrigin};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

const SEC_FETCH: &str = "sec-fetch-";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Extractor that accepts only same-origin requests.
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
            tracing::warn!("rejected cross-origin form");
            Err(Failure::CrossOrigin(handles.base_url.clone()))
        }
    }
}

fn is_same_origin(headers: &HeaderMap, own: &OwnOrigin) -> bool {
    let has_fetch_metadata = headers
        .keys()
        .any(|name| name.as_str().starts_with(SEC_FETCH));
    let (name, is_ours): (_, &dyn Fn(&str) -> bool) = if has_fetch_metadata {
        // `none`: initiated by the user, for example by reloading.
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
    #[case::referer_only(&[("referer", "http://127.0.0.1:8080/setup/x")], false)]
    #[case::fetch_site_wins(&[("sec-fetch-site", "cross-site"), ("origin", BASE_URL)], false)]
    #[case::null_origin(&[("sec-fetch-site", "same-origin"), ("origin", "null")], true)]
    #[case::fetch_mode_only(&[("sec-fetch-mode", "navigate"), ("origin", BASE_URL)], false)]
    #[case::two_sites(&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false)]
    #[case::two_origins(&[("origin", BASE_URL), ("origin", "https://evil.test")], false)]
    #[case::empty(&[("sec-fetch-site", "")], false)]
    fn recognises_same_origin_requests(
        #[case] pairs: &[(&'static str, &'static str)],
        #[case] ours: bool,
    ) {
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
    async fn rejects_forms_from_other_origins(#[case] headers: &[(&str, &str)]) {
        let dashboard = TestDashboard::start().await;
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let headers = [headers, &[FORM]].concat();
        let body = format!("email=you@example.com&password={PASSWORD}");
        let response = dashboard.post(&path, &headers, &body).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
        assert!(
            response.text.contains("Sec-Fetch-Site: same-origin"),
            "the page explains the required header"
        );
        assert_eq!(
            dashboard.get(&path).await.status,
            StatusCode::OK,
            "the link is still valid"
        );
    }

    #[tokio::test]
    async fn accepts_a_browser_that_sends_only_origin() {
        let dashboard = TestDashboard::start().await;
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let body = format!("email=you@example.com&password={PASSWORD}");
        let headers = [("origin", BASE_URL), FORM];
        let response = dashboard.post(&path, &headers, &body).await;
        assert_eq!(response.status, StatusCode::OK);
    }
}
