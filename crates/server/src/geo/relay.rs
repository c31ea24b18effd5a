//! Address ranges of relays, where many people share a few addresses.
//!
//! Each line contains a range and optionally a country, region and city; only the country is used.
//! Ranges are sorted for binary search, because there are hundreds of thousands of them and every
//! click needs a lookup.

use super::{CountryCode, country_code};
use crate::config::AddressRange;
use std::net::IpAddr;

/// Maximum number of ranges. Apple's file contains about three hundred thousand.
pub const RELAY_RANGES_MAX: usize = 1_000_000;
/// Maximum file size, for that many lines of usual length.
pub const RELAY_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A range of addresses as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range<N> {
    first: N,
    last: N,
    country: Option<CountryCode>,
}

/// A relay that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relay {
    /// Country of the people behind the relay.
    pub country: Option<CountryCode>,
}

/// All relay ranges.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RelayRanges {
    v4: Vec<Range<u32>>,
    v6: Vec<Range<u128>>,
}

impl RelayRanges {
    /// Parses a file, or returns what is wrong and on which line.
    pub fn read(content: Vec<u8>) -> Result<Self, String> {
        let text = String::from_utf8(content).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut ranges = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if ranges.len() == RELAY_RANGES_MAX {
                return Err(format!("it has more than {RELAY_RANGES_MAX} ranges"));
            }
            ranges
                .add(line)
                .map_err(|problem| format!("line {}: {problem}", index + 1))?;
        }
        if ranges.len() == 0 {
            return Err("it has no ranges".to_owned());
        }
        ranges.v4 = sorted(ranges.v4);
        ranges.v6 = sorted(ranges.v6);
        Ok(ranges)
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let mut cells = line.split(',').map(|cell| cell.trim().trim_matches('"'));
        let (first, prefix) = AddressRange::parse(cells.next().unwrap_or_default())?.network();
        let country = cells.next().and_then(country_code);
        let prefix = u32::from(prefix);
        match first {
            IpAddr::V4(first) => {
                let first = first.to_bits();
                let last = first | u32::MAX.checked_shr(prefix).unwrap_or(0);
                self.v4.push(Range {
                    first,
                    last,
                    country,
                });
            }
            IpAddr::V6(first) => {
                let first = first.to_bits();
                let last = first | u128::MAX.checked_shr(prefix).unwrap_or(0);
                self.v6.push(Range {
                    first,
                    last,
                    country,
                });
            }
        }
        Ok(())
    }

    /// Returns the number of ranges.
    #[expect(clippy::len_without_is_empty, reason = "none of them is empty")]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns the relay that a canonical address belongs to.
    pub fn find(&self, address: IpAddr) -> Option<Relay> {
        match address {
            IpAddr::V4(v4) => find(&self.v4, v4.to_bits()),
            IpAddr::V6(v6) => find(&self.v6, v6.to_bits()),
        }
    }
}

/// Sorts ranges by their first address and drops nested ranges. CIDR ranges are either disjoint or
/// nested, so the remaining ranges are disjoint.
fn sorted<N: Ord + Copy>(mut ranges: Vec<Range<N>>) -> Vec<Range<N>> {
    ranges.sort_by_key(|range| (range.first, std::cmp::Reverse(range.last)));
    let mut end = None;
    ranges.retain(|range| {
        let is_within = end.is_some_and(|end| range.last <= end);
        if !is_within {
            end = Some(range.last);
        }
        !is_within
    });
    ranges.shrink_to_fit();
    ranges
}

fn find<N: Ord + Copy>(ranges: &[Range<N>], address: N) -> Option<Relay> {
    let after = ranges.partition_point(|range| range.first <= address);
    let range = ranges.get(after.checked_sub(1)?)?;
    (address <= range.last).then_some(Relay {
        country: range.country,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const FILE: &str = "\
172.224.226.0/27,GB,GB-EN,London,
172.224.226.64/31,DE,DE-BE,Berlin,
# a comment

172.225.0.0/16,US,US-CA,Cupertino,
172.225.7.0/24,FR,FR-IDF,Paris,
\"2a02:26f7::/64\",jp,JP-13,Tokyo,
2a04:4e41::1
10.0.0.0/33x";

    fn ranges() -> RelayRanges {
        let good = FILE.strip_suffix("10.0.0.0/33x").unwrap();
        RelayRanges::read(good.as_bytes().to_vec()).unwrap()
    }

    #[rstest]
    #[case::before("172.224.225.255", None)]
    #[case::first("172.224.226.0", Some("GB"))]
    #[case::last("172.224.226.31", Some("GB"))]
    #[case::after("172.224.226.32", None)]
    #[case::another("172.224.226.65", Some("DE"))]
    #[case::wide("172.225.255.255", Some("US"))]
    #[case::within_a_wide_one("172.225.7.1", Some("US"))]
    #[case::after_the_inner_one("172.225.8.0", Some("US"))]
    #[case::v6("2a02:26f7::1", Some("JP"))]
    #[case::next_v6("2a02:26f7:0:1::", None)]
    #[case::without_a_country("2a04:4e41::1", Some("-"))]
    #[case::lowest("0.0.0.0", None)]
    #[case::highest_v6("ffff::", None)]
    fn finds_the_relay_of_an_address(#[case] address: &str, #[case] expected: Option<&str>) {
        let found = ranges().find(address.parse().unwrap());
        let country = |relay: Relay| match relay.country {
            Some(code) => String::from_utf8(code.to_vec()).unwrap(),
            None => "-".to_owned(),
        };
        assert_eq!(found.map(country).as_deref(), expected);
    }

    #[test]
    fn drops_nested_ranges() {
        assert_eq!(ranges().len(), 5);
    }

    #[rstest]
    #[case::bad_line(FILE, "line 9: must be an address")]
    #[case::empty("", "it has no ranges")]
    #[case::header("cidr,country\n10.0.0.0/8,US\n", "line 1: must be an address")]
    #[case::too_long("10.0.0.0/33,US,,,", "line 1: must be an address")]
    fn reports_errors_with_their_line(#[case] text: &str, #[case] expected: &str) {
        let problem = RelayRanges::read(text.as_bytes().to_vec()).unwrap_err();
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[rstest]
    #[case::at_the_limit(RELAY_RANGES_MAX, true)]
    #[case::one_past_it(RELAY_RANGES_MAX + 1, false)]
    fn limits_the_number_of_ranges(#[case] count: usize, #[case] accepted: bool) {
        let text = "10.0.0.0/8\n".repeat(count);
        assert_eq!(RelayRanges::read(text.into_bytes()).is_ok(), accepted);
    }
}
