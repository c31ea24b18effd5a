//! Link fields with their own format.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::{NAME_CHARS_MAX, check_length, reject_nul};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Length of a slug in characters.
pub const SLUG_CHARS: RangeInclusive<usize> = 3..=64;
/// Maximum number of query parameters that a link passes on.
pub const PASS_PARAMS_MAX: usize = 50;
/// Maximum length of the name of a parameter that a link passes on.
const PASS_PARAM_CHARS_MAX: usize = 64;
/// Maximum number of keys in `customData`.
pub const CUSTOM_DATA_KEYS_MAX: usize = 50;
/// Maximum size of `customData` in bytes, keys and values together.
pub const CUSTOM_DATA_BYTES_MAX: usize = 4_096;
/// Maximum length of a campaign, ad set or ad id.
pub const CAMPAIGN_ID_CHARS_MAX: usize = 500;

/// Query parameters that a link passes on by default: the networks' click ids and UTM tags.
pub const PASS_PARAMS_DEFAULT: &[&str] = &[
    "fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref", "utm_*",
];

/// Parameters that the service adds to a destination. Passing them on would let an ad's URL forge
/// them.
const RESERVED_PARAMS: &[&str] = &["ar_link_id", "ar_click_id", "offer"];

pub(super) fn default_pass_params() -> Vec<String> {
    PASS_PARAMS_DEFAULT
        .iter()
        .map(|&name| name.to_owned())
        .collect()
}

/// The slug in a link's URL: lower-case letters, digits and inner hyphens. It has no underscore, so
/// that it differs from ids (`lnk_…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    /// Parses a slug.
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

    /// Generates a random slug of ten characters (50 bits).
    pub fn random(random: [u8; 10]) -> Self {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        Self(
            random
                .iter()
                .map(|byte| char::from(LETTERS[usize::from(byte & 31)]))
                .collect(),
        )
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses the name of a query parameter to pass on; `utm_*` matches every name with this prefix.
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
             a prefix followed by *."
        );
        return Err(Problem::new(FaultCode::InvalidFormat, message));
    }
    // Parameter names are case-insensitive, so reserved names are rejected in upper and lower case.
    let lower = name.to_ascii_lowercase();
    let covers = |reserved: &&str| {
        if text.ends_with('*') {
            reserved.starts_with(&lower)
        } else {
            **reserved == lower
        }
    };
    if RESERVED_PARAMS.iter().any(covers) {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "Must not match ar_link_id, ar_click_id or offer, which the service sets itself.",
        ));
    }
    Ok(text.to_owned())
}

/// Parses a network's id for a campaign, ad set or ad.
pub fn campaign_id(text: &str) -> Result<String, Problem> {
    check_length(text, 1, CAMPAIGN_ID_CHARS_MAX)?;
    Ok(text.to_owned())
}

/// Parses the name of a campaign, ad set or ad.
pub fn campaign_name(text: &str) -> Result<String, Problem> {
    check_length(text, 1, NAME_CHARS_MAX)?;
    Ok(text.to_owned())
}

/// Checks the custom data that is passed to the installed app.
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
        let message = format!("Must have at most {CUSTOM_DATA_BYTES_MAX} bytes in total.");
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
    #[case::prefix("utm_*", None)]
    #[case::all("*", Some(FaultCode::InvalidFormat))]
    #[case::inner_star("u*m", Some(FaultCode::InvalidFormat))]
    #[case::ampersand("a&b", Some(FaultCode::InvalidFormat))]
    #[case::reserved("ar_click_id", Some(FaultCode::NotAllowed))]
    #[case::covers_reserved("ar_*", Some(FaultCode::NotAllowed))]
    #[case::offer("offer", Some(FaultCode::NotAllowed))]
    #[case::offer_in_capitals("OFFER", Some(FaultCode::NotAllowed))]
    #[case::covers_reserved_in_capitals("AR_*", Some(FaultCode::NotAllowed))]
    #[case::longer_than_offer("offers", None)]
    fn parameters_to_pass_on(#[case] text: &str, #[case] expected: Option<FaultCode>) {
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
