//! The link that opened the app.
//!
//! An installed app opens its links directly, so the tap never reaches the redirect. The SDK sends
//! the URL, and the server records the tap here. The SDK retries calls that got no response, so the
//! click id is derived from the request: a retry gets the same click id and is not recorded twice.

use super::caller::SdkCaller;
use super::configure_fields::ConfigureRequest;
use crate::error::ApiError;
use crate::state::ApiState;
use tributary_domain::app::App;
use tributary_domain::click::address::ComparableAddress;
use tributary_domain::click::agent::Agent;
use tributary_domain::click::{
    Click, ClickParameters, app_open_click_id, detect_network, first_language, uncounted_reason,
};
use tributary_domain::link::{Link, LinkKind, Slug};
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::LinkRef;

/// Longest accepted URL in bytes. Servers and browsers do not pass on longer URLs.
pub(super) const OPENED_URL_BYTES_MAX: usize = 8_192;
/// Path prefix that installed apps claim.
const CLAIMED_PATH: &str = "/c/";
/// Query parameter with the click id.
const CLICK_ID: &str = "ar_click_id";

/// The link that opened the app, and its click.
#[derive(Debug)]
pub(super) struct OpenedLink {
    pub(super) link: Link,
    pub(super) click: Click,
}

/// Returns the link that opened the app, with its click. Returns `None` if the URL is not one of
/// this app's active links.
pub(super) async fn find_opened_link(
    state: &ApiState,
    caller: &SdkCaller,
    request: &ConfigureRequest,
    at: Timestamp,
) -> Result<Option<OpenedLink>, ApiError> {
    let url = request.opened_url.as_deref();
    let Some(claimed) = url.and_then(|url| parse_claimed_url(url, &caller.app, &state.base_url))
    else {
        return Ok(None);
    };
    let found = state.store.tracking_link(claimed.link.clone()).await?;
    let link = found.map(|found| found.link).filter(|link| {
        link.app == caller.app.id && link.active && link.kind == LinkKind::AppInstall
    });
    Ok(link.map(|link| OpenedLink {
        click: opening_click(state, caller, &link, &claimed, request, at),
        link,
    }))
}

/// Builds the click. The tap happened on this device, so the click takes the device's traits. A tap
/// that opened the app is never from a bot.
fn opening_click(
    state: &ApiState,
    caller: &SdkCaller,
    link: &Link,
    claimed: &ClaimedUrl<'_>,
    request: &ConfigureRequest,
    at: Timestamp,
) -> Click {
    let traits = &request.traits;
    let read = ClickParameters::read(claimed.query).capture(&link.campaign);
    let network = detect_network(&read.captured, link.network);
    let place = &caller.geo;
    let hasher = state.address_hasher();
    let comparable = ComparableAddress::of(caller.address, place.is_relay);
    Click {
        id: app_open_click_id(
            &state.keyring,
            link.app,
            caller.environment,
            &request.device,
            claimed.url,
            at,
        ),
        app: link.app,
        link: link.id,
        clicked_at: at,
        network: network.map(|(network, _)| network),
        network_by: network.map(|(_, by)| by),
        bot: uncounted_reason(link, None),
        agent: Agent {
            platform: traits.platform,
            os_version: traits.os_version.clone(),
            model: traits.model.clone(),
        },
        language: traits.locale.as_deref().and_then(first_language),
        timezone: traits.timezone.clone(),
        screen: traits.screen,
        address: Some(caller.address),
        address_hash: comparable.map(|address| hasher.hash(address, at)),
        advertising_hash: read.advertising_id.map(|id| hasher.advertising_id(&id)),
        country: place.country.clone(),
        user_agent: request.user_agent.clone(),
        referer: None,
        destination_origin: None,
        environment: Some(caller.environment),
        captured: read.captured,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ClaimedUrl<'a> {
    url: &'a str,
    link: LinkRef,
    query: &'a str,
}

/// Parses a URL that installed apps claim, on the app's link domain or the service's host.
fn parse_claimed_url<'a>(url: &'a str, app: &App, base_url: &str) -> Option<ClaimedUrl<'a>> {
    let (authority, rest) = split_web_url(url)?;
    let own = split_web_url(base_url).map(|(authority, _)| authority);
    let is_ours = own.is_some_and(|own| authority.eq_ignore_ascii_case(own))
        || app
            .verified_link_domain()
            .is_some_and(|host| authority.eq_ignore_ascii_case(host.as_str()));
    let rest = rest.split('#').next().filter(|_| is_ours)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let name = path.strip_prefix(CLAIMED_PATH)?;
    let name = name.strip_suffix('/').unwrap_or(name);
    let link = match LinkId::parse(name) {
        Ok(id) => LinkRef::Id(id),
        Err(_) => LinkRef::Slug(Slug::parse(name).ok()?),
    };
    Some(ClaimedUrl { url, link, query })
}

/// Splits a web URL into its authority and the rest.
fn split_web_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let is_web = ["https", "http"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    is_web.then(|| rest.split_at(end))
}

/// Returns the click id in any URL. Click ids need no percent-decoding.
pub(super) fn click_id_in_url(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next()?;
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(CLICK_ID))
        .map(|(_, id)| id)
        .filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::app::AppCreation;
    use tributary_domain::ownership::link_domain::LinkDomain;
    use tributary_domain::vocabulary::id::{AppId, OrganizationId};
    use tributary_domain::vocabulary::text::Name;
    use tributary_domain::vocabulary::web_url::HostName;

    const LINK: LinkId = LinkId::from_bytes([3; 16]);

    fn app() -> App {
        let birth = AppCreation {
            id: AppId::from_bytes([1; 16]),
            organization: OrganizationId::from_bytes([2; 16]),
            live_key: String::new(),
            test_key: String::new(),
            at: Timestamp::from_millis(0),
        };
        let mut app = App::new(birth, Name::parse("Runner").unwrap());
        app.link_domain = Some(LinkDomain {
            host: HostName::parse("go.example.com").unwrap(),
            is_verified: true,
        });
        app
    }

    fn slug(text: &str) -> LinkRef {
        LinkRef::Slug(Slug::parse(text).unwrap())
    }

    #[rstest]
    #[case::own_host("https://go.example.com/c/spring", Some(slug("spring")), "")]
    #[case::host_of_the_service(
        "https://t.example.com:8443/c/spring?a=b",
        Some(slug("spring")),
        "a=b"
    )]
    #[case::in_capitals("HTTPS://Go.Example.Com/c/spring", Some(slug("spring")), "")]
    #[case::by_id(&format!("https://go.example.com/c/{LINK}?x=1#y"), Some(LinkRef::Id(LINK)), "x=1")]
    #[case::slash_at_the_end("https://go.example.com/c/spring/?a", Some(slug("spring")), "a")]
    #[case::another_host("https://evil.example/c/spring", None, "")]
    #[case::another_port("https://t.example.com/c/spring", None, "")]
    #[case::credentials("https://go.example.com@evil.example/c/spring", None, "")]
    #[case::another_path("https://go.example.com/w/spring", None, "")]
    #[case::deeper("https://go.example.com/c/spring/more", None, "")]
    #[case::no_name("https://go.example.com/c/", None, "")]
    #[case::only_a_host("https://go.example.com", None, "")]
    #[case::own_scheme("runner://go.example.com/c/spring", None, "")]
    #[case::no_url("spring", None, "")]
    fn urls(#[case] url: &str, #[case] link: Option<LinkRef>, #[case] query: &str) {
        let found = parse_claimed_url(url, &app(), "https://t.example.com:8443");
        assert_eq!(found, link.map(|link| ClaimedUrl { url, link, query }));
    }

    #[rstest]
    #[case::own_scheme("runner://offer?ar_click_id=clk_1", Some("clk_1"))]
    #[case::among_others("https://x.example/?a=b&ar_click_id=clk_1#c", Some("clk_1"))]
    #[case::in_the_fragment("https://x.example/?a=b#?ar_click_id=clk_1", None)]
    #[case::empty("https://x.example/?ar_click_id=", None)]
    #[case::none("https://x.example/", None)]
    fn click_ids(#[case] url: &str, #[case] expected: Option<&str>) {
        assert_eq!(click_id_in_url(url), expected);
    }
}
