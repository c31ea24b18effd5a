//! Requests that match no endpoint. Programs get an error as JSON, people a page.

use crate::error::{ApiError, Code};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use std::pin::Pin;
use std::sync::Arc;

/// Path prefix of the endpoints for programs.
const FOR_PROGRAMS: &str = "/api/";

/// Returns the page for a request, which has the menu if the user is signed in.
pub type UnmatchedPage =
    Arc<dyn Fn(Uri, HeaderMap) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// Pages for people who follow a wrong address.
#[derive(Clone)]
pub struct UnmatchedPages {
    /// Page for an unknown path.
    pub no_such_path: UnmatchedPage,
    /// Page for the target of a form that was opened as a page.
    pub no_such_method: UnmatchedPage,
}

/// Responds to an unknown path.
pub(crate) async fn no_such_path(
    State(state): State<ApiState>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match &state.unmatched_pages {
        Some(pages) if is_person(&uri, &headers) => (pages.no_such_path)(uri, headers).await,
        _ => {
            let message = "No such path. /api/v1/docs lists the available endpoints.";
            ApiError::new(Code::NotFound, message).into_response()
        }
    }
}

/// Responds to a method that the path does not support.
pub(crate) async fn no_such_method(
    State(state): State<ApiState>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match &state.unmatched_pages {
        Some(pages) if is_person(&uri, &headers) => (pages.no_such_method)(uri, headers).await,
        _ => {
            let message = "This path does not support this method. The Allow header lists the supported methods.";
            ApiError::new(Code::MethodNotAllowed, message).into_response()
        }
    }
}

/// Returns whether a browser asks for a page: only browsers name HTML in `Accept`.
fn is_person(uri: &Uri, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    !uri.path().starts_with(FOR_PROGRAMS) && accept.is_some_and(|types| types.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::browser("/apps/x/nothing", Some("text/html,application/xhtml+xml"), true)]
    #[case::script("/apps/x/nothing", Some("*/*"), false)]
    #[case::no_header("/nothing", None, false)]
    #[case::api("/api/v1/nothing", Some("text/html"), false)]
    fn browsers_get_a_page(
        #[case] path: &'static str,
        #[case] accept: Option<&'static str>,
        #[case] expected: bool,
    ) {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, accept.parse().unwrap());
        }
        assert_eq!(is_person(&Uri::from_static(path), &headers), expected);
    }
}
