//! Apple App Attest: checks an attestation object offline, by the steps that Apple documents.

use super::AttestationFailure;
use crate::billing::certificate::{TrustedRoots, is_chained};
use crate::keyring::constant_time_eq;
use crate::vocabulary::cbor::CborValue;
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;

/// Apple App Attestation Root CA, valid until 2045-03-15.
const APP_ATTEST_ROOT: &str = concat!(
    "MIICITCCAaegAwIBAgIQC/O+DvHN0uD7jG5yH2IXmDAKBggqhkjOPQQDAzBSMSYw",
    "JAYDVQQDDB1BcHBsZSBBcHAgQXR0ZXN0YXRpb24gUm9vdCBDQTETMBEGA1UECgwK",
    "QXBwbGUgSW5jLjETMBEGA1UECAwKQ2FsaWZvcm5pYTAeFw0yMDAzMTgxODMyNTNa",
    "Fw00NTAzMTUwMDAwMDBaMFIxJjAkBgNVBAMMHUFwcGxlIEFwcCBBdHRlc3RhdGlv",
    "biBSb290IENBMRMwEQYDVQQKDApBcHBsZSBJbmMuMRMwEQYDVQQIDApDYWxpZm9y",
    "bmlhMHYwEAYHKoZIzj0CAQYFK4EEACIDYgAERTHhmLW07ATaFQIEVwTtT4dyctdh",
    "NbJhFs/Ii2FdCgAHGbpphY3+d8qjuDngIN3WVhQUBHAoMeQ/cLiP1sOUtgjqK9au",
    "Yen1mMEvRq9Sk3Jm5X8U62H+xTD3FE9TgS41o0IwQDAPBgNVHRMBAf8EBTADAQH/",
    "MB0GA1UdDgQWBBSskRBTM72+aEH/pwyp5frq5eWKoTAOBgNVHQ8BAf8EBAMCAQYw",
    "CgYIKoZIzj0EAwMDaAAwZQIwQgFGnByvsiVbpTKwSga0kP0e8EeDS4+sQmTvb7vn",
    "53O5+FRXgeLhpJ06ysC5PrOyAjEAp5U4xDgEgllF7En3VcE3iexZZtKeYnpqtijV",
    "oyFraWVIyd/dganmrduC1bmTBGwD",
);

/// Extension of the leaf certificate that contains the nonce.
const NONCE_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113635.100.8.2");
/// DER in front of the nonce: a sequence with an octet string tagged 1.
const NONCE_PREFIX: &[u8] = &[0x30, 0x24, 0xa1, 0x22, 0x04, 0x20];
/// Format of attestation objects.
const FORMAT: &str = "apple-appattest";
/// Environment of builds from the App Store and `TestFlight`.
const PRODUCTION: &[u8; 16] = b"appattest\0\0\0\0\0\0\0";
/// Environment of builds from Xcode.
const DEVELOPMENT: &[u8; 16] = b"appattestdevelop";

/// Returns Apple's App Attest root.
pub fn app_attest_roots() -> TrustedRoots {
    let root = STANDARD.decode(APP_ATTEST_ROOT);
    TrustedRoots::of(vec![root.expect("the constant is base64")])
}

/// What an attestation object must match.
pub(super) struct AppAttestExpectation<'a> {
    /// Team id and bundle id, joined by a dot.
    pub(super) app_id: String,
    /// Key id in base64, if the SDK sent it.
    pub(super) key_id: Option<&'a str>,
    pub(super) challenge: &'a str,
    /// Whether development builds are accepted.
    pub(super) accepts_development: bool,
    pub(super) roots: &'a TrustedRoots,
    pub(super) at: Timestamp,
}

/// Checks an attestation object in base64.
pub(super) fn verify(
    token: &str,
    expected: &AppAttestExpectation<'_>,
) -> Result<(), AttestationFailure> {
    let bytes = STANDARD.decode(token);
    let bytes = bytes.map_err(|_| AttestationFailure::Malformed)?;
    let object = AttestationObject::parse(&bytes).ok_or(AttestationFailure::Malformed)?;
    if !is_chained(
        object.leaf,
        object.intermediate,
        expected.roots,
        expected.at,
    ) {
        return Err(AttestationFailure::UntrustedCertificate);
    }
    let certificate = LeafCertificate::parse(object.leaf).ok_or(AttestationFailure::Malformed)?;
    let client_data_hash = Sha256::digest(expected.challenge.as_bytes());
    let nonce = Sha256::new()
        .chain_update(object.authenticator_data)
        .chain_update(client_data_hash)
        .finalize();
    if !constant_time_eq(&nonce, &certificate.nonce) {
        return Err(AttestationFailure::ChallengeMismatch);
    }
    let data =
        AuthenticatorData::parse(object.authenticator_data).ok_or(AttestationFailure::Malformed)?;
    check_key(expected, &certificate, &data)?;
    let app_id = Sha256::digest(expected.app_id.as_bytes());
    if !constant_time_eq(data.app_id_hash, &app_id) {
        return Err(AttestationFailure::WrongApp);
    }
    if data.counter != 0 {
        return Err(AttestationFailure::StaleToken);
    }
    match data.environment {
        PRODUCTION => Ok(()),
        DEVELOPMENT if expected.accepts_development => Ok(()),
        DEVELOPMENT => Err(AttestationFailure::DevelopmentBuild),
        _ => Err(AttestationFailure::Malformed),
    }
}

/// Checks that the certified key is the attested key and the one that the SDK named.
fn check_key(
    expected: &AppAttestExpectation<'_>,
    certificate: &LeafCertificate,
    data: &AuthenticatorData<'_>,
) -> Result<(), AttestationFailure> {
    let key_hash = Sha256::digest(&certificate.public_key);
    let is_named = match expected.key_id {
        None => true,
        Some(text) => STANDARD
            .decode(text)
            .is_ok_and(|named| constant_time_eq(&named, &key_hash)),
    };
    if is_named && constant_time_eq(data.key_id, &key_hash) {
        Ok(())
    } else {
        Err(AttestationFailure::KeyMismatch)
    }
}

/// The parts of an attestation object that are checked. The receipt is not: it would be exchanged
/// with Apple's server for a fraud metric.
struct AttestationObject<'a> {
    leaf: &'a [u8],
    intermediate: &'a [u8],
    authenticator_data: &'a [u8],
}

impl<'a> AttestationObject<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let object = CborValue::parse(bytes)?;
        if object.get("fmt") != Some(&CborValue::Text(FORMAT)) {
            return None;
        }
        let CborValue::Array(chain) = object.get("attStmt")?.get("x5c")? else {
            return None;
        };
        let [leaf, intermediate] = chain.as_slice() else {
            return None;
        };
        Some(Self {
            leaf: leaf.bytes()?,
            intermediate: intermediate.bytes()?,
            authenticator_data: object.get("authData")?.bytes()?,
        })
    }
}

/// The parts of the leaf certificate that are checked.
struct LeafCertificate {
    nonce: Vec<u8>,
    /// Public key as an uncompressed point.
    public_key: Vec<u8>,
}

impl LeafCertificate {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(bytes).ok()?;
        let content = certificate.tbs_certificate();
        let extension = content.extensions()?;
        let extension = extension.iter().find(|one| one.extn_id == NONCE_OID)?;
        let nonce = extension.extn_value.as_bytes().strip_prefix(NONCE_PREFIX)?;
        let key = &content.subject_public_key_info().subject_public_key;
        Some(Self {
            nonce: nonce.to_vec(),
            public_key: key.as_bytes()?.to_vec(),
        })
    }
}

/// The fixed part of the authenticator data.
struct AuthenticatorData<'a> {
    app_id_hash: &'a [u8; 32],
    counter: u32,
    environment: &'a [u8; 16],
    key_id: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (app_id_hash, rest) = bytes.split_first_chunk()?;
        let (_flags, rest) = rest.split_first()?;
        let (counter, rest) = rest.split_first_chunk()?;
        let (environment, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        Some(Self {
            app_id_hash,
            counter: u32::from_be_bytes(*counter),
            environment,
            key_id: rest.get(..usize::from(u16::from_be_bytes(*length)))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::hex;

    #[test]
    fn apples_root_has_its_published_fingerprint() {
        let root = STANDARD.decode(APP_ATTEST_ROOT).unwrap();
        let published = "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932";
        assert_eq!(hex(&Sha256::digest(&root)), published);
        let certificate = Certificate::from_der(&root).unwrap();
        let content = certificate.tbs_certificate();
        assert_eq!(content.subject(), content.issuer());
        let expires = content.validity().not_after.to_unix_duration();
        assert_eq!(expires.as_secs(), 2_373_148_800, "2045-03-15");
    }
}
