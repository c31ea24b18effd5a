//! IP addresses for matching.
//!
//! An address that many users share, or a private one, does not identify a device. Other addresses
//! are compared by a keyed hash that changes every day: without the instance's secret it cannot be
//! reversed, and the database alone does not link an address across days.

use crate::app::PROBABILISTIC_WINDOW_HOURS;
use crate::device::AdvertisingId;
use crate::keyring::{Keyring, Purpose, Tagger};
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::time::Timestamp;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MILLIS_PER_HOUR: i64 = 60 * 60 * 1000;

/// Class of an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Relay service that many users share.
    Relay,
    /// Private, loopback, link-local, carrier-grade NAT, unique-local.
    Private,
    /// Any other address.
    Other,
}

crate::keywords! {
    AddressClass {
        Relay => "relay",
        Private => "private",
        Other => "other",
    }
}

/// Classifies an address. The caller looks up whether it belongs to a relay.
pub fn classify(address: IpAddr, is_relay: bool) -> AddressClass {
    let is_private = match address.to_canonical() {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    };
    match (is_private, is_relay) {
        (true, _) => AddressClass::Private,
        (false, true) => AddressClass::Relay,
        (false, false) => AddressClass::Other,
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_carrier_nat = first == 100 && (64..128).contains(&second);
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || is_carrier_nat
        || first == 0
        || address.is_multicast()
        || address.is_broadcast()
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unicast_link_local()
        || address.is_unique_local()
        || address.is_multicast()
}

/// An address in the form that is compared: IPv4 in full, IPv6 by its /64 prefix, which a provider
/// assigns to one connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ComparableAddress(IpAddr);

impl ComparableAddress {
    /// Returns the comparable form; `None` if the address must not be compared.
    pub fn of(address: IpAddr, is_relay: bool) -> Option<Self> {
        let whole = address.to_canonical();
        (classify(whole, is_relay) == AddressClass::Other).then(|| match whole {
            IpAddr::V4(_) => Self(whole),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
            }
        })
    }
}

impl std::fmt::Debug for ComparableAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ComparableAddress(…)")
    }
}

/// Keyed hasher for addresses and advertising ids. Creating one derives two keys, so create it once.
#[derive(Clone)]
pub struct AddressHasher {
    addresses: Tagger,
    advertising_ids: Tagger,
}

impl std::fmt::Debug for AddressHasher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AddressHasher(***)")
    }
}

impl AddressHasher {
    /// Creates a hasher with the instance's secret.
    pub fn new(keyring: &Keyring) -> Self {
        Self {
            addresses: keyring.tagger(Purpose::Address),
            advertising_ids: keyring.tagger(Purpose::AdvertisingId),
        }
    }

    /// Returns the hash of an address on the UTC day of `at`.
    pub fn hash(&self, address: ComparableAddress, at: Timestamp) -> Digest {
        self.hash_on(address, Day::of(at))
    }

    /// Returns the hashes that this address had in the hours before `at`, newest first: at most
    /// two, because no probabilistic window is longer than a day.
    pub fn hashes_within(
        &self,
        address: ComparableAddress,
        at: Timestamp,
        hours: i64,
    ) -> Vec<Digest> {
        let hours = hours.clamp(0, *PROBABILISTIC_WINDOW_HOURS.end());
        let begin = at.as_millis().saturating_sub(hours * MILLIS_PER_HOUR);
        let (first, last) = (Day::of(Timestamp::from_millis(begin)), Day::of(at));
        (first.as_days()..=last.as_days())
            .rev()
            .map(|day| self.hash_on(address, Day::from_days(day)))
            .collect()
    }

    /// Returns the hash of an advertising id. It never changes, because ids are compared over the
    /// whole click window.
    pub fn advertising_id(&self, id: &AdvertisingId) -> Digest {
        Digest::from_bytes(self.advertising_ids.tag(&[id.as_str().as_bytes()]))
    }

    fn hash_on(&self, address: ComparableAddress, day: Day) -> Digest {
        let day = day.as_days().to_be_bytes();
        let tag = match address.0 {
            IpAddr::V4(address) => self.addresses.tag(&[&day, &address.octets()]),
            IpAddr::V6(address) => self.addresses.tag(&[&day, &address.octets()]),
        };
        Digest::from_bytes(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// 2026-01-01T00:00:00Z.
    const MIDNIGHT: i64 = 1_767_225_600_000;

    fn comparable(text: &str) -> Option<ComparableAddress> {
        ComparableAddress::of(text.parse().unwrap(), false)
    }

    #[rstest]
    #[case::public("203.0.113.9", false, AddressClass::Other)]
    #[case::public_v6("2001:db8::1", false, AddressClass::Other)]
    #[case::relay("203.0.113.9", true, AddressClass::Relay)]
    #[case::private_a("10.1.2.3", false, AddressClass::Private)]
    #[case::private_b("172.31.0.1", false, AddressClass::Private)]
    #[case::beside_private_b("172.32.0.1", false, AddressClass::Other)]
    #[case::private_c("192.168.1.1", false, AddressClass::Private)]
    #[case::loopback("127.0.0.1", false, AddressClass::Private)]
    #[case::link_local("169.254.0.1", false, AddressClass::Private)]
    #[case::carrier_nat_first("100.64.0.0", false, AddressClass::Private)]
    #[case::carrier_nat_last("100.127.255.255", false, AddressClass::Private)]
    #[case::beside_carrier_nat("100.128.0.0", false, AddressClass::Other)]
    #[case::unspecified("0.0.0.0", false, AddressClass::Private)]
    #[case::loopback_v6("::1", false, AddressClass::Private)]
    #[case::link_local_v6("fe80::1", false, AddressClass::Private)]
    #[case::unique_local_v6("fd00::1", false, AddressClass::Private)]
    #[case::mapped_private("::ffff:10.0.0.1", false, AddressClass::Private)]
    #[case::mapped_public("::ffff:203.0.113.9", false, AddressClass::Other)]
    fn classifies_addresses(
        #[case] address: &str,
        #[case] is_relay: bool,
        #[case] expected: AddressClass,
    ) {
        let address = address.parse().unwrap();
        assert_eq!(classify(address, is_relay), expected);
        let is_comparable = ComparableAddress::of(address, is_relay).is_some();
        assert_eq!(is_comparable, expected == AddressClass::Other);
    }

    #[rstest]
    #[case::the_same("203.0.113.9", "203.0.113.9", true)]
    #[case::a_neighbour("203.0.113.9", "203.0.113.10", false)]
    #[case::mapped("203.0.113.9", "::ffff:203.0.113.9", true)]
    #[case::same_line_v6("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", true)]
    #[case::next_line_v6("2001:db8:1:2::1", "2001:db8:1:3::1", false)]
    fn compares_ipv4_whole_and_ipv6_by_prefix(
        #[case] one: &str,
        #[case] other: &str,
        #[case] equal: bool,
    ) {
        let hasher = AddressHasher::new(&Keyring::new([1; 32]));
        let at = Timestamp::from_millis(MIDNIGHT);
        let hash = |text| hasher.hash(comparable(text).unwrap(), at);
        assert_eq!(hash(one) == hash(other), equal);
    }

    #[test]
    fn a_hash_lasts_a_utc_day() {
        let hasher = AddressHasher::new(&Keyring::new([1; 32]));
        let address = comparable("203.0.113.9").unwrap();
        let hash = |millis| hasher.hash(address, Timestamp::from_millis(MIDNIGHT + millis));
        assert_eq!(hash(0), hash(24 * MILLIS_PER_HOUR - 1));
        assert_ne!(hash(0), hash(-1));
        let another = AddressHasher::new(&Keyring::new([2; 32]));
        let at = Timestamp::from_millis(MIDNIGHT);
        assert_ne!(hash(0), another.hash(address, at), "the hash is keyed");
    }

    #[rstest]
    #[case::within_the_day(12, 1, 1)]
    #[case::over_midnight(12, 13, 2)]
    #[case::a_whole_day(12, 24, 2)]
    #[case::longer_than_any_window(12, 24 * 365, 2)]
    #[case::no_time_at_all(0, 0, 1)]
    #[case::negative(0, -5, 1)]
    fn hashes_cover_the_window(#[case] hour: i64, #[case] hours: i64, #[case] count: usize) {
        let hasher = AddressHasher::new(&Keyring::new([1; 32]));
        let address = comparable("203.0.113.9").unwrap();
        let at = MIDNIGHT + hour * MILLIS_PER_HOUR;
        let hashes = hasher.hashes_within(address, Timestamp::from_millis(at), hours);
        assert_eq!(hashes.len(), count);
        let begin = at - hours.clamp(0, 24) * MILLIS_PER_HOUR;
        for moment in [begin, at] {
            let hash = hasher.hash(address, Timestamp::from_millis(moment));
            assert!(hashes.contains(&hash), "a click at {moment} is found");
        }
    }

    #[test]
    fn advertising_ids_are_hashed_with_the_key() {
        let id = AdvertisingId::parse("6F9619FF-8B86-4011-B42D-00C04FC964FF").unwrap();
        let same = AdvertisingId::parse("6f9619ff-8b86-4011-b42d-00c04fc964ff").unwrap();
        let hasher = AddressHasher::new(&Keyring::new([1; 32]));
        assert_eq!(hasher.advertising_id(&id), hasher.advertising_id(&same));
        let another = AddressHasher::new(&Keyring::new([2; 32]));
        assert_ne!(hasher.advertising_id(&id), another.advertising_id(&id));
    }

    #[test]
    fn classes_round_trip_through_their_text() {
        for class in AddressClass::ALL {
            assert_eq!(AddressClass::parse(class.as_str()), Some(*class));
        }
    }
}
