//! Tests the limits of outbound requests against servers in this process.

use super::*;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::get;
use rstest::rstest;
use tokio::net::TcpListener;

/// Serves until the test ends and returns the port.
async fn serve(router: Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

fn outbound(policy: AddressPolicy) -> Outbound {
    Outbound::new(policy, Duration::from_secs(5)).unwrap()
}

async fn fetch(outbound: &Outbound, url: &str) -> Result<Response, OutboundError> {
    let url = Url::parse(url).unwrap();
    outbound.send(outbound.request(Method::GET, &url)).await
}

#[rstest]
#[case::literal("127.0.0.1")]
#[case::literal_v6("[::1]")]
#[case::mapped("[::ffff:127.0.0.1]")]
#[case::by_name("localhost")]
#[tokio::test]
async fn private_addresses_are_not_connected_to_unless_allowed(#[case] host: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://{host}:{port}/?token=canary");
    let refused = fetch(&outbound(AddressPolicy::PublicOnly), &url)
        .await
        .unwrap_err();
    assert!(matches!(refused, OutboundError::Private(_)), "{refused}");
    let connection = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connection.is_err(), "a connection was made");
}

#[rstest]
#[case::literal("127.0.0.1")]
#[case::by_name("localhost")]
#[tokio::test]
async fn reaches_a_simulator_if_allowed(#[case] host: &str) {
    let agent = |headers: HeaderMap| async move {
        headers[header::USER_AGENT].to_str().unwrap().to_owned()
    };
    let port = serve(Router::new().route("/", get(agent))).await;
    let response = fetch(
        &outbound(AddressPolicy::Anywhere),
        &format!("http://{host}:{port}/"),
    )
    .await;
    let content = read_body(response.unwrap(), 100).await.unwrap();
    assert_eq!(content, USER_AGENT.as_bytes());
}

#[tokio::test]
async fn does_not_follow_redirects() {
    let moved = || async { (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]) };
    let elsewhere = || async { StatusCode::NO_CONTENT };
    let router = Router::new()
        .route("/", get(moved))
        .route("/elsewhere", get(elsewhere));
    let port = serve(router).await;
    let response = fetch(
        &outbound(AddressPolicy::Anywhere),
        &format!("http://127.0.0.1:{port}/"),
    )
    .await;
    assert_eq!(response.unwrap().status(), StatusCode::FOUND);
}

#[rstest]
#[case::at_the_limit(1_000, Ok(1_000))]
#[case::one_past_it(999, Err(OutboundError::TooLarge(999)))]
#[tokio::test]
async fn limits_the_size_of_a_body(
    #[case] bytes_max: usize,
    #[case] expected: Result<usize, OutboundError>,
) {
    let port =
        serve(Router::new().route("/", get(|| async { Bytes::from(vec![b'x'; 1_000]) }))).await;
    let response = fetch(
        &outbound(AddressPolicy::Anywhere),
        &format!("http://127.0.0.1:{port}/"),
    )
    .await;
    let content = read_body(response.unwrap(), bytes_max).await;
    assert_eq!(content.map(|content| content.len()), expected);
}

#[tokio::test]
async fn times_out_on_a_silent_server() {
    let silent = || async { tokio::time::sleep(Duration::from_mins(1)).await };
    let port = serve(Router::new().route("/", get(silent))).await;
    let short_timeout = Outbound::new(AddressPolicy::Anywhere, Duration::from_millis(50)).unwrap();
    let timed_out = fetch(&short_timeout, &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(timed_out.unwrap_err(), OutboundError::TimedOut);
}

#[tokio::test]
async fn errors_do_not_contain_the_url() {
    let url = "http://127.0.0.1:1/secret?token=canary";
    let refused = fetch(&outbound(AddressPolicy::Anywhere), url)
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("refused"), "{text}");
    assert!(
        !text.contains("canary") && !text.contains("secret"),
        "{text}"
    );
}
