//! Signed click ids, so that they cannot be forged.
//!
//! With a guessed click id, an attacker could take credit for other installs. Outside the server,
//! an id is therefore followed by a short check value for its app and an authentication tag over
//! both. All three use the alphabet of every other id, which survives any number of URL encodings.
//! A wrong tag is rejected without a lookup, and another app's click is recognised without one.

use crate::keyring::{Keyring, Purpose, Signer};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, decode, encode};

/// Length of the id in bytes.
const ID_BYTES: usize = 16;
/// Length of the app check in bytes: enough to distinguish another app's click from an unknown one,
/// too few to identify the app.
const APP_CHECK_BYTES: usize = 3;
/// Length of the tag in bytes. 96 bits cannot be brute-forced.
const TAG_BYTES: usize = 12;
/// Length of a token in bytes.
const TOKEN_BYTES: usize = ID_BYTES + APP_CHECK_BYTES + TAG_BYTES;

/// Signer and verifier of click ids.
#[derive(Clone)]
pub struct ClickTokens {
    /// Keyed in advance, because an export signs thousands of click ids.
    signer: Signer,
}

/// A click id with a valid tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticClick {
    /// Click id.
    pub click: ClickId,
    app_check: [u8; APP_CHECK_BYTES],
}

impl std::fmt::Debug for ClickTokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClickTokens(***)")
    }
}

impl ClickTokens {
    /// Creates a signer with the instance's secret.
    pub fn new(keyring: &Keyring) -> Self {
        Self {
            signer: Signer::new(keyring, Purpose::ClickId),
        }
    }

    /// Returns the signed click id.
    pub fn sign(&self, app: AppId, click: ClickId) -> String {
        let app_check = app_check(app);
        let mut bytes = [0; TOKEN_BYTES];
        let (id, rest) = bytes.split_at_mut(ID_BYTES);
        let (check, tag) = rest.split_at_mut(APP_CHECK_BYTES);
        id.copy_from_slice(click.as_bytes());
        check.copy_from_slice(&app_check);
        let whole = self.signer.sign(&[click.as_bytes(), &app_check]);
        tag.copy_from_slice(&whole[..TAG_BYTES]);
        encode(ClickId::PREFIX, &bytes)
    }

    /// Verifies a signed click id. Returns `None` if its tag is wrong.
    pub fn verify(&self, text: &str) -> Option<AuthenticClick> {
        let bytes: [u8; TOKEN_BYTES] = decode(ClickId::PREFIX, text).ok()?;
        let (id, rest) = bytes.split_first_chunk::<ID_BYTES>()?;
        let (app_check, tag) = rest.split_first_chunk::<APP_CHECK_BYTES>()?;
        let is_signed = tag.len() == TAG_BYTES && self.signer.verifies(&[id, app_check], tag);
        is_signed.then(|| AuthenticClick {
            click: ClickId::from_bytes(*id),
            app_check: *app_check,
        })
    }

    /// Returns the id in a signed click id without verifying its tag. For exports of other
    /// databases, whose secret this one does not have; look the click up before you rely on it.
    pub fn unverified(text: &str) -> Option<ClickId> {
        let bytes: [u8; TOKEN_BYTES] = decode(ClickId::PREFIX, text).ok()?;
        let (id, _) = bytes.split_first_chunk::<ID_BYTES>()?;
        Some(ClickId::from_bytes(*id))
    }
}

impl AuthenticClick {
    /// Returns whether the click belongs to this app. For one other app in sixteen million the
    /// check passes by chance. The caller must therefore also look up the stored click within this
    /// app.
    pub fn belongs_to(&self, app: AppId) -> bool {
        self.app_check == app_check(app)
    }
}

fn app_check(app: AppId) -> [u8; APP_CHECK_BYTES] {
    let [a, b, c, ..] = *Digest::of(app.as_bytes()).as_bytes();
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const APP: AppId = AppId::from_bytes([2; 16]);
    const CLICK: ClickId = ClickId::from_bytes([3; 16]);

    fn tokens() -> ClickTokens {
        ClickTokens::new(&Keyring::new([1; 32]))
    }

    #[test]
    fn a_token_round_trips_and_identifies_its_app() {
        let text = tokens().sign(APP, CLICK);
        assert_eq!(text.len(), 54);
        let verified = tokens().verify(&text).unwrap();
        assert_eq!(verified.click, CLICK);
        assert!(verified.belongs_to(APP));
        assert!(!verified.belongs_to(AppId::from_bytes([4; 16])));
    }

    #[test]
    fn another_database_reads_the_id() {
        let text = tokens().sign(APP, CLICK);
        assert_eq!(ClickTokens::unverified(&text), Some(CLICK));
        assert_eq!(ClickTokens::unverified("clk_0"), None);
    }

    #[test]
    fn the_token_format_is_stable() {
        let text = tokens().sign(APP, CLICK);
        assert_eq!(
            text,
            "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06"
        );
    }

    #[test]
    fn rejects_any_changed_character() {
        let text = tokens().sign(APP, CLICK);
        for position in 0..text.len() {
            for other in "0123456789abcdefghjkmnpqrstvwxyzA_".chars() {
                let mut characters: Vec<char> = text.chars().collect();
                if characters[position] == other {
                    continue;
                }
                characters[position] = other;
                let forged: String = characters.into_iter().collect();
                assert_eq!(tokens().verify(&forged), None, "{forged}");
            }
        }
    }

    #[rstest]
    #[case::empty("")]
    #[case::prefix_alone("clk_")]
    #[case::id_without_a_tag(&CLICK.to_string())]
    #[case::upper_case(&tokens().sign(APP, CLICK).to_uppercase())]
    #[case::white_space(&format!(" {}", tokens().sign(APP, CLICK)))]
    #[case::one_character_more(&format!("{}0", tokens().sign(APP, CLICK)))]
    #[case::of_another_instance(&ClickTokens::new(&Keyring::new([9; 32])).sign(APP, CLICK))]
    fn rejects_anything_else(#[case] text: &str) {
        assert_eq!(tokens().verify(text), None);
    }

    #[test]
    fn debug_output_hides_the_key() {
        assert_eq!(format!("{:?}", tokens()), "ClickTokens(***)");
    }

    proptest! {
        #[test]
        fn tokens_survive_url_encoding(id: [u8; 16], app: [u8; 16]) {
            let text = tokens().sign(AppId::from_bytes(app), ClickId::from_bytes(id));
            prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            let verified = tokens().verify(&text).map(|verified| verified.click);
            prop_assert_eq!(verified, Some(ClickId::from_bytes(id)));
        }

        #[test]
        fn rejects_random_text(text in ".*") {
            prop_assert_eq!(tokens().verify(&text), None);
        }
    }
}
