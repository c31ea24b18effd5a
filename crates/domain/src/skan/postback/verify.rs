//! Holding a signature against a key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p192::ecdsa::signature::hazmat::PrehashVerifier as _;
use p256::ecdsa::signature::Verifier as _;
use sha2::{Digest as _, Sha256};

use crate::skan::postback::Signature;
use crate::skan::postback::keys::{Keys, P192Key, P256Key};
use crate::skan::postback::message::{Curve, SkAdNetworkVersion};

/// What the signature of a SKAdNetwork postback is worth. A signature that cannot be decoded is a
/// wrong one.
pub(super) fn skadnetwork(
    version: SkAdNetworkVersion,
    message: &str,
    signature: &str,
    keys: &Keys,
) -> Signature {
    let der = STANDARD.decode(signature).unwrap_or_default();
    let good = match version.curve() {
        Curve::P192 => keys.p192.as_ref().map(|key| p192(key, message, &der)),
        Curve::P256 => keys.p256.as_ref().map(|key| p256_der(key, message, &der)),
    };
    match good {
        None => Signature::Unverifiable,
        Some(true) => Signature::Valid,
        Some(false) => Signature::Invalid,
    }
}

/// The library knows no digest for this curve, so the hash is made here.
fn p192(P192Key(key): &P192Key, message: &str, der: &[u8]) -> bool {
    let hash = Sha256::digest(message.as_bytes());
    p192::ecdsa::Signature::from_der(der)
        .is_ok_and(|signature| key.verify_prehash(&hash, &signature).is_ok())
}

fn p256_der(P256Key(key): &P256Key, message: &str, der: &[u8]) -> bool {
    p256::ecdsa::Signature::from_der(der)
        .is_ok_and(|signature| key.verify(message.as_bytes(), &signature).is_ok())
}

/// The only algorithm of AdAttributionKit. The header may name it; it never chooses it.
const ALGORITHM: &str = "ES256";

/// What the signature of an AdAttributionKit postback is worth. The key is chosen by its name
/// alone, and decides by itself what a good signature is worth.
pub(super) fn adattributionkit(
    key_id: &str,
    algorithm: &str,
    signing_input: &[u8],
    signature: &[u8],
    keys: &Keys,
) -> Signature {
    let Some((_, P256Key(key), worth)) = keys.by_id.iter().find(|(id, _, _)| id == key_id) else {
        return Signature::Unverifiable;
    };
    let good = algorithm == ALGORITHM
        && p256::ecdsa::Signature::from_slice(signature)
            .is_ok_and(|signature| key.verify(signing_input, &signature).is_ok());
    if good { *worth } else { Signature::Invalid }
}
