//! `GET /docs`, `GET /docs/{file}` and `GET /llms.txt`. Public, like the API reference.

use super::{Documents, ServedDocument, tag};
use crate::error::{ApiError, Code};
use crate::state::ApiState;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fmt::Write as _;

const MARKDOWN: &str = "text/markdown; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
/// Time for which a copy is used without a request. Short, because an upgrade changes the documents;
/// afterwards the `ETag` saves the transfer.
const CACHING: &str = "public, max-age=300";

/// Begins `llms.txt`: what this is, for a model that has never heard of it.
const INTRODUCTION: &str = "# Tributary\n\n\
    > Tributary is a self-hosted service for app-install attribution and conversion forwarding. Tracking \
    links record clicks, an SDK reports installs and events, billing providers and websites report \
    payments. Tributary decides which click an install belongs to, reports the figures, and forwards \
    conversions to ad networks (Meta, Google Ads, TikTok, OpenAI Ads).\n\n";

pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/docs", get(index))
        .route("/docs/", get(index))
        .route("/docs/{file}", get(file))
        .route("/llms.txt", get(llms))
}

/// Returns the path of a document.
pub(crate) fn document_path(name: &str) -> String {
    format!("/docs/{name}")
}

async fn index(State(state): State<ApiState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let index = state.documents.index().ok_or_else(not_found)?;
    Ok(respond(&headers, &index.text, MARKDOWN, index.tag.clone()))
}

async fn file(
    State(state): State<ApiState>,
    headers: HeaderMap,
    params: Result<RawPathParams, RawPathParamsRejection>,
) -> Result<Response, ApiError> {
    let params = params.ok();
    let name = params
        .as_ref()
        .and_then(|params| params.iter().next())
        .map_or("", |(_, name)| name);
    let documents = state.documents.all();
    let found = documents.iter().find(|document| document.name == name);
    let found = found.ok_or_else(not_found)?;
    Ok(respond(&headers, &found.text, MARKDOWN, found.tag.clone()))
}

async fn llms(State(state): State<ApiState>, headers: HeaderMap) -> Response {
    let text = overview(&state.documents, &state.base_url);
    let tag = tag(&text);
    respond(&headers, &text, PLAIN, tag)
}

fn not_found() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "Document not found. /docs lists the documents.",
    )
}

/// Returns a text, or 304 if the client has this version of it.
fn respond(headers: &HeaderMap, text: &str, kind: &'static str, tag: HeaderValue) -> Response {
    let is_current = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .any(|known| names(known, &tag));
    let caching = HeaderValue::from_static(CACHING);
    let cached = [(header::CACHE_CONTROL, caching), (header::ETAG, tag)];
    if is_current {
        return (StatusCode::NOT_MODIFIED, cached).into_response();
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    (cached, kind, text.to_owned()).into_response()
}

/// Returns whether an `If-None-Match` header names a tag. A cache may have made the tag weak.
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else {
        return false;
    };
    known
        .split(',')
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == "*" || one == tag)
}

/// Writes `llms.txt` (<https://llmstxt.org>).
fn overview(documents: &Documents, base_url: &str) -> String {
    let mut text = INTRODUCTION.to_owned();
    // Writing to a String cannot fail.
    let _infallible = write!(
        text,
        "These are the documents of the version that this server runs. The REST API is described in \
         {base_url}/openapi.yaml. Agents with an API key can use the MCP server at {base_url}/mcp.\n\n\
         ## Documents\n\n"
    );
    for ServedDocument {
        name,
        title,
        summary,
        ..
    } in documents.all()
    {
        let path = document_path(name);
        let _infallible = writeln!(text, "- [{title}]({base_url}{path}): {summary}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::handles_in;
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use std::sync::Arc;
    use std::time::Duration;
    use tower::ServiceExt as _;

    async fn get(path: &str, known: Option<&str>) -> (StatusCode, HeaderMap, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut handles = handles_in(folder.path(), Duration::from_secs(5));
        handles.documents = Arc::new(Documents::new(&[
            ("README.md", "# Documentation\n\nSee [API](API.md).\n"),
            ("API.md", "# The REST API\n"),
        ]));
        let mut request = Request::builder().uri(path);
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let router = crate::router(handles.into(), Router::new());
        let answer = router.oneshot(request.body(Body::empty()).unwrap()).await;
        let (parts, body) = answer.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        (parts.status, parts.headers, text)
    }

    #[tokio::test]
    async fn documents_are_served_with_working_links() {
        for path in ["/docs", "/docs/", "/docs/README.md"] {
            let (status, headers, text) = get(path, None).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(headers[header::CONTENT_TYPE], MARKDOWN);
            assert_eq!(headers[header::CACHE_CONTROL], CACHING);
            assert!(text.contains("[API](/docs/API.md)"), "{text}");
        }
        assert_eq!(get("/docs/API.md", None).await.2, "# The REST API\n");
        for path in ["/docs/NONE.md", "/docs/..%2FAPI.md", "/docs/%ff"] {
            assert_eq!(get(path, None).await.0, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn a_known_version_is_not_sent_again() {
        let (_, headers, _) = get("/docs/API.md", None).await;
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let (status, headers, text) = get("/docs/API.md", Some(&known)).await;
            assert_eq!(status, StatusCode::NOT_MODIFIED);
            assert!(headers.contains_key(header::ETAG) && text.is_empty());
        }
        let (status, ..) = get("/docs/README.md", Some(&tag)).await;
        assert_eq!(status, StatusCode::OK);
    }

    #[tokio::test]
    async fn llms_txt_lists_every_document() {
        let (status, headers, text) = get("/llms.txt", None).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers[header::CONTENT_TYPE], PLAIN);
        assert!(text.starts_with("# Tributary\n\n> "));
        assert!(text.contains("- [The REST API](http://t.example/docs/API.md): "));
    }
}
