//! This server as browsers and devices know it.

use crate::vocabulary::digest::Digest;
use url::{Host, Url};

/// The host name that passkeys belong to, and the origin of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origin: String,
}

impl RelyingParty {
    /// Derives both from the server's base URL. Returns `None` if browsers offer no passkeys there: they
    /// need a host name, and TLS except on the local host.
    pub fn of(base_url: &str) -> Option<Self> {
        let url = Url::parse(base_url).ok()?;
        let Some(Host::Domain(name)) = url.host() else {
            return None;
        };
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let is_secure = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        is_secure.then(|| Self {
            id: name.to_owned(),
            origin: url.origin().ascii_serialization(),
        })
    }

    /// Returns the host name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the origin.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the hash that devices send.
    pub(super) fn hash(&self) -> [u8; 32] {
        *Digest::of(self.id.as_bytes()).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::tls("https://Ads.example.com/", Some(("ads.example.com", "https://ads.example.com")))]
    #[case::port("https://example.com:8443", Some(("example.com", "https://example.com:8443")))]
    #[case::local("http://localhost:8080", Some(("localhost", "http://localhost:8080")))]
    #[case::below_local("http://a.localhost", Some(("a.localhost", "http://a.localhost")))]
    #[case::plain_http("http://example.com", None)]
    #[case::similar_to_local("http://notlocalhost", None)]
    #[case::address("http://127.0.0.1:8080", None)]
    #[case::address_with_tls("https://192.0.2.1", None)]
    #[case::address_6("https://[::1]", None)]
    #[case::other_scheme("ftp://localhost", None)]
    #[case::no_url("nonsense", None)]
    fn passkeys_need_a_host_name(#[case] base_url: &str, #[case] expected: Option<(&str, &str)>) {
        let found = RelyingParty::of(base_url);
        let found = found.as_ref().map(|one| (one.id(), one.origin()));
        assert_eq!(found, expected);
    }
}
