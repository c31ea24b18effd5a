//! Signature verification.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p192::ecdsa::signature::hazmat::PrehashVerifier as _;
use p256::ecdsa::signature::Verifier as _;
use sha2::{Digest as _, Sha256};

use crate::skan::postback::Signature;
use crate::skan::postback::keys::{Keys, P192Key, P256Key};
use crate::skan::postback::message::{SignatureCurve, SkAdNetworkVersion};

/// Verifies the signature of a SKAdNetwork postback. A signature that cannot be decoded is invalid.
pub(super) fn skadnetwork(
    version: SkAdNetworkVersion,
    message: &str,
    signature: &str,
    keys: &Keys,
) -> Signature {
    let der = STANDARD.decode(signature).unwrap_or_default();
    let is_valid = match version.curve() {
        SignatureCurve::P192 => keys.p192.as_ref().map(|key| p192(key, message, &der)),
        SignatureCurve::P256 => keys.p256.as_ref().map(|key| p256_der(key, message, &der)),
    };
    match is_valid {
        None => Signature::Unverifiable,
        Some(true) => Signature::Valid,
        Some(false) => Signature::Invalid,
    }
}

/// Hashes the message first, because the library has no digest for this curve.
fn p192(P192Key(key): &P192Key, message: &str, der: &[u8]) -> bool {
    let hash = Sha256::digest(message.as_bytes());
    p192::ecdsa::Signature::from_der(der)
        .is_ok_and(|signature| key.verify_prehash(&hash, &signature).is_ok())
}

fn p256_der(P256Key(key): &P256Key, message: &str, der: &[u8]) -> bool {
    p256::ecdsa::Signature::from_der(der)
        .is_ok_and(|signature| key.verify(message.as_bytes(), &signature).is_ok())
}

/// The only signature algorithm of AdAttributionKit. With any other algorithm in the header, the
/// signature is invalid.
const ALGORITHM: &str = "ES256";

/// Verifies the signature of an AdAttributionKit postback. The signing key is chosen by its id
/// alone. It determines the result for a valid signature, such as production or development.
pub(super) fn adattributionkit(
    key_id: &str,
    algorithm: &str,
    signing_input: &[u8],
    signature: &[u8],
    keys: &Keys,
) -> Signature {
    let Some((_, P256Key(key), result)) = keys.by_id.iter().find(|(id, _, _)| id == key_id) else {
        return Signature::Unverifiable;
    };
    let is_valid = algorithm == ALGORITHM
        && p256::ecdsa::Signature::from_slice(signature)
            .is_ok_and(|signature| key.verify(signing_input, &signature).is_ok());
    if is_valid {
        *result
    } else {
        Signature::Invalid
    }
}
