//! The host name in a request. One instance serves its own host and the apps' link domains.

use crate::state::ApiState;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use std::net::SocketAddr;
use tributary_domain::vocabulary::web_url::HostName;

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Host of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestHost {
    /// The service's own host.
    Service,
    /// Another host name, possibly an app's link domain.
    Named(HostName),
    /// An IP address or an invalid name.
    Other,
}

/// Returns a request's host. `X-Forwarded-Host` counts only if a trusted proxy sent it.
pub(crate) fn request_host(parts: &Parts, state: &ApiState) -> RequestHost {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let is_proxy = peer.is_some_and(|peer| (state.is_trusted_proxy)(peer.0.ip().to_canonical()));
    let forwarded = is_proxy
        .then(|| last_value(&parts.headers, &X_FORWARDED_HOST))
        .flatten();
    let host = forwarded
        .or_else(|| parts.uri.host())
        .or_else(|| last_value(&parts.headers, &header::HOST));
    classify_host(host.unwrap_or_default(), &state.base_url)
}

/// Returns a header's last value. Each proxy appends its value on the right, so the last value
/// comes from the nearest proxy.
fn last_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next().map(str::trim)
}

fn classify_host(host: &str, base_url: &str) -> RequestHost {
    let own = base_url.split_once("://").map_or(base_url, |(_, own)| own);
    let own = own.split('/').next().unwrap_or_default();
    let host = without_port(host);
    if host.eq_ignore_ascii_case(without_port(own)) {
        return RequestHost::Service;
    }
    HostName::parse(host).map_or(RequestHost::Other, RequestHost::Named)
}

/// Strips the port, and the trailing dot of an absolute name.
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
    fn names(#[case] host: &str, #[case] expected: Option<&str>) {
        let expected = expected.map_or(RequestHost::Service, |name| {
            RequestHost::Named(HostName::parse(name).unwrap())
        });
        for base_url in ["https://t.example.com", "https://t.example.com:8443"] {
            assert_eq!(classify_host(host, base_url), expected);
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
    fn hosts_that_are_not_names(#[case] host: &str) {
        assert_eq!(
            classify_host(host, "https://t.example.com"),
            RequestHost::Other
        );
    }

    #[rstest]
    #[case("127.0.0.1:8080", "http://127.0.0.1:8080")]
    #[case("localhost:9000", "http://localhost:8080")]
    #[case("[::1]:8080", "http://[::1]:8080")]
    fn a_service_without_a_domain_name_recognises_its_own_host(
        #[case] host: &str,
        #[case] base: &str,
    ) {
        assert_eq!(classify_host(host, base), RequestHost::Service);
    }

    #[test]
    fn uses_the_value_of_the_nearest_proxy() {
        let mut headers = HeaderMap::new();
        headers.append(X_FORWARDED_HOST, "evil.test".parse().unwrap());
        headers.append(X_FORWARDED_HOST, "a.test, go.example.com".parse().unwrap());
        assert_eq!(
            last_value(&headers, &X_FORWARDED_HOST),
            Some("go.example.com")
        );
    }
}
