//! Meta's encrypted referrer, which identifies the Meta ad that led the user to the store.
//!
//! It is recognised by its shape, because the source named in it varies. The referrer is JSON, but
//! only two hex strings in it matter. A small scanner finds them, so that this crate does not
//! depend on a JSON parser. The decrypted content is JSON too; the caller parses it into
//! [`MetaCampaign`].

use crate::click::encoding::cleaned;
use crate::link::{CAMPAIGN_ID_CHARS_MAX, Campaign};
use crate::vocabulary::digest::from_hex;
use crate::vocabulary::text::NAME_CHARS_MAX;
use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};

/// Length of an AES-GCM nonce in bytes.
const NONCE_BYTES: usize = 12;
/// Length of an AES-256 key in bytes.
const KEY_BYTES: usize = 32;

/// An encrypted referrer in hex: ciphertext with its tag, and nonce. Anything with this shape
/// counts as Meta's, even if it is damaged and cannot be decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaEnvelope {
    data: String,
    nonce: String,
}

/// Decrypted campaign data, under Meta's older field names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "Meta's own names")]
pub struct MetaCampaign {
    pub campaign_group_id: Option<String>,
    pub campaign_group_name: Option<String>,
    pub campaign_id: Option<String>,
    pub campaign_name: Option<String>,
    pub adgroup_id: Option<String>,
    pub adgroup_name: Option<String>,
    pub ad_id: Option<String>,
}

impl MetaEnvelope {
    /// Decrypts the envelope with the app's key from Meta, 64 hex digits. Returns `None` if the key
    /// is malformed or belongs to another app.
    pub fn open(&self, key_hex: &str) -> Option<Vec<u8>> {
        let key: [u8; KEY_BYTES] = from_hex(key_hex.trim())?.try_into().ok()?;
        let nonce: [u8; NONCE_BYTES] = from_hex(&self.nonce)?.try_into().ok()?;
        let data = from_hex(&self.data)?;
        Aes256Gcm::new(&key.into())
            .decrypt(&Nonce::from(nonce), data.as_slice())
            .ok()
    }
}

impl MetaCampaign {
    /// Translates to current terms: a campaign group is a campaign, a campaign is an ad set, and an
    /// ad group is an ad.
    pub fn campaign(&self) -> Campaign {
        let id = |text: &Option<String>| cleaned(text.as_deref()?, CAMPAIGN_ID_CHARS_MAX);
        let name = |text: &Option<String>| cleaned(text.as_deref()?, NAME_CHARS_MAX);
        Campaign {
            id: id(&self.campaign_group_id),
            name: name(&self.campaign_group_name),
            adset_id: id(&self.campaign_id),
            adset_name: name(&self.campaign_name),
            ad_id: id(&self.adgroup_id).or_else(|| id(&self.ad_id)),
            ad_name: name(&self.adgroup_name),
        }
    }
}

/// Finds `{… "source": {"data": "…", "nonce": "…"} …}`.
pub(super) fn envelope(text: &str) -> Option<MetaEnvelope> {
    let object = text.trim().strip_prefix('{')?;
    // Hex contains no brace, so the next one closes `source`.
    let (source, _) = member(object, "source", '{')?.split_once('}')?;
    let (data, _) = member(source, "data", '"')?.split_once('"')?;
    let (nonce, _) = member(source, "nonce", '"')?.split_once('"')?;
    Some(MetaEnvelope {
        data: data.to_owned(),
        nonce: nonce.to_owned(),
    })
}

/// Returns what follows `"name":` and the opening character of its value.
fn member<'a>(object: &'a str, name: &str, opening: char) -> Option<&'a str> {
    let key = format!("\"{name}\"");
    object.match_indices(&key).find_map(|(at, _)| {
        let value = object[at + key.len()..].trim_start().strip_prefix(':')?;
        value.trim_start().strip_prefix(opening)
    })
}
