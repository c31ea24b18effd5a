//! What Apple and Google look for at a host: the files by which they learn which apps may open its links, and the doors
//! for Apple's postbacks (`postbacks`).
//!
//! Each host has its own files: on an app's `linkDomain` that app alone, on the service's own host every app
//! without one, on any other host nothing. They claim `/c/*` only. The landing page and the way to a web page
//! belong in the browser, also on a phone that has the app.

mod android;
mod apple;
mod postbacks;

use crate::error::{ApiError, Code};
use crate::host::{RequestHost, request_host};
use crate::state::ApiState;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tributary_domain::app::App;

/// Bytes of a file. Apple reads no more; what we know of Google names no limit, so it gets the same.
const FILE_BYTES_MAX: usize = 128 * 1024;
/// How long anybody may keep a file, in seconds. Apple's own copies are kept for a day at least; shorter, so
/// that whoever sets an app up sees what changed.
const CACHE_POLICY: &str = "public, max-age=300";

pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/.well-known/apple-app-site-association", get(apple::file))
        .route("/.well-known/assetlinks.json", get(android::file))
        .merge(postbacks::router())
}

/// The apps that the asked host speaks for, oldest first.
struct AppsOfHost(Vec<App>);

impl FromRequestParts<ApiState> for AppsOfHost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let host = match request_host(parts, state) {
            RequestHost::Service => None,
            RequestHost::Named(host) => Some(host),
            RequestHost::Other => return Ok(Self(Vec::new())),
        };
        Ok(Self(state.store.apps_for_host(host).await?))
    }
}

/// A file around as many items as fit, the first ones first; none: no file. Apple and Google take no
/// redirect and no other content type.
fn association_file(before: &str, items: Vec<String>, after: &str) -> Response {
    if items.is_empty() {
        let message = "No app with the ids it takes belongs to this host.";
        return ApiError::new(Code::NotFound, message).into_response();
    }
    let mut text = before.to_owned();
    let all = items.len();
    for (index, item) in items.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        if text.len() + separator.len() + item.len() + after.len() > FILE_BYTES_MAX {
            let left_out = all - index;
            tracing::warn!(
                left_out,
                "an association file is full; give the newest apps a linkDomain of their own"
            );
            break;
        }
        text.push_str(separator);
        text.push_str(&item);
    }
    text.push_str(after);
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, CACHE_POLICY),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        String::from_utf8(bytes.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_file_holds_what_fits() {
        let item = format!("\"{}\"", "x".repeat(1_000));
        let full = text(association_file("[", vec![item; 200], "]")).await;
        assert!(full.len() <= FILE_BYTES_MAX && full.len() > FILE_BYTES_MAX - 1_003);
        let read: Vec<String> = serde_json::from_str(&full).unwrap();
        assert_eq!(read.len(), 130);
    }

    #[test]
    fn without_an_app_there_is_no_file() {
        assert_eq!(
            association_file("[", Vec::new(), "]").status(),
            StatusCode::NOT_FOUND
        );
    }
}
