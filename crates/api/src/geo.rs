//! GeoIP types.
//!
//! The server reads the GeoIP database that the operator configures. Without a GeoIP database,
//! countries are unknown and everything else works.

use axum::http::{HeaderMap, HeaderName};
use std::net::IpAddr;
use std::sync::Arc;

/// Location of an IP address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GeoLocation {
    /// ISO 3166 country code, two capital letters.
    pub country: Option<String>,
    /// True for a relay that many people share, such as iCloud Private Relay.
    pub is_relay: bool,
}

/// Looks up the location of an address. Must not block: the data is in memory.
pub type GeoLookup = Arc<dyn Fn(IpAddr) -> GeoLocation + Send + Sync>;

/// Returns a lookup without data: every location is unknown.
pub fn no_geo_lookup() -> GeoLookup {
    Arc::new(|_| GeoLocation::default())
}

/// Code that CDNs send for an unknown country.
const UNKNOWN_COUNTRY: &str = "XX";

/// Returns the country code in a header. Returns `None` if the header occurs more than once,
/// because one of the values may be forged.
pub(crate) fn country_from_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    let code = only.to_str().ok()?.trim().to_ascii_uppercase();
    let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_code && code != UNKNOWN_COUNTRY).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::code(&["DE"], Some("DE"))]
    #[case::lower_case(&["de"], Some("DE"))]
    #[case::blanks(&[" DE "], Some("DE"))]
    #[case::missing(&[], None)]
    #[case::empty(&[""], None)]
    #[case::unknown(&["XX"], None)]
    #[case::tor(&["T1"], None)]
    #[case::a_name(&["Germany"], None)]
    #[case::one_may_be_forged(&["FR", "DE"], None)]
    fn countries_in_a_header(#[case] values: &[&str], #[case] expected: Option<&str>) {
        let name = HeaderName::from_static("cf-ipcountry");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        assert_eq!(country_from_header(&headers, &name).as_deref(), expected);
    }
}
