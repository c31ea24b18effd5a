//! The writable fields of a link, for creation and changes.

use crate::{Fields, choice, flag, text_as, text_list, text_map};
use tributary_domain::integration::Network;
use tributary_domain::link::{
    LinkChange, LinkKind, PASS_PARAMS_MAX, Slug, campaign_id, campaign_name, custom_data,
    pass_param,
};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, URL_CHARS_MAX};

/// Reads a new link: the name, the slug if given, and the other fields.
pub fn read_new(fields: &mut Fields<'_>) -> Option<(Name, Option<Slug>, LinkChange)> {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–200 characters."));
    let mut change = read_common(fields);
    let slug = change.slug.take();
    Some((name?, slug, change))
}

/// Reads a change to a link.
pub fn read_change(fields: &mut Fields<'_>) -> LinkChange {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    LinkChange {
        name: fields.settable("name", name.about("1–200 characters.")),
        ..read_common(fields)
    }
}

fn read_common(fields: &mut Fields<'_>) -> LinkChange {
    let slug = text_as(Slug::parse)
        .size(3..=64)
        .pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
        .may_be_blank()
        .about(
            "Unique on the instance; generated for a new link if omitted. Lower-case letters, \
             digits and inner hyphens. Former slugs keep redirecting.",
        );
    let kind = choice(LinkKind::ALL, LinkKind::as_str).about(
        "Target of the link: the app's store page, or a web page. Default: `app_install`; \
         `web_funnel` requires `destinationUrl`.",
    );
    let url = |about| {
        let url = text_as(HttpsUrl::parse).size(0..=URL_CHARS_MAX);
        url.pattern("^https://").about(about)
    };
    let pass_params = text_list(PASS_PARAMS_MAX, pass_param)
        .about("Query parameter names, or prefixes ending in `*`. Replaces the stored list.");
    let mut change = LinkChange {
        slug: fields.settable("slug", slug),
        kind: fields.change("type", kind),
        network: fields.change(
            "network",
            choice(&Network::ALL, Network::as_str).about("Ad network."),
        ),
        active: fields.change("active", flag()),
        ios_url: fields.change(
            "iosUrl",
            url("https URL to use instead of the App Store page."),
        ),
        android_url: fields.change(
            "androidUrl",
            url("https URL to use instead of the Play page."),
        ),
        fallback_url: fields.change("fallbackUrl", url("https URL for all other devices.")),
        destination_url: fields.change(
            "destinationUrl",
            url("https URL; only valid for `web_funnel` links."),
        ),
        pass_params: fields.change("passParams", pass_params),
        deep_link: fields.change(
            "deepLink",
            text_as(DeepLink::parse).about("https URL, or a URL with the app's own scheme."),
        ),
        custom_data: fields.change(
            "customData",
            text_map()
                .then(custom_data)
                .about("At most 50 keys and 4,096 bytes in total. Replaces the stored object."),
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
