//! Providers that misbehave, as servers in this process. Right and wrong ID tokens are in
//! `acceptance/tests/spec/single_sign_on.rs`.

use super::*;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rstest::rstest;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// A P-256 key.
const KEYS: &str = r#"{"keys": [
    {"kty": "EC", "crv": "P-256", "kid": "1",
     "x": "0MbmwAk9SfwWXCrA4G7CycX4UzzhWNgUe6gFwPeo3lc",
     "y": "QcCbDyGCXJvR4TlQ7k6D9hAG1Y-ToatZiKQ_Hixw56M"},
    {"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-384"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}
]}"#;

fn at(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn client() -> ProviderClient {
    ProviderClient::new(true).unwrap()
}

/// Starts a provider and returns its issuer. The parts of `configuration` and `keys` named BASE are
/// replaced with the issuer.
async fn provider(
    configuration: &'static str,
    keys: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> Issuer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let document = configuration.replace("BASE", &base);
    let router = Router::new()
        .route(
            "/.well-known/openid-configuration",
            get(move || async move { document }),
        )
        .route("/keys", get(move || async move { keys() }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Issuer::parse(&base, true).unwrap()
}

const CONFIGURATION: &str = r#"{"issuer": "BASE", "authorization_endpoint": "BASE/in",
    "token_endpoint": "BASE/token", "jwks_uri": "BASE/keys"}"#;

fn usable() -> Response {
    KEYS.into_response()
}

#[tokio::test]
async fn a_provider_is_fetched_once_an_hour() {
    static FETCHES: AtomicU32 = AtomicU32::new(0);
    let counting = || {
        FETCHES.fetch_add(1, Ordering::Relaxed);
        usable()
    };
    let (client, issuer) = (client(), provider(CONFIGURATION, counting).await);
    for (second, fetches) in [(0, 1), (3_599, 1), (3_600, 2)] {
        let page = client.sign_in_page(issuer.clone(), at(second)).await;
        assert_eq!(page.unwrap().path(), "/in");
        assert_eq!(FETCHES.load(Ordering::Relaxed), fetches, "{second}");
    }
    // A test fetches again, but not in quick succession.
    for (second, fetches) in [(3_605, 2), (3_610, 3), (3_619, 3)] {
        let tested = client.test(issuer.clone(), at(second)).await;
        assert_eq!(tested.unwrap().keys, 1);
        assert_eq!(FETCHES.load(Ordering::Relaxed), fetches, "{second}");
    }
}

#[rstest]
#[case::not_json("hello", ProviderFault::Unreadable("configuration"))]
#[case::incomplete(r#"{"issuer": "BASE"}"#, ProviderFault::Unreadable("configuration"))]
#[case::another_issuer(
    r#"{"issuer": "BASE/", "authorization_endpoint": "BASE", "token_endpoint": "BASE", "jwks_uri": "BASE"}"#,
    ProviderFault::IssuerMismatch
)]
#[case::another_scheme(
    r#"{"issuer": "BASE", "authorization_endpoint": "javascript:alert(1)", "token_endpoint": "BASE",
        "jwks_uri": "BASE"}"#,
    ProviderFault::InsecureEndpoint("sign-in page")
)]
#[case::plain_http_elsewhere(
    r#"{"issuer": "BASE", "authorization_endpoint": "BASE", "token_endpoint": "http://10.0.0.1/token",
        "jwks_uri": "BASE"}"#,
    ProviderFault::InsecureEndpoint("token endpoint")
)]
#[case::a_file(
    r#"{"issuer": "BASE", "authorization_endpoint": "BASE", "token_endpoint": "BASE",
        "jwks_uri": "file:///etc/passwd"}"#,
    ProviderFault::InsecureEndpoint("key list")
)]
#[tokio::test]
async fn a_wrong_configuration_is_rejected(
    #[case] configuration: &'static str,
    #[case] expected: ProviderFault,
) {
    let issuer = provider(configuration, usable).await;
    let tested = client().test(issuer, NOW).await;
    assert_eq!(tested, Err(expected));
}

fn huge() -> Response {
    vec![b' '; KEYS_BYTES_MAX + 1].into_response()
}

fn redirect() -> Response {
    let target = [(header::LOCATION, "http://169.254.169.254/")];
    (StatusCode::FOUND, target).into_response()
}

#[rstest]
#[case::huge(huge, ProviderFault::TooLarge)]
#[case::redirect(redirect, ProviderFault::Status { document: "its key list", status: 302 })]
#[case::not_json(|| "x".into_response(), ProviderFault::Unreadable("key list"))]
#[case::no_keys(|| r#"{"keys": []}"#.into_response(), ProviderFault::NoUsableKey)]
#[case::shared_keys_only(
    || r#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#.into_response(), ProviderFault::NoUsableKey
)]
#[tokio::test]
async fn wrong_keys_are_rejected(#[case] keys: fn() -> Response, #[case] expected: ProviderFault) {
    let (client, issuer) = (client(), provider(CONFIGURATION, keys).await);
    assert_eq!(
        client.test(issuer.clone(), NOW).await,
        Err(expected.clone())
    );
    // The error is kept for a moment.
    let page = client.sign_in_page(issuer, at(9)).await;
    assert_eq!(page, Err(expected));
}

/// The documents of up to a thousand providers are kept, and any tenant can choose a thousand.
#[test]
fn keys_that_are_kept_are_small() {
    let (x, y) = (
        "0MbmwAk9SfwWXCrA4G7CycX4UzzhWNgUe6gFwPeo3lc",
        "QcCbDyGCXJvR4TlQ7k6D9hAG1Y-ToatZiKQ_Hixw56M",
    );
    let read = |keys: Vec<serde_json::Value>| {
        let body = serde_json::json!({ "keys": keys }).to_string();
        documents::keys(body.as_bytes()).map(|keys| keys.len())
    };
    let with_id = |length: usize| serde_json::json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "k".repeat(length) });
    assert_eq!(read(vec![with_id(256)]), Ok(1));
    assert_eq!(read(vec![with_id(257)]), Err(ProviderFault::NoUsableKey));
    assert_eq!(read(vec![with_id(1); 100]), Ok(documents::KEYS_MAX));
    let encoded = |length: usize| URL_SAFE_NO_PAD.encode(vec![1; length]);
    let with_exponent = |length: usize| serde_json::json!({ "kty": "RSA", "n": encoded(256), "e": encoded(length) });
    assert_eq!(read(vec![with_exponent(8)]), Ok(1));
    assert_eq!(
        read(vec![with_exponent(9)]),
        Err(ProviderFault::NoUsableKey)
    );
    let issuer = Issuer::parse("https://one.example.com", false).unwrap();
    let configured = |length: usize| {
        let page = format!("https://one.example.com/{}", "p".repeat(length - 24));
        let body = serde_json::json!({
            "issuer": issuer.as_str(), "authorization_endpoint": page,
            "token_endpoint": page, "jwks_uri": page,
        });
        documents::configuration(&issuer, body.to_string().as_bytes(), false).err()
    };
    assert_eq!(configured(2_000), None);
    assert_eq!(configured(2_001), Some(ProviderFault::TooLarge));
}

#[tokio::test]
async fn a_silent_provider_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let silent = || async { tokio::time::sleep(Duration::from_mins(1)).await };
    let router = Router::new().fallback(get(silent));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let (client, issuer) = (client(), Issuer::parse(&base, true).unwrap());
    let mut waiting = Vec::new();
    for _ in 0..REQUESTS_PER_PROVIDER_MAX {
        let tested = client.test(issuer.clone(), NOW);
        waiting.push(tokio::spawn(tested));
    }
    while client.lock().running.get(&issuer) != Some(&REQUESTS_PER_PROVIDER_MAX) {
        tokio::task::yield_now().await;
    }
    // It waits, and gets the result of the others, whose time is over first.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let another = client.test(issuer.clone(), NOW).await;
    assert_eq!(another, Err(ProviderFault::TimedOut));
    for one in waiting {
        assert_eq!(one.await.unwrap(), Err(ProviderFault::TimedOut));
    }
    assert!(client.lock().running.is_empty());
}

#[tokio::test]
async fn many_sign_ins_at_once_wait_for_each_other() {
    static FETCHES: AtomicU32 = AtomicU32::new(0);
    let counting = || {
        FETCHES.fetch_add(1, Ordering::Relaxed);
        usable()
    };
    let (client, issuer) = (client(), provider(CONFIGURATION, counting).await);
    let mut office = tokio::task::JoinSet::new();
    for _ in 0..10 * REQUESTS_PER_PROVIDER_MAX {
        office.spawn(client.sign_in_page(issuer.clone(), NOW));
    }
    for page in office.join_all().await {
        assert_eq!(page.unwrap().path(), "/in");
    }
    let fetches = FETCHES.load(Ordering::Relaxed);
    assert!(fetches <= REQUESTS_PER_PROVIDER_MAX, "{fetches}");
    assert!(client.lock().running.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_slot_and_no_longer_than_a_request_takes() {
    let client = client();
    let issuer = Issuer::parse("http://127.0.0.1:1", true).unwrap();
    let mut slots = Vec::new();
    for _ in 0..REQUESTS_PER_PROVIDER_MAX {
        slots.push(client.slot(&issuer).await.unwrap());
    }
    let begun = tokio::time::Instant::now();
    let refused = client.slot(&issuer).await.err();
    assert_eq!(refused, Some(ProviderFault::Busy));
    assert!(begun.elapsed() >= REQUEST_MAX);
    let freeing = async {
        tokio::time::sleep(REQUEST_MAX / 2).await;
        slots.pop();
    };
    let (slot, ()) = tokio::join!(client.slot(&issuer), freeing);
    assert!(slot.is_ok());
}

#[rstest]
#[case::literal("http://127.0.0.1:1")]
#[case::by_name("http://localhost:1")]
#[case::metadata_service("https://169.254.169.254")]
#[tokio::test]
async fn private_addresses_are_not_connected_to(#[case] issuer: &str) {
    let client = ProviderClient::new(false).unwrap();
    assert!(!client.allows_http());
    let tested = client.test(Issuer::parse(issuer, true).unwrap(), NOW).await;
    assert_eq!(tested, Err(ProviderFault::PrivateAddress));
}

#[tokio::test]
async fn old_providers_are_forgotten() {
    let client = ProviderClient::new(false).unwrap();
    for index in 0..PROVIDERS_MAX + 5 {
        let issuer = Issuer::parse(&format!("http://127.0.0.1/{index}"), true).unwrap();
        let now = at(u64::try_from(index).unwrap());
        assert!(client.test(issuer, now).await.is_err());
    }
    let state = client.lock();
    assert_eq!(state.fetched.len(), PROVIDERS_MAX);
    let oldest = state.fetched.values().map(|one| one.at).min();
    assert_eq!(oldest, Some(at(5)));
}

#[test]
fn the_client_is_encoded_for_the_header() {
    let expected = format!("Basic {}", STANDARD.encode("a%3Ab:c+d%25"));
    assert_eq!(basic("a:b", "c d%"), expected);
}
