//! Well-known paths: association files, which allow apps to open links, and Apple's postbacks.
//!
//! Each host has its own association files: an app's verified `linkDomain` lists that app, the
//! service's host lists every app without one, and other hosts have none. Apps claim only `/c/*`.
//! Landing pages and web funnels open in the browser, even if the app is installed.

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

/// Largest file in bytes. This is Apple's limit; Google documents no limit.
const FILE_BYTES_MAX: usize = 128 * 1024;
/// The files may be cached for five minutes, so that operators see their changes soon. Apple's CDN
/// caches them for at least a day regardless.
const CACHE_POLICY: &str = "public, max-age=300";

pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/.well-known/apple-app-site-association", get(apple::file))
        .route("/.well-known/assetlinks.json", get(android::file))
        .merge(postbacks::router())
}

/// Apps listed in the requested host's files, oldest first.
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

/// Builds a file with as many items as fit, in order. Returns 404 if there are no items. Apple and
/// Google accept neither a redirect nor another content type.
fn association_file(before: &str, items: Vec<String>, after: &str) -> Response {
    if items.is_empty() {
        let message = "No app on this host has the ids that this file requires.";
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
                "association file is full; give the newest apps their own linkDomain"
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
    async fn a_file_contains_the_items_that_fit() {
        let item = format!("\"{}\"", "x".repeat(1_000));
        let full = text(association_file("[", vec![item; 200], "]")).await;
        assert!(full.len() <= FILE_BYTES_MAX && full.len() > FILE_BYTES_MAX - 1_003);
        let read: Vec<String> = serde_json::from_str(&full).unwrap();
        assert_eq!(read.len(), 130);
    }

    #[test]
    fn returns_404_without_apps() {
        assert_eq!(
            association_file("[", Vec::new(), "]").status(),
            StatusCode::NOT_FOUND
        );
    }
}
