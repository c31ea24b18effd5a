//! The network of an address.

use ipnet::IpNet;
use std::net::IpAddr;

/// Prefix of an IPv4 range that is shown instead of an address: the part that stays the same while
/// a provider assigns new addresses.
pub const RANGE_BITS_V4: u8 = 24;
/// Prefix of an IPv6 range that is shown instead of an address. Providers assign a /48 or less.
pub const RANGE_BITS_V6: u8 = 48;

/// Returns the address, or the /64 prefix of an IPv6 address, because providers assign a whole /64
/// to one customer.
pub fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// Returns the range of an address that people recognise, such as `192.0.2.0/24`.
pub fn address_range(address: IpAddr) -> String {
    let address = address.to_canonical();
    let bits = match address {
        IpAddr::V4(_) => RANGE_BITS_V4,
        IpAddr::V6(_) => RANGE_BITS_V6,
    };
    IpNet::new(address, bits).map_or_else(|_| String::new(), |range| range.trunc().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ipv4("192.0.2.1", "192.0.2.0/24")]
    #[case::mapped("::ffff:192.0.2.1", "192.0.2.0/24")]
    #[case::ipv6("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48")]
    fn a_range_does_not_name_one_customer(#[case] address: &str, #[case] expected: &str) {
        assert_eq!(address_range(address.parse().unwrap()), expected);
    }

    #[rstest]
    #[case::ipv4("192.0.2.1", "192.0.2.1")]
    #[case::mapped("::ffff:192.0.2.1", "192.0.2.1")]
    #[case::ipv6("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")]
    fn an_ipv6_network_counts_as_one_address(#[case] address: &str, #[case] expected: &str) {
        let expected: IpAddr = expected.parse().unwrap();
        assert_eq!(subnet(address.parse().unwrap()), expected);
    }
}
