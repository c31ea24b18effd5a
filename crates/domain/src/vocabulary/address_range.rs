//! An IP address or a CIDR range.
//!
//! Addresses are compared in canonical form: a server that listens on `[::]` sees an IPv4 proxy as
//! `::ffff:10.0.0.5`, and `10.0.0.5` in the configuration must match it.

use ipnet::{IpNet, Ipv4Net};
use std::fmt;
use std::net::IpAddr;

/// Prefix length of `::ffff:0:0/96`, the IPv4-mapped addresses.
const MAPPED_BITS: u8 = 96;
/// Shortest IPv4 prefix that can be one operator's network.
const V4_PREFIX_OWN_MIN: u8 = 8;
/// Shortest IPv6 prefix that can be one operator's network, except for `fd00::/8`.
const V6_PREFIX_OWN_MIN: u8 = 16;

/// One address or a CIDR range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange(IpNet);

impl AddressRange {
    /// Parses `10.0.0.5`, `10.0.0.0/8` or `fd00::/8`, or returns what is expected.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "must be an address such as 10.0.0.5, or a range such as \
                                10.0.0.0/8; at most /32 for IPv4, /128 for IPv6";
        let one = text.parse().map(|address: IpAddr| IpNet::from(address));
        let range = one.or_else(|_| text.parse()).map_err(|_| EXPECTED)?;
        Ok(Self(canonical(range).trunc()))
    }

    /// Returns whether the range contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Returns whether the range contains every address of another.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }

    /// Returns the first address and the prefix length.
    pub fn network(&self) -> (IpAddr, u8) {
        (self.0.network(), self.0.prefix_len())
    }

    /// Returns whether the range is wider than one operator's network can be.
    pub fn is_too_wide(&self) -> bool {
        let prefix = self.0.prefix_len();
        match self.0 {
            IpNet::V4(_) => prefix < V4_PREFIX_OWN_MIN,
            // fc00::/7 is the range for private IPv6 networks.
            IpNet::V6(v6) => {
                prefix < V6_PREFIX_OWN_MIN && !(prefix >= 7 && v6.addr().is_unique_local())
            }
        }
    }
}

impl fmt::Display for AddressRange {
    /// Writes the network, such as `10.0.0.0/8`, which [`AddressRange::parse`] accepts.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Converts an IPv4-mapped IPv6 range to its IPv4 range.
fn canonical(range: IpNet) -> IpNet {
    let (IpAddr::V4(v4), IpNet::V6(_)) = (range.addr().to_canonical(), range) else {
        return range;
    };
    let prefix = range.prefix_len().checked_sub(MAPPED_BITS);
    let mapped = prefix.and_then(|prefix| Ipv4Net::new(v4, prefix).ok());
    mapped.map_or(range, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::itself("10.0.0.5", "10.0.0.5", true)]
    #[case::neighbour("10.0.0.5", "10.0.0.6", false)]
    #[case::first("10.0.0.0/8", "10.0.0.0", true)]
    #[case::last("10.0.0.0/8", "10.255.255.255", true)]
    #[case::past_the_end("10.0.0.0/8", "11.0.0.0", false)]
    #[case::host_bits_do_not_matter("10.1.2.3/8", "10.200.0.1", true)]
    #[case::seen_as_mapped("10.0.0.0/8", "::ffff:10.0.0.5", true)]
    #[case::written_as_mapped("::ffff:10.0.0.0/104", "10.0.0.5", true)]
    #[case::v6("fd00::/8", "fdff::1", true)]
    #[case::v6_outside("fd00::/8", "fe80::1", false)]
    #[case::all_of_v4("0.0.0.0/0", "203.0.113.9", true)]
    #[case::all_of_v6("::/0", "2001:db8::1", true)]
    #[case::families_stay_apart("0.0.0.0/0", "2001:db8::1", false)]
    #[case::families_stay_apart_too("::/0", "203.0.113.9", false)]
    fn checks_whether_a_range_contains_an_address(
        #[case] range: &str,
        #[case] address: &str,
        #[case] expected: bool,
    ) {
        let range = AddressRange::parse(range).unwrap();
        assert_eq!(range.contains(address.parse().unwrap()), expected);
    }

    #[rstest]
    #[case::one("10.0.0.5", "10.0.0.5", 32)]
    #[case::host_bits("10.1.2.3/8", "10.0.0.0", 8)]
    #[case::all_of_v4("10.1.2.3/0", "0.0.0.0", 0)]
    #[case::v6("2001:db8:1:2:3::/64", "2001:db8:1:2::", 64)]
    #[case::all_of_v6("2001:db8::/0", "::", 0)]
    fn returns_the_network_of_a_range(
        #[case] range: &str,
        #[case] first: &str,
        #[case] prefix: u8,
    ) {
        let range = AddressRange::parse(range).unwrap();
        assert_eq!(range.network(), (first.parse().unwrap(), prefix));
    }

    #[rstest]
    #[case::itself("10.0.0.0/8", "10.0.0.0/8", true)]
    #[case::part("10.0.0.0/8", "10.1.0.0/16", true)]
    #[case::one_address("10.0.0.0/8", "10.1.2.3", true)]
    #[case::wider("10.1.0.0/16", "10.0.0.0/8", false)]
    #[case::beside("10.0.0.0/16", "10.1.0.0/16", false)]
    #[case::other_family("::/0", "10.0.0.0/8", false)]
    fn a_range_covers_its_parts(#[case] range: &str, #[case] other: &str, #[case] expected: bool) {
        let [range, other] = [range, other].map(|text| AddressRange::parse(text).unwrap());
        assert_eq!(range.covers(&other), expected);
    }

    #[rstest]
    #[case("10.0.0.5", "10.0.0.5/32")]
    #[case("2001:db8:1:2:3::/64", "2001:db8:1:2::/64")]
    fn a_printed_range_can_be_parsed(#[case] text: &str, #[case] expected: &str) {
        let range = AddressRange::parse(text).unwrap();
        assert_eq!(range.to_string(), expected);
        assert_eq!(AddressRange::parse(expected), Ok(range));
    }

    #[rstest]
    #[case::empty("")]
    #[case::a_name("proxy.example.com")]
    #[case::with_a_port("10.0.0.5:80")]
    #[case::too_long("10.0.0.0/33")]
    #[case::too_long_v6("fd00::/129")]
    #[case::no_prefix("10.0.0.0/")]
    #[case::signed("10.0.0.0/+8")]
    #[case::mask("10.0.0.0/255.0.0.0")]
    #[case::short("10/8")]
    fn rejects_invalid_ranges(#[case] text: &str) {
        assert!(AddressRange::parse(text).is_err());
    }

    #[rstest]
    #[case::everything("0.0.0.0/0", true)]
    #[case::half_of_it("128.0.0.0/1", true)]
    #[case::private("10.0.0.0/8", false)]
    #[case::everything_v6("::/0", true)]
    #[case::all_public_v6("2000::/3", true)]
    #[case::private_v6("fd00::/8", false)]
    #[case::one("203.0.113.9", false)]
    fn detects_ranges_that_are_too_wide(#[case] range: &str, #[case] expected: bool) {
        assert_eq!(AddressRange::parse(range).unwrap().is_too_wide(), expected);
    }
}
