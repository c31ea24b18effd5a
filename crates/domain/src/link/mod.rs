//! Tracking links: where a click is redirected to and which campaign it counts for.

mod bulk;
mod change;
mod deep_link;
mod fields;
mod labels;
pub mod qr;
mod utm;

pub use bulk::{
    BULK_LINKS_MAX, LinkDraft, check_bulk_size, check_deep_links, check_slugs_claimed, new_links,
    split_item_field,
};
pub use change::LinkChange;
pub use deep_link::{DEEP_LINK_SCHEMES_MAX, check_deep_link, deep_link_scheme};
pub use fields::{
    CAMPAIGN_ID_CHARS_MAX, CUSTOM_DATA_BYTES_MAX, CUSTOM_DATA_KEYS_MAX, PASS_PARAMS_DEFAULT,
    PASS_PARAMS_MAX, SLUG_CHARS, Slug, campaign_id, campaign_name, custom_data, pass_param,
};
pub use labels::{
    FOLDER_CHARS_MAX, LABELED_LINKS_MAX, LINK_LABELS_MAX, LINK_SEARCH_CHARS_MAX, LinkFilter,
    LinkLabels, TAG_CHARS_MAX, TAGS_MAX, distinct_tags, folder, link_search, tag,
};
pub use utm::{UTM_CHARS_MAX, UtmParameters, utm_value};

use crate::integration::Network;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::revision::Revision;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl};
use std::collections::BTreeMap;

/// A tracking link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Link id.
    pub id: LinkId,
    /// App id.
    pub app: AppId,
    /// Display name.
    pub name: Name,
    /// Slug in the URL. Unique on the instance and never reused after deletion, because running ads
    /// must not redirect to another app.
    pub slug: Slug,
    /// Where the link redirects to.
    pub kind: LinkKind,
    /// Network that the link's ads run on, if there is only one.
    pub network: Option<Network>,
    /// Whether the link works. An inactive link responds like an unknown one.
    pub active: bool,
    /// Whether this is a test link. It may lead to the visitor's own computer, and its clicks never
    /// count. This does not change, so that a link has either clicks that count or clicks that do not.
    pub is_test: bool,
    /// URL that replaces the App Store page.
    pub ios_url: Option<HttpsUrl>,
    /// URL that replaces the Play Store page.
    pub android_url: Option<HttpsUrl>,
    /// Destination on other platforms.
    pub fallback_url: Option<HttpsUrl>,
    /// Destination of a `web_funnel` link.
    pub destination_url: Option<PageUrl>,
    /// Query parameters that a `web_funnel` link passes on.
    pub pass_params: Vec<String>,
    /// Deep link that the installed app opens.
    pub deep_link: Option<DeepLink>,
    /// Custom data passed to the installed app.
    pub custom_data: BTreeMap<String, String>,
    /// Campaign for clicks whose URL names none.
    pub campaign: Campaign,
    /// Tags, without duplicates.
    pub tags: Vec<String>,
    /// Folder that contains the link.
    pub folder: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Number of changes.
    pub revision: Revision,
}

/// Where a link redirects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// To the app's store page.
    AppInstall,
    /// To a web page.
    WebFunnel,
}

crate::keywords! {
    LinkKind {
        AppInstall => "app_install",
        WebFunnel => "web_funnel",
    }
}

/// Campaign, ad set and ad.
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

/// Values that the service assigns to a new link.
#[derive(Debug, Clone)]
pub struct LinkCreation {
    /// Link id.
    pub id: LinkId,
    /// App id.
    pub app: AppId,
    /// Time of creation.
    pub at: Timestamp,
}

impl Link {
    /// Creates a link with defaults for all but name and slug.
    pub fn new(creation: &LinkCreation, name: Name, slug: Slug) -> Self {
        Self {
            id: creation.id,
            app: creation.app,
            name,
            slug,
            kind: LinkKind::AppInstall,
            network: None,
            active: true,
            is_test: false,
            ios_url: None,
            android_url: None,
            fallback_url: None,
            destination_url: None,
            pass_params: fields::default_pass_params(),
            deep_link: None,
            custom_data: BTreeMap::new(),
            campaign: Campaign::default(),
            tags: Vec::new(),
            folder: None,
            created_at: creation.at,
            updated_at: creation.at,
            revision: Revision::FIRST,
        }
    }

    /// Checks rules that span several fields.
    pub fn check(&self) -> Result<(), Faults> {
        let mut faults = Faults::new();
        if self.kind == LinkKind::WebFunnel && self.destination_url.is_none() {
            let message = "Required for web_funnel links: the https URL of the destination page.";
            faults.add("destinationUrl", Problem::new(FaultCode::Required, message));
        }
        if self.kind == LinkKind::AppInstall && self.destination_url.is_some() {
            let message = "Only allowed for web_funnel links. Use iosUrl, androidUrl or \
                           fallbackUrl, or set the type to web_funnel.";
            faults.add(
                "destinationUrl",
                Problem::new(FaultCode::NotAllowed, message),
            );
        }
        let is_local = self.destination_url.as_ref().is_some_and(PageUrl::is_local);
        if is_local && !self.is_test {
            let message = "Only test links may lead to http://localhost. Use an https URL, or set \
                           test when you create the link.";
            faults.add(
                "destinationUrl",
                Problem::new(FaultCode::NotAllowed, message),
            );
        }
        faults.into_result()
    }

    /// Returns the URL for an ad. The path is `/c/` for `app_install` links and `/w/` for
    /// `web_funnel` links, because an installed app claims `/c/*` and must not capture links to web
    /// pages.
    pub fn url(&self, link_base: &str) -> String {
        let path = match self.kind {
            LinkKind::AppInstall => "c",
            LinkKind::WebFunnel => "w",
        };
        format!("{link_base}/{path}/{}", self.slug.as_str())
    }

    /// Returns the landing page with store buttons, for networks that forbid direct redirects.
    pub fn landing_url(&self, link_base: &str) -> Option<String> {
        (self.kind == LinkKind::AppInstall).then(|| format!("{link_base}/g/{}", self.slug.as_str()))
    }

    /// Returns the URL parameters to paste into the network's ad manager, so that click URLs
    /// include campaign, ad set and ad. Networks append their click ids themselves.
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
            // OpenAI Ads documents no macros; the click id that it appends is enough.
            Network::D => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;

    pub(crate) fn any_link() -> Link {
        let creation = LinkCreation {
            id: LinkId::from_bytes([1; 16]),
            app: AppId::from_bytes([2; 16]),
            at: Timestamp::from_millis(1),
        };
        Link::new(
            &creation,
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
            has_destination.then(|| PageUrl::parse("https://example.com/").unwrap());
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

    #[rstest]
    #[case::test_link(true, "http://localhost:3000/", None)]
    #[case::test_link_to_a_site(true, "https://example.com/", None)]
    #[case::other_link(false, "http://localhost:3000/", Some(FaultCode::NotAllowed))]
    fn only_test_links_lead_to_the_visitors_own_computer(
        #[case] is_test: bool,
        #[case] destination: &str,
        #[case] expected: Option<FaultCode>,
    ) {
        let link = Link {
            kind: LinkKind::WebFunnel,
            is_test,
            destination_url: Some(PageUrl::parse(destination).unwrap()),
            ..any_link()
        };
        let found = link.check().err();
        let found = found.and_then(|faults| faults.iter().next().map(|fault| fault.code));
        assert_eq!(found, expected);
    }

    #[test]
    fn each_kind_has_its_own_path() {
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
