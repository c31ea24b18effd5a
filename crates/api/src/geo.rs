//! Where an address is, as far as anybody knows.
//!
//! The data is the operator's choice and is read outside of this crate; here is only its form. Without any,
//! countries stay unknown and nothing fails.

use axum::http::{HeaderMap, HeaderName};
use std::net::IpAddr;
use std::sync::Arc;

/// Where an address is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GeoLocation {
    /// Two letters.
    pub country: Option<String>,
    /// Whether it belongs to a relay that many people share.
    pub is_relay: bool,
}

/// Finds the place of an address. It answers at once: what it knows is in memory.
pub type GeoLookup = Arc<dyn Fn(IpAddr) -> GeoLocation + Send + Sync>;

/// Knows no places.
pub fn no_geo_lookup() -> GeoLookup {
    Arc::new(|_| GeoLocation::default())
}

/// What a CDN writes where it does not know the country.
const UNKNOWN_COUNTRY: &str = "XX";

/// The country in a header: two letters, and one country only.
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
    #[case::told(&["DE"], Some("DE"))]
    #[case::small(&["de"], Some("DE"))]
    #[case::blanks(&[" DE "], Some("DE"))]
    #[case::not_told(&[], None)]
    #[case::empty(&[""], None)]
    #[case::unknown(&["XX"], None)]
    #[case::tor(&["T1"], None)]
    #[case::a_name(&["Germany"], None)]
    #[case::one_of_them_is_the_clients_own(&["FR", "DE"], None)]
    fn countries_in_a_header(#[case] values: &[&str], #[case] expected: Option<&str>) {
        let name = HeaderName::from_static("cf-ipcountry");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        assert_eq!(country_from_header(&headers, &name).as_deref(), expected);
    }
}
