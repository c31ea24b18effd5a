//! Country database in the MaxMind format, from any vendor.
//!
//! The file is read into memory. Memory-mapping would save memory, but a file overwritten in place
//! would change while in use.

use super::{CountryCode, country_code};
use maxminddb::{MaxMindDbError, Reader, path};
use std::net::{IpAddr, Ipv4Addr};

/// Maximum file size. The largest commercial city databases are a third of that.
pub const MMDB_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A country database.
pub struct CountryDatabase {
    reader: Reader<Vec<u8>>,
}

impl CountryDatabase {
    /// Parses a file, or returns what is wrong with it.
    pub fn read(content: Vec<u8>) -> Result<Self, String> {
        let reader = Reader::from_source(content).map_err(|error| error.to_string())?;
        let countries = Self { reader };
        countries.spot_check()?;
        Ok(countries)
    }

    /// Looks up one address in each large range. This detects most files that are damaged in the
    /// middle, and every file that contains no countries.
    fn spot_check(&self) -> Result<(), String> {
        let mut knows_any = false;
        for first in 1..224 {
            let address = IpAddr::V4(Ipv4Addr::new(first, 1, 1, 1));
            knows_any |= self
                .look_up(address)
                .map_err(|error| error.to_string())?
                .is_some();
        }
        let built_for = &self.reader.metadata().database_type;
        if knows_any || self.has_any_country() {
            Ok(())
        } else {
            Err(format!(
                "it contains no countries (its type is {built_for:?})"
            ))
        }
    }

    /// Returns whether any address has a country. A full scan is needed only for small hand-made
    /// files.
    fn has_any_country(&self) -> bool {
        let Ok(networks) = self.reader.networks(maxminddb::WithinOptions::default()) else {
            return false;
        };
        networks.flatten().any(|found| {
            let code: Result<Option<&str>, _> = found.decode_path(&path!["country", "iso_code"]);
            matches!(code, Ok(Some(_)))
        })
    }

    fn look_up(&self, address: IpAddr) -> Result<Option<CountryCode>, MaxMindDbError> {
        let found = self.reader.lookup(address)?;
        let code: Option<&str> = found.decode_path(&path!["country", "iso_code"])?;
        Ok(code.and_then(country_code))
    }

    /// Returns an address's country, if known.
    pub fn country(&self, address: IpAddr) -> Option<CountryCode> {
        // The library returns an error for an IPv6 address in an IPv4 database. Here the country
        // is just unknown.
        self.look_up(address).ok().flatten()
    }

    /// Describes the database: its type and build time.
    pub fn describe(&self) -> String {
        let about = self.reader.metadata();
        let built = i64::try_from(about.build_epoch)
            .ok()
            .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        let built = built.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
        format!("{} from {built}", about.database_type)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_mmdb;
    use super::*;
    use rstest::rstest;

    fn countries() -> CountryDatabase {
        let rows = [
            ("203.0.113.0/24", "DE"),
            ("203.0.113.128/25", "FR"),
            ("2001:db8::/32", "JP"),
        ];
        CountryDatabase::read(test_mmdb::write(&rows)).unwrap()
    }

    #[rstest]
    #[case::known("203.0.113.9", Some(*b"DE"))]
    #[case::within_another("203.0.113.200", Some(*b"FR"))]
    #[case::unknown("203.0.114.1", None)]
    #[case::v6("2001:db8::1", Some(*b"JP"))]
    #[case::unknown_v6("2001:db9::1", None)]
    fn looks_up_countries(#[case] address: &str, #[case] expected: Option<CountryCode>) {
        assert_eq!(countries().country(address.parse().unwrap()), expected);
    }

    #[test]
    fn describes_the_database() {
        assert_eq!(
            countries().describe(),
            "Test-Country from 2026-01-01T00:00:00Z"
        );
    }

    #[test]
    fn rejects_truncated_files() {
        let whole = test_mmdb::write(&[("1.1.1.0/24", "AU"), ("203.0.113.0/24", "DE")]);
        for length in 0..whole.len() {
            let read = CountryDatabase::read(whole[..length].to_vec());
            assert!(read.is_err(), "{length} of {} bytes", whole.len());
        }
    }

    #[test]
    fn rejects_files_without_countries() {
        assert!(CountryDatabase::read(b"country,code\n".to_vec()).is_err());
        let Err(problem) = CountryDatabase::read(test_mmdb::write(&[])) else {
            panic!("expected an error");
        };
        assert!(problem.contains("no countries"), "{problem}");
    }

    #[test]
    fn a_damaged_file_neither_panics_nor_returns_invalid_codes() {
        let whole = test_mmdb::write(&[("1.1.1.0/24", "AU"), ("203.0.113.0/24", "DE")]);
        for offset in 0..whole.len() {
            let mut broken = whole.clone();
            broken[offset] ^= 0xff;
            if let Ok(countries) = CountryDatabase::read(broken) {
                for address in ["1.1.1.1", "203.0.113.9", "2001:db8::1"] {
                    let code = countries.country(address.parse().unwrap());
                    assert!(code.is_none_or(|code| code.iter().all(u8::is_ascii_uppercase)));
                }
            }
        }
    }
}
