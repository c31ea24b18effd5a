//! CSRF tokens for the forms of signed-in users.

use super::{Keyring, constant_time_eq};
use crate::vocabulary::digest::{Digest, from_hex, hex};

impl Keyring {
    /// Returns the form token for a session. It is derived from the session and not stored, and is
    /// invalid in other sessions.
    pub fn form_token(&self, session: Digest) -> String {
        hex(&self.tag("form-token/1", &[session.as_bytes()]))
    }

    /// Returns whether a form token belongs to this session.
    pub fn is_form_token(&self, session: Digest, token: &str) -> bool {
        let expected = self.tag("form-token/1", &[session.as_bytes()]);
        from_hex(token).is_some_and(|bytes| constant_time_eq(&bytes, &expected))
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
