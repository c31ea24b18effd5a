//! The fields of a link that can be set, in a new one and in a change alike.

use crate::{Fields, choice, flag, text_as, text_list, text_map};
use tributary_domain::integration::Network;
use tributary_domain::link::{
    LinkChange, LinkKind, PASS_PARAMS_MAX, Slug, campaign_id, campaign_name, custom_data,
    pass_param,
};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, URL_CHARS_MAX};

/// Reads a new link: its name, its slug if it has one, and everything else.
pub fn read_new(fields: &mut Fields<'_>) -> Option<(Name, Option<Slug>, LinkChange)> {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–200 characters."));
    let mut change = read_others(fields);
    let slug = change.slug.take();
    Some((name?, slug, change))
}

/// Reads a change of a link.
pub fn read_change(fields: &mut Fields<'_>) -> LinkChange {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    LinkChange {
        name: fields.settable("name", name.about("1–200 characters.")),
        ..read_others(fields)
    }
}

fn read_others(fields: &mut Fields<'_>) -> LinkChange {
    let slug = text_as(Slug::parse)
        .size(3..=64)
        .pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
        .may_be_blank()
        .about(
            "Unique on the instance; made up where a new link has none. Lower-case letters, digits and inner \
             hyphens. A former slug goes on leading to its link.",
        );
    let kind = choice(LinkKind::ALL, LinkKind::as_str).about(
        "Where a link leads: to the app in its store, or to a web page. The default is `app_install`; `web_funnel` \
         needs a `destinationUrl`.",
    );
    let url = |about| {
        let url = text_as(HttpsUrl::parse).size(0..=URL_CHARS_MAX);
        url.pattern("^https://").about(about)
    };
    let pass_params = text_list(PASS_PARAMS_MAX, pass_param)
        .about("Names of query parameters, or their beginning and `*`. Replaced whole.");
    let mut change = LinkChange {
        slug: fields.settable("slug", slug),
        kind: fields.change("type", kind),
        network: fields.change(
            "network",
            choice(&Network::ALL, Network::as_str).about("An ad network."),
        ),
        active: fields.change("active", flag()),
        ios_url: fields.change(
            "iosUrl",
            url("An https URL, instead of the App Store page."),
        ),
        android_url: fields.change("androidUrl", url("An https URL, instead of the Play page.")),
        fallback_url: fields.change("fallbackUrl", url("An https URL, for everybody else.")),
        destination_url: fields.change(
            "destinationUrl",
            url("An https URL; `web_funnel` links only."),
        ),
        pass_params: fields.change("passParams", pass_params),
        deep_link: fields.change(
            "deepLink",
            text_as(DeepLink::parse).about("An https URL or a URL of the app's own scheme."),
        ),
        custom_data: fields.change(
            "customData",
            text_map()
                .then(custom_data)
                .about("At most 50 keys and 4,096 bytes in all. Replaced whole."),
        ),
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
