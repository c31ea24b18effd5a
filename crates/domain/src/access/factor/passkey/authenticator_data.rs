//! Authenticator data: what the device says about itself and the user.

use crate::vocabulary::cbor::CborValue;

/// The user was there, for example touched the device.
const USER_PRESENT: u8 = 0x01;
/// The device verified the user, with a PIN, a fingerprint or a face.
const USER_VERIFIED: u8 = 0x04;
/// The passkey may be copied to other devices.
const BACKUP_ELIGIBLE: u8 = 0x08;
/// The passkey was copied.
const BACKED_UP: u8 = 0x10;
/// A new passkey follows.
const HAS_CREDENTIAL: u8 = 0x40;
/// Extensions follow.
const HAS_EXTENSIONS: u8 = 0x80;
/// Length of the id of the device's model, which is skipped.
const MODEL_BYTES: usize = 16;

/// Parsed authenticator data. Extensions are skipped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AuthenticatorData<'a> {
    /// SHA-256 of the host name.
    pub(super) relying_party: &'a [u8; 32],
    flags: u8,
    /// Number of uses that the device counted.
    pub(super) counter: u32,
    /// A new passkey.
    pub(super) credential: Option<AttestedCredential<'a>>,
}

/// The id and the public key of a new passkey.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AttestedCredential<'a> {
    pub(super) id: &'a [u8],
    /// A COSE key.
    pub(super) key: &'a [u8],
}

impl<'a> AttestedCredential<'a> {
    /// Reads a new passkey. Returns the bytes after it.
    fn parse_first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (_, rest) = bytes.split_at_checked(MODEL_BYTES)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let (_, after) = CborValue::parse_first(rest)?;
        let key = &rest[..rest.len() - after.len()];
        Some((Self { id, key }, after))
    }
}

impl<'a> AuthenticatorData<'a> {
    /// Parses the data. Returns `None` if bytes are missing or left over.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (relying_party, rest) = bytes.split_first_chunk()?;
        let (flags, rest) = rest.split_first()?;
        let (counter, mut rest) = rest.split_first_chunk()?;
        let mut credential = None;
        if flags & HAS_CREDENTIAL != 0 {
            let (attested, after) = AttestedCredential::parse_first(rest)?;
            (credential, rest) = (Some(attested), after);
        }
        if flags & HAS_EXTENSIONS != 0 {
            (_, rest) = CborValue::parse_first(rest)?;
        }
        rest.is_empty().then_some(Self {
            relying_party,
            flags: *flags,
            counter: u32::from_be_bytes(*counter),
            credential,
        })
    }

    pub(super) const fn is_user_present(&self) -> bool {
        self.flags & USER_PRESENT != 0
    }

    pub(super) const fn is_user_verified(&self) -> bool {
        self.flags & USER_VERIFIED != 0
    }

    pub(super) const fn can_sync(&self) -> bool {
        self.flags & BACKUP_ELIGIBLE != 0
    }

    pub(super) const fn is_synced(&self) -> bool {
        self.flags & BACKED_UP != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn data(flags: u8, rest: &[u8]) -> Vec<u8> {
        [&[7; 32][..], &[flags], &[0, 0, 1, 2], rest].concat()
    }

    #[test]
    fn reads_counter_flags_and_credential() {
        // Model, length, id, and a map as key; then an empty map of extensions.
        let rest = [&[9; 16][..], &[0, 2, 5, 6], &[0xa1, 1, 2], &[0xa0]].concat();
        let bytes = data(0xc5, &rest);
        let parsed = AuthenticatorData::parse(&bytes).unwrap();
        assert_eq!(parsed.relying_party, &[7; 32]);
        assert_eq!(parsed.counter, 258);
        assert!(parsed.is_user_present() && parsed.is_user_verified());
        assert!(!parsed.can_sync() && !parsed.is_synced());
        let attested = parsed.credential.unwrap();
        assert_eq!(
            (attested.id, attested.key),
            (&[5, 6][..], &[0xa1, 1, 2][..])
        );
        for end in 0..bytes.len() {
            assert_eq!(AuthenticatorData::parse(&bytes[..end]), None, "{end}");
        }
    }

    #[rstest]
    #[case::left_over(0x05, &[0])]
    #[case::credential_without_flag(0x05, &[0; 30])]
    #[case::extensions_missing(0x85, &[])]
    #[case::id_longer_than_the_rest(0x45, &[&[9; 16][..], &[0xff, 0xff, 1]].concat())]
    #[case::key_not_cbor(0x45, &[&[9; 16][..], &[0, 1, 1, 0xff]].concat())]
    fn rejects_other_data(#[case] flags: u8, #[case] rest: &[u8]) {
        assert_eq!(AuthenticatorData::parse(&data(flags, rest)), None);
    }
}
