//! Compressed request bodies: decompressed after authentication, with limits on members, blocks and
//! ratio. Tests of the limits themselves are in `crates/api/src/gzip.rs`.

use crate::billing::{SECRET, Shop, event, hex_mac};
use crate::postbacks::{SKADNETWORK, server as postback_server, skadnetwork};
use crate::routes::{Needs, ROUTES, RouteFixture};
use crate::website::START;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use std::io::Write as _;
use tributary_testkit::{TestServer, on_both_engines};

/// A gzip member without content.
const EMPTY_MEMBER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0";
/// Not gzip. A server that decompresses it before it authenticates the sender returns 400.
const NOT_GZIP: &[u8] = b"not gzip";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses the text as two members.
fn two_members(text: &str) -> Vec<u8> {
    let (one, other) = text.split_at(text.len() / 2);
    [gzip(one.as_bytes()), gzip(other.as_bytes())].concat()
}

fn with_gzip(request: RequestBuilder, body: Vec<u8>) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(body)
}

on_both_engines! {
    async fn every_route_accepts_two_members_and_authenticates_first(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::with_website(&server, &key).await;
        for route in ROUTES.iter().filter(|route| route.needs != Needs::Nothing) {
            let Some(body) = route.body(&fixture) else { continue };
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let stranger = server.request(method, &route.path_for(&fixture));
            let answer = server.send(with_gzip(stranger, NOT_GZIP.to_vec())).await;
            assert_eq!(answer.expect(401).code(), "missing_api_key", "{route:?}");
            let request = || route.request(&server, &fixture, route.key(&fixture, &key));
            let answer = server.send(with_gzip(request(), NOT_GZIP.to_vec())).await;
            assert_eq!(answer.expect(400).code(), "malformed_json", "{route:?}");
            let answer = server.send(with_gzip(request(), two_members(&body.to_string()))).await;
            assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
        }
    }

    async fn a_mebibyte_of_empty_members_is_rejected(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let members = EMPTY_MEMBER.repeat(1024 * 1024 / EMPTY_MEMBER.len());
        // Blocks of length zero: each costs work and produces no output.
        let blocks = [&EMPTY_MEMBER[..10], &[0, 0, 0, 0xff, 0xff].repeat(200_000)].concat();
        for path in ["/api/v1/apps", "/api/track/events"] {
            for body in [&members, &blocks] {
                let request = server.request(Method::POST, path).bearer_auth(&key);
                let request = request.header("x-tributary-key", &fixture.sdk_keys[0]);
                let answer = server.send(with_gzip(request, body.clone())).await.expect(413);
                assert_eq!(answer.code(), "payload_too_large");
                assert!(answer.text.contains("gzip members"), "{answer:?}");
            }
        }
        let bomb = gzip(&vec![b' '; 500 * 1024]);
        let request = server.request(Method::POST, "/api/v1/apps").bearer_auth(&key);
        let answer = server.send(with_gzip(request, bomb)).await.expect(413);
        assert!(answer.text.contains("ratio"), "{answer:?}");
    }

    async fn webhooks_check_headers_before_they_read_the_body(engine: Engine) {
        const SIGNING_SECRET: &str = "rc_signing_secret_0123456789";
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let post = async |provider: &str, headers: &[(&str, &str)], body: Vec<u8>| {
            let mut request = server.request(Method::POST, &shop.webhook_path(provider));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            server.send(with_gzip(request, body)).await
        };
        for provider in ["revenuecat", "superwall", "appstore", "stripe", "adapty", "qonversion"] {
            let answer = post(provider, &[("authorization", "wrong")], NOT_GZIP.to_vec()).await;
            assert_eq!(answer.expect(401).code(), "webhook_unauthorized", "{provider}");
        }
        let secret = [("authorization", SECRET)];
        assert_eq!(post("revenuecat", &secret, NOT_GZIP.to_vec()).await.expect(400).code(), "malformed_json");
        let text = json!({"event": event("INITIAL_PURCHASE", "n-1", 0)}).to_string();
        post("revenuecat", &secret, two_members(&text)).await.expect(200);
        // Authenticated by a signature over the body, which is decompressed with smaller limits.
        shop.update_app(json!({"billing": {"revenuecat": {"secret": null, "signingSecret": SIGNING_SECRET}}})).await;
        let signature = format!("t={},v1={}", START / 1_000, hex_mac(SIGNING_SECRET, START / 1_000, &text));
        let signed = [("x-revenuecat-signature", signature.as_str())];
        post("revenuecat", &signed, two_members(&text)).await.expect(200);
        let members = [EMPTY_MEMBER.repeat(4), gzip(text.as_bytes())].concat();
        assert_eq!(post("revenuecat", &signed, members).await.expect(413).code(), "payload_too_large");
        let large = "x".repeat(300 * 1024) + &text;
        assert_eq!(post("revenuecat", &signed, gzip(large.as_bytes())).await.expect(413).code(), "payload_too_large");
    }

    async fn app_store_notifications_have_smaller_limits(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        let post = async |body: Vec<u8>| {
            server.send(with_gzip(server.request(Method::POST, &shop.webhook_path("appstore")), body)).await
        };
        let forged = json!({"signedPayload": "e30.e30.AAAA"}).to_string();
        assert_eq!(post(two_members(&forged)).await.expect(401).code(), "webhook_unauthorized");
        let members = EMPTY_MEMBER.repeat(10_000);
        assert_eq!(post(members).await.expect(413).code(), "payload_too_large");
        assert_eq!(post(gzip(&vec![b' '; 300 * 1024])).await.expect(413).code(), "payload_too_large");
    }

    async fn postbacks_have_smaller_limits(engine: Engine) {
        let server = postback_server(engine).await;
        let post = async |body: Vec<u8>| {
            server.send(with_gzip(server.request(Method::POST, SKADNETWORK), body)).await
        };
        post(two_members(&skadnetwork(1).to_string())).await.expect(200);
        assert_eq!(post(EMPTY_MEMBER.repeat(1_000)).await.expect(413).code(), "payload_too_large");
        assert_eq!(post(gzip(&vec![b' '; 40 * 1024])).await.expect(413).code(), "payload_too_large");
    }
}
