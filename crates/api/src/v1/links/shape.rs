//! JSON form of a link.

use crate::body::Envelope;
use crate::campaign::CampaignOut;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::link::Link;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use utoipa::ToSchema;

/// A tracking link.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Link")]
pub(crate) struct LinkOut {
    #[schema(example = "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1")]
    id: String,
    app_id: String,
    name: String,
    slug: String,
    #[schema(inline, value_type = crate::choices::LinkTypeChoice)]
    r#type: &'static str,
    #[schema(inline, value_type = Option<crate::choices::NetworkChoice>)]
    network: Option<&'static str>,
    active: bool,
    /// True for a test link, whose clicks count nowhere.
    test: bool,
    ios_url: Option<String>,
    android_url: Option<String>,
    fallback_url: Option<String>,
    /// URL that a `web_funnel` link redirects to.
    destination_url: Option<String>,
    /// Query parameters that a `web_funnel` link passes on.
    pass_params: Vec<String>,
    deep_link: Option<String>,
    custom_data: BTreeMap<String, String>,
    campaign: CampaignOut,
    tags: Vec<String>,
    folder: Option<String>,
    /// URL to use in ads.
    url: String,
    /// Landing page with store buttons, for networks that forbid bare redirects; null for
    /// `web_funnel` links.
    landing_url: Option<String>,
    /// Parameters to paste into the network's ad manager; null if the network needs none.
    url_parameters: Option<&'static str>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl LinkOut {
    /// Builds the JSON form. `link_base` is the base URL of the app's link domain, or of the
    /// service.
    pub(crate) fn of(link: Link, link_base: &str) -> Self {
        let text = |url: Option<HttpsUrl>| url.map(|url| url.as_str().to_owned());
        Self {
            id: link.id.to_string(),
            app_id: link.app.to_string(),
            url: link.url(link_base),
            landing_url: link.landing_url(link_base),
            url_parameters: link.url_parameters(),
            name: link.name.as_str().to_owned(),
            slug: link.slug.as_str().to_owned(),
            r#type: link.kind.as_str(),
            network: link
                .network
                .map(tributary_domain::integration::Network::as_str),
            active: link.active,
            test: link.is_test,
            ios_url: text(link.ios_url),
            android_url: text(link.android_url),
            fallback_url: text(link.fallback_url),
            destination_url: link.destination_url.map(|url| url.as_str().to_owned()),
            pass_params: link.pass_params,
            deep_link: link
                .deep_link
                .map(|deep_link| deep_link.as_str().to_owned()),
            custom_data: link.custom_data,
            campaign: link.campaign.into(),
            tags: link.tags,
            folder: link.folder,
            created_at: rfc3339(link.created_at),
            updated_at: rfc3339(link.updated_at),
        }
    }
}

pub(crate) type LinkEnvelope = Envelope<LinkOut>;

// A named type, because `Vec` would be the name of the schema.
/// Links that were created together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Links")]
pub(crate) struct CreatedLinks(pub(crate) Vec<LinkOut>);

pub(crate) type LinksEnvelope = Envelope<CreatedLinks>;

pub(crate) type LinkListEnvelope = List<LinkOut>;

/// Returns an example link for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
        "appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d0",
        "name": "Spring – social",
        "slug": "spring-social",
        "type": "app_install",
        "network": "network_a",
        "active": true,
        "test": false,
        "iosUrl": null,
        "androidUrl": null,
        "fallbackUrl": "https://example.com/",
        "destinationUrl": null,
        "passParams": ["fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref", "utm_*"],
        "deepLink": "runner://offer/42",
        "customData": {"invite": "abc"},
        "campaign": {
            "id": null, "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null
        },
        "tags": ["influencer", "q4"],
        "folder": "Spring 2026",
        "url": "https://t.example.com/c/spring-social",
        "landingUrl": "https://t.example.com/g/spring-social",
        "urlParameters": "campaign_id={{campaign.id}}&ad_id={{ad.id}}",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z"
    })
}
