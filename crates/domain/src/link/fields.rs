//! The fields of a link that have a form of their own.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::{NAME_CHARS_MAX, check_length, reject_nul};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Characters of a slug.
pub const SLUG_CHARS: RangeInclusive<usize> = 3..=64;
/// Parameters that a link hands on, at most.
pub const PASS_PARAMS_MAX: usize = 50;
/// Characters of one such name.
const PASS_PARAM_CHARS_MAX: usize = 64;
/// Keys of `customData`, at most.
pub const CUSTOM_DATA_KEYS_MAX: usize = 50;
/// Bytes of `customData`, keys and values together, at most.
pub const CUSTOM_DATA_BYTES_MAX: usize = 4_096;
/// Characters of the ids of campaigns, ad sets and ads.
pub const CAMPAIGN_ID_CHARS_MAX: usize = 500;

/// What a link hands on unless told otherwise: the networks' click ids and the usual campaign tags.
pub const PASS_PARAMS_DEFAULT: &[&str] = &[
    "fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref", "utm_*",
];

/// What the service itself adds to a destination. Handing these on would let the URL of an ad forge them.
const RESERVED_PARAMS: &[&str] = &["ar_link_id", "ar_click_id", "offer"];

pub(super) fn default_pass_params() -> Vec<String> {
    PASS_PARAMS_DEFAULT
        .iter()
        .map(|&name| name.to_owned())
        .collect()
}

/// How a link reads in its URL: lower-case letters, digits and inner hyphens. No underscore, so that a
/// slug is never mistaken for an id (`lnk_…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    /// Reads a slug.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        reject_nul(text)?;
        let fits = SLUG_CHARS.contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-');
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let message = format!(
            "Must be {} to {} lower-case letters, digits and inner hyphens, for example \
             spring-social.",
            SLUG_CHARS.start(),
            SLUG_CHARS.end()
        );
        Err(Problem::new(FaultCode::InvalidFormat, message))
    }

    /// A slug of random bytes, for links that name none: ten characters, fifty bits.
    pub fn random(random: [u8; 10]) -> Self {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        Self(
            random
                .iter()
                .map(|byte| char::from(LETTERS[usize::from(byte & 31)]))
                .collect(),
        )
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a query parameter that a link hands on; `utm_*` stands for every name that begins so.
pub fn pass_param(text: &str) -> Result<String, Problem> {
    reject_nul(text)?;
    let name = text.strip_suffix('*').unwrap_or(text);
    let fits = text.len() <= PASS_PARAM_CHARS_MAX
        && !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if !fits {
        let message = format!(
            "Must be the name of a query parameter, at most {PASS_PARAM_CHARS_MAX} characters, or \
             the beginning of names followed by *."
        );
        return Err(Problem::new(FaultCode::InvalidFormat, message));
    }
    // Names of parameters are compared without case, so they are refused without it.
    let small = name.to_ascii_lowercase();
    let covers = |reserved: &&str| {
        if text.ends_with('*') {
            reserved.starts_with(&small)
        } else {
            **reserved == small
        }
    };
    if RESERVED_PARAMS.iter().any(covers) {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "Must not cover ar_link_id, ar_click_id or offer: the service sets these itself.",
        ));
    }
    Ok(text.to_owned())
}

/// The id of a campaign, ad set or ad, as its network gave it.
pub fn campaign_id(text: &str) -> Result<String, Problem> {
    check_length(text, 1, CAMPAIGN_ID_CHARS_MAX)?;
    Ok(text.to_owned())
}

/// The name of a campaign, ad set or ad.
pub fn campaign_name(text: &str) -> Result<String, Problem> {
    check_length(text, 1, NAME_CHARS_MAX)?;
    Ok(text.to_owned())
}

/// Checks what the installed app will be told.
pub fn custom_data(data: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Problem> {
    for (key, value) in &data {
        reject_nul(key)?;
        reject_nul(value)?;
    }
    if data.len() > CUSTOM_DATA_KEYS_MAX {
        let message = format!("Must have at most {CUSTOM_DATA_KEYS_MAX} keys.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    let bytes: usize = data
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > CUSTOM_DATA_BYTES_MAX {
        let message = format!("Must have at most {CUSTOM_DATA_BYTES_MAX} bytes in all.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("spring-social", true)]
    #[case::shortest("abc", true)]
    #[case::too_short("ab", false)]
    #[case::capitals("Spring", false)]
    #[case::underscore("lnk_1", false)]
    #[case::outer_hyphen("-spring", false)]
    #[case::slash("a/b/c", false)]
    #[case::dots("..", false)]
    #[case::not_ascii("frühling", false)]
    fn slugs(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(Slug::parse(text).is_ok(), accepted);
    }

    #[test]
    fn a_slug_has_at_most_64_characters() {
        assert!(Slug::parse(&"a".repeat(64)).is_ok());
        assert!(Slug::parse(&"a".repeat(65)).is_err());
    }

    #[test]
    fn a_random_slug_is_a_slug() {
        for byte in [0, 31, 127, 255] {
            assert!(Slug::parse(Slug::random([byte; 10]).as_str()).is_ok());
        }
    }

    #[rstest]
    #[case::name("gclid", None)]
    #[case::beginning("utm_*", None)]
    #[case::all("*", Some(FaultCode::InvalidFormat))]
    #[case::inner_star("u*m", Some(FaultCode::InvalidFormat))]
    #[case::ampersand("a&b", Some(FaultCode::InvalidFormat))]
    #[case::ours("ar_click_id", Some(FaultCode::NotAllowed))]
    #[case::covers_ours("ar_*", Some(FaultCode::NotAllowed))]
    #[case::offer("offer", Some(FaultCode::NotAllowed))]
    #[case::offer_in_capitals("OFFER", Some(FaultCode::NotAllowed))]
    #[case::covers_ours_in_capitals("AR_*", Some(FaultCode::NotAllowed))]
    #[case::longer_than_offer("offers", None)]
    fn parameters_that_are_handed_on(#[case] text: &str, #[case] expected: Option<FaultCode>) {
        assert_eq!(pass_param(text).err().map(|problem| problem.code), expected);
    }

    #[test]
    fn custom_data_has_limits() {
        let keys = |count: usize| (0..count).map(|n| (n.to_string(), String::new())).collect();
        assert!(custom_data(keys(50)).is_ok());
        assert!(custom_data(keys(51)).is_err());
        let value = |bytes| BTreeMap::from([("k".to_owned(), "v".repeat(bytes))]);
        assert!(custom_data(value(4_095)).is_ok());
        assert!(custom_data(value(4_096)).is_err());
        assert!(custom_data(BTreeMap::from([("k".to_owned(), "\0".to_owned())])).is_err());
    }
}
