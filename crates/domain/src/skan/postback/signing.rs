//! Test keys and signatures, because genuine postbacks of every form are not published.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p192::elliptic_curve::ops::Reduce as _;
use p192::elliptic_curve::point::AffineCoordinates as _;
use p192::{FieldBytes, ProjectivePoint, Scalar as P192Scalar};
use p256::ecdsa::signature::Signer as _;
use sha2::{Digest as _, Sha256};

use crate::skan::postback::keys::{Keys, P192Key, P256Key};
use crate::skan::postback::message::{SignatureCurve, SkAdNetworkVersion};
use crate::skan::postback::{
    PostbackFields, Scalar, Signature, signed_message, skadnetwork::parse_skadnetwork,
};

/// The `kid` of the test production key.
pub(super) const PRODUCTION: &str = "test-production";
/// The `kid` of the test development key.
pub(super) const DEVELOPMENT: &str = "test-development";

fn p256_key() -> p256::ecdsa::SigningKey {
    p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap()
}

fn p192_key() -> P192Scalar {
    P192Scalar::from(7_654_321_u64)
}

/// Created once, because this takes most of a test's time.
static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let p256 = P256Key(*p256_key().verifying_key());
    let point = (ProjectivePoint::GENERATOR * p192_key()).to_affine();
    let p192 = p192::ecdsa::VerifyingKey::from_affine(point).unwrap();
    Keys {
        p192: Some(P192Key(p192)),
        p256: Some(p256.clone()),
        by_id: vec![
            (PRODUCTION.to_owned(), p256.clone(), Signature::Valid),
            (DEVELOPMENT.to_owned(), p256, Signature::Development),
        ],
    }
});

/// Returns the keys that [`sign`] and [`jws`] sign with.
pub(super) fn keys() -> Keys {
    KEYS.clone()
}

/// Reduces the leading bytes of a hash to a scalar; the library does not sign with P-192.
fn reduced(bytes: &[u8]) -> P192Scalar {
    P192Scalar::reduce(&FieldBytes::try_from(&bytes[..24]).unwrap())
}

fn p192_sign(message: &str) -> String {
    let hash = reduced(&Sha256::digest(message));
    let secret = reduced(&Sha256::digest(format!("never twice: {message}")));
    let point = (ProjectivePoint::GENERATOR * secret).to_affine();
    let r = reduced(&point.x());
    let s = secret.invert().unwrap() * (hash + r * p192_key());
    let signature = p192::ecdsa::Signature::from_scalars(r, s).unwrap();
    STANDARD.encode(signature.to_der().as_bytes())
}

fn p256_sign(message: &str) -> String {
    let signature: p256::ecdsa::Signature = p256_key().sign(message.as_bytes());
    STANDARD.encode(signature.to_der().as_bytes())
}

/// Signs a postback of a known version.
pub(super) fn sign(fields: &mut PostbackFields) {
    fields.set("attribution-signature", "not yet");
    let postback = parse_skadnetwork(fields, &Keys::default())
        .unwrap()
        .postback;
    let message = signed_message(&postback).unwrap();
    let version = SkAdNetworkVersion::parse(postback.version.as_deref().unwrap()).unwrap();
    let signature = match version.curve() {
        SignatureCurve::P192 => p192_sign(&message),
        SignatureCurve::P256 => p256_sign(&message),
    };
    fields.set("attribution-signature", signature.as_str());
}

/// Returns a signed JWS with this header and payload.
pub(super) fn jws(header: &str, payload: &str) -> String {
    let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let input = format!("{}.{}", encoded(header), encoded(payload));
    let signature: p256::ecdsa::Signature = p256_key().sign(input.as_bytes());
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

/// Returns the fields of a JSON object, as the endpoint reads them.
pub(super) fn fields(json: &str) -> PostbackFields {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let object = json.as_object().unwrap().iter();
    object
        .map(|(name, value)| (name.clone(), scalar(value)))
        .collect()
}

fn scalar(value: &serde_json::Value) -> Scalar {
    match value {
        serde_json::Value::Null => Scalar::Null,
        serde_json::Value::Bool(flag) => Scalar::Boolean(*flag),
        serde_json::Value::String(text) => Scalar::Text(text.clone()),
        serde_json::Value::Number(number) => number.as_i64().map_or(Scalar::Other, Scalar::Integer),
        _ => Scalar::Other,
    }
}
