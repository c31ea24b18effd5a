//! Test attestations: tokens signed with test keys instead of Apple's and Google's.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest as _, Sha256};

/// Number of the key of the trusted test root.
const ROOT_KEY: u8 = 1;
const INTERMEDIATE_KEY: u8 = 2;
/// Number of the key that the device attests.
const DEVICE_KEY: u8 = 3;
/// Number of the key that signs Play Integrity verdicts.
const PLAY_KEY: u8 = 4;

const NONCE_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x08, 0x02];
const BASIC_CONSTRAINTS_OID: &[u8] = &[0x55, 0x1d, 0x13];
const COMMON_NAME_OID: &[u8] = &[0x55, 0x04, 0x03];
const EC_KEY_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

fn key(number: u8) -> SigningKey {
    SigningKey::from_slice(&[number; 32]).expect("a valid key")
}

fn point(key: &SigningKey) -> Vec<u8> {
    let point = key.verifying_key().to_sec1_point(false);
    point.as_bytes().to_vec()
}

fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match u8::try_from(value.len()) {
        Ok(short @ 0..0x80) => bytes.push(short),
        Ok(long) => bytes.extend([0x81, long]),
        Err(_) => {
            let length = u16::try_from(value.len()).expect("a short value");
            bytes.push(0x82);
            bytes.extend(length.to_be_bytes());
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

fn common_name(text: &str) -> Vec<u8> {
    let attribute = sequence(&[der(0x06, COMMON_NAME_OID), der(0x0c, text.as_bytes())]);
    sequence(&[der(0x31, &attribute)])
}

fn public_key(key: &SigningKey) -> Vec<u8> {
    let curve = sequence(&[der(0x06, EC_KEY_OID), der(0x06, P256_OID)]);
    sequence(&[curve, bits(&point(key))])
}

/// A test certificate. One without a nonce is an authority.
struct TestCertificate<'a> {
    subject: &'a str,
    issuer: &'a str,
    not_after: &'a str,
    nonce: Option<&'a [u8]>,
}

impl TestCertificate<'_> {
    fn sign(&self, key: &SigningKey, issuer: &SigningKey) -> Vec<u8> {
        let algorithm = sequence(&[der(0x06, ECDSA_OID)]);
        let validity = sequence(&[
            der(0x17, b"250101000000Z"),
            der(0x17, self.not_after.as_bytes()),
        ]);
        let authority = match self.nonce {
            None => der(0x01, &[0xff]),
            Some(_) => Vec::new(),
        };
        let mut extensions = vec![sequence(&[
            der(0x06, BASIC_CONSTRAINTS_OID),
            der(0x01, &[0xff]),
            der(0x04, &sequence(&[authority])),
        ])];
        extensions.extend(self.nonce.map(|nonce| {
            let nonce = sequence(&[der(0xa1, &der(0x04, nonce))]);
            sequence(&[der(0x06, NONCE_OID), der(0x04, &nonce)])
        }));
        let body = sequence(&[
            der(0xa0, &der(0x02, &[2])),
            der(0x02, &[1]),
            algorithm.clone(),
            common_name(self.issuer),
            validity,
            common_name(self.subject),
            public_key(key),
            der(0xa3, &sequence(&extensions)),
        ]);
        let signature: Signature = issuer.sign(&body);
        sequence(&[body, algorithm, bits(signature.to_der().as_bytes())])
    }
}

const NOT_EXPIRED: &str = "300101000000Z";

/// Returns the test root that signs the samples.
pub fn app_attest_root() -> Vec<u8> {
    let root = TestCertificate {
        subject: "root",
        issuer: "root",
        not_after: NOT_EXPIRED,
        nonce: None,
    };
    root.sign(&key(ROOT_KEY), &key(ROOT_KEY))
}

/// An attestation object to build. Tests change single fields.
#[derive(Debug, Clone)]
pub struct AppAttestSample {
    /// Challenge in the nonce.
    pub challenge: String,
    /// Team id and bundle id, joined by a dot.
    pub app_id: String,
    /// Environment in the authenticator data.
    pub environment: [u8; 16],
    /// Counter in the authenticator data.
    pub counter: u32,
    /// Number of the root's key.
    pub root_key: u8,
    /// Number of the key in the authenticator data.
    pub attested_key: u8,
    /// End of the leaf's validity.
    pub not_after: &'static str,
    /// Format.
    pub format: &'static str,
}

impl AppAttestSample {
    /// Returns a valid attestation of a production build, valid until 2030.
    pub fn new(app_id: &str, challenge: &str) -> Self {
        Self {
            challenge: challenge.to_owned(),
            app_id: app_id.to_owned(),
            environment: *b"appattest\0\0\0\0\0\0\0",
            counter: 0,
            root_key: ROOT_KEY,
            attested_key: DEVICE_KEY,
            not_after: NOT_EXPIRED,
            format: "apple-appattest",
        }
    }

    /// Returns the id of the attested key in base64.
    pub fn key_id(&self) -> String {
        STANDARD.encode(Sha256::digest(point(&key(self.attested_key))))
    }

    /// Returns the attestation object in base64.
    pub fn token(&self) -> String {
        STANDARD.encode(self.object())
    }

    /// Returns the attestation object.
    pub fn object(&self) -> Vec<u8> {
        let data = self.authenticator_data();
        let client_data_hash = Sha256::digest(self.challenge.as_bytes());
        let nonce = Sha256::digest([data.as_slice(), client_data_hash.as_slice()].concat());
        let intermediate = TestCertificate {
            subject: "intermediate",
            issuer: "root",
            not_after: NOT_EXPIRED,
            nonce: None,
        };
        let leaf = TestCertificate {
            subject: "leaf",
            issuer: "intermediate",
            not_after: self.not_after,
            nonce: Some(nonce.as_slice()),
        };
        let (leaf, intermediate) = (
            leaf.sign(&key(DEVICE_KEY), &key(INTERMEDIATE_KEY)),
            intermediate.sign(&key(INTERMEDIATE_KEY), &key(self.root_key)),
        );
        let mut object = vec![0xa3];
        object.extend(cbor(3, b"fmt"));
        object.extend(cbor(3, self.format.as_bytes()));
        object.extend(cbor(3, b"attStmt"));
        object.push(0xa2);
        object.extend(cbor(3, b"x5c"));
        object.push(0x82);
        object.extend(cbor(2, &leaf));
        object.extend(cbor(2, &intermediate));
        object.extend(cbor(3, b"receipt"));
        object.extend(cbor(2, &[0x30, 0x80]));
        object.extend(cbor(3, b"authData"));
        object.extend(cbor(2, &data));
        object
    }

    fn authenticator_data(&self) -> Vec<u8> {
        let key_id = Sha256::digest(point(&key(self.attested_key)));
        let mut data = Sha256::digest(self.app_id.as_bytes()).to_vec();
        data.push(0x40);
        data.extend(self.counter.to_be_bytes());
        data.extend(self.environment);
        data.extend([0, 32]);
        data.extend(key_id);
        // The public key in COSE form follows; the check does not read it.
        data.extend([0xa0]);
        data
    }
}

/// Encodes a byte string (major type 2) or a text (3).
fn cbor(major: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short value");
    let mut encoded = vec![(major << 5) | 0x19];
    encoded.extend(length.to_be_bytes());
    encoded.extend_from_slice(bytes);
    encoded
}

/// Decryption key of the Play Integrity samples in base64: the key of RFC 3394, section 4.6.
pub const PLAY_DECRYPTION_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// The content key of RFC 3394, section 4.6, wrapped with [`PLAY_DECRYPTION_KEY`].
const WRAPPED_KEY: [u8; 40] = [
    0x28, 0xc9, 0xf4, 0x04, 0xc4, 0xb8, 0x10, 0xf4, 0xcb, 0xcc, 0xb3, 0x5c, 0xfb, 0x87, 0xf8, 0x26,
    0x3f, 0x57, 0x86, 0xe2, 0xd8, 0x0e, 0xd3, 0x26, 0xcb, 0xc7, 0xf0, 0xe7, 0x1a, 0x99, 0xf4, 0x3b,
    0xfb, 0x98, 0x8b, 0x9b, 0x7a, 0x02, 0xdd, 0x21,
];
const CONTENT_KEY: [u8; 32] = [
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
];

/// Returns the verification key of the Play Integrity samples in base64.
pub fn play_verification_key() -> String {
    STANDARD.encode(public_key(&key(PLAY_KEY)))
}

/// Returns a Play Integrity token with this verdict.
pub fn play_token(verdict: &str) -> String {
    play_token_signed_by(verdict, PLAY_KEY)
}

/// Returns a Play Integrity token that another key signed.
pub fn play_token_signed_by(verdict: &str, key_number: u8) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let input = format!("{}.{}", part(r#"{"alg":"ES256"}"#), part(verdict));
    let signature: Signature = key(key_number).sign(input.as_bytes());
    let signed = format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    let header = part(r#"{"alg":"A256KW","enc":"A256GCM"}"#);
    let nonce = [9; 12];
    let payload = Payload {
        msg: signed.as_bytes(),
        aad: header.as_bytes(),
    };
    let sealed = Aes256Gcm::new(&CONTENT_KEY.into())
        .encrypt(&Nonce::from(nonce), payload)
        .expect("a short message");
    let (content, tag) = sealed.split_at(signed.len());
    let encoded = [&WRAPPED_KEY[..], &nonce[..], content, tag];
    let encoded = encoded.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    format!("{header}.{}", encoded.join("."))
}

/// Returns a verdict about a genuine app on a genuine device. `certificate` is the fingerprint of
/// the signing certificate in base64url.
pub fn play_verdict(challenge: &str, package_name: &str, millis: i64, certificate: &str) -> String {
    format!(
        r#"{{"requestDetails":{{"requestPackageName":"{package_name}","timestampMillis":"{millis}",
        "nonce":"{challenge}"}},"appIntegrity":{{"appRecognitionVerdict":"PLAY_RECOGNIZED",
        "packageName":"{package_name}","certificateSha256Digest":["{certificate}"],
        "versionCode":"42"}},"deviceIntegrity":{{"deviceRecognitionVerdict":
        ["MEETS_DEVICE_INTEGRITY"]}},"accountDetails":{{"appLicensingVerdict":"LICENSED"}}}}"#
    )
}
