//! App Store Server Notifications, with a chain of certificates of our own in the place of Apple's.

use crate::billing::{MINUTE, Shop};
use crate::website::START;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use tributary_domain::billing::certificate::Roots;
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings, on_both_engines};

const LEAF_MARK: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x0b, 0x01];
const INTERMEDIATE_MARK: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x02, 0x01];
/// A mark that means nothing here.
const OTHER_MARK: &[u8] = &[0x2a, 0x86, 0x48];
const BUNDLE: &str = "com.example.runner";
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

/// A common name.
fn name(text: &str) -> Vec<u8> {
    let attribute = sequence(&[der(0x06, &[0x55, 0x04, 0x03]), der(0x0c, text.as_bytes())]);
    sequence(&[der(0x31, &attribute)])
}

/// What a certificate says.
struct Says<'a> {
    subject: &'a str,
    issuer: &'a str,
    mark: &'a [u8],
    until: &'a str,
    is_authority: bool,
}

/// A certificate for a key, signed by another.
fn certificate(key: &SigningKey, issuer: &SigningKey, says: &Says<'_>) -> Vec<u8> {
    let ecdsa = sequence(&[der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])]);
    let curve = sequence(&[
        der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]),
        der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
    ]);
    let point = key.verifying_key().to_sec1_point(false);
    let validity = sequence(&[
        der(0x17, b"250101000000Z"),
        der(0x17, says.until.as_bytes()),
    ]);
    let mark = sequence(&[der(0x06, says.mark), der(0x04, &[0x05, 0x00])]);
    let authority = if says.is_authority {
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
        name(says.issuer),
        validity,
        name(says.subject),
        sequence(&[curve, bits(point.as_bytes())]),
        der(0xa3, &sequence(&[constraints, mark])),
    ]);
    let signature: Signature = issuer.sign(&body);
    sequence(&[body, ecdsa, bits(signature.to_der().as_bytes())])
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_slice(&[number; 32]).unwrap()
}

/// What signs, and the certificates that say so.
struct Signer {
    key: SigningKey,
    chain: Vec<Vec<u8>>,
}

const VALID: &str = "300101000000Z";
const ROOT: Says<'_> = Says {
    subject: "root",
    issuer: "root",
    mark: OTHER_MARK,
    until: VALID,
    is_authority: true,
};

impl Signer {
    fn apple() -> Self {
        Self::with(LEAF_MARK, INTERMEDIATE_MARK, VALID, &key(1))
    }

    fn with(leaf_mark: &[u8], mark: &[u8], until: &str, issuer: &SigningKey) -> Self {
        Self::of(leaf_mark, until, issuer, |says| says.mark = mark)
    }

    /// With an intermediate that says something else.
    fn of<'a>(
        leaf_mark: &'a [u8],
        until: &'a str,
        issuer: &SigningKey,
        change: impl FnOnce(&mut Says<'a>),
    ) -> Self {
        let (root, intermediate, leaf) = (key(1), key(2), key(3));
        let of_leaf = Says {
            subject: "leaf",
            issuer: "intermediate",
            mark: leaf_mark,
            until,
            is_authority: false,
        };
        let mut of_intermediate = Says {
            subject: "intermediate",
            issuer: "root",
            mark: INTERMEDIATE_MARK,
            until: VALID,
            is_authority: true,
        };
        change(&mut of_intermediate);
        Self {
            chain: vec![
                certificate(&leaf, &intermediate, &of_leaf),
                certificate(&intermediate, issuer, &of_intermediate),
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

fn transaction(id: &str, minute: i64) -> Value {
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

fn notification(kind: &str, subtype: Option<&str>, id: &str, bought: &Value) -> String {
    let signer = Signer::apple();
    signer.sign(&payload(kind, subtype, id, &signer.sign(bought)))
}

async fn server(engine: Engine) -> TestServer {
    let settings = TestServerSettings {
        store_roots: Roots::of(vec![Signer::apple().chain[2].clone()]),
        ..TestServerSettings::default()
    };
    TestServer::start_with(engine, settings).await
}

async fn shop(server: &TestServer) -> Shop<'_> {
    let shop = Shop::bare(server).await;
    shop.set(json!({"ios": {"bundleId": BUNDLE, "appStoreId": STORE_ID}}))
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
    async fn a_subscription_of_the_app_store(engine: Engine) {
        let server = server(engine).await;
        let shop = shop(&server).await;
        server.clock.advance(std::time::Duration::from_mins(30));
        // The first period arrives before the trial that it follows.
        let renewed = notification("DID_RENEW", None, "renewed", &transaction("t1", 2));
        post(&shop, &renewed).await.expect(200);
        assert_eq!(shop.logged("renewed").await["name"], "renewal");
        let mut trial = transaction("t0", 1);
        trial["offerDiscountType"] = json!("FREE_TRIAL");
        post(&shop, &notification("SUBSCRIBED", Some("INITIAL_BUY"), "trial", &trial)).await.expect(200);
        assert_eq!(shop.logged("renewed").await["name"], "subscribe");
        let mut refunded = transaction("t1", 2);
        refunded["revocationType"] = json!("REFUND_PRORATED");
        refunded["revocationPercentage"] = json!(50_000);
        refunded["revocationDate"] = json!(START + 5 * MINUTE);
        post(&shop, &notification("REFUND", None, "refunded", &refunded)).await.expect(200);
        post(&shop, &notification("TEST", None, "test", &transaction("t9", 1))).await.expect(200);
        post(&shop, &notification("OF_TOMORROW", None, "tomorrow", &transaction("t9", 1))).await.expect(200);
        assert_eq!(post(&shop, &renewed).await.expect(200).data()["duplicate"], true);
        let log: Vec<(Value, Value)> = shop.log().await.into_iter()
            .map(|one| (one["name"].clone(), one["revenue"]["usd"].clone())).collect();
        assert_eq!(log, [
            (json!("start_trial"), json!(0)), (json!("subscribe"), json!(10.99)), (json!("refund"), json!(-5.495)),
        ]);
        assert_eq!(shop.logged("trial").await["deviceId"], "6f9619ff-8b86-4011-b42d-00c04fc964ff");
        let shown = server.get(&shop.app, &shop.key).await.data();
        assert_eq!(shown["billing"]["appstore"]["configured"], true, "it has connected itself");
    }

    async fn whatever_does_not_lead_to_the_root_is_refused(engine: Engine) {
        let server = server(engine).await;
        let shop = shop(&server).await;
        let good = Signer::apple();
        let bought = good.sign(&transaction("t1", 0));
        let said = payload("SUBSCRIBED", Some("INITIAL_BUY"), "n-1", &bought);
        let refused = async |what: &str, signed: String| {
            let answer = post(&shop, &signed).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (401, "webhook_unauthorized"), "{what}");
        };
        let other = SigningKey::from_slice(&[9; 32]).unwrap();
        let of = |leaf: &[u8], mark: &[u8], until: &str, issuer: &SigningKey| Signer::with(leaf, mark, until, issuer).sign(&said);
        refused("a leaf without its mark", of(OTHER_MARK, INTERMEDIATE_MARK, VALID, &key(1))).await;
        refused("an intermediate without its mark", of(LEAF_MARK, OTHER_MARK, VALID, &key(1))).await;
        let no_authority = Signer::of(LEAF_MARK, VALID, &key(1), |says| says.is_authority = false);
        refused("an intermediate that is not an authority", no_authority.sign(&said)).await;
        let other_issuer = Signer::of(LEAF_MARK, VALID, &key(1), |says| says.issuer = "another root");
        refused("an intermediate of another issuer", other_issuer.sign(&said)).await;
        refused("a leaf of another time", of(LEAF_MARK, INTERMEDIATE_MARK, "250601000000Z", &key(1))).await;
        refused("an intermediate of somebody else", of(LEAF_MARK, INTERMEDIATE_MARK, VALID, &other)).await;
        let mut stranger = Signer::apple();
        stranger.chain[2] = certificate(&other, &other, &ROOT);
        refused("another root", stranger.sign(&said)).await;
        let mut short = Signer::apple();
        short.chain.truncate(1);
        refused("one certificate", short.sign(&said)).await;
        let thief = Signer { key: other, ..Signer::apple() };
        refused("another key than the leaf's", thief.sign(&said)).await;
        let chain: Vec<String> = good.chain.iter().map(|one| STANDARD.encode(one)).collect();
        refused("another algorithm", good.sign_as(&json!({"alg": "none", "x5c": chain}), &said)).await;
        refused("no JWS", "nonsense".to_owned()).await;
        let mut changed = good.sign(&said);
        changed.replace_range(changed.len() - 4..changed.len() - 3, "_");
        refused("a changed signature", changed).await;
        for (what, place, value) in [
            ("another app", "bundleId", json!("com.example.other")),
            ("another App Store id", "appAppleId", json!(1)),
            ("Xcode's", "environment", json!("Xcode")),
            ("a transaction of nobody", "signedTransactionInfo", json!("e30.e30.AAAA")),
        ] {
            let mut said = said.clone();
            said["data"][place] = value;
            refused(what, good.sign(&said)).await;
        }
        for (text, code) in [("{", "malformed_json"), ("{}", "malformed_notification"), (r#"{"signedPayload": 5}"#, "malformed_notification")] {
            assert_eq!(shop.post("appstore", &[], text).await.expect(400).code(), code);
        }
        assert_eq!(shop.log().await, Vec::<Value>::new());
        post(&shop, &good.sign(&said)).await.expect(200);
        // The same payments would come twice.
        shop.set(json!({"billing": {"revenuecat": {"secret": crate::billing::SECRET}}})).await;
        refused("beside another provider", good.sign(&said)).await;
        shop.set(json!({"billing": {"revenuecat": {"secret": null}}, "ios": {"bundleId": null}})).await;
        refused("without a bundle id", good.sign(&said)).await;
    }
}
