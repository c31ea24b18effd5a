//! The token that a form of a signed-in person carries, so that no other site can send it.

use super::{Keyring, constant_time_eq};
use crate::vocabulary::digest::{Digest, from_hex, hex};

impl Keyring {
    /// The token of a session's forms. It is made of the session's own secret, so there is nothing to store, and it is
    /// worth nothing in another session.
    pub fn form_token(&self, session: Digest) -> String {
        hex(&self.tag("form-token/1", &[session.as_bytes()]))
    }

    /// Whether a form was made for this session.
    pub fn is_form_token(&self, session: Digest, token: &str) -> bool {
        let expected = self.tag("form-token/1", &[session.as_bytes()]);
        from_hex(token).is_some_and(|bytes| constant_time_eq(&bytes, &expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_belongs_to_one_session() {
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
