//! The writable fields of a link, for creation and changes.

use crate::{Fields, choice, flag, objects, text_as, text_list, text_map};
use tributary_domain::integration::Network;
use tributary_domain::link::{
    BULK_LINKS_MAX, FOLDER_CHARS_MAX, LinkChange, LinkDraft, LinkKind, PASS_PARAMS_MAX, Slug,
    TAGS_MAX, UtmParameters, campaign_id, campaign_name, custom_data, distinct_tags, folder,
    pass_param, tag, utm_value,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl, URL_CHARS_MAX};

/// Reads a new link: the name, the slug if given, and the other fields.
pub fn read_new(fields: &mut Fields<'_>) -> Option<(Name, Option<Slug>, LinkChange)> {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–200 characters."));
    let mut change = read_common(fields);
    let slug = change.slug.take();
    Some((name?, slug, change))
}

/// Reads a list of new links.
pub fn read_bulk(fields: &mut Fields<'_>) -> Option<Vec<LinkDraft>> {
    let list = objects()
        .required()
        .size(1..=BULK_LINKS_MAX)
        .about("A link, as for creating a single one. At most 500 items.");
    let read = |fields: &mut Fields<'_>| {
        let (name, slug, change) = read_new(fields)?;
        Some(LinkDraft { name, slug, change })
    };
    let items = fields.items("links", list.expecting_each("an object"), read);
    let items = items.value().unwrap_or_default().into_iter();
    Some(items.filter_map(|item| item.value()?).collect())
}

/// Reads a change to a link.
pub fn read_change(fields: &mut Fields<'_>) -> LinkChange {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    LinkChange {
        name: fields.settable("name", name.about("1–200 characters.")),
        ..read_common(fields)
    }
}

/// Reads a new link from a form, which may set UTM parameters in the destination URL.
pub fn read_new_form(fields: &mut Fields<'_>) -> Option<(Name, Option<Slug>, LinkChange)> {
    let (name, slug, change) = read_new(fields)?;
    Some((name, slug, with_utm(fields, change)))
}

/// Reads a change to a link from a form, which may set UTM parameters in the destination URL.
pub fn read_change_form(fields: &mut Fields<'_>) -> LinkChange {
    let change = read_change(fields);
    with_utm(fields, change)
}

/// Reads the UTM parameters of a form and sets them in the destination URL.
fn with_utm(fields: &mut Fields<'_>, change: LinkChange) -> LinkChange {
    let mut section = fields.section("utm");
    let mut value = |name| section.optional(name, text_as(utm_value));
    let utm = UtmParameters {
        source: value("source"),
        medium: value("medium"),
        campaign: value("campaign"),
        term: value("term"),
        content: value("content"),
    };
    if utm.is_empty() {
        return change;
    }
    let composed = match &change.destination_url {
        Change::Set(url) => utm.applied_to(url),
        // An invalid URL has its fault already.
        Change::Keep => return change,
        Change::Reset => Err(Problem::new(
            FaultCode::Required,
            "Required for UTM parameters, because they are added to this URL.",
        )),
    };
    match fields.check(|faults| faults.check("destinationUrl", composed)) {
        Some(url) => LinkChange {
            destination_url: Change::Set(url),
            ..change
        },
        None => change,
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
        is_test: fields.change(
            "test",
            flag().about(
                "Whether this is a test link, whose clicks count nowhere and pass only in \
                 `web-events/validate`. Cannot be changed later. Default: false.",
            ),
        ),
        ios_url: fields.change(
            "iosUrl",
            url("https URL to use instead of the App Store page."),
        ),
        android_url: fields.change(
            "androidUrl",
            url("https URL to use instead of the Play page."),
        ),
        fallback_url: fields.change("fallbackUrl", url("https URL for all other devices.")),
        destination_url: read_destination(fields),
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
        tags: fields.change(
            "tags",
            text_list(TAGS_MAX, tag)
                .then(|tags| Ok(distinct_tags(tags)))
                .about(
                    "At most 20 tags of 1–40 characters without commas. Replaces the stored list.",
                ),
        ),
        folder: fields.change(
            "folder",
            text_as(folder)
                .size(1..=FOLDER_CHARS_MAX)
                .about("Folder that contains the link."),
        ),
        ..LinkChange::default()
    };
    read_campaign(fields, &mut change);
    change
}

fn read_destination(fields: &mut Fields<'_>) -> Change<PageUrl> {
    let url = text_as(PageUrl::parse).size(0..=URL_CHARS_MAX);
    let url = url.pattern("^https?://").about(
        "https URL; only valid for `web_funnel` links. A test link may also lead to \
         `http://localhost`, `http://127.0.0.1` or `http://[::1]`, with any port.",
    );
    fields.change("destinationUrl", url)
}

fn read_campaign(fields: &mut Fields<'_>, change: &mut LinkChange) {
    let mut campaign = fields.section("campaign");
    change.campaign_id = campaign.change("id", text_as(campaign_id));
    change.campaign_name = campaign.change("name", text_as(campaign_name));
    change.adset_id = campaign.change("adsetId", text_as(campaign_id));
    change.adset_name = campaign.change("adsetName", text_as(campaign_name));
    change.ad_id = campaign.change("adId", text_as(campaign_id));
    change.ad_name = campaign.change("adName", text_as(campaign_name));
    campaign.finish();
}
