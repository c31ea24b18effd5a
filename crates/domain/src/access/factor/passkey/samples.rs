//! A device with passkeys, for tests. Tests change single fields.

use super::{
    Assertion, Ceremony, ClientData, CredentialId, PasskeyChallenge, Registration, RelyingParty,
};
use crate::vocabulary::id::UserId;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};

/// Flags of a device that verified its user and copies its passkeys.
pub const VERIFIED_AND_SYNCED: u8 = 0x1d;

/// A device with one passkey.
#[derive(Debug, Clone)]
pub struct SamplePasskeyDevice {
    /// The id of the passkey.
    pub credential: Vec<u8>,
    /// Number of the private key.
    pub key: u8,
    /// The user whom the device stored.
    pub user: UserId,
    /// The server.
    pub relying_party: RelyingParty,
    /// The origin that the browser names.
    pub origin: String,
    /// Whether the browser names a frame of another site.
    pub is_cross_origin: bool,
    /// What the browser says it asked for, if not the right thing.
    pub ceremony: Option<Ceremony>,
    /// Flags of the authenticator data, except for that of a new passkey.
    pub flags: u8,
    /// Number of uses.
    pub counter: u32,
}

impl SamplePasskeyDevice {
    /// Returns a device whose passkey has this number.
    pub fn new(number: u8, user: UserId, relying_party: &RelyingParty) -> Self {
        Self {
            credential: vec![number; 32],
            key: number,
            user,
            origin: relying_party.origin().to_owned(),
            relying_party: relying_party.clone(),
            is_cross_origin: false,
            ceremony: None,
            flags: VERIFIED_AND_SYNCED,
            counter: 0,
        }
    }

    fn signing_key(&self) -> SigningKey {
        SigningKey::from_slice(&[self.key; 32]).expect("a small number is a valid key")
    }

    /// Returns the public key as a COSE key.
    pub fn cose_key(&self) -> Vec<u8> {
        let point = self.signing_key().verifying_key().to_sec1_point(false);
        let point = point.as_bytes();
        [
            &[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32],
            &point[1..33],
            &[0x22, 0x58, 32],
            &point[33..],
        ]
        .concat()
    }

    fn client_data(&self, ceremony: Ceremony, challenge: &PasskeyChallenge) -> ClientData {
        let ceremony = self.ceremony.unwrap_or(ceremony).as_str();
        let (challenge, origin) = (challenge.text(), &self.origin);
        let is_cross_origin = self.is_cross_origin;
        let json = format!(
            r#"{{"type":"{ceremony}","challenge":"{challenge}","origin":"{origin}","crossOrigin":{is_cross_origin}}}"#
        );
        ClientData {
            json: json.into_bytes(),
            ceremony: ceremony.to_owned(),
            challenge,
            origin: origin.clone(),
            is_cross_origin,
        }
    }

    fn authenticator_data(&self, flags: u8) -> Vec<u8> {
        let hash = self.relying_party.hash();
        [&hash[..], &[flags], &self.counter.to_be_bytes()].concat()
    }

    /// Returns the attestation object of the new passkey.
    pub fn attestation_object(&self) -> Vec<u8> {
        let length = u16::try_from(self.credential.len()).expect("a short id");
        let data = [
            self.authenticator_data(self.flags | 0x40),
            vec![0; 16],
            length.to_be_bytes().to_vec(),
            self.credential.clone(),
            self.cose_key(),
        ]
        .concat();
        let length = u16::try_from(data.len()).expect("short data").to_be_bytes();
        [
            b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59".as_slice(),
            &length,
            &data,
        ]
        .concat()
    }

    /// Creates the passkey.
    pub fn register(&self, challenge: &PasskeyChallenge) -> Registration {
        Registration {
            client_data: self.client_data(Ceremony::Registration, challenge),
            attestation_object: self.attestation_object(),
        }
    }

    /// Uses the passkey.
    pub fn sign(&self, challenge: &PasskeyChallenge) -> Assertion {
        let client_data = self.client_data(Ceremony::SignIn, challenge);
        let authenticator_data = self.authenticator_data(self.flags);
        let hash = client_data.hash();
        let signed = [&authenticator_data, hash.as_bytes().as_slice()].concat();
        let signature: Signature = self.signing_key().sign(&signed);
        Assertion {
            credential: CredentialId(self.credential.clone()),
            client_data,
            authenticator_data,
            signature: signature.to_der().as_bytes().to_vec(),
            user_handle: Some(self.user.as_bytes().to_vec()),
        }
    }
}
