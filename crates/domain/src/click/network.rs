//! Detection of a click's ad network.

use super::params::{NetworkClickIds, TrackingParams};
use crate::integration::Network;

/// How a click's network was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkSource {
    /// Click id that the network added to the URL.
    ClickId,
    /// `utm_source` parameter.
    UtmSource,
    /// Network of the link.
    Link,
}

crate::keywords! {
    NetworkSource {
        ClickId => "click_id",
        UtmSource => "utm_source",
        Link => "link",
    }
}

/// `utm_source` values used in ads. `google-play` is missing because the Play Store uses it for
/// organic installs, and `chatgpt.com` because unpaid links have it too.
const SOURCES: &[(Network, &[&str])] = &[
    (Network::A, &["facebook", "fb", "instagram", "ig", "meta"]),
    (Network::B, &["google", "adwords", "google_ads", "youtube"]),
    (Network::C, &["tiktok"]),
    (Network::D, &["openai", "chatgpt_ads"]),
];

/// Detects the network of a click: by click id in the URL, then by `utm_source`, then by the link.
/// If there are several click ids, the link's network comes first, then the networks in their fixed
/// order.
pub fn detect_network(
    captured: &TrackingParams,
    link: Option<Network>,
) -> Option<(Network, NetworkSource)> {
    let by_click_id = link
        .into_iter()
        .chain(Network::ALL)
        .find(|network| captured.click_ids.has(*network));
    let source = captured.utm.source.as_deref();
    by_click_id
        .map(|network| (network, NetworkSource::ClickId))
        .or_else(|| by_source(source?).map(|network| (network, NetworkSource::UtmSource)))
        .or_else(|| link.map(|network| (network, NetworkSource::Link)))
}

fn by_source(source: &str) -> Option<Network> {
    let names = |words: &[&str]| words.iter().any(|word| source.eq_ignore_ascii_case(word));
    let found = SOURCES.iter().find(|(_, words)| names(words));
    found.map(|(network, _)| *network)
}

impl NetworkClickIds {
    /// Returns whether there is a click id of this network.
    pub const fn has(&self, network: Network) -> bool {
        match network {
            Network::A => self.fbclid.is_some(),
            Network::B => self.gclid.is_some() || self.gbraid.is_some() || self.wbraid.is_some(),
            Network::C => self.ttclid.is_some(),
            Network::D => self.oppref.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::click::params::capture;
    use crate::link::Campaign;
    use NetworkSource::{ClickId, Link, UtmSource};
    use rstest::rstest;

    const A: Option<Network> = Some(Network::A);
    const B: Option<Network> = Some(Network::B);
    const C: Option<Network> = Some(Network::C);
    const D: Option<Network> = Some(Network::D);

    #[rstest]
    #[case::fbclid("fbclid=x", None, A, ClickId)]
    #[case::gclid("gclid=x", None, B, ClickId)]
    #[case::gbraid("gbraid=x", None, B, ClickId)]
    #[case::wbraid("wbraid=x", None, B, ClickId)]
    #[case::ttclid("ttclid=x", None, C, ClickId)]
    #[case::oppref("oppref=x", None, D, ClickId)]
    #[case::click_id_before_link("ttclid=x", A, C, ClickId)]
    #[case::several_in_their_order("oppref=x&ttclid=x&gclid=x", None, B, ClickId)]
    #[case::several_and_the_links_own("fbclid=x&gclid=x&oppref=x", D, D, ClickId)]
    #[case::several_none_the_links("gclid=x&ttclid=x", D, B, ClickId)]
    #[case::macro_is_no_click_id("fbclid={{fbclid}}", C, C, Link)]
    #[case::click_id_before_tag("ttclid=x&utm_source=facebook", None, C, ClickId)]
    #[case::facebook("utm_source=facebook", None, A, UtmSource)]
    #[case::facebook_short("utm_source=fb", None, A, UtmSource)]
    #[case::instagram("utm_source=Instagram", None, A, UtmSource)]
    #[case::instagram_short("utm_source=IG", None, A, UtmSource)]
    #[case::meta("utm_source=meta", None, A, UtmSource)]
    #[case::google("utm_source=google", None, B, UtmSource)]
    #[case::adwords("utm_source=adwords", None, B, UtmSource)]
    #[case::google_ads("utm_source=google_ads", None, B, UtmSource)]
    #[case::youtube("utm_source=YouTube", None, B, UtmSource)]
    #[case::tiktok("utm_source=tiktok", None, C, UtmSource)]
    #[case::openai("utm_source=openai", None, D, UtmSource)]
    #[case::chatgpt_ads("utm_source=chatgpt_ads", None, D, UtmSource)]
    #[case::tag_before_link("utm_source=tiktok", A, C, UtmSource)]
    #[case::another_tag("utm_source=newsletter", A, A, Link)]
    #[case::nothing("", B, B, Link)]
    fn detects_networks(
        #[case] query: &str,
        #[case] link: Option<Network>,
        #[case] expected: Option<Network>,
        #[case] by: NetworkSource,
    ) {
        let captured = capture(query, &Campaign::default()).captured;
        let expected = expected.map(|network| (network, by));
        assert_eq!(detect_network(&captured, link), expected);
    }

    #[rstest]
    #[case::organic_install("utm_source=google-play")]
    #[case::unpaid_link("utm_source=chatgpt.com")]
    #[case::nothing("")]
    fn other_sources_are_no_networks(#[case] query: &str) {
        let captured = capture(query, &Campaign::default()).captured;
        assert_eq!(detect_network(&captured, None), None);
    }

    #[test]
    fn sources_round_trip_through_their_text() {
        for by in NetworkSource::ALL {
            assert_eq!(NetworkSource::parse(by.as_str()), Some(*by));
        }
    }
}
