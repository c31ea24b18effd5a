//! Public keys that postbacks are verified with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::skan::postback::Signature;

/// Bytes before the point in the SPKI form of a P-192 key: algorithm and curve.
const P192_PREFIX: &[u8] = &[
    0x30, 0x49, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x01, 0x03, 0x32, 0x00,
];
/// Like `P192_PREFIX`, for P-256.
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Apple's key for SKAdNetwork 1.0 and 2.0.
const APPLE_P192: &str = "MEkwEwYHKoZIzj0CAQYIKoZIzj0DAQEDMgAEMyHD625uvsmGq4C43cQ9BnfN2xslVT5V1nOmAMP6qaRRUll3PB1JYmgSm+62sosG";
/// Apple's key for SKAdNetwork from 2.1 on, and for AdAttributionKit.
const APPLE_P256: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWdp8GPcGqmhgzEFj9Z2nSpQVddayaPe4FMzqM9wib1+aHaaIzoHoLN9zW4K8y4SPykE3YVK3sVqW6Af0lfx3gg==";
/// Apple's key for the end-to-end development flow.
const APPLE_DEVELOPMENT_0: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELeEDzpJEP+/qRSE5hJVC1p1J0ssUnQGMzBBbvnACBok8OVGGLgxL0myrKiy6lvRtSlLRsWit87i+vftD8AEqeQ==";
/// Apple's key for the Developer settings on a phone.
const APPLE_DEVELOPMENT_1: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YzdO7eM97s/IJ25kdW5CZ3A14USE5IJ5Ha/vhWaxI6UBI1ZxCEvjrKxVluVGe6qWwF1BDFq+QHqKfH5u+wxHQ==";

/// Id of Apple's key in an AdAttributionKit header.
const PRODUCTION_ID: &str = "apple-cas-identifier/0";
/// Ids of the development keys.
const DEVELOPMENT_IDS: [(&str, &str); 2] = [
    ("apple-development-identifier/0", APPLE_DEVELOPMENT_0),
    ("apple-development-identifier/1", APPLE_DEVELOPMENT_1),
];

/// A P-192 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P192Key(pub(super) p192::ecdsa::VerifyingKey);

impl P192Key {
    /// Parses the base64 of a `SubjectPublicKeyInfo`.
    pub fn parse(spki: &str) -> Option<Self> {
        Self::from_point(&point(spki, P192_PREFIX)?)
    }

    /// Parses a point in SEC1 form.
    pub fn from_point(sec1: &[u8]) -> Option<Self> {
        let key = p192::ecdsa::VerifyingKey::from_sec1_bytes(sec1);
        key.ok().map(Self)
    }
}

/// A P-256 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P256Key(pub(super) p256::ecdsa::VerifyingKey);

impl P256Key {
    /// Parses the base64 of a `SubjectPublicKeyInfo`.
    pub fn parse(spki: &str) -> Option<Self> {
        Self::from_point(&point(spki, P256_PREFIX)?)
    }

    /// Parses a point in SEC1 form.
    pub fn from_point(sec1: &[u8]) -> Option<Self> {
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(sec1);
        key.ok().map(Self)
    }
}

/// Returns the point of a key. Supports only the form that Apple's keys have.
fn point(spki: &str, prefix: &[u8]) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(spki).ok()?;
    bytes.strip_prefix(prefix).map(<[u8]>::to_vec)
}

/// Keys that signatures are verified with. Tests use their own keys, because genuine postbacks of
/// every form are not published.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys {
    /// Key for SKAdNetwork 1.0 and 2.0. Without it, postbacks of these versions are unverifiable.
    pub p192: Option<P192Key>,
    /// Key for SKAdNetwork from 2.1 on.
    pub p256: Option<P256Key>,
    /// Keys for AdAttributionKit by the header's `kid`, each with the result for a valid signature.
    pub by_id: Vec<(String, P256Key, Signature)>,
}

impl Keys {
    /// Returns Apple's keys.
    pub fn apple() -> Self {
        let production = P256Key::parse(APPLE_P256);
        let named =
            |id: &str, key: Option<P256Key>, result| key.map(|key| (id.to_owned(), key, result));
        let mut all: Vec<_> = named(PRODUCTION_ID, production.clone(), Signature::Valid)
            .into_iter()
            .collect();
        for (id, spki) in DEVELOPMENT_IDS {
            all.extend(named(id, P256Key::parse(spki), Signature::Development));
        }
        Self {
            p192: P192Key::parse(APPLE_P192),
            p256: production,
            by_id: all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn all_apple_keys_are_parsed() {
        let keys = Keys::apple();
        assert!(keys.p192.is_some() && keys.p256.is_some());
        let names: Vec<_> = keys
            .by_id
            .iter()
            .map(|(id, _, result)| (id.as_str(), *result))
            .collect();
        let expected = [
            ("apple-cas-identifier/0", Signature::Valid),
            ("apple-development-identifier/0", Signature::Development),
            ("apple-development-identifier/1", Signature::Development),
        ];
        assert_eq!(names, expected);
    }

    #[rstest]
    #[case::empty("")]
    #[case::not_base64("*")]
    #[case::another_curve(APPLE_P192)]
    #[case::cut_off(&APPLE_P256[..120])]
    #[case::not_on_the_curve(
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
    )]
    fn rejects_invalid_keys(#[case] spki: &str) {
        assert_eq!(P256Key::parse(spki), None);
    }
}
