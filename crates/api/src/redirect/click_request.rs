//! Reads a tap's data from its request, and builds the click to record.

use crate::geo::GeoLocation;
use crate::host::{RequestHost, request_host};
use crate::state::ApiState;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::{ACCEPT_LANGUAGE, REFERER, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use std::borrow::Cow;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use tributary_domain::audit::Client;
use tributary_domain::click::address::ComparableAddress;
use tributary_domain::click::agent::{Agent, ClientHints};
use tributary_domain::click::{
    Click, ClickParameters, clean_user_agent, detect_bot, detect_network, first_language,
    referer_origin, uncounted_reason,
};
use tributary_domain::vocabulary::id::ClickId;
use tributary_store::TrackedLink;

/// Headers in which browsers mark prefetches and previews.
const PURPOSES: [HeaderName; 4] = [
    HeaderName::from_static("sec-purpose"),
    HeaderName::from_static("purpose"),
    HeaderName::from_static("x-purpose"),
    HeaderName::from_static("x-moz"),
];
const PLATFORM: HeaderName = HeaderName::from_static("sec-ch-ua-platform");
const PLATFORM_VERSION: HeaderName = HeaderName::from_static("sec-ch-ua-platform-version");
const MODEL: HeaderName = HeaderName::from_static("sec-ch-ua-model");

/// A tap before its link is looked up.
#[derive(Debug)]
pub(super) struct ClickRequest {
    /// Link id or slug in the path; may be invalid.
    pub(super) name: String,
    /// Sanitised query parameters.
    pub(super) parameters: ClickParameters,
    /// Host of the request.
    pub(super) host: RequestHost,
    is_head: bool,
    uri: Uri,
    headers: HeaderMap,
    address: IpAddr,
    geo: GeoLocation,
}

impl FromRequestParts<ApiState> for ClickRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Infallible> {
        // A path that is not UTF-8 matches no link.
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        let name = params.as_ref().and_then(|params| params.iter().next());
        let client = parts.extensions.get::<Client>();
        let address = client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.address);
        Ok(Self {
            name: name.map_or_else(String::new, |(_, name)| name.to_owned()),
            parameters: ClickParameters::read(parts.uri.query().unwrap_or_default()),
            host: request_host(parts, state),
            is_head: parts.method == Method::HEAD,
            address,
            geo: state.geo_location(address, parts),
            uri: std::mem::take(&mut parts.uri),
            // The handlers have no other use for the headers.
            headers: std::mem::take(&mut parts.headers),
        })
    }
}

impl ClickRequest {
    /// Returns the raw query string.
    pub(super) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// Builds the click to record.
    pub(super) fn click(&self, state: &ApiState, tracked: &TrackedLink) -> Click {
        let TrackedLink { link, app } = tracked;
        let now = state.runtime.now();
        let hasher = state.address_hasher();
        let comparable = ComparableAddress::of(self.address, self.geo.is_relay);
        let read = self.parameters.capture(&link.campaign);
        let (network, network_by) = detect_network(&read.captured, link.network).unzip();
        let user_agent = header(&self.headers, &USER_AGENT);
        // A missing header marks nothing, like an empty one.
        let purposes = PURPOSES.map(|name| header(&self.headers, &name).unwrap_or_default());
        let purposes = purposes.each_ref().map(Cow::as_ref);
        let bot = detect_bot(self.is_head, &purposes, user_agent.as_deref());
        let from_header = |name, read: fn(&str) -> Option<String>| {
            header(&self.headers, name).and_then(|text| read(&text))
        };
        Click {
            id: ClickId::new(now, state.runtime.random_bytes()),
            app: app.id,
            link: link.id,
            clicked_at: now,
            network,
            network_by,
            bot: uncounted_reason(link, bot),
            agent: read_agent(&self.headers),
            language: from_header(&ACCEPT_LANGUAGE, first_language),
            timezone: None,
            screen: None,
            address: Some(self.address),
            address_hash: comparable.map(|address| hasher.hash(address, now)),
            advertising_hash: read.advertising_id.map(|id| hasher.advertising_id(&id)),
            country: self.geo.country.clone(),
            user_agent: user_agent.as_deref().and_then(clean_user_agent),
            referer: from_header(&REFERER, referer_origin),
            environment: None,
            destination_origin: link
                .destination_url
                .as_ref()
                .map(|url| url.origin().as_str().to_owned()),
            captured: read.captured,
        }
    }
}

/// Reads the platform, OS version and model from the headers.
pub(super) fn read_agent(headers: &HeaderMap) -> Agent {
    let [platform, platform_version, model] =
        [PLATFORM, PLATFORM_VERSION, MODEL].map(|name| header(headers, &name));
    let hints = ClientHints {
        platform: platform.as_deref(),
        platform_version: platform_version.as_deref(),
        model: model.as_deref(),
    };
    Agent::read(header(headers, &USER_AGENT).as_deref(), hints)
}

/// Returns a header as text, even if it is not ASCII: in-app browsers send device names in any
/// writing system, without encoding.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::tap::tests::tracked;
    use crate::state::ApiState;
    use crate::tests::handles_in;
    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::Request;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;
    use tributary_domain::click::BotReason;

    /// Returns the click for a tap with these headers. 10.0.0.1 is a trusted proxy and 203.0.113.9
    /// a relay; every address is in Austria.
    async fn click(peer: [u8; 4], headers: &[(&str, &[u8])]) -> Click {
        let folder = tempfile::tempdir().unwrap();
        let mut handles = handles_in(folder.path(), Duration::from_secs(5));
        handles.is_trusted_proxy = Arc::new(|address| address == IpAddr::from([10, 0, 0, 1]));
        handles.country_header = Some(HeaderName::from_static("cf-ipcountry"));
        handles.geo_lookup = Arc::new(|address| GeoLocation {
            country: Some("AT".to_owned()),
            is_relay: address == IpAddr::from([203, 0, 113, 9]),
        });
        let state = ApiState::from(handles);
        let request = Request::builder().uri("/c/spring?gclid=x");
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let (mut parts, _) = request.body(Body::empty()).unwrap().into_parts();
        parts
            .extensions
            .insert(ConnectInfo(SocketAddr::from((peer, 1))));
        parts.extensions.insert(Client {
            address: IpAddr::from(peer),
            request_id: tributary_domain::audit::RequestId::new([1; 12]),
        });
        let tap = ClickRequest::from_request_parts(&mut parts, &state)
            .await
            .unwrap();
        tap.click(&state, &tracked(|_| {}))
    }

    #[tokio::test]
    async fn a_relay_address_has_a_country_but_no_hash() {
        let relay = click([203, 0, 113, 9], &[]).await;
        assert_eq!(relay.country.as_deref(), Some("AT"));
        assert_eq!(relay.address_hash, None);
        let other = click([203, 0, 113, 8], &[]).await;
        assert!(other.address_hash.is_some());
    }

    #[tokio::test]
    async fn only_a_trusted_proxy_sets_the_country() {
        let header: (&str, &[u8]) = ("cf-ipcountry", b"DE");
        let proxied = click([10, 0, 0, 1], &[header]).await;
        assert_eq!(proxied.country.as_deref(), Some("DE"));
        let forged = click([203, 0, 113, 8], &[header]).await;
        assert_eq!(forged.country.as_deref(), Some("AT"));
    }

    #[tokio::test]
    async fn headers_in_any_script_are_read() {
        let phone = "Mozilla/5.0 (Linux; Android 13; 小米手机 Build/TP1A; wv) Chrome/125.0";
        let click = click([203, 0, 113, 8], &[("user-agent", phone.as_bytes())]).await;
        assert_eq!(click.bot, None);
        assert_eq!(click.agent.model.as_deref(), Some("小米手机"));
        assert_eq!(click.user_agent.as_deref(), Some(phone));
    }

    #[tokio::test]
    async fn a_tap_without_a_user_agent_is_a_bot() {
        let click = click([203, 0, 113, 8], &[]).await;
        assert_eq!(click.bot, Some(BotReason::NoUserAgent));
    }
}
