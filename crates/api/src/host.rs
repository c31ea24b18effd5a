//! By which name the service was asked: one instance answers under its own host and under those of apps.

use crate::state::ApiState;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use std::net::SocketAddr;
use tributary_domain::vocabulary::web_url::HostName;

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The host of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestHost {
    /// The service's own.
    Service,
    /// Another name, which may be an app's.
    Named(HostName),
    /// An address, or nothing that could be a name.
    Other,
}

/// The host of a request. Behind a proxy of the operator's it is the one that the proxy was asked for; from
/// anybody else that header proves nothing.
pub(crate) fn request_host(parts: &Parts, state: &ApiState) -> RequestHost {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let is_proxy = peer.is_some_and(|peer| (state.is_trusted_proxy)(peer.0.ip().to_canonical()));
    let forwarded = is_proxy
        .then(|| last_value(&parts.headers, &X_FORWARDED_HOST))
        .flatten();
    let asked = forwarded
        .or_else(|| parts.uri.host())
        .or_else(|| last_value(&parts.headers, &header::HOST));
    classify_host(asked.unwrap_or_default(), &state.base_url)
}

/// Each proxy adds to the right, so the last value is the nearest one's.
fn last_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next().map(str::trim)
}

fn classify_host(asked: &str, base_url: &str) -> RequestHost {
    let own = base_url.split_once("://").map_or(base_url, |(_, own)| own);
    let own = own.split('/').next().unwrap_or_default();
    let asked = without_port(asked);
    if asked.eq_ignore_ascii_case(without_port(own)) {
        return RequestHost::Service;
    }
    HostName::parse(asked).map_or(RequestHost::Other, RequestHost::Named)
}

/// A name without its port, and without the dot that ends a name for good.
fn without_port(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::own("t.example.com", None)]
    #[case::own_with_port("t.example.com:443", None)]
    #[case::own_in_capitals("T.Example.com.", None)]
    #[case::an_apps("go.example.com", Some("go.example.com"))]
    #[case::an_apps_with_port("GO.example.com:8443", Some("go.example.com"))]
    #[case::an_apps_with_a_dot("go.example.com.", Some("go.example.com"))]
    fn names(#[case] asked: &str, #[case] expected: Option<&str>) {
        let expected = expected.map_or(RequestHost::Service, |name| {
            RequestHost::Named(HostName::parse(name).unwrap())
        });
        for base_url in ["https://t.example.com", "https://t.example.com:8443"] {
            assert_eq!(classify_host(asked, base_url), expected);
        }
    }

    #[rstest]
    #[case::empty("")]
    #[case::address("192.0.2.1:8080")]
    #[case::version_six("[2001:db8::1]:8080")]
    #[case::one_label("localhost:8080")]
    #[case::with_path("go.example.com/x")]
    #[case::credentials("you@go.example.com")]
    #[case::markup("<script>")]
    fn what_is_no_name(#[case] asked: &str) {
        assert_eq!(
            classify_host(asked, "https://t.example.com"),
            RequestHost::Other
        );
    }

    #[rstest]
    #[case("127.0.0.1:8080", "http://127.0.0.1:8080")]
    #[case("localhost:9000", "http://localhost:8080")]
    #[case("[::1]:8080", "http://[::1]:8080")]
    fn a_service_without_a_name_is_found_all_the_same(#[case] asked: &str, #[case] base: &str) {
        assert_eq!(classify_host(asked, base), RequestHost::Service);
    }

    #[test]
    fn the_nearest_proxys_word_counts() {
        let mut headers = HeaderMap::new();
        headers.append(X_FORWARDED_HOST, "evil.test".parse().unwrap());
        headers.append(X_FORWARDED_HOST, "a.test, go.example.com".parse().unwrap());
        assert_eq!(
            last_value(&headers, &X_FORWARDED_HOST),
            Some("go.example.com")
        );
    }
}
