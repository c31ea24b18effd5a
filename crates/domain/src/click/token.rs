//! Click ids as they travel: with a tag, so that nobody can make one up.
//!
//! Whoever can guess a click id can credit himself with somebody else's installs. Outside, an id is
//! therefore followed by a check of its app and an authentication tag over both, all in the alphabet of
//! every other id, which survives any number of URL encodings unchanged. A wrong tag is refused without a
//! look-up, and a click of another app is recognised without one.

use crate::keyring::{Keyring, constant_time_eq};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, decode, encode};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of the id.
const ID_BYTES: usize = 16;
/// Bytes by which a token knows its app: enough that a foreign click is told from an unknown one, too few
/// to tell which app it is of.
const APP_CHECK_BYTES: usize = 3;
/// Bytes of the tag. Ninety-six bits cannot be tried out.
const TAG_BYTES: usize = 12;
/// Bytes of a token.
const TOKEN_BYTES: usize = ID_BYTES + APP_CHECK_BYTES + TAG_BYTES;

/// Writes and reads click ids with their tags.
#[derive(Clone)]
pub struct ClickTokens {
    /// With its key taken in: an export writes thousands of tokens.
    mac: Hmac<Sha256>,
}

/// A click id whose tag is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticClick {
    /// The click.
    pub click: ClickId,
    app_check: [u8; APP_CHECK_BYTES],
}

impl std::fmt::Debug for ClickTokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClickTokens(***)")
    }
}

impl ClickTokens {
    /// With the instance's secret.
    pub fn new(keyring: &Keyring) -> Self {
        let key = keyring.derive("click-id/1");
        Self {
            mac: Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"),
        }
    }

    /// The click id as it travels.
    pub fn sign(&self, app: AppId, click: ClickId) -> String {
        let app_check = app_check(app);
        let mut bytes = [0; TOKEN_BYTES];
        let (id, rest) = bytes.split_at_mut(ID_BYTES);
        let (check, tag) = rest.split_at_mut(APP_CHECK_BYTES);
        id.copy_from_slice(click.as_bytes());
        check.copy_from_slice(&app_check);
        tag.copy_from_slice(&self.tag(click.as_bytes(), app_check));
        encode(ClickId::PREFIX, &bytes)
    }

    /// Reads a click id; nothing when its tag is wrong.
    pub fn verify(&self, text: &str) -> Option<AuthenticClick> {
        let bytes: [u8; TOKEN_BYTES] = decode(ClickId::PREFIX, text).ok()?;
        let (id, rest) = bytes.split_first_chunk::<ID_BYTES>()?;
        let (app_check, tag) = rest.split_first_chunk::<APP_CHECK_BYTES>()?;
        constant_time_eq(&self.tag(id, *app_check), tag).then(|| AuthenticClick {
            click: ClickId::from_bytes(*id),
            app_check: *app_check,
        })
    }

    fn tag(&self, id: &[u8; ID_BYTES], app_check: [u8; APP_CHECK_BYTES]) -> [u8; TAG_BYTES] {
        let mut mac = self.mac.clone();
        mac.update(id);
        mac.update(&app_check);
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&whole[..TAG_BYTES]);
        tag
    }
}

impl AuthenticClick {
    /// Whether it is a click of this app. One foreign app in sixteen million passes for it: the stored
    /// click, looked up within the app, has the last word.
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
    fn a_token_is_read_back_and_knows_its_app() {
        let text = tokens().sign(APP, CLICK);
        assert_eq!(text.len(), 54);
        let read = tokens().verify(&text).unwrap();
        assert_eq!(read.click, CLICK);
        assert!(read.belongs_to(APP));
        assert!(!read.belongs_to(AppId::from_bytes([4; 16])));
    }

    #[test]
    fn a_token_has_the_same_form_for_ever() {
        let text = tokens().sign(APP, CLICK);
        assert_eq!(
            text,
            "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06"
        );
    }

    #[test]
    fn every_character_counts() {
        let text = tokens().sign(APP, CLICK);
        for position in 0..text.len() {
            for other in "0123456789abcdefghjkmnpqrstvwxyzA_".chars() {
                let mut letters: Vec<char> = text.chars().collect();
                if letters[position] == other {
                    continue;
                }
                letters[position] = other;
                let forged: String = letters.into_iter().collect();
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
    fn anything_else_is_refused(#[case] text: &str) {
        assert_eq!(tokens().verify(text), None);
    }

    #[test]
    fn the_key_does_not_print() {
        assert_eq!(format!("{:?}", tokens()), "ClickTokens(***)");
    }

    proptest! {
        #[test]
        fn any_number_of_encodings_changes_nothing(id: [u8; 16], app: [u8; 16]) {
            let text = tokens().sign(AppId::from_bytes(app), ClickId::from_bytes(id));
            prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            prop_assert_eq!(tokens().verify(&text).map(|read| read.click), Some(ClickId::from_bytes(id)));
        }

        #[test]
        fn nothing_panics(text in ".*") {
            prop_assert_eq!(tokens().verify(&text), None);
        }
    }
}
