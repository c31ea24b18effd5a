//! Decides whether an IP address is publicly routable.
//!
//! Requests to the ad networks go to public addresses only, so that a host name cannot point into
//! our own network. `networks.allow_private_addresses` lifts this restriction for a simulator.

use std::net::IpAddr;

/// Returns whether an address is public: not loopback, not private, not reserved, and not in a
/// range whose addresses contain other addresses.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_shared_with_the_carrier = a == 100 && (64..128).contains(&b);
            let is_for_benchmarks = a == 198 && (b == 18 || b == 19);
            let is_for_protocols = matches!((a, b, c), (192, 0, 0) | (192, 88, 99));
            !(v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || is_shared_with_the_carrier
                || is_for_benchmarks
                || is_for_protocols)
        }
        // Global unicast, except the ranges whose addresses contain other addresses (Teredo, 6to4),
        // and the documentation ranges. Mapped, NAT64, local and multicast ranges lie outside
        // 2000::/3.
        IpAddr::V6(v6) => {
            matches!(v6.segments(), [0x2000..=0x3fff, ..])
                && !matches!(
                    v6.segments(),
                    [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..]
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ordinary("8.8.8.8", true)]
    #[case::this_network("0.0.0.0", false)]
    #[case::below_private("9.255.255.255", true)]
    #[case::private_ten("10.0.0.1", false)]
    #[case::above_private("11.0.0.0", true)]
    #[case::below_carrier("100.63.255.255", true)]
    #[case::carrier("100.64.0.1", false)]
    #[case::carrier_last("100.127.255.255", false)]
    #[case::above_carrier("100.128.0.0", true)]
    #[case::loopback("127.0.0.1", false)]
    #[case::loopback_elsewhere("127.8.9.10", false)]
    #[case::cloud_metadata("169.254.169.254", false)]
    #[case::private_172_first("172.16.0.0", false)]
    #[case::private_172_last("172.31.255.255", false)]
    #[case::above_172("172.32.0.0", true)]
    #[case::protocols("192.0.0.8", false)]
    #[case::documentation_one("192.0.2.1", false)]
    #[case::old_6to4_relay("192.88.99.1", false)]
    #[case::private_192("192.168.1.1", false)]
    #[case::benchmarks("198.18.0.1", false)]
    #[case::benchmarks_last("198.19.255.255", false)]
    #[case::above_benchmarks("198.20.0.0", true)]
    #[case::documentation_two("198.51.100.1", false)]
    #[case::documentation_three("203.0.113.1", false)]
    #[case::multicast("224.0.0.1", false)]
    #[case::reserved("240.0.0.1", false)]
    #[case::broadcast("255.255.255.255", false)]
    #[case::ordinary_v6("2606:4700:4700::1111", true)]
    #[case::unspecified_v6("::", false)]
    #[case::loopback_v6("::1", false)]
    #[case::mapped_loopback("::ffff:127.0.0.1", false)]
    #[case::mapped_public("::ffff:8.8.8.8", false)]
    #[case::nat64("64:ff9b::8.8.8.8", false)]
    #[case::teredo("2001:0:1::1", false)]
    #[case::above_teredo("2001:200::1", true)]
    #[case::documentation_v6("2001:db8::1", false)]
    #[case::six_to_four("2002:7f00:1::", false)]
    #[case::documentation_new("3fff:fff::1", false)]
    #[case::unique_local("fd00::1", false)]
    #[case::link_local_v6("fe80::1", false)]
    #[case::multicast_v6("ff02::1", false)]
    fn recognises_public_addresses(#[case] address: &str, #[case] expected: bool) {
        assert_eq!(is_public(address.parse().unwrap()), expected);
    }
}
