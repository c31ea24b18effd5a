//! App Store Server Notifications, verified against a test certificate chain instead of Apple's.

use crate::billing::{MINUTE, SECRET, Shop, event, with_payment};
use crate::website::START;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_testkit::postbacks::test_keys;
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings, on_both_engines};

const LEAF_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x0b, 0x01];
const INTERMEDIATE_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x02, 0x01];
/// An extension that the verifier does not look for.
const OTHER_OID: &[u8] = &[0x2a, 0x86, 0x48];
pub(super) const BUNDLE: &str = "com.example.runner";
const STORE_ID: &str = "525463029";

fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let mut bytes = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => bytes.push(short),
        Ok(long) => bytes.extend([0x81, long]),
        Err(_) => {
            bytes.push(0x82);
            bytes.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    bytes.extend_from_slice(value);
    bytes
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    der(0x30, &parts.concat())
}

fn bits(bytes: &[u8]) -> Vec<u8> {
    der(0x03, &[&[0], bytes].concat())
}

/// Encodes a common name.
fn name(text: &str) -> Vec<u8> {
    let attribute = sequence(&[der(0x06, &[0x55, 0x04, 0x03]), der(0x0c, text.as_bytes())]);
    sequence(&[der(0x31, &attribute)])
}

/// Fields of a test certificate.
struct CertificateFields<'a> {
    subject: &'a str,
    issuer: &'a str,
    extension: &'a [u8],
    not_after: &'a str,
    is_authority: bool,
}

/// Builds a certificate for `key`, signed by `issuer`.
fn certificate(key: &SigningKey, issuer: &SigningKey, fields: &CertificateFields<'_>) -> Vec<u8> {
    let ecdsa = sequence(&[der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])]);
    let curve = sequence(&[
        der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]),
        der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
    ]);
    let point = key.verifying_key().to_sec1_point(false);
    let validity = sequence(&[
        der(0x17, b"250101000000Z"),
        der(0x17, fields.not_after.as_bytes()),
    ]);
    let extension = sequence(&[der(0x06, fields.extension), der(0x04, &[0x05, 0x00])]);
    let authority = if fields.is_authority {
        der(0x01, &[0xff])
    } else {
        Vec::new()
    };
    let constraints = sequence(&[
        der(0x06, &[0x55, 0x1d, 0x13]),
        der(0x01, &[0xff]),
        der(0x04, &sequence(&[authority])),
    ]);
    let body = sequence(&[
        der(0xa0, &der(0x02, &[2])),
        der(0x02, &[1]),
        ecdsa.clone(),
        name(fields.issuer),
        validity,
        name(fields.subject),
        sequence(&[curve, bits(point.as_bytes())]),
        der(0xa3, &sequence(&[constraints, extension])),
    ]);
    let signature: Signature = issuer.sign(&body);
    sequence(&[body, ecdsa, bits(signature.to_der().as_bytes())])
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_slice(&[number; 32]).unwrap()
}

/// A signing key and its certificate chain, leaf first.
struct Signer {
    key: SigningKey,
    chain: Vec<Vec<u8>>,
}

const NOT_EXPIRED: &str = "300101000000Z";
const ROOT: CertificateFields<'_> = CertificateFields {
    subject: "root",
    issuer: "root",
    extension: OTHER_OID,
    not_after: NOT_EXPIRED,
    is_authority: true,
};

impl Signer {
    fn apple() -> Self {
        Self::with_extensions(LEAF_OID, INTERMEDIATE_OID, NOT_EXPIRED, &key(1))
    }

    fn with_extensions(
        leaf: &[u8],
        intermediate: &[u8],
        not_after: &str,
        issuer: &SigningKey,
    ) -> Self {
        Self::with_intermediate(leaf, not_after, issuer, |fields| {
            fields.extension = intermediate;
        })
    }

    /// Builds a chain and lets `change` alter the intermediate.
    fn with_intermediate<'a>(
        leaf_extension: &'a [u8],
        not_after: &'a str,
        issuer: &SigningKey,
        change: impl FnOnce(&mut CertificateFields<'a>),
    ) -> Self {
        let (root, intermediate, leaf) = (key(1), key(2), key(3));
        let leaf_fields = CertificateFields {
            subject: "leaf",
            issuer: "intermediate",
            extension: leaf_extension,
            not_after,
            is_authority: false,
        };
        let mut intermediate_fields = CertificateFields {
            subject: "intermediate",
            issuer: "root",
            extension: INTERMEDIATE_OID,
            not_after: NOT_EXPIRED,
            is_authority: true,
        };
        change(&mut intermediate_fields);
        Self {
            chain: vec![
                certificate(&leaf, &intermediate, &leaf_fields),
                certificate(&intermediate, issuer, &intermediate_fields),
                certificate(&root, &root, &ROOT),
            ],
            key: leaf,
        }
    }

    fn sign(&self, payload: &Value) -> String {
        let chain: Vec<String> = self.chain.iter().map(|one| STANDARD.encode(one)).collect();
        self.sign_as(&json!({"alg": "ES256", "x5c": chain}), payload)
    }

    fn sign_as(&self, header: &Value, payload: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let input = format!("{}.{}", part(header), part(payload));
        let signature: Signature = self.key.sign(input.as_bytes());
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }
}

pub(super) fn transaction(id: &str, minute: i64) -> Value {
    json!({
        "transactionId": id, "originalTransactionId": "1000", "productId": "pro.weekly", "quantity": 1,
        "type": "Auto-Renewable Subscription", "purchaseDate": START + minute * MINUTE, "price": 10990,
        "currency": "USD", "inAppOwnershipType": "PURCHASED", "environment": "Production",
        "appAccountToken": "6F9619FF-8B86-4011-B42D-00C04FC964FF", "signedDate": START,
    })
}

fn payload(kind: &str, subtype: Option<&str>, id: &str, signed: &str) -> Value {
    json!({
        "notificationType": kind, "subtype": subtype, "notificationUUID": id, "version": "2.0", "signedDate": START,
        "data": {
            "environment": "Production", "appAppleId": STORE_ID.parse::<i64>().unwrap(), "bundleId": BUNDLE,
            "signedTransactionInfo": signed,
        },
    })
}

pub(super) fn notification(
    kind: &str,
    subtype: Option<&str>,
    id: &str,
    transaction: &Value,
) -> String {
    let signer = Signer::apple();
    signer.sign(&payload(kind, subtype, id, &signer.sign(transaction)))
}

pub(super) async fn server(engine: Engine) -> TestServer {
    let settings = TestServerSettings {
        postback_keys: test_keys(),
        store_roots: TrustedRoots::of(vec![Signer::apple().chain[2].clone()]),
        ..TestServerSettings::default()
    };
    TestServer::start_with(engine, settings).await
}

async fn shop(server: &TestServer) -> Shop<'_> {
    let shop = Shop::without_billing(server).await;
    shop.update_app(json!({"ios": {"bundleId": BUNDLE, "appStoreId": STORE_ID}}))
        .await;
    shop
}

async fn post(shop: &Shop<'_>, signed: &str) -> TestResponse {
    shop.post(
        "appstore",
        &[],
        &json!({"signedPayload": signed}).to_string(),
    )
    .await
}

on_both_engines! {
    async fn records_an_app_store_subscription(engine: Engine) {
        let server = server(engine).await;
        let shop = shop(&server).await;
        server.clock.advance(std::time::Duration::from_mins(30));
        // The first paid period arrives before the trial that precedes it.
        let renewed = notification("DID_RENEW", None, "renewed", &transaction("t1", 2));
        post(&shop, &renewed).await.expect(200);
        assert_eq!(shop.logged_event("renewed").await["name"], "renewal");
        let mut trial = transaction("t0", 1);
        trial["offerDiscountType"] = json!("FREE_TRIAL");
        post(&shop, &notification("SUBSCRIBED", Some("INITIAL_BUY"), "trial", &trial)).await.expect(200);
        assert_eq!(shop.logged_event("renewed").await["name"], "subscribe");
        let mut refunded = transaction("t1", 2);
        refunded["revocationType"] = json!("REFUND_PRORATED");
        refunded["revocationPercentage"] = json!(50_000);
        refunded["revocationDate"] = json!(START + 5 * MINUTE);
        post(&shop, &notification("REFUND", None, "refunded", &refunded)).await.expect(200);
        post(&shop, &notification("TEST", None, "test", &transaction("t9", 1))).await.expect(200);
        post(&shop, &notification("FUTURE_TYPE", None, "tomorrow", &transaction("t9", 1))).await.expect(200);
        assert_eq!(post(&shop, &renewed).await.expect(200).data()["duplicate"], true);
        let log: Vec<(Value, Value)> = shop.log().await.into_iter()
            .map(|one| (one["name"].clone(), one["revenue"]["usd"].clone())).collect();
        assert_eq!(log, [
            (json!("start_trial"), json!(0)), (json!("subscribe"), json!(10.99)), (json!("refund"), json!(-5.495)),
        ]);
        assert_eq!(shop.logged_event("trial").await["deviceId"], "6f9619ff-8b86-4011-b42d-00c04fc964ff");
        let shown = server.get(&shop.app, &shop.key).await.data();
        assert_eq!(shown["billing"]["appstore"]["configured"], true, "a valid notification marks it as configured");
    }

    async fn a_store_has_one_source(engine: Engine) {
        let server = server(engine).await;
        let shop = shop(&server).await;
        server.clock.advance(std::time::Duration::from_mins(30));
        let set = async |provider: &str, secret: Value| {
            let change = json!({"billing": {provider: {"secret": secret}}});
            server.patch(&shop.app, &shop.key, change).await.expect(200).data()["billing"].clone()
        };
        let overlaps = async |provider: &str| shop.health(provider).await["overlapsWith"].clone();
        let send = async |id: &str, minute: i64| {
            post(&shop, &notification("DID_RENEW", None, id, &transaction(id, minute))).await
        };
        // Stripe reports no payments of the App Store.
        set("stripe", json!("whsec_0123456789abcdef")).await;
        send("t1", 2).await.expect(200);
        assert_eq!(overlaps("appstore").await, json!([]));

        let shown = set("revenuecat", json!(SECRET)).await;
        assert_eq!(shown["appstore"]["overlapsWith"], json!(["revenuecat"]));
        assert_eq!(shown["revenuecat"].get("overlapsWith"), None);
        let refused = send("t2", 3).await.expect(401);
        assert_eq!(refused.code(), "webhook_unauthorized");
        assert!(refused.text.contains("Another billing provider"), "{refused:?}");
        assert_eq!(shop.health("appstore").await["unauthorized"], 1);
        assert!(!shop.send_accepted(&with_payment(event("RENEWAL", "r1", 4), "r1", 9.99)).await);

        // Each of two providers may report another store, so both are accepted.
        let shown = set("superwall", json!("whsec_0123456789abcdef")).await;
        assert_eq!(shown["revenuecat"]["overlapsWith"], json!(["superwall"]));
        assert_eq!(overlaps("superwall").await, json!(["revenuecat"]));
        assert_eq!(overlaps("stripe").await, json!([]));
        assert!(!shop.send_accepted(&with_payment(event("RENEWAL", "r2", 5), "r2", 9.99)).await);
        let document = server.get(&shop.app, &shop.key).await.expect(200).data();
        server.patch(&shop.app, &shop.key, document).await.expect(200);

        for provider in ["revenuecat", "superwall"] {
            set(provider, Value::Null).await;
        }
        send("t3", 6).await.expect(200);
        let log = shop.log().await;
        let ids: Vec<&Value> = log.iter().map(|one| &one["eventId"]).collect();
        assert_eq!(ids, ["t1", "r1", "r2", "t3"]);
    }

    async fn rejects_signatures_that_do_not_chain_to_the_root(engine: Engine) {
        let server = server(engine).await;
        let shop = shop(&server).await;
        let good = Signer::apple();
        let signed_transaction = good.sign(&transaction("t1", 0));
        let body = payload("SUBSCRIBED", Some("INITIAL_BUY"), "n-1", &signed_transaction);
        let assert_rejected = async |case: &str, signed: String| {
            let answer = post(&shop, &signed).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (401, "webhook_unauthorized"), "{case}");
        };
        let other = SigningKey::from_slice(&[9; 32]).unwrap();
        let signed_with = |leaf: &[u8], intermediate: &[u8], not_after: &str, issuer: &SigningKey| {
            Signer::with_extensions(leaf, intermediate, not_after, issuer).sign(&body)
        };
        assert_rejected("a leaf without its extension", signed_with(OTHER_OID, INTERMEDIATE_OID, NOT_EXPIRED, &key(1))).await;
        assert_rejected("an intermediate without its extension", signed_with(LEAF_OID, OTHER_OID, NOT_EXPIRED, &key(1))).await;
        let no_authority = Signer::with_intermediate(LEAF_OID, NOT_EXPIRED, &key(1), |fields| fields.is_authority = false);
        assert_rejected("an intermediate that is not an authority", no_authority.sign(&body)).await;
        let other_issuer = Signer::with_intermediate(LEAF_OID, NOT_EXPIRED, &key(1), |fields| fields.issuer = "another root");
        assert_rejected("an intermediate with another issuer name", other_issuer.sign(&body)).await;
        assert_rejected("an expired leaf", signed_with(LEAF_OID, INTERMEDIATE_OID, "250601000000Z", &key(1))).await;
        assert_rejected("an intermediate signed by another key", signed_with(LEAF_OID, INTERMEDIATE_OID, NOT_EXPIRED, &other)).await;
        let mut other_root = Signer::apple();
        other_root.chain[2] = certificate(&other, &other, &ROOT);
        assert_rejected("another root", other_root.sign(&body)).await;
        let mut short = Signer::apple();
        short.chain.truncate(1);
        assert_rejected("one certificate", short.sign(&body)).await;
        let stolen_chain = Signer { key: other, ..Signer::apple() };
        assert_rejected("another key than the leaf's", stolen_chain.sign(&body)).await;
        let chain: Vec<String> = good.chain.iter().map(|one| STANDARD.encode(one)).collect();
        assert_rejected("another algorithm", good.sign_as(&json!({"alg": "none", "x5c": chain}), &body)).await;
        assert_rejected("not a JWS", "nonsense".to_owned()).await;
        let mut changed = good.sign(&body);
        changed.replace_range(changed.len() - 4..changed.len() - 3, "_");
        assert_rejected("a changed signature", changed).await;
        for (case, field, value) in [
            ("another app", "bundleId", json!("com.example.other")),
            ("another App Store id", "appAppleId", json!(1)),
            ("the Xcode environment", "environment", json!("Xcode")),
            ("a transaction without certificates", "signedTransactionInfo", json!("e30.e30.AAAA")),
        ] {
            let mut body = body.clone();
            body["data"][field] = value;
            assert_rejected(case, good.sign(&body)).await;
        }
        for (text, code) in [("{", "malformed_json"), ("{}", "malformed_notification"), (r#"{"signedPayload": 5}"#, "malformed_notification")] {
            assert_eq!(shop.post("appstore", &[], text).await.expect(400).code(), code);
        }
        assert_eq!(shop.log().await, Vec::<Value>::new());
        post(&shop, &good.sign(&body)).await.expect(200);
        // With another provider configured, each payment would be reported twice.
        shop.update_app(json!({"billing": {"revenuecat": {"secret": SECRET}}})).await;
        assert_rejected("while another provider is configured", good.sign(&body)).await;
        shop.update_app(json!({"billing": {"revenuecat": {"secret": null}}, "ios": {"bundleId": null}})).await;
        assert_rejected("without a bundle id", good.sign(&body)).await;
    }
}
