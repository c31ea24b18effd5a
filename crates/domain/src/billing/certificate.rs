//! Verifies Apple's certificates and signatures: a certificate must chain through one intermediate
//! to a pinned root.
//!
//! `webpki` validates the chain: names, signatures, validity and basic constraints. `webpki` does
//! not check Apple's extensions, which state the purpose of a certificate, so this module does.
//! Anything unparsable is rejected.

use crate::vocabulary::jws::Jws;
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use std::time::Duration;
use webpki::{EndEntityCert, Error, ExtendedKeyUsageValidator, KeyPurposeIdIter, ring};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;

/// Apple Root CA – G3.
const APPLE_ROOT_G3: &str = concat!(
    "MIICQzCCAcmgAwIBAgIILcX8iNLFS5UwCgYIKoZIzj0EAwMwZzEbMBkGA1UEAwwS",
    "QXBwbGUgUm9vdCBDQSAtIEczMSYwJAYDVQQLDB1BcHBsZSBDZXJ0aWZpY2F0aW9u",
    "IEF1dGhvcml0eTETMBEGA1UECgwKQXBwbGUgSW5jLjELMAkGA1UEBhMCVVMwHhcN",
    "MTQwNDMwMTgxOTA2WhcNMzkwNDMwMTgxOTA2WjBnMRswGQYDVQQDDBJBcHBsZSBS",
    "b290IENBIC0gRzMxJjAkBgNVBAsMHUFwcGxlIENlcnRpZmljYXRpb24gQXV0aG9y",
    "aXR5MRMwEQYDVQQKDApBcHBsZSBJbmMuMQswCQYDVQQGEwJVUzB2MBAGByqGSM49",
    "AgEGBSuBBAAiA2IABJjpLz1AcqTtkyJygRMc3RCV8cWjTnHcFBbZDuWmBSp3ZHtf",
    "TjjTuxxEtX/1H7YyYl3J6YRbTzBPEVoA/VhYDKX1DyxNB0cTddqXl5dvMVztK517",
    "IDvYuVTZXpmkOlEKMaNCMEAwHQYDVR0OBBYEFLuw3qFYM4iapIqZ3r6966/ayySr",
    "MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMAoGCCqGSM49BAMDA2gA",
    "MGUCMQCD6cHEFl4aXTQY2e3v9GwOAEZLuN+yRhHFD/3meoyhpmvOwgPUnPWTxnS4",
    "at+qIxUCMG1mihDK1A3UT82NQz60imOlM27jbdoXt2QfyFMm+YhidDkLF1vLUagM",
    "6BgD56KyKA==",
);

/// Extension of certificates that sign data for the App Store.
const LEAF_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113635.100.6.11.1");
/// Extension of the intermediate certificate that issues the App Store's signing certificates.
/// Apple's other intermediates issue developer certificates.
const INTERMEDIATE_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113635.100.6.2.1");
/// Signature algorithms of Apple's certificates and of the certificates in tests.
const ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 4] = [
    ring::ECDSA_P256_SHA256,
    ring::ECDSA_P256_SHA384,
    ring::ECDSA_P384_SHA256,
    ring::ECDSA_P384_SHA384,
];

/// Trusted roots, in DER form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedRoots(Vec<Vec<u8>>);

impl TrustedRoots {
    /// Returns Apple's root.
    pub fn apple() -> Self {
        let root = STANDARD.decode(APPLE_ROOT_G3);
        Self(vec![root.expect("the constant is base64")])
    }

    /// Trusts other roots, for tests.
    pub const fn of(roots: Vec<Vec<u8>>) -> Self {
        Self(roots)
    }
}

/// Returns whether a JWS is signed with a trusted certificate. `chain` must contain three
/// certificates: signing certificate, intermediate and a trusted root, all valid at `at`.
pub fn is_signed(jws: &Jws, chain: &[Vec<u8>], roots: &TrustedRoots, at: Timestamp) -> bool {
    verify(jws, chain, roots, at).is_some()
}

fn verify(jws: &Jws, chain: &[Vec<u8>], roots: &TrustedRoots, at: Timestamp) -> Option<()> {
    let [leaf, intermediate, root] = chain else {
        return None;
    };
    // The root in the chain is accepted only if it is one of the trusted roots.
    let root = roots.0.iter().find(|trusted| *trusted == root)?;
    if !has_extension(leaf, LEAF_OID) || !has_extension(intermediate, INTERMEDIATE_OID) {
        return None;
    }
    let leaf = CertificateDer::from(leaf.as_slice());
    let leaf = verify_chain(&leaf, intermediate, &[root], at)?;
    let signature = p256::ecdsa::Signature::from_slice(&jws.signature).ok()?;
    let signature = signature.to_der();
    leaf.verify_signature(
        ring::ECDSA_P256_SHA256,
        &jws.signing_input,
        signature.as_bytes(),
    )
    .ok()
}

/// Returns whether a certificate chains through the intermediate to one of the trusted roots, and
/// all are valid at `at`.
pub(crate) fn is_chained(
    leaf: &[u8],
    intermediate: &[u8],
    roots: &TrustedRoots,
    at: Timestamp,
) -> bool {
    let roots: Vec<&Vec<u8>> = roots.0.iter().collect();
    verify_chain(&CertificateDer::from(leaf), intermediate, &roots, at).is_some()
}

fn verify_chain<'a>(
    leaf: &'a CertificateDer<'_>,
    intermediate: &[u8],
    roots: &[&Vec<u8>],
    at: Timestamp,
) -> Option<EndEntityCert<'a>> {
    let roots: Vec<CertificateDer<'_>> = roots
        .iter()
        .map(|root| CertificateDer::from(root.as_slice()))
        .collect();
    let anchors = roots.iter().map(webpki::anchor_from_trusted_cert);
    let anchors: Vec<_> = anchors.collect::<Result<_, _>>().ok()?;
    let leaf = EndEntityCert::try_from(leaf).ok()?;
    let intermediates = [CertificateDer::from(intermediate)];
    let seconds = u64::try_from(at.as_millis()).ok()? / 1_000;
    let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    leaf.verify_for_usage(
        &ALGORITHMS,
        &anchors,
        &intermediates,
        time,
        AnyKeyUsage,
        None,
        None,
    )
    .ok()?;
    Some(leaf)
}

/// Accepts any key usage, because Apple's extensions state the purpose of a certificate.
struct AnyKeyUsage;

impl ExtendedKeyUsageValidator for AnyKeyUsage {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        Ok(())
    }
}

fn has_extension(certificate: &[u8], extension: ObjectIdentifier) -> bool {
    let certificate = Certificate::from_der(certificate);
    certificate.is_ok_and(|certificate| {
        let extensions = certificate.tbs_certificate().extensions();
        extensions.is_some_and(|all| all.iter().any(|one| one.extn_id == extension))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::hex;
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    #[test]
    fn apples_root_has_its_published_fingerprint() {
        let TrustedRoots(roots) = TrustedRoots::apple();
        let digest = hex(&Sha256::digest(&roots[0]));
        let published = "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179";
        assert_eq!(digest, published);
        let root = CertificateDer::from(roots[0].as_slice());
        assert!(webpki::anchor_from_trusted_cert(&root).is_ok());
        assert!(!has_extension(&roots[0], LEAF_OID));
        assert!(!has_extension(&roots[0], INTERMEDIATE_OID));
    }

    #[test]
    fn apples_root_expires_in_2039() {
        let TrustedRoots(roots) = TrustedRoots::apple();
        let expires_at = crate::vocabulary::certificate::expires_at(&roots[0]);
        let expected = Timestamp::from_millis(2_187_800_346_000);
        assert_eq!(expected.rfc3339(), "2039-04-30T18:19:06.000Z");
        assert_eq!(expires_at, Some(expected));
    }

    fn accepts(chain: &[Vec<u8>]) -> bool {
        let jws = Jws::split("e30.e30.AP-_").unwrap();
        is_signed(
            &jws,
            chain,
            &TrustedRoots::apple(),
            Timestamp::from_millis(1_700_000_000_000),
        )
    }

    #[test]
    fn rejects_a_root_alone() {
        let TrustedRoots(roots) = TrustedRoots::apple();
        assert!(!accepts(&roots));
        assert!(!accepts(&[
            roots[0].clone(),
            roots[0].clone(),
            roots[0].clone()
        ]));
    }

    proptest! {
        #[test]
        fn rejects_random_certificates(leaf: Vec<u8>, intermediate: Vec<u8>) {
            let TrustedRoots(roots) = TrustedRoots::apple();
            assert!(!accepts(&[leaf, intermediate, roots[0].clone()]));
        }

        #[test]
        fn rejects_corrupted_certificates(index in 0_usize..579, byte: u8) {
            let TrustedRoots(roots) = TrustedRoots::apple();
            let mut changed = roots[0].clone();
            let last = changed.len() - 1;
            changed[index.min(last)] = byte;
            assert!(!accepts(&[changed.clone(), changed, roots[0].clone()]));
        }
    }
}
