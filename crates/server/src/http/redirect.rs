//! Redirects http to https.

use axum::Router;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

/// Redirects every request to the same path at the public URL. Clients repeat it with the same
/// method.
pub fn redirect_router(base_url: &str) -> Router {
    let base_url = base_url.to_owned();
    Router::new().fallback(async move |uri: Uri| redirect(&base_url, &uri))
}

fn redirect(base_url: &str, uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    match HeaderValue::from_str(&format!("{base_url}{path}")) {
        Ok(location) => (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)]).into_response(),
        Err(_not_ascii) => StatusCode::BAD_REQUEST.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::path_and_query("/c/spring?a=b", "https://links.example.com/c/spring?a=b")]
    #[case::root("/", "https://links.example.com/")]
    #[case::another_host("http://evil.example.com/x", "https://links.example.com/x")]
    #[case::two_slashes(
        "//evil.example.com/x",
        "https://links.example.com//evil.example.com/x"
    )]
    fn redirects_to_the_public_host_only(#[case] uri: &str, #[case] expected: &str) {
        let response = redirect("https://links.example.com", &uri.parse().unwrap());
        assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
        assert_eq!(response.headers()[LOCATION], expected);
    }
}
