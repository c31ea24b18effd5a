//! A range of addresses: one address, or a network in CIDR form.
//!
//! Addresses are compared in canonical form: a server that listens on `[::]` sees an IPv4 proxy as
//! `::ffff:10.0.0.5`, and `10.0.0.5` in the configuration must still mean it.

use std::net::IpAddr;

const V4_BITS: u8 = 32;
const V6_BITS: u8 = 128;
/// `::ffff:0:0/96` holds the IPv4 addresses.
const MAPPED_BITS: u8 = V6_BITS - V4_BITS;

/// IPv4 ranges wider than this are nobody's own network.
const V4_PREFIX_OWN_MIN: u8 = 8;
/// IPv6 ranges wider than this are nobody's own network, `fd00::/8` apart.
const V6_PREFIX_OWN_MIN: u8 = 16;

/// One address or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// Reads `10.0.0.5`, `10.0.0.0/8` or `fd00::/8`; otherwise says what is expected.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "must be an address such as 10.0.0.5, or a range such as 10.0.0.0/8";
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| EXPECTED)?;
        let bits = if address.is_ipv4() { V4_BITS } else { V6_BITS };
        let prefix = match prefix {
            // `u8::parse` would take "+8" as well.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| EXPECTED)?
            }
            Some(_) => return Err(EXPECTED),
            None => bits,
        };
        if prefix > bits {
            return Err("has a range that is too long: at most /32 for IPv4, /128 for IPv6");
        }
        Ok(Self { address, prefix }.canonical())
    }

    /// Whether an address lies within.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (range, range_bits) = bits(self.address);
        let (address, address_bits) = bits(address.to_canonical());
        // A shift by the whole width is what `/0` asks for, and what `checked_shr` has no answer to.
        let shift = u32::from(range_bits - self.prefix);
        range_bits == address_bits
            && range.checked_shr(shift).unwrap_or(0) == address.checked_shr(shift).unwrap_or(0)
    }

    /// Its first address and how many bits all of its addresses share.
    pub fn network(&self) -> (IpAddr, u8) {
        let first = match self.address {
            IpAddr::V4(v4) => {
                let host = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & !host).into())
            }
            IpAddr::V6(v6) => {
                let host = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & !host).into())
            }
        };
        (first, self.prefix)
    }

    /// Whether this is more than anybody's own network: a good part of the internet, or all of it.
    pub fn is_reckless(&self) -> bool {
        match self.address {
            IpAddr::V4(_) => self.prefix < V4_PREFIX_OWN_MIN,
            // fc00::/7 is what private networks have.
            IpAddr::V6(v6) => {
                self.prefix < V6_PREFIX_OWN_MIN && !(self.prefix >= 7 && v6.is_unique_local())
            }
        }
    }

    fn canonical(self) -> Self {
        let canonical = self.address.to_canonical();
        if canonical.is_ipv4() && self.address.is_ipv6() && self.prefix >= MAPPED_BITS {
            return Self {
                address: canonical,
                prefix: self.prefix - MAPPED_BITS,
            };
        }
        self
    }
}

/// An address as a number, and how many bits it has.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), V4_BITS),
        IpAddr::V6(v6) => (v6.to_bits(), V6_BITS),
    }
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
        assert_eq!(AddressRange::parse(range).unwrap().is_reckless(), expected);
    }
}
