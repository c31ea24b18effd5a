//! CSRF tokens for the forms of signed-in users.

use super::{Keyring, Purpose};
use crate::vocabulary::digest::{Digest, from_hex, hex};

/// Length of a token in bytes.
const TOKEN_BYTES: usize = 32;

impl Keyring {
    /// Returns the form token for a session. It is derived from the session and not stored, and is
    /// invalid in other sessions.
    pub fn form_token(&self, session: Digest) -> String {
        hex(&self.tag(Purpose::FormToken, &[session.as_bytes()]))
    }

    /// Returns whether a form token belongs to this session.
    pub fn is_form_token(&self, session: Digest, token: &str) -> bool {
        let is_tag = |bytes: &Vec<u8>| {
            bytes.len() == TOKEN_BYTES
                && self.is_tag(Purpose::FormToken, &[session.as_bytes()], bytes)
        };
        from_hex(token).as_ref().is_some_and(is_tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_token_is_valid_in_its_session_only() {
        let keyring = Keyring::new([1; 32]);
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let token = keyring.form_token(one);
        assert!(keyring.is_form_token(one, &token));
        assert!(!keyring.is_form_token(two, &token));
        assert!(!Keyring::new([2; 32]).is_form_token(one, &token));
        for wrong in ["", "x", &token[2..], &hex(one.as_bytes())] {
            assert!(!keyring.is_form_token(one, wrong), "{wrong}");
        }
    }
}
