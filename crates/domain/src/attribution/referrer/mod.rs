//! The Play Store's install referrer: what led the user to the store.
//!
//! The Play Store returns the referrer from the URL that opened it. Chained links may encode the
//! referrer several times, so it is decoded defensively. Its kind is recognised by its content, not
//! by the source that it names.

mod meta;
mod text;

#[cfg(test)]
mod tests;

pub use meta::{MetaCampaign, MetaEnvelope};

use crate::click::params::Utm;
use crate::link::CAMPAIGN_ID_CHARS_MAX;
use crate::vocabulary::text::NAME_CHARS_MAX;
use text::{cleaned, decodings, parameter};

/// Maximum number of bytes read from a referrer. The longest known referrer, encrypted and encoded
/// twice, has about 3,000.
pub const REFERRER_BYTES_MAX: usize = 8 * 1024;

/// Parameter with our click id.
const OUR_PARAMETER: &str = "ar_click_id";
/// Parameters with a Google Ads click id, in order of preference.
const GOOGLE_PARAMETERS: [&str; 3] = ["gclid", "gbraid", "wbraid"];
/// `utm_source` of an organic install.
const ORGANIC_SOURCE: &str = "google-play";
/// `utm_medium` of an organic install.
const ORGANIC_MEDIUM: &str = "organic";

/// A classified referrer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    /// One of our clicks, given by its id as text. The id is not verified yet.
    Ours(String),
    /// An organic install.
    Organic,
    /// A Google Ads ad that did not use one of our links.
    Google(Box<GoogleAd>),
    /// A Meta ad that did not use one of our links.
    Meta {
        /// Encrypted part.
        envelope: MetaEnvelope,
        /// Decrypted campaign, if the app's key opened it.
        campaign: Option<Box<MetaCampaign>>,
    },
    /// A third-party link, given by its campaign tags. Without tags it names no ad.
    Other(Box<Utm>),
    /// Not readable: no Play Store, another store, or a timeout.
    Unavailable,
}

/// A Google Ads ad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleAd {
    /// Parameter that contained the click id.
    pub parameter: &'static str,
    /// Click id of the ad.
    pub click_id: String,
    /// Campaign tags of the referrer.
    pub utm: Utm,
}

impl Referrer {
    /// Classifies a referrer. `None` means that the SDK could not read the referrer, which is not
    /// the same as an empty one.
    pub fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else {
            return Self::Unavailable;
        };
        let text = &text[..text.floor_char_boundary(REFERRER_BYTES_MAX)];
        if text.trim().is_empty() {
            return Self::Organic;
        }
        // The most reliable kind wins, however deeply it is encoded.
        let decodings_of_text = decodings(text);
        let first = |classify: fn(&str) -> Option<Self>| {
            decodings_of_text.iter().find_map(|one| classify(one))
        };
        let untagged = || Self::Other(Box::default());
        first(ours)
            .or_else(|| first(meta))
            .or_else(|| first(google))
            .or_else(|| first(tagged))
            .unwrap_or_else(untagged)
    }

    /// Returns the name used in explanations.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ours(_) => "ours",
            Self::Organic => "organic",
            Self::Google(_) => "google",
            Self::Meta { .. } => "meta",
            Self::Other(_) => "other",
            Self::Unavailable => "unavailable",
        }
    }
}

fn ours(text: &str) -> Option<Referrer> {
    parameter(text, OUR_PARAMETER).map(|id| Referrer::Ours(id.trim().to_owned()))
}

fn meta(text: &str) -> Option<Referrer> {
    let envelope = meta::envelope(parameter(text, "utm_content")?)?;
    Some(Referrer::Meta {
        envelope,
        campaign: None,
    })
}

fn google(text: &str) -> Option<Referrer> {
    let (name, click_id) = GOOGLE_PARAMETERS.into_iter().find_map(|name| {
        let value = parameter(text, name)?;
        cleaned(value, CAMPAIGN_ID_CHARS_MAX).map(|value| (name, value))
    })?;
    Some(Referrer::Google(Box::new(GoogleAd {
        parameter: name,
        click_id,
        utm: utm(text),
    })))
}

fn tagged(text: &str) -> Option<Referrer> {
    let utm = utm(text);
    if utm == Utm::default() {
        return None;
    }
    let is = |value: &Option<String>, word| {
        value
            .as_ref()
            .is_none_or(|value| value.eq_ignore_ascii_case(word))
    };
    let organic =
        utm.source.is_some() && is(&utm.source, ORGANIC_SOURCE) && is(&utm.medium, ORGANIC_MEDIUM);
    Some(if organic {
        Referrer::Organic
    } else {
        Referrer::Other(Box::new(utm))
    })
}

/// Reads the campaign tags. Only in these tags does a plus stand for a space.
fn utm(text: &str) -> Utm {
    let tag = |name| cleaned(&parameter(text, name)?.replace('+', " "), NAME_CHARS_MAX);
    Utm {
        source: tag("utm_source"),
        medium: tag("utm_medium"),
        campaign: tag("utm_campaign"),
        content: tag("utm_content"),
        term: tag("utm_term"),
    }
}
