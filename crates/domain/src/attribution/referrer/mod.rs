//! What the Play Store handed to the app: who led the person to the store, in that one's own words.
//!
//! The store says what stood in the URL it was opened with. It is decoded defensively, since links of links
//! encode it again, and told apart by what it holds, not by who claims to have written it.

mod meta;
mod text;

#[cfg(test)]
mod tests;

pub use meta::{MetaCampaign, MetaEnvelope};

use crate::click::params::Utm;
use crate::link::CAMPAIGN_ID_CHARS_MAX;
use crate::vocabulary::text::NAME_CHARS_MAX;
use text::{cleaned, decodings, parameter};

/// Bytes of a referrer that are read. The longest known, an encrypted one encoded twice, has about 3,000.
pub const REFERRER_BYTES_MAX: usize = 8 * 1024;

/// The parameter that carries our click id.
const OUR_PARAMETER: &str = "ar_click_id";
/// The parameters that carry network b's click id, in the order in which one is taken.
const GOOGLE_PARAMETERS: [&str; 3] = ["gclid", "gbraid", "wbraid"];
/// The source that the store names when nobody led the person to it.
const ORGANIC_SOURCE: &str = "google-play";
/// The medium that goes with it.
const ORGANIC_MEDIUM: &str = "organic";

/// A referrer, told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    /// A click of ours, by the text of its id. Whether that is genuine is not known here.
    Ours(String),
    /// Nobody led the person to the store.
    Organic,
    /// An ad of network b that did not pass through a link of ours.
    Google(Box<GoogleAd>),
    /// An ad of network a that did not pass through a link of ours.
    Meta {
        /// The encrypted part.
        envelope: MetaEnvelope,
        /// What it holds, once it was opened with the app's key.
        campaign: Option<Box<MetaCampaign>>,
    },
    /// Somebody else's link, by its campaign tags. Without any it names nobody.
    Other(Box<Utm>),
    /// There is none to be read: no Play Store, another store, no answer in time.
    Unavailable,
}

/// An ad of network b.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleAd {
    /// Which of the three click ids it is.
    pub parameter: &'static str,
    /// The click id.
    pub click_id: String,
    /// The campaign tags beside it.
    pub utm: Utm,
}

impl Referrer {
    /// Tells a referrer apart. Nothing: the SDK could not read it, which is not the same as an empty one.
    pub fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else {
            return Self::Unavailable;
        };
        let text = &text[..text.floor_char_boundary(REFERRER_BYTES_MAX)];
        if text.trim().is_empty() {
            return Self::Organic;
        }
        // What is surer comes first, however deeply it is encoded.
        let readings = decodings(text);
        let first =
            |recognise: fn(&str) -> Option<Self>| readings.iter().find_map(|one| recognise(one));
        let nobody = || Self::Other(Box::default());
        first(ours)
            .or_else(|| first(meta))
            .or_else(|| first(google))
            .or_else(|| first(tagged))
            .unwrap_or_else(nobody)
    }

    /// As the explanation of a decision says it.
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

fn ours(reading: &str) -> Option<Referrer> {
    parameter(reading, OUR_PARAMETER).map(|id| Referrer::Ours(id.trim().to_owned()))
}

fn meta(reading: &str) -> Option<Referrer> {
    let envelope = meta::envelope(parameter(reading, "utm_content")?)?;
    Some(Referrer::Meta {
        envelope,
        campaign: None,
    })
}

fn google(reading: &str) -> Option<Referrer> {
    let (name, click_id) = GOOGLE_PARAMETERS.into_iter().find_map(|name| {
        let value = parameter(reading, name)?;
        cleaned(value, CAMPAIGN_ID_CHARS_MAX).map(|value| (name, value))
    })?;
    Some(Referrer::Google(Box::new(GoogleAd {
        parameter: name,
        click_id,
        utm: utm(reading),
    })))
}

fn tagged(reading: &str) -> Option<Referrer> {
    let utm = utm(reading);
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

/// The campaign tags. A plus is a blank in them, and in nothing else.
fn utm(reading: &str) -> Utm {
    let tag = |name| cleaned(&parameter(reading, name)?.replace('+', " "), NAME_CHARS_MAX);
    Utm {
        source: tag("utm_source"),
        medium: tag("utm_medium"),
        campaign: tag("utm_campaign"),
        content: tag("utm_content"),
        term: tag("utm_term"),
    }
}
