//! Postbacks with signatures of our own, and the genuine ones that are published.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature as Ecdsa, SigningKey};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::LazyLock;
use tributary_domain::skan::postback::{Keys, P256Key, SEPARATOR, Signature};
use tributary_testkit::{Answer, Engine, Settings, TestServer};

pub(crate) const SKADNETWORK: &str = "/.well-known/skadnetwork/report-attribution/";
pub(crate) const ADATTRIBUTIONKIT: &str = "/.well-known/appattribution/report-attribution/";

/// The `kid` of our key that counts, and of the one that is for development.
pub(crate) const PRODUCTION: &str = "test-production";
pub(crate) const DEVELOPMENT: &str = "test-development";

/// The App Store id of the app that tests advertise.
pub(crate) const APP_STORE_ID: i64 = 525_463_029;

/// What stands before the point of a P-256 key in its usual form.
const SPKI_PREFIX: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

static SIGNING: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_slice(&[7; 32]).unwrap());

/// Apple's keys with ours in the place of the current one, so that shapes of which no genuine postback is published
/// can be signed.
pub(crate) fn test_keys() -> Keys {
    let mut spki = tributary_domain::vocabulary::digest::from_hex(SPKI_PREFIX).unwrap();
    spki.extend_from_slice(SIGNING.verifying_key().to_sec1_point(false).as_bytes());
    let key = P256Key::parse(&STANDARD.encode(spki)).unwrap();
    Keys {
        p256: Some(key.clone()),
        named: vec![
            (PRODUCTION.to_owned(), key.clone(), Signature::Valid),
            (DEVELOPMENT.to_owned(), key, Signature::Development),
        ],
        ..Keys::apple()
    }
}

/// A server that believes our own key.
pub(crate) async fn server(engine: Engine) -> TestServer {
    let settings = Settings {
        postback_keys: test_keys(),
        ..Settings::default()
    };
    TestServer::start_with(engine, settings).await
}

/// Makes an app with an App Store id and gives its path.
pub(crate) async fn advertised(server: &TestServer, key: &str, store_id: i64) -> String {
    let body = json!({"name": "Runner", "ios": {"appStoreId": store_id.to_string()}});
    let made = server.post("/api/v1/apps", key, body).await.expect(201);
    format!("/api/v1/apps/{}", made.data()["id"].as_str().unwrap())
}

/// Posts bytes at a door, as a device does.
pub(crate) async fn post(
    server: &TestServer,
    door: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    server
        .send(server.request(Method::POST, door).body(body))
        .await
}

/// A postback of SKAdNetwork 4.0, signed by us.
pub(crate) fn skadnetwork(number: u32) -> Value {
    signed(json!({
        "version": "4.0", "ad-network-id": "example123.skadnetwork", "source-identifier": "5239",
        "app-id": APP_STORE_ID, "transaction-id": format!("6aafb7a5-0170-41b5-bbe4-{number:012x}"),
        "redownload": false, "source-app-id": 1_234_567_891, "fidelity-type": 1, "did-win": true,
        "conversion-value": 63, "postback-sequence-index": 0,
    }))
}

/// The same with other fields, signed as it then is; null takes a field away.
pub(crate) fn changed(mut postback: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        if value.is_null() {
            postback.as_object_mut().unwrap().remove(name);
        } else {
            postback[name] = value.clone();
        }
    }
    signed(postback)
}

/// Signs a postback of SKAdNetwork 4.0.
pub(crate) fn signed(mut postback: Value) -> Value {
    let fields = [
        "version",
        "ad-network-id",
        "source-identifier",
        "app-id",
        "transaction-id",
        "redownload",
        "source-app-id",
        "source-domain",
        "fidelity-type",
        "did-win",
        "postback-sequence-index",
    ];
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let values: Vec<String> = fields
        .iter()
        .filter_map(|field| postback.get(field))
        .map(text)
        .collect();
    let signature: Ecdsa = SIGNING.sign(values.join(&SEPARATOR.to_string()).as_bytes());
    postback["attribution-signature"] = json!(STANDARD.encode(signature.to_der().as_bytes()));
    postback
}

/// A postback of AdAttributionKit, signed by us with a key of this name.
pub(crate) fn adattributionkit(kid: &str, number: u32) -> Value {
    let payload = json!({
        "postback-identifier": format!("85546EB7-FD39-44BC-8990-{number:012X}"),
        "ad-network-identifier": "example.adattributionkit", "advertised-item-identifier": APP_STORE_ID,
        "impression-type": "app-impression", "source-identifier": "1234", "conversion-type": "download",
        "did-win": true, "postback-sequence-index": 0, "publisher-item-identifier": 42,
        "marketplace-identifier": "com.apple.AppStore",
    });
    envelope(kid, &payload)
}

/// The envelope around a payload.
pub(crate) fn envelope(kid: &str, payload: &Value) -> Value {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let input = format!(
        "{}.{}",
        part(&json!({"kid": kid, "alg": "ES256"})),
        part(payload)
    );
    let signature: Ecdsa = SIGNING.sign(input.as_bytes());
    let jws = format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    json!({"jws-string": jws, "conversion-value": 24, "ad-interaction-type": "click", "country-code": "US"})
}

/// The published postbacks: name, body, and what is expected. Nothing where they are not at hand, which is said.
pub(crate) fn vectors() -> Option<Vec<(String, String, Value)>> {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/vectors/skan"
    ));
    let Ok(expected) = std::fs::read_to_string(folder.join("expected.json")) else {
        println!(
            "SKIPPED: the published postbacks are not at {}",
            folder.display()
        );
        return None;
    };
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let read = |(name, expected): (&String, &Value)| {
        let body = std::fs::read_to_string(folder.join(name)).unwrap();
        (name.clone(), body, expected.clone())
    };
    Some(expected.as_object().unwrap().iter().map(read).collect())
}

/// The items of an app's list of postbacks.
pub(crate) async fn list(server: &TestServer, app: &str, key: &str, query: &str) -> Vec<Value> {
    let path = format!("{app}/skan/postbacks?limit=500&{query}");
    let data = server.get(&path, key).await.expect(200).data();
    data.as_array().unwrap().clone()
}

/// `meta.totals` of an app's figures.
pub(crate) async fn totals(server: &TestServer, app: &str, key: &str) -> Value {
    let answer = server
        .get(&format!("{app}/skan/stats"), key)
        .await
        .expect(200);
    answer.json()["meta"]["totals"].clone()
}
