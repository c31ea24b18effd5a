//! Client address behind the operator's proxies.

use axum::http::{HeaderMap, HeaderName};
use std::net::IpAddr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Maximum number of `X-Forwarded-For` entries to read. Longer chains are not legitimate.
const HOPS_MAX: usize = 20;

/// Returns the client's address: the nearest address that is not a trusted proxy. Reads
/// `X-Forwarded-For` from the right and stops at the first untrusted address, because the client
/// can forge everything to the left of that address.
pub(crate) fn client_address(
    peer: IpAddr,
    headers: &HeaderMap,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut address = peer.to_canonical();
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let hops = lines
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.rsplit(','));
    for hop in hops.take(HOPS_MAX) {
        if !is_trusted(address) {
            break;
        }
        // A trusted proxy writes only valid addresses, so an invalid entry was not written by one.
        let Some(next) = parse_hop(hop.trim()) else {
            break;
        };
        address = next;
    }
    address
}

/// Parses an address with or without a port or brackets.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| {
            text.parse::<std::net::SocketAddr>()
                .ok()
                .map(|with_port| with_port.ip())
        })
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn is_trusted(address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10)
    }

    #[rstest]
    #[case::no_proxy("192.0.2.1", &[], "192.0.2.1")]
    #[case::spoofed("192.0.2.1", &["203.0.113.9"], "192.0.2.1")]
    #[case::one_proxy("10.0.0.1", &["203.0.113.9"], "203.0.113.9")]
    #[case::two_proxies("10.0.0.1", &["203.0.113.9, 10.0.0.2"], "203.0.113.9")]
    #[case::spoofed_behind_a_proxy("10.0.0.1", &["198.51.100.7, 203.0.113.9"], "203.0.113.9")]
    #[case::several_headers("10.0.0.1", &["198.51.100.7", "203.0.113.9, 10.0.0.2"], "203.0.113.9")]
    #[case::garbage("10.0.0.1", &["nonsense"], "10.0.0.1")]
    #[case::garbage_behind("10.0.0.1", &["nonsense, 203.0.113.9"], "203.0.113.9")]
    #[case::with_port("10.0.0.1", &["203.0.113.9:4711"], "203.0.113.9")]
    #[case::version_six("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1")]
    #[case::mapped_peer("::ffff:10.0.0.1", &["::ffff:203.0.113.9"], "203.0.113.9")]
    fn clients(#[case] peer: &str, #[case] headers: &[&str], #[case] expected: &str) {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append("x-forwarded-for", header.parse().unwrap());
        }
        let found = client_address(peer.parse().unwrap(), &map, is_trusted);
        assert_eq!(found, expected.parse::<IpAddr>().unwrap());
    }
}
