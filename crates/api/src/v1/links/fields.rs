//! The fields of a link that can be set, in a new one and in a change alike.

use crate::fields::{Fields, choice, flag, text_as, text_map, wrong_type};
use crate::json::Node;
use std::collections::BTreeMap;
use tributary_domain::integration::Network;
use tributary_domain::link::{
    LinkChange, LinkKind, PASS_PARAMS_MAX, campaign_id, campaign_name, custom_data, pass_param,
};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl};
use utoipa::ToSchema;

/// Reads everything but name and slug.
pub(super) fn read_change(fields: &mut Fields<'_>) -> LinkChange {
    let networks = "network_a, network_b, network_c, network_d";
    let mut change = LinkChange {
        kind: fields.change("type", choice(LinkKind::parse, "app_install, web_funnel")),
        network: fields.change("network", choice(Network::parse, networks)),
        active: fields.change("active", flag),
        ios_url: fields.change("iosUrl", text_as(HttpsUrl::parse)),
        android_url: fields.change("androidUrl", text_as(HttpsUrl::parse)),
        fallback_url: fields.change("fallbackUrl", text_as(HttpsUrl::parse)),
        destination_url: fields.change("destinationUrl", text_as(HttpsUrl::parse)),
        pass_params: fields.change("passParams", pass_params),
        deep_link: fields.change("deepLink", text_as(DeepLink::parse)),
        custom_data: fields.change("customData", |node| custom_data(text_map(node)?)),
        ..LinkChange::default()
    };
    let mut campaign = fields.section("campaign");
    change.campaign_id = campaign.change("id", text_as(campaign_id));
    change.campaign_name = campaign.change("name", text_as(campaign_name));
    change.adset_id = campaign.change("adsetId", text_as(campaign_id));
    change.adset_name = campaign.change("adsetName", text_as(campaign_name));
    change.ad_id = campaign.change("adId", text_as(campaign_id));
    change.ad_name = campaign.change("adName", text_as(campaign_name));
    campaign.finish();
    change
}

fn pass_params(node: &Node) -> Result<Vec<String>, Problem> {
    let Node::List(items) = node else {
        return Err(wrong_type("a list of strings"));
    };
    if items.len() > PASS_PARAMS_MAX {
        let message = format!("Must have at most {PASS_PARAMS_MAX} items.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    items.iter().map(|item| text_as(pass_param)(item)).collect()
}

/// What can be set of a link. Absent: unchanged (the default, in a new link); null: the default.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "LinkFields")]
#[expect(
    dead_code,
    reason = "describes what read_change reads; a test compares the two"
)]
pub(super) struct LinkFields {
    /// 1–200 characters.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    /// Unique on the instance; made up where a new link has none. Lower-case letters, digits and inner
    /// hyphens. A former slug goes on leading to its link.
    #[schema(
        min_length = 3,
        max_length = 64,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    slug: Option<String>,
    /// The default is `app_install`; `web_funnel` needs a `destinationUrl`.
    #[schema(inline)]
    r#type: Option<crate::choices::LinkTypeChoice>,
    #[schema(inline)]
    network: Option<crate::choices::NetworkChoice>,
    active: Option<bool>,
    /// An https URL, instead of the App Store page.
    #[schema(pattern = "^https://", max_length = 2000)]
    ios_url: Option<String>,
    /// An https URL, instead of the Play page.
    #[schema(pattern = "^https://", max_length = 2000)]
    android_url: Option<String>,
    /// An https URL, for everybody else.
    #[schema(pattern = "^https://", max_length = 2000)]
    fallback_url: Option<String>,
    /// An https URL; `web_funnel` links only.
    #[schema(pattern = "^https://", max_length = 2000)]
    destination_url: Option<String>,
    /// Names of query parameters, or their beginning and `*`. Replaced whole.
    #[schema(max_items = 50)]
    pass_params: Option<Vec<String>>,
    /// An https URL or a URL of the app's own scheme.
    deep_link: Option<String>,
    /// At most 50 keys and 4,096 bytes in all. Replaced whole.
    custom_data: Option<BTreeMap<String, String>>,
    campaign: Option<CampaignFields>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see LinkFields")]
struct CampaignFields {
    id: Option<String>,
    name: Option<String>,
    adset_id: Option<String>,
    adset_name: Option<String>,
    ad_id: Option<String>,
    ad_name: Option<String>,
}
