//! Signed user ids. The app's backend signs the user id with a secret of the app, and the SDK passes
//! the signature on.

use super::{ClaimProof, UserKey};
use crate::keyring::constant_time_eq;
use crate::vocabulary::digest::hex;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Prefix of identity secrets, so that secret scanners can find leaked ones.
const PREFIX: &str = "idsec_";

/// Returns a new identity secret from random bytes.
pub fn identity_secret(random: [u8; 32]) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

/// Signs a user id: HMAC-SHA256 with the whole text of the secret as the key, in lower-case hex.
pub fn sign_user(user: &UserKey, secret: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(user.as_str().as_bytes());
    hex(&mac.finalize().into_bytes())
}

/// Checks a signature against the app's secrets. Compares with all of them in constant time, so
/// that the time taken does not reveal which one matched. An app without a secret signs nothing, so
/// a signature is then treated as absent.
pub fn prove(user: &UserKey, signature: Option<&str>, secrets: &[String]) -> ClaimProof {
    let Some(signature) = signature.filter(|_| !secrets.is_empty()) else {
        return ClaimProof::Unsigned;
    };
    // Some libraries print hex digits in upper case.
    let signature = signature.to_ascii_lowercase();
    let is_valid = secrets.iter().fold(false, |found, secret| {
        found | constant_time_eq(signature.as_bytes(), sign_user(user, secret).as_bytes())
    });
    if is_valid {
        ClaimProof::Signed
    } else {
        ClaimProof::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Computed with `printf %s user-42 | openssl dgst -sha256 -hmac idsec_example`.
    const SIGNATURE: &str = "1f558f43d31fe9edef63d9d5f1792cc90bd42c483f0f56bd355eccd6cf1db745";

    #[rstest]
    #[case::valid(Some(SIGNATURE), &["idsec_example"], ClaimProof::Signed)]
    #[case::previous_secret(Some(SIGNATURE), &["idsec_new", "idsec_example"], ClaimProof::Signed)]
    #[case::another_secret(Some(SIGNATURE), &["idsec_new"], ClaimProof::Wrong)]
    #[case::cut(Some(&SIGNATURE[1..]), &["idsec_example"], ClaimProof::Wrong)]
    #[case::empty(Some(""), &["idsec_example"], ClaimProof::Wrong)]
    #[case::no_secret(Some(SIGNATURE), &[], ClaimProof::Unsigned)]
    #[case::no_signature(None, &["idsec_example"], ClaimProof::Unsigned)]
    fn checks_signatures(
        #[case] signature: Option<&str>,
        #[case] secrets: &[&str],
        #[case] expected: ClaimProof,
    ) {
        let user = UserKey::stored("user-42".to_owned());
        let secrets: Vec<String> = secrets.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(prove(&user, signature, &secrets), expected);
    }

    #[test]
    fn a_signature_is_valid_for_one_user() {
        let user = UserKey::stored("user-43".to_owned());
        let secrets = ["idsec_example".to_owned()];
        assert_eq!(prove(&user, Some(SIGNATURE), &secrets), ClaimProof::Wrong);
        let user = UserKey::stored("user-42".to_owned());
        let upper_case = SIGNATURE.to_ascii_uppercase();
        assert_eq!(
            prove(&user, Some(&upper_case), &secrets),
            ClaimProof::Signed
        );
        assert!(identity_secret([1; 32]).starts_with(PREFIX));
        assert_ne!(identity_secret([1; 32]), identity_secret([2; 32]));
    }
}
