//! The endpoints for Apple's postbacks: validation, verification, counting and responses.

use crate::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, DEVELOPMENT, PRODUCTION, SKADNETWORK, adattributionkit,
    create_advertised_app, jws_postback, list, post, server, sign, skadnetwork, totals, vectors,
    with_fields,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use tributary_testkit::{TestServer, on_both_engines};

fn path_of(protocol: &Value) -> &'static str {
    if protocol == "skadnetwork" {
        SKADNETWORK
    } else {
        ADATTRIBUTIONKIT
    }
}

/// Builds malformed bodies, each with a name and its endpoint.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn malformed_bodies() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let with = |fields: Value| {
        let mut body = skadnetwork(1);
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        body.to_string().into_bytes()
    };
    let without = |field: &str| {
        let mut body = skadnetwork(1);
        body.as_object_mut().unwrap().remove(field);
        body.to_string().into_bytes()
    };
    let mut all: Vec<(&'static str, &'static str, Vec<u8>)> = vec![
        ("empty", SKADNETWORK, Vec::new()),
        ("a list", SKADNETWORK, b"[]".to_vec()),
        ("a string", SKADNETWORK, b"\"x\"".to_vec()),
        ("cut off", SKADNETWORK, b"{\"version\":".to_vec()),
        ("not UTF-8", SKADNETWORK, vec![b'{', 0xff, b'}']),
        (
            "a byte order mark",
            SKADNETWORK,
            [&[0xef, 0xbb, 0xbf][..], &with(json!({}))].concat(),
        ),
        (
            "a flag as text",
            SKADNETWORK,
            with(json!({"redownload": "false"})),
        ),
        (
            "an app id as text",
            SKADNETWORK,
            with(json!({"app-id": "525463029"})),
        ),
        (
            "an app id beyond 64 bits",
            SKADNETWORK,
            with(json!({"app-id": 1e20})),
        ),
        (
            "a negative app id",
            SKADNETWORK,
            with(json!({"app-id": -1})),
        ),
        (
            "a fraction",
            SKADNETWORK,
            with(json!({"conversion-value": 1.5})),
        ),
        (
            "a source identifier as number",
            SKADNETWORK,
            with(json!({"source-identifier": 39})),
        ),
        (
            "one digit",
            SKADNETWORK,
            with(json!({"source-identifier": "3"})),
        ),
        (
            "five digits",
            SKADNETWORK,
            with(json!({"source-identifier": "12345"})),
        ),
        (
            "value 64",
            SKADNETWORK,
            with(json!({"conversion-value": 64})),
        ),
        (
            "value -1",
            SKADNETWORK,
            with(json!({"conversion-value": -1})),
        ),
        (
            "both values",
            SKADNETWORK,
            with(json!({"coarse-conversion-value": "high"})),
        ),
        (
            "no coarse value",
            SKADNETWORK,
            with(json!({"conversion-value": null, "coarse-conversion-value": "none"})),
        ),
        (
            "index 3",
            SKADNETWORK,
            with(json!({"postback-sequence-index": 3})),
        ),
        ("fidelity 2", SKADNETWORK, with(json!({"fidelity-type": 2}))),
        (
            "a country of three letters",
            SKADNETWORK,
            with(json!({"country-code": "USA"})),
        ),
        (
            "NUL",
            SKADNETWORK,
            with(json!({"ad-network-id": "a\u{0}b"})),
        ),
        (
            "a separator",
            SKADNETWORK,
            with(json!({"ad-network-id": "a\u{2063}b"})),
        ),
        (
            "a long id",
            SKADNETWORK,
            with(json!({"transaction-id": "x".repeat(256)})),
        ),
        (
            "campaign 0",
            SKADNETWORK,
            with(json!({"version": "3.0", "campaign-id": 0})),
        ),
        (
            "campaign 101",
            SKADNETWORK,
            with(json!({"version": "3.0", "campaign-id": 101})),
        ),
        (
            "a campaign as text",
            SKADNETWORK,
            with(json!({"version": "3.0", "campaign-id": "42"})),
        ),
        (
            "a version as number",
            SKADNETWORK,
            with(json!({"version": 4.0})),
        ),
        (
            "a postback of the other kind",
            ADATTRIBUTIONKIT,
            with(json!({})),
        ),
        ("no envelope", ADATTRIBUTIONKIT, b"{}".to_vec()),
        (
            "a payload that is not a postback",
            ADATTRIBUTIONKIT,
            jws_postback(PRODUCTION, &json!([]))
                .to_string()
                .into_bytes(),
        ),
    ];
    for field in [
        "ad-network-id",
        "source-identifier",
        "app-id",
        "transaction-id",
        "attribution-signature",
        "did-win",
    ] {
        all.push(("a field is missing", SKADNETWORK, without(field)));
    }
    let genuine = adattributionkit(PRODUCTION, 1);
    let jws = genuine["jws-string"].as_str().unwrap().to_owned();
    let padded = jws.replace('.', "=.");
    for (name, text) in [
        ("two parts", jws.rsplit_once('.').unwrap().0.to_owned()),
        ("four parts", format!("{jws}.AAAA")),
        ("padded", padded),
        ("an empty part", jws.replacen('.', "..", 1)),
    ] {
        let mut body = genuine.clone();
        body["jws-string"] = json!(text);
        all.push((name, ADATTRIBUTIONKIT, body.to_string().into_bytes()));
    }
    all
}

/// Returns a JWS whose signature has only 63 bytes.
fn with_short_signature(postback: &Value) -> String {
    let jws = postback["jws-string"].as_str().unwrap();
    let (input, signature) = jws.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(&signature[..63]))
}

/// Builds copies of a SKAdNetwork 4.0 postback, each with one signed field changed.
fn tampered() -> Vec<Value> {
    let fields = json!({
        "source-identifier": "5238", "transaction-id": "6aafb7a5-0170-41b5-bbe4-fe71dedf1e29", "redownload": true,
        "did-win": false, "fidelity-type": 0, "postback-sequence-index": 1, "source-app-id": null,
        "ad-network-id": "other.skadnetwork",
    });
    let change = |(name, value): (&String, &Value)| {
        let mut body = skadnetwork(1);
        body[name] = value.clone();
        body
    };
    fields.as_object().unwrap().iter().map(change).collect()
}

on_both_engines! {
    async fn published_postbacks_have_the_expected_state(engine: Engine) {
        let Some(vectors) = vectors() else { return };
        for (name, body, expected) in &vectors {
            let server = TestServer::start(engine).await;
            let key = server.full_key().await;
            let app = create_advertised_app(&server, &key, expected["appId"].as_i64().unwrap()).await;
            post(&server, path_of(&expected["protocol"]), body.clone()).await.expect(200);
            let found = list(&server, &app, &key, "").await;
            assert_eq!(found.len(), 1, "{name}");
            let one = &found[0];
            assert_eq!(one["signature"], expected["state"], "{name}");
            assert_eq!(one["counted"], expected["state"] == "valid", "{name}");
            assert_eq!(one["transactionId"].as_str().unwrap().to_lowercase(), expected["dedupId"].as_str().unwrap().to_lowercase());
            for (ours, theirs) in [
                ("protocol", "protocol"), ("conversionType", "conversionType"), ("didWin", "didWin"),
                ("sequenceIndex", "sequenceIndex"), ("fineValue", "fine"), ("coarseValue", "coarse"),
            ] {
                assert_eq!(one[ours], expected[theirs], "{name}: {ours}");
            }
        }
        println!("{} published postbacks", vectors.len());
    }

    async fn a_replay_changes_nothing_and_a_different_value_conflicts(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let genuine = skadnetwork(1).to_string();
        for _ in 0..3 {
            post(&server, SKADNETWORK, genuine.clone()).await.expect(200);
        }
        let before = (list(&server, &app, &key, "").await, totals(&server, &app, &key).await);
        assert_eq!((before.0.len(), &before.1["installs"]), (1, &json!(1)));
        post(&server, SKADNETWORK.trim_end_matches('/'), genuine.clone()).await.expect(200);
        assert_eq!((list(&server, &app, &key, "").await, totals(&server, &app, &key).await), before);
        let mut another = skadnetwork(1);
        another["conversion-value"] = json!(1);
        post(&server, SKADNETWORK, another.to_string()).await.expect(200);
        let found = list(&server, &app, &key, "").await;
        assert_eq!(found.len(), 2);
        assert_eq!((&found[0]["signature"], &found[0]["counted"], &found[0]["conflicting"]), (&json!("valid"), &json!(false), &json!(true)));
        assert_eq!(totals(&server, &app, &key).await, before.1);
        for index in [1, 2] {
            let later = with_fields(skadnetwork(1), &json!({
                "postback-sequence-index": index, "conversion-value": null, "coarse-conversion-value": "high", "source-identifier": "39",
            }));
            post(&server, SKADNETWORK, later.to_string()).await.expect(200);
        }
        let after = totals(&server, &app, &key).await;
        assert_eq!((&after["installs"], &after["laterPostbacks"]), (&json!(1), &json!(2)));
    }

    async fn a_changed_signed_field_fails_verification(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let bodies = tampered();
        for body in &bodies {
            post(&server, SKADNETWORK, body.to_string()).await.expect(200);
        }
        let mut other_kid = adattributionkit("unknown", 1);
        post(&server, ADATTRIBUTIONKIT, other_kid.to_string()).await.expect(200);
        let jws = adattributionkit(PRODUCTION, 2)["jws-string"].as_str().unwrap().replacen(".eyJ", ".eyI", 1);
        other_kid["jws-string"] = json!(jws);
        post(&server, ADATTRIBUTIONKIT, other_kid.to_string()).await.expect(400);
        other_kid["jws-string"] = json!(with_short_signature(&adattributionkit(PRODUCTION, 3)));
        post(&server, ADATTRIBUTIONKIT, other_kid.to_string()).await.expect(200);
        let unknown = with_fields(skadnetwork(9), &json!({"version": "10.0"}));
        post(&server, SKADNETWORK, unknown.to_string()).await.expect(200);
        assert_eq!(list(&server, &app, &key, "signature=invalid").await.len(), bodies.len() + 1);
        assert_eq!(list(&server, &app, &key, "signature=unverifiable").await.len(), 2);
        assert_eq!(totals(&server, &app, &key).await["postbacks"], 0);
        // The genuine postback still counts, despite an invalid copy and fields added by a relay.
        let mut relayed = skadnetwork(1);
        relayed["timestamp"] = json!(1_700_000_000);
        relayed["ip"] = json!({"of": ["device"]});
        post(&server, SKADNETWORK, relayed.to_string()).await.expect(200);
        assert_eq!(totals(&server, &app, &key).await["installs"], 1);
    }

    async fn test_postbacks_count_only_while_the_app_accepts_them(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        post(&server, ADATTRIBUTIONKIT, adattributionkit(DEVELOPMENT, 1).to_string()).await.expect(200);
        let test = with_fields(skadnetwork(2), &json!({"source-app-id": 0, "conversion-value": 0}));
        post(&server, SKADNETWORK, test.to_string()).await.expect(200);
        post(&server, ADATTRIBUTIONKIT, adattributionkit(PRODUCTION, 3).to_string()).await.expect(200);
        assert_eq!(list(&server, &app, &key, "").await.len(), 3);
        for (allowed, expected) in [(false, 1), (true, 3), (false, 1)] {
            server.patch(&app, &key, json!({"skanTestSignals": allowed})).await.expect(200);
            assert_eq!(totals(&server, &app, &key).await["installs"], expected);
            assert_eq!(list(&server, &app, &key, "counted=true").await.len(), expected);
            assert_eq!(list(&server, &app, &key, "counted=false").await.len(), 3 - expected);
        }
    }

    async fn a_postback_is_kept_until_its_app_exists(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let first = post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        post(&server, ADATTRIBUTIONKIT, adattributionkit(PRODUCTION, 2).to_string()).await.expect(200);
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        assert_eq!(list(&server, &app, &key, "").await.len(), 2);
        assert_eq!(totals(&server, &app, &key).await["installs"], 2);
        let repeated = post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        assert_eq!(repeated.text, first.text, "the response does not reveal whether the app exists");
        assert_eq!(list(&server, &app, &key, "").await.len(), 2);
    }

    async fn rejects_malformed_postbacks_and_stores_nothing(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        for (name, endpoint, body) in malformed_bodies() {
            let answer = post(&server, endpoint, body).await;
            assert_eq!(answer.status.as_u16(), 400, "{name}: {answer:?}");
            let codes = ["malformed_json", "malformed_postback"];
            assert!(codes.contains(&answer.code().as_str()), "{name}: {answer:?}");
        }
        for endpoint in [SKADNETWORK, ADATTRIBUTIONKIT] {
            let mut large = skadnetwork(1);
            large["padding"] = json!("x".repeat(33 * 1024));
            assert_eq!(post(&server, endpoint, large.to_string()).await.expect(413).code(), "payload_too_large");
            let ready = server.send(server.request(Method::GET, endpoint)).await.expect(200);
            assert_eq!(ready.json(), json!({"data": {"status": "ready"}}));
            server.send(server.request(Method::PUT, endpoint)).await.expect(405);
        }
        assert_eq!(list(&server, &app, &key, "").await.len(), 0);
        let body = sign(skadnetwork(1)).to_string();
        for (number, content_type) in ["application/json", "text/plain", "application/octet-stream", ""].iter().enumerate() {
            let request = server.request(Method::POST, SKADNETWORK).header("content-type", *content_type);
            server.send(request.body(body.replace("bbe4-0", &format!("bbe4-{number}")))).await.expect(200);
        }
        assert_eq!(list(&server, &app, &key, "").await.len(), 4);
    }

    async fn an_uncommitted_postback_is_not_acknowledged(engine: Engine) {
        let mut server = server(engine).await;
        server.store.close().await;
        let unavailable = post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(503);
        assert_eq!((unavailable.code().as_str(), unavailable.header("retry-after")), ("unavailable", Some("1")));
        let unavailable = post(&server, ADATTRIBUTIONKIT, adattributionkit(PRODUCTION, 1).to_string()).await.expect(500);
        assert_eq!(unavailable.json()["error"]["retryable"], true);
        server.stop().await;
    }
}
