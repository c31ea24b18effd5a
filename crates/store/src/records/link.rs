//! Rows of links.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use tributary_domain::integration::Network;
use tributary_domain::link::{Campaign, Link, LinkKind, Slug};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl};

row! {
    /// A row of `links`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct LinkRow {
        pub app_id: [u8; 16],
        pub link_id: [u8; 16],
        pub slug: String,
        pub name: String,
        pub kind: String,
        pub network: Option<String>,
        pub active: bool,
        pub settings: String,
        pub created_at: i64,
        pub updated_at: i64,
        pub revision: i64,
        /// A JSON list; null if there are no tags.
        pub tags: Option<String>,
        pub folder: Option<String>,
    }
}

/// Reads the tags of a link, or of a link of an app.
pub fn link_tags(id: impl Display, column: Option<&str>) -> Result<Vec<String>, StoreError> {
    let read = |text| from_json("links", "tags", id, text);
    Ok(column.map(read).transpose()?.unwrap_or_default())
}

/// Reads only the campaign of a link's settings; `None` if the text is unreadable.
pub(super) fn link_campaign(text: &str) -> Option<Campaign> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct CampaignOnly {
        campaign_id: Option<String>,
        campaign_name: Option<String>,
        adset_id: Option<String>,
        adset_name: Option<String>,
        ad_id: Option<String>,
        ad_name: Option<String>,
    }
    let read: CampaignOnly = serde_json::from_str(text).ok()?;
    Some(Campaign {
        id: read.campaign_id,
        name: read.campaign_name,
        adset_id: read.adset_id,
        adset_name: read.adset_name,
        ad_id: read.ad_id,
        ad_name: read.ad_name,
    })
}

#[derive(Serialize, Deserialize)]
struct Settings {
    ios_url: Option<String>,
    android_url: Option<String>,
    fallback_url: Option<String>,
    destination_url: Option<String>,
    pass_params: Vec<String>,
    deep_link: Option<String>,
    custom_data: BTreeMap<String, String>,
    campaign_id: Option<String>,
    campaign_name: Option<String>,
    adset_id: Option<String>,
    adset_name: Option<String>,
    ad_id: Option<String>,
    ad_name: Option<String>,
    /// Earlier versions store no such field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    test: bool,
}

impl LinkRow {
    /// Converts a link to columns.
    pub fn write(link: &Link) -> Self {
        let text = |url: &Option<HttpsUrl>| url.as_ref().map(|url| url.as_str().to_owned());
        let destination = link.destination_url.as_ref();
        let campaign = link.campaign.clone();
        let settings = Settings {
            ios_url: text(&link.ios_url),
            android_url: text(&link.android_url),
            fallback_url: text(&link.fallback_url),
            destination_url: destination.map(|url| url.as_str().to_owned()),
            pass_params: link.pass_params.clone(),
            deep_link: link.deep_link.as_ref().map(|link| link.as_str().to_owned()),
            custom_data: link.custom_data.clone(),
            campaign_id: campaign.id,
            campaign_name: campaign.name,
            adset_id: campaign.adset_id,
            adset_name: campaign.adset_name,
            ad_id: campaign.ad_id,
            ad_name: campaign.ad_name,
            test: link.is_test,
        };
        Self {
            app_id: *link.app.as_bytes(),
            link_id: *link.id.as_bytes(),
            slug: link.slug.as_str().to_owned(),
            name: link.name.as_str().to_owned(),
            kind: link.kind.as_str().to_owned(),
            network: link.network.map(|network| network.as_str().to_owned()),
            active: link.active,
            settings: to_json(&settings),
            created_at: link.created_at.as_millis(),
            updated_at: link.updated_at.as_millis(),
            revision: link.revision.number(),
            tags: (!link.tags.is_empty()).then(|| to_json(&link.tags)),
            folder: link.folder.clone(),
        }
    }

    /// Reads the link.
    pub fn read(self) -> Result<Link, StoreError> {
        let id = LinkId::from_bytes(self.link_id);
        let corrupt = |column| StoreError::corrupt("links", column, id);
        let stored: Settings = from_json("links", "settings", id, &self.settings)?;
        let url = |text: Option<String>| {
            let parsed = text.map(|text| HttpsUrl::parse(&text));
            parsed.transpose().map_err(|_| corrupt("settings"))
        };
        let destination = stored.destination_url.map(|text| PageUrl::parse(&text));
        let network = |text: String| Network::parse(&text).ok_or_else(|| corrupt("network"));
        let deep_link = stored
            .deep_link
            .map(|text| DeepLink::parse(&text))
            .transpose();
        Ok(Link {
            id,
            app: AppId::from_bytes(self.app_id),
            name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
            slug: Slug::parse(&self.slug).map_err(|_| corrupt("slug"))?,
            kind: LinkKind::parse(&self.kind).ok_or_else(|| corrupt("kind"))?,
            network: self.network.map(network).transpose()?,
            active: self.active,
            is_test: stored.test,
            ios_url: url(stored.ios_url)?,
            android_url: url(stored.android_url)?,
            fallback_url: url(stored.fallback_url)?,
            destination_url: destination.transpose().map_err(|_| corrupt("settings"))?,
            pass_params: stored.pass_params,
            deep_link: deep_link.map_err(|_| corrupt("settings"))?,
            custom_data: stored.custom_data,
            campaign: Campaign {
                id: stored.campaign_id,
                name: stored.campaign_name,
                adset_id: stored.adset_id,
                adset_name: stored.adset_name,
                ad_id: stored.ad_id,
                ad_name: stored.ad_name,
            },
            tags: link_tags(id, self.tags.as_deref())?,
            folder: self.folder,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: Revision::from_number(self.revision),
        })
    }
}
