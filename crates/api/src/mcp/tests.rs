use super::*;
use crate::tests::handles_in;
use bytes::Bytes;
use rstest::rstest;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tributary_domain::node_role::NodeRoles;

#[rstest]
#[case::program(&[], true)]
#[case::own(&["https://t.example"], true)]
#[case::own_in_capitals(&["HTTPS://T.EXAMPLE"], true)]
#[case::other_host(&["https://evil.example"], false)]
#[case::longer_host(&["https://t.example.evil.example"], false)]
#[case::other_scheme(&["http://t.example"], false)]
#[case::other_port(&["https://t.example:8443"], false)]
#[case::sandboxed_page(&["null"], false)]
#[case::empty(&[""], false)]
#[case::two(&["https://t.example", "https://evil.example"], false)]
fn origins(#[case] sent: &[&'static str], #[case] expected: bool) {
    let mut headers = HeaderMap::new();
    for origin in sent {
        headers.append(header::ORIGIN, origin.parse().unwrap());
    }
    for base_url in ["https://t.example", "https://t.example/tributary"] {
        assert_eq!(is_own_origin(&headers, base_url), expected);
    }
}

#[rstest]
#[case("/mcp", false)]
#[case("/mcp?write=0", false)]
#[case("/mcp?rewrite=1", false)]
#[case("/mcp?write=1", true)]
#[case("/mcp?a=b&write=1", true)]
fn opting_in(#[case] uri: &str, #[case] expected: bool) {
    let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
    assert_eq!(wants_to_write(&request.into_parts().0), expected);
}

/// Sends a request without a key to a node with these roles, and returns the response's status and
/// body.
async fn post_without_key(roles: &[&str], body: Body) -> (StatusCode, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut handles = handles_in(folder.path(), Duration::from_secs(5));
    handles.roles = NodeRoles::parse(roles.iter().copied()).unwrap();
    let router = crate::router(handles.into(), Router::new());
    let request = Request::post("/mcp").header(header::CONTENT_TYPE, "application/json");
    let answer = router.oneshot(request.body(body).unwrap()).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// A body that never arrives.
struct EndlessBody;

impl http_body::Body for EndlessBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _task: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_body_without_a_key_is_not_read() {
    let (status, body) = post_without_key(&["report"], Body::new(EndlessBody)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(body.contains("missing_api_key"), "{body}");
}

#[tokio::test]
async fn a_node_without_the_role_for_reports_serves_no_agents() {
    let (status, _) = post_without_key(&["accept"], Body::empty()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}
