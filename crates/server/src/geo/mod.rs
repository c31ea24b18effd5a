//! GeoIP lookup in the operator's files: an address's country, and whether it belongs to a relay.
//!
//! All files are optional. They may be replaced while the server runs; lookups use the old file
//! until the new file is loaded.

mod mmdb;
mod relay;

#[cfg(test)]
pub(crate) mod test_mmdb;

pub use mmdb::{CountryDatabase, MMDB_BYTES_MAX};
pub use relay::{RELAY_FILE_BYTES_MAX, RELAY_RANGES_MAX, RelayRanges};

use crate::config::GeoConfig;
use crate::watched_file::WatchedFile;
use std::net::IpAddr;
use tributary_api::GeoLocation;

/// Country code of two upper-case letters.
pub type CountryCode = [u8; 2];

/// Parses a country code in upper or lower case.
fn country_code(text: &str) -> Option<CountryCode> {
    let code: CountryCode = text.as_bytes().try_into().ok()?;
    let is_letters = code.iter().all(u8::is_ascii_alphabetic);
    is_letters.then(|| code.map(|letter| letter.to_ascii_uppercase()))
}

/// The GeoIP files named in the configuration.
pub struct GeoFiles {
    countries: WatchedFile<CountryDatabase>,
    relays: WatchedFile<RelayRanges>,
}

impl GeoFiles {
    /// Creates the lookup for the configured files. Nothing is read yet.
    pub fn new(geo: &GeoConfig) -> Self {
        Self {
            countries: WatchedFile::new(
                "geo.mmdb",
                geo.mmdb.clone(),
                MMDB_BYTES_MAX,
                CountryDatabase::read,
            ),
            relays: WatchedFile::new(
                "geo.relay_ranges",
                geo.relay_ranges.clone(),
                RELAY_FILE_BYTES_MAX,
                RelayRanges::read,
            ),
        }
    }

    /// Reads new or changed files. Returns whether a usable file was loaded. Blocks.
    pub fn refresh(&self) -> bool {
        let countries = self.countries.refresh();
        let relays = self.relays.refresh();
        countries || relays
    }

    /// Looks up the country of an address and whether it is a relay.
    pub fn locate(&self, address: IpAddr) -> GeoLocation {
        let address = address.to_canonical();
        let relay = self.relays.get().and_then(|relays| relays.find(address));
        let country = self
            .countries
            .get()
            .and_then(|countries| countries.country(address))
            .or_else(|| relay.and_then(|relay| relay.country));
        GeoLocation {
            country: country.map(|code| code.map(char::from).iter().collect()),
            is_relay: relay.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::fs;

    #[rstest]
    #[case::plain("DE", Some(*b"DE"))]
    #[case::small("de", Some(*b"DE"))]
    #[case::empty("", None)]
    #[case::long("DEU", None)]
    #[case::tor("T1", None)]
    #[case::two_bytes("ü", None)]
    fn parses_country_codes(#[case] text: &str, #[case] expected: Option<CountryCode>) {
        assert_eq!(country_code(text), expected);
    }

    #[rstest]
    #[case::in_the_database("203.0.113.9", Some("DE"), false)]
    #[case::mapped("::ffff:203.0.113.9", Some("DE"), false)]
    #[case::relay_in_the_database("198.51.100.1", Some("FR"), true)]
    #[case::relay_with_a_country("192.0.2.1", Some("US"), true)]
    #[case::relay_without_a_country("192.0.2.129", None, true)]
    #[case::unknown("8.8.8.8", None, false)]
    fn looks_up_country_and_relay(
        #[case] address: &str,
        #[case] country: Option<&str>,
        #[case] is_relay: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mmdb, ranges) = (folder.path().join("a.mmdb"), folder.path().join("b.csv"));
        let countries = [("203.0.113.0/24", "DE"), ("198.51.100.0/24", "FR")];
        fs::write(&mmdb, test_mmdb::write(&countries)).unwrap();
        let text = "198.51.100.0/31,US,US-CA,Cupertino,\n192.0.2.0/25,US,,,\n192.0.2.128/25,,,,\n";
        fs::write(&ranges, text).unwrap();
        let geo = GeoFiles::new(&GeoConfig {
            mmdb: Some(mmdb),
            relay_ranges: Some(ranges),
            country_header: None,
        });
        let address: IpAddr = address.parse().unwrap();
        assert!(geo.locate(address).country.is_none(), "nothing is read yet");
        assert!(geo.refresh());
        let location = geo.locate(address);
        assert_eq!(
            (location.country.as_deref(), location.is_relay),
            (country, is_relay)
        );
    }

    #[test]
    fn without_files_lookups_return_nothing() {
        let geo = GeoFiles::new(&GeoConfig {
            mmdb: None,
            relay_ranges: None,
            country_header: None,
        });
        assert!(!geo.refresh());
        let location = geo.locate("203.0.113.9".parse().unwrap());
        assert!(location.country.is_none() && !location.is_relay);
    }
}
