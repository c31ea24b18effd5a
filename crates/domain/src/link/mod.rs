//! Tracking links: where a tap goes, and what it is credited to.

mod change;
mod fields;
pub mod qr;

pub use change::LinkChange;
pub use fields::{
    CAMPAIGN_ID_CHARS_MAX, CUSTOM_DATA_BYTES_MAX, CUSTOM_DATA_KEYS_MAX, PASS_PARAMS_DEFAULT,
    PASS_PARAMS_MAX, SLUG_CHARS, Slug, campaign_id, campaign_name, custom_data, pass_param,
};

use crate::integration::Network;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::revision::Revision;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::web_url::{DeepLink, HttpsUrl};
use std::collections::BTreeMap;

/// A tracking link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: LinkId,
    /// Of which app.
    pub app: AppId,
    /// What people call it.
    pub name: Name,
    /// How it reads in its URL; unique on the instance, also after the link is gone: ads that are still
    /// out there must never lead to somebody else's app.
    pub slug: Slug,
    /// Where it leads.
    pub kind: LinkKind,
    /// The network its ad runs on, where that is known beforehand.
    pub network: Option<Network>,
    /// An inactive link answers as if it were not there.
    pub active: bool,
    /// Instead of the App Store page.
    pub ios_url: Option<HttpsUrl>,
    /// Instead of the Play page.
    pub android_url: Option<HttpsUrl>,
    /// For everybody else.
    pub fallback_url: Option<HttpsUrl>,
    /// Where a `web_funnel` link leads.
    pub destination_url: Option<HttpsUrl>,
    /// Which query parameters a `web_funnel` link hands on.
    pub pass_params: Vec<String>,
    /// Where the installed app is sent.
    pub deep_link: Option<DeepLink>,
    /// What the installed app is told.
    pub custom_data: BTreeMap<String, String>,
    /// What a click is credited to when its URL does not say.
    pub campaign: Campaign,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How often it was changed.
    pub revision: Revision,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// To the app in its store.
    AppInstall,
    /// To a web page of the operator's.
    WebFunnel,
}

crate::keywords! {
    LinkKind {
        AppInstall => "app_install",
        WebFunnel => "web_funnel",
    }
}

/// What a click is credited to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    missing_docs,
    reason = "ids and names of the three levels that every network has"
)]
pub struct Campaign {
    pub id: Option<String>,
    pub name: Option<String>,
    pub adset_id: Option<String>,
    pub adset_name: Option<String>,
    pub ad_id: Option<String>,
    pub ad_name: Option<String>,
}

/// What a new link is given by the service, beside what its maker asked for.
#[derive(Debug, Clone)]
pub struct LinkCreation {
    /// Its id.
    pub id: LinkId,
    /// Of which app.
    pub app: AppId,
    /// When.
    pub at: Timestamp,
}

impl Link {
    /// A new link: a name and a slug, and defaults for the rest.
    pub fn new(birth: &LinkCreation, name: Name, slug: Slug) -> Self {
        Self {
            id: birth.id,
            app: birth.app,
            name,
            slug,
            kind: LinkKind::AppInstall,
            network: None,
            active: true,
            ios_url: None,
            android_url: None,
            fallback_url: None,
            destination_url: None,
            pass_params: fields::default_pass_params(),
            deep_link: None,
            custom_data: BTreeMap::new(),
            campaign: Campaign::default(),
            created_at: birth.at,
            updated_at: birth.at,
            revision: Revision::FIRST,
        }
    }

    /// What must hold between fields.
    pub fn check(&self) -> Result<(), Faults> {
        let mut faults = Faults::new();
        if self.kind == LinkKind::WebFunnel && self.destination_url.is_none() {
            let message = "A web_funnel link needs the https URL of the page it leads to.";
            faults.add("destinationUrl", Problem::new(FaultCode::Required, message));
        }
        if self.kind == LinkKind::AppInstall && self.destination_url.is_some() {
            let message = "Only web_funnel links have a destination; use iosUrl, androidUrl or \
                           fallbackUrl, or make the link's type web_funnel.";
            faults.add(
                "destinationUrl",
                Problem::new(FaultCode::NotAllowed, message),
            );
        }
        faults.into_result()
    }

    /// The URL to put into an ad. The two kinds have paths of their own, so that an installed app, which
    /// claims `/c/*`, never captures the way to a web page.
    pub fn url(&self, link_base: &str) -> String {
        let path = match self.kind {
            LinkKind::AppInstall => "c",
            LinkKind::WebFunnel => "w",
        };
        format!("{link_base}/{path}/{}", self.slug.as_str())
    }

    /// The page with store buttons, for networks that forbid bare redirects.
    pub fn landing_url(&self, link_base: &str) -> Option<String> {
        (self.kind == LinkKind::AppInstall).then(|| format!("{link_base}/g/{}", self.slug.as_str()))
    }

    /// The string to paste into the ad manager of the link's network, so that clicks say which campaign,
    /// ad set and ad they came from. The networks append their click ids by themselves.
    pub fn url_parameters(&self) -> Option<&'static str> {
        match self.network? {
            Network::A => Some(
                "campaign_id={{campaign.id}}&campaign_name={{campaign.name}}&adset_id={{adset.id}}\
                 &adset_name={{adset.name}}&ad_id={{ad.id}}&ad_name={{ad.name}}\
                 &placement={{placement}}",
            ),
            Network::B => Some(
                "campaign_id={campaignid}&adgroup_id={adgroupid}&ad_id={creative}&keyword={keyword}",
            ),
            Network::C => Some(
                "campaign_id=__CAMPAIGN_ID__&campaign_name=__CAMPAIGN_NAME__&adgroup_id=__AID__\
                 &adgroup_name=__AID_NAME__&ad_id=__CID__&ad_name=__CID_NAME__\
                 &placement=__PLACEMENT__",
            ),
            // Its macros are not documented; the click id, which it appends, is enough.
            Network::D => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;

    pub(crate) fn any_link() -> Link {
        let birth = LinkCreation {
            id: LinkId::from_bytes([1; 16]),
            app: AppId::from_bytes([2; 16]),
            at: Timestamp::from_millis(1),
        };
        Link::new(
            &birth,
            Name::parse("Spring").unwrap(),
            Slug::parse("spring").unwrap(),
        )
    }

    #[rstest]
    #[case::install_without_destination(LinkKind::AppInstall, false, None)]
    #[case::install_with_destination(LinkKind::AppInstall, true, Some(FaultCode::NotAllowed))]
    #[case::funnel_with_destination(LinkKind::WebFunnel, true, None)]
    #[case::funnel_without_destination(LinkKind::WebFunnel, false, Some(FaultCode::Required))]
    fn a_web_funnel_link_needs_a_destination_and_no_other_has_one(
        #[case] kind: LinkKind,
        #[case] has_destination: bool,
        #[case] expected: Option<FaultCode>,
    ) {
        let destination_url =
            has_destination.then(|| HttpsUrl::parse("https://example.com/").unwrap());
        let link = Link {
            kind,
            destination_url,
            ..any_link()
        };
        let found = link
            .check()
            .err()
            .and_then(|faults| faults.iter().next().map(|f| f.code));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_two_kinds_have_paths_of_their_own() {
        let install = any_link();
        assert_eq!(
            install.url("https://t.example"),
            "https://t.example/c/spring"
        );
        let landing = install.landing_url("https://t.example");
        assert_eq!(landing.as_deref(), Some("https://t.example/g/spring"));
        let funnel = Link {
            kind: LinkKind::WebFunnel,
            ..any_link()
        };
        assert_eq!(
            funnel.url("https://t.example"),
            "https://t.example/w/spring"
        );
        assert_eq!(funnel.landing_url("https://t.example"), None);
    }
}
