//! SKAdNetwork and AdAttributionKit postbacks, signed with a test key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature as Ecdsa, SigningKey};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tributary_domain::skan::postback::{Keys, P256Key, SEPARATOR, Signature};

/// Path for SKAdNetwork postbacks.
pub const SKADNETWORK: &str = "/.well-known/skadnetwork/report-attribution/";
/// Path for AdAttributionKit postbacks.
pub const ADATTRIBUTIONKIT: &str = "/.well-known/appattribution/report-attribution/";

/// `kid` of the test key for production postbacks, which count in reports.
pub const PRODUCTION: &str = "test-production";
/// `kid` of the test key for development postbacks, which count only if the app accepts test
/// signals.
pub const DEVELOPMENT: &str = "test-development";

/// App Store id of the advertised test app.
pub const APP_STORE_ID: i64 = 525_463_029;

static SIGNING_KEY: LazyLock<SigningKey> =
    LazyLock::new(|| SigningKey::from_slice(&[7; 32]).expect("valid key"));

/// Returns Apple's keys, with the current key replaced by the test key. Tests can then sign kinds
/// of postbacks for which Apple publishes no example.
pub fn test_keys() -> Keys {
    let point = SIGNING_KEY.verifying_key().to_sec1_point(false);
    let key = P256Key::from_point(point.as_bytes()).expect("valid point");
    Keys {
        p256: Some(key.clone()),
        by_id: vec![
            (PRODUCTION.to_owned(), key.clone(), Signature::Valid),
            (DEVELOPMENT.to_owned(), key, Signature::Development),
        ],
        ..Keys::apple()
    }
}

/// Returns a signed SKAdNetwork 4.0 postback.
pub fn skadnetwork(number: u32) -> Value {
    sign(json!({
        "version": "4.0", "ad-network-id": "example123.skadnetwork", "source-identifier": "5239",
        "app-id": APP_STORE_ID, "transaction-id": format!("6aafb7a5-0170-41b5-bbe4-{number:012x}"),
        "redownload": false, "source-app-id": 1_234_567_891, "fidelity-type": 1, "did-win": true,
        "conversion-value": 63, "postback-sequence-index": 0,
    }))
}

/// Returns a signed SKAdNetwork 3.0 postback.
pub fn skadnetwork_3(number: u32) -> Value {
    sign(json!({
        "version": "3.0", "ad-network-id": "example123.skadnetwork", "campaign-id": 42,
        "app-id": APP_STORE_ID, "transaction-id": format!("6aafb7a5-0170-41b5-bbe3-{number:012x}"),
        "redownload": false, "source-app-id": 1_234_567_891, "fidelity-type": 1, "did-win": true,
        "conversion-value": 20,
    }))
}

/// Replaces fields and signs the postback again. `null` removes a field.
pub fn with_fields(mut postback: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().expect("JSON object") {
        if value.is_null() {
            let fields = postback.as_object_mut().expect("JSON object");
            fields.remove(name);
        } else {
            postback[name] = value.clone();
        }
    }
    sign(postback)
}

/// Signs a SKAdNetwork 3.0 or 4.0 postback over the fields that are present.
pub fn sign(mut postback: Value) -> Value {
    let fields = [
        "version",
        "ad-network-id",
        "campaign-id",
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
    let signature: Ecdsa = SIGNING_KEY.sign(values.join(&SEPARATOR.to_string()).as_bytes());
    postback["attribution-signature"] = json!(STANDARD.encode(signature.to_der().as_bytes()));
    postback
}

/// Returns an AdAttributionKit postback signed with the test key under this `kid`.
pub fn adattributionkit(kid: &str, number: u32) -> Value {
    let payload = json!({
        "postback-identifier": format!("85546EB7-FD39-44BC-8990-{number:012X}"),
        "ad-network-identifier": "example.adattributionkit", "advertised-item-identifier": APP_STORE_ID,
        "impression-type": "app-impression", "source-identifier": "1234", "conversion-type": "download",
        "did-win": true, "postback-sequence-index": 0, "publisher-item-identifier": 42,
        "marketplace-identifier": "com.apple.AppStore",
    });
    jws_postback(kid, &payload)
}

/// Signs a payload as a JWS and wraps it in a postback body.
pub fn jws_postback(kid: &str, payload: &Value) -> Value {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let input = format!(
        "{}.{}",
        part(&json!({"kid": kid, "alg": "ES256"})),
        part(payload)
    );
    let signature: Ecdsa = SIGNING_KEY.sign(input.as_bytes());
    let jws = format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    json!({"jws-string": jws, "conversion-value": 24, "ad-interaction-type": "click", "country-code": "US"})
}
