//! Forms that continue after the user has proved who they are. The page that asks contains the form
//! encrypted, because a form may contain secrets, which are never sent back.

use super::Keyring;
use super::seal::{NONCE_BYTES, SealedSecret};
use crate::vocabulary::digest::{Digest, from_hex, hex};

/// First part of the scope, which no organization's id equals.
const SCOPE: &str = "continued-form";

impl Keyring {
    /// Encrypts a submitted form for a session and a target.
    pub fn seal_form(
        &self,
        session: Digest,
        target: &str,
        nonce: [u8; NONCE_BYTES],
        body: &str,
    ) -> String {
        let session = hex(session.as_bytes());
        let sealed = self.seal(&[SCOPE, &session, target], nonce, body.as_bytes());
        hex(sealed.as_bytes())
    }

    /// Decrypts a form. Returns `None` if it was submitted in another session or to another target.
    pub fn open_form(&self, session: Digest, target: &str, text: &str) -> Option<Vec<u8>> {
        let session = hex(session.as_bytes());
        let sealed = SealedSecret::from_bytes(from_hex(text)?);
        self.open(&[SCOPE, &session, target], &sealed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_continues_in_its_session_and_at_its_target_only() {
        let keyring = Keyring::new([1; 32]);
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let sealed = keyring.seal_form(one, "/keys", [2; NONCE_BYTES], "name=a");
        assert!(!sealed.contains("name"));
        let opened = keyring.open_form(one, "/keys", &sealed);
        assert_eq!(opened.as_deref(), Some(b"name=a".as_slice()));
        assert_eq!(keyring.open_form(two, "/keys", &sealed), None);
        assert_eq!(keyring.open_form(one, "/team/invite", &sealed), None);
        assert_eq!(keyring.open_form(one, "/keys", &sealed[2..]), None);
        assert_eq!(keyring.open_form(one, "/keys", "x"), None);
        let other = Keyring::new([2; 32]);
        assert_eq!(other.open_form(one, "/keys", &sealed), None);
    }
}
