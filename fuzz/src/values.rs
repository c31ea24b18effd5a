//! Targets that call functions of `domain` directly.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tributary_domain::attribution::referrer::{GoogleAd, Referrer};
use tributary_domain::billing::certificate::{TrustedRoots, is_signed};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::link::CAMPAIGN_ID_CHARS_MAX;
use tributary_domain::vocabulary::id::{AppId, ClickId, OrganizationId};
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
        assert!(Jws::split(include_str!("../corpus/jws/three_parts")).is_ok());
    }
}
