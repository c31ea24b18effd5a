//! A range of addresses: one address, or a network in CIDR form.
//!
//! Addresses are compared in canonical form: a server that listens on `[::]` sees an IPv4 proxy as
//! `::ffff:10.0.0.5`, and `10.0.0.5` in the configuration must still mean it.

use ipnet::{IpNet, Ipv4Net};
use std::net::IpAddr;

/// `::ffff:0:0/96` holds the IPv4 addresses.
const MAPPED_BITS: u8 = 96;
/// IPv4 ranges wider than this are no operator's own network.
const V4_PREFIX_OWN_MIN: u8 = 8;
/// IPv6 ranges wider than this are no operator's own network, `fd00::/8` apart.
const V6_PREFIX_OWN_MIN: u8 = 16;

/// One address or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange(IpNet);

impl AddressRange {
    /// Reads `10.0.0.5`, `10.0.0.0/8` or `fd00::/8`; otherwise says what is expected.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "must be an address such as 10.0.0.5, or a range such as 10.0.0.0/8; \
             at most /32 for IPv4, /128 for IPv6";
        let one = text.parse().map(|address: IpAddr| IpNet::from(address));
        let range = one.or_else(|_| text.parse()).map_err(|_| EXPECTED)?;
        Ok(Self(canonical(range).trunc()))
    }

    /// Whether an address lies within.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Its first address and how many bits all of its addresses share.
    pub fn network(&self) -> (IpAddr, u8) {
        (self.0.network(), self.0.prefix_len())
    }

    /// Whether this is more than one operator's own network: a good part of the internet, or all of it.
    pub fn is_too_wide(&self) -> bool {
        let prefix = self.0.prefix_len();
        match self.0 {
            IpNet::V4(_) => prefix < V4_PREFIX_OWN_MIN,
            // fc00::/7 is what private networks have.
            IpNet::V6(v6) => {
                prefix < V6_PREFIX_OWN_MIN && !(prefix >= 7 && v6.addr().is_unique_local())
            }
        }
    }
}

/// An IPv4 range that is written as IPv6 is the IPv4 range.
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
    fn what_a_range_contains(#[case] range: &str, #[case] address: &str, #[case] expected: bool) {
        let range = AddressRange::parse(range).unwrap();
        assert_eq!(range.contains(address.parse().unwrap()), expected);
    }

    #[rstest]
    #[case::one("10.0.0.5", "10.0.0.5", 32)]
    #[case::host_bits("10.1.2.3/8", "10.0.0.0", 8)]
    #[case::all_of_v4("10.1.2.3/0", "0.0.0.0", 0)]
    #[case::v6("2001:db8:1:2:3::/64", "2001:db8:1:2::", 64)]
    #[case::all_of_v6("2001:db8::/0", "::", 0)]
    fn the_first_of_a_range(#[case] range: &str, #[case] first: &str, #[case] prefix: u8) {
        let range = AddressRange::parse(range).unwrap();
        assert_eq!(range.network(), (first.parse().unwrap(), prefix));
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
    fn what_is_no_range(#[case] text: &str) {
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
    fn ranges_nobody_owns_are_reckless(#[case] range: &str, #[case] expected: bool) {
        assert_eq!(AddressRange::parse(range).unwrap().is_too_wide(), expected);
    }
}
