//! Targets that call functions of `domain` directly.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tributary_domain::access::factor::passkey::{
    Assertion, Ceremony, ClientData, CredentialId, PasskeyChallenge, PasskeyExpectation,
    PasskeyKey, Registration, RelyingParty, check_assertion, check_registration,
};
use tributary_domain::attribution::referrer::{GoogleAd, Referrer};
use tributary_domain::billing::certificate::{TrustedRoots, is_signed};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::link::CAMPAIGN_ID_CHARS_MAX;
use tributary_domain::vocabulary::id::{AppId, ClickId, OrganizationId, UserId};
use tributary_domain::vocabulary::jws::Jws;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Secret of the cursors and click ids in the corpus.
const SECRET: [u8; 32] = [1; 32];
/// App of the click ids in the corpus.
const APP: AppId = AppId::from_bytes([2; 16]);

/// Parses a compact JWS. Its parts encode back to the same text, arbitrary bytes never verify as a
/// certificate chain, and the error does not depend on the input.
pub fn jws(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let jws = match Jws::split(text) {
        Ok(jws) => jws,
        Err(problem) => {
            return assert_eq!(
                Some(problem),
                Jws::split("").err(),
                "the error depends on the input"
            );
        }
    };
    let parts = [&jws.header, &jws.payload, &jws.signature];
    let written = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    assert_eq!(written, text);
    let chain = vec![jws.header.clone(), jws.payload.clone()];
    let at = Timestamp::from_millis(1_767_225_600_000);
    assert!(!is_signed(&jws, &chain, &TrustedRoots::apple(), at));
}

/// Parses a Play Store referrer. A click id that is found must be found again on its own.
pub fn referrer(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Referrer::parse(Some(text)) {
        Referrer::Ours(id) => {
            click_id(id.as_bytes());
            let alone = Referrer::parse(Some(&format!("ar_click_id={id}")));
            assert_eq!(alone, Referrer::Ours(id));
        }
        Referrer::Google(ad) => {
            let GoogleAd { click_id, .. } = *ad;
            assert!(click_id.chars().count() <= CAMPAIGN_ID_CHARS_MAX);
        }
        Referrer::Meta { envelope, .. } => {
            assert_eq!(envelope.open(&"0".repeat(64)), None);
        }
        Referrer::Organic | Referrer::Other(_) => {}
        Referrer::Unavailable => panic!("a referrer was sent"),
    }
}

/// Parses a click id. An accepted one must encode back to the same text.
pub fn click_id(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let tokens = ClickTokens::new(&Keyring::new(SECRET));
    if let Some(read) = tokens.verify(text)
        && read.belongs_to(APP)
    {
        assert_eq!(tokens.sign(APP, read.click), text);
    }
    if let Ok(id) = ClickId::parse(text) {
        assert_eq!(id.to_string(), text);
    }
}

/// Opens a cursor. A valid one seals back to the same bytes and is invalid for any other list.
pub fn cursor(bytes: &[u8]) {
    let Ok(sent) = URL_SAFE_NO_PAD.decode(bytes) else {
        return;
    };
    let keyring = Keyring::new(SECRET);
    let scope = |list| ListScope {
        list,
        organization: OrganizationId::from_bytes([2; 16]),
        filters: String::new(),
    };
    let Some(last) = keyring.open_cursor(&scope("links"), &sent) else {
        return;
    };
    assert_eq!(keyring.seal_cursor(&scope("links"), &last), sent);
    assert_eq!(keyring.open_cursor(&scope("events"), &sent), None);
}

/// Reads an attestation object for a challenge that the browser answered rightly. An accepted passkey keeps
/// to the limits, and arbitrary bytes never sign in with it.
pub fn passkey(bytes: &[u8]) {
    let relying_party = RelyingParty::of("https://example.org").expect("a host name");
    let challenge = PasskeyChallenge::new([1; 32], Timestamp::from_millis(0));
    let expected = PasskeyExpectation {
        challenge: &challenge,
        relying_party: &relying_party,
    };
    let client_data = |ceremony: Ceremony| ClientData {
        json: Vec::new(),
        ceremony: ceremony.as_str().to_owned(),
        challenge: challenge.text(),
        origin: relying_party.origin().to_owned(),
        is_cross_origin: false,
    };
    let registration = Registration {
        client_data: client_data(Ceremony::Registration),
        attestation_object: bytes.to_vec(),
    };
    let Ok(passkey) = check_registration(&registration, &expected) else {
        return;
    };
    let id = passkey.credential.as_bytes().to_vec();
    assert_eq!(
        CredentialId::from_bytes(id),
        Some(passkey.credential.clone())
    );
    assert_eq!(
        PasskeyKey::parse(passkey.key.as_cose()),
        Some(passkey.key.clone())
    );
    assert!(passkey.can_sync || !passkey.is_synced);
    let user = UserId::from_bytes([1; 16]);
    for (data, signature) in [(bytes, [0; 64].as_slice()), (&bytes[..37], bytes)] {
        let assertion = Assertion {
            credential: passkey.credential.clone(),
            client_data: client_data(Ceremony::SignIn),
            authenticator_data: data.to_vec(),
            signature: signature.to_vec(),
            user_handle: None,
        };
        assert!(check_assertion(&assertion, (user, &passkey), Some(user), &expected).is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the corpus contains valid inputs.
    #[test]
    fn the_genuine_inputs_of_the_corpus_are_accepted() {
        let token = include_str!("../corpus/click_id/genuine");
        let read = ClickTokens::new(&Keyring::new(SECRET)).verify(token);
        assert!(read.is_some_and(|read| read.belongs_to(APP)));

        let scope = ListScope {
            list: "links",
            organization: OrganizationId::from_bytes([2; 16]),
            filters: String::new(),
        };
        let sealed = Keyring::new(SECRET).seal_cursor(&scope, &[9; 16]);
        let cursor = include_str!("../corpus/cursor/genuine");
        assert_eq!(cursor, URL_SAFE_NO_PAD.encode(sealed));
        let registration = Registration {
            client_data: ClientData {
                json: Vec::new(),
                ceremony: Ceremony::Registration.as_str().to_owned(),
                challenge: PasskeyChallenge::new([1; 32], Timestamp::from_millis(0)).text(),
                origin: "https://example.org".to_owned(),
                is_cross_origin: false,
            },
            attestation_object: include_bytes!("../corpus/passkey/self_attestation").to_vec(),
        };
        let expected = PasskeyExpectation {
            challenge: &PasskeyChallenge::new([1; 32], Timestamp::from_millis(0)),
            relying_party: &RelyingParty::of("https://example.org").expect("a host name"),
        };
        assert!(check_registration(&registration, &expected).is_ok());
        assert!(Jws::split(include_str!("../corpus/jws/three_parts")).is_ok());
    }
}
