//! Rows of clicks.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tributary_domain::access::Environment;
use tributary_domain::click::agent::{Agent, BotReason};
use tributary_domain::click::params::{Offer, TrackingParams};
use tributary_domain::click::{Click, NetworkSource};
use tributary_domain::device::{Platform, Screen};
use tributary_domain::integration::Network;
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `clicks`, without the device that claimed it.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct ClickRow {
        pub app_id: [u8; 16],
        pub click_id: [u8; 16],
        pub link_id: [u8; 16],
        pub clicked_at: i64,
        pub network: Option<String>,
        pub network_by: Option<String>,
        pub bot: Option<String>,
        pub platform: String,
        pub os_version: Option<String>,
        pub model: Option<String>,
        pub language: Option<String>,
        pub timezone: Option<String>,
        pub screen: Option<String>,
        pub address: Option<String>,
        pub address_hash: Option<Vec<u8>>,
        pub advertising_hash: Option<Vec<u8>>,
        pub country: Option<String>,
        pub user_agent: Option<String>,
        pub referer: Option<String>,
        pub destination_origin: Option<String>,
        pub captured: String,
        pub environment: Option<String>,
    }
}

/// Campaign, ad set and ad as JSON. Missing fields are omitted.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct CampaignJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adset_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adset_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_name: Option<Cow<'a, str>>,
}

impl<'a> From<&'a Campaign> for CampaignJson<'a> {
    fn from(campaign: &'a Campaign) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        Self {
            id: text(&campaign.id),
            name: text(&campaign.name),
            adset_id: text(&campaign.adset_id),
            adset_name: text(&campaign.adset_name),
            ad_id: text(&campaign.ad_id),
            ad_name: text(&campaign.ad_name),
        }
    }
}

impl From<CampaignJson<'_>> for Campaign {
    fn from(stored: CampaignJson<'_>) -> Self {
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Self {
            id: text(stored.id),
            name: text(stored.name),
            adset_id: text(stored.adset_id),
            adset_name: text(stored.adset_name),
            ad_id: text(stored.ad_id),
            ad_name: text(stored.ad_name),
        }
    }
}

/// Captured URL parameters, keyed by parameter name.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct CapturedJson<'a> {
    campaign: CampaignJson<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    named: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(skip_serializing_if = "is_empty")]
    query_params: Cow<'a, BTreeMap<String, String>>,
}

fn is_empty(query_params: &BTreeMap<String, String>) -> bool {
    query_params.is_empty()
}

/// Lists the captured values that have their own struct field, by their stored names.
macro_rules! named {
    ($captured:ident $(, $mut:tt)?) => {
        [
            ("fbclid", &$($mut)? $captured.click_ids.fbclid),
            ("gclid", &$($mut)? $captured.click_ids.gclid),
            ("gbraid", &$($mut)? $captured.click_ids.gbraid),
            ("wbraid", &$($mut)? $captured.click_ids.wbraid),
            ("ttclid", &$($mut)? $captured.click_ids.ttclid),
            ("oppref", &$($mut)? $captured.click_ids.oppref),
            ("fbp", &$($mut)? $captured.browser_ids.fbp),
            ("fbc", &$($mut)? $captured.browser_ids.fbc),
            ("ttp", &$($mut)? $captured.browser_ids.ttp),
            ("obref", &$($mut)? $captured.browser_ids.obref),
            ("utm_source", &$($mut)? $captured.utm.source),
            ("utm_medium", &$($mut)? $captured.utm.medium),
            ("utm_campaign", &$($mut)? $captured.utm.campaign),
            ("utm_content", &$($mut)? $captured.utm.content),
            ("utm_term", &$($mut)? $captured.utm.term),
            ("creative_id", &$($mut)? $captured.creative_id),
            ("placement", &$($mut)? $captured.placement),
            ("site_source_name", &$($mut)? $captured.site_source_name),
            ("keyword", &$($mut)? $captured.keyword),
        ]
    };
}

fn captured_to_json(captured: &TrackingParams) -> String {
    let offer = captured.offer.map(|offer| ("offer", offer.as_str()));
    let named = named!(captured)
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .chain(offer)
        .map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)))
        .collect();
    to_json(&CapturedJson {
        campaign: (&captured.campaign).into(),
        named,
        query_params: Cow::Borrowed(&captured.query_params),
    })
}

/// Reads only the campaign of captured parameters; `None` if the text is unreadable.
pub(super) fn captured_campaign(text: &str) -> Option<Campaign> {
    #[derive(Deserialize)]
    struct CampaignOnly<'a> {
        #[serde(borrow)]
        campaign: CampaignJson<'a>,
    }
    let read: CampaignOnly<'_> = serde_json::from_str(text).ok()?;
    Some(read.campaign.into())
}

fn captured_from_json(id: ClickId, text: &str) -> Result<TrackingParams, StoreError> {
    let mut stored: CapturedJson<'_> = from_json("clicks", "captured", id, text)?;
    let mut captured = TrackingParams {
        campaign: stored.campaign.into(),
        offer: stored
            .named
            .remove("offer")
            .as_deref()
            .and_then(Offer::parse),
        query_params: stored.query_params.into_owned(),
        ..TrackingParams::default()
    };
    for (name, value) in named!(captured, mut) {
        *value = stored.named.remove(name).map(Cow::into_owned);
    }
    Ok(captured)
}

/// Converts a screen to a column.
pub(super) fn screen_to_text(screen: Screen) -> String {
    let (longer, shorter, scale) = screen.parts();
    format!("{longer},{shorter},{scale}")
}

/// Reads text written by [`screen_to_text`].
pub(super) fn screen_from_text(text: &str) -> Option<Screen> {
    let mut parts = text.splitn(3, ',').map(str::parse::<u32>);
    let mut next = || parts.next()?.ok();
    Screen::new(next()?, next()?, next()?)
}

impl ClickRow {
    /// Converts a click to columns.
    pub fn write(click: &Click) -> Self {
        let hash = |hash: Option<Digest>| hash.map(|hash| hash.as_bytes().to_vec());
        Self {
            app_id: *click.app.as_bytes(),
            click_id: *click.id.as_bytes(),
            link_id: *click.link.as_bytes(),
            clicked_at: click.clicked_at.as_millis(),
            network: click.network.map(|network| network.as_str().to_owned()),
            network_by: click.network_by.map(|by| by.as_str().to_owned()),
            bot: click.bot.map(|bot| bot.as_str().to_owned()),
            platform: click.agent.platform.as_str().to_owned(),
            os_version: click.agent.os_version.clone(),
            model: click.agent.model.clone(),
            language: click.language.clone(),
            timezone: click.timezone.clone(),
            screen: click.screen.map(screen_to_text),
            address: click.address.map(|address| address.to_string()),
            address_hash: hash(click.address_hash),
            advertising_hash: hash(click.advertising_hash),
            country: click.country.clone(),
            user_agent: click.user_agent.clone(),
            referer: click.referer.clone(),
            destination_origin: click.destination_origin.clone(),
            captured: captured_to_json(&click.captured),
            environment: click.environment.map(|one| one.as_str().to_owned()),
        }
    }

    /// Reads the click.
    pub fn read(self) -> Result<Click, StoreError> {
        let id = ClickId::from_bytes(self.click_id);
        let corrupt = |column| StoreError::corrupt("clicks", column, id);
        let hash = |bytes: Option<Vec<u8>>, column| {
            let fixed = bytes.map(<[u8; 32]>::try_from).transpose();
            let fixed = fixed.map_err(|_| corrupt(column))?;
            Ok::<_, StoreError>(fixed.map(Digest::from_bytes))
        };
        let address = self.address.map(|text| text.parse::<IpAddr>()).transpose();
        let choice = |is_known: bool, column| {
            if is_known {
                Ok(())
            } else {
                Err(corrupt(column))
            }
        };
        let network = self.network.as_deref().and_then(Network::parse);
        choice(network.is_some() == self.network.is_some(), "network")?;
        let network_by = self.network_by.as_deref().and_then(NetworkSource::parse);
        choice(
            network_by.is_some() == self.network_by.is_some(),
            "network_by",
        )?;
        let bot = self.bot.as_deref().and_then(BotReason::parse);
        choice(bot.is_some() == self.bot.is_some(), "bot")?;
        let environment = self.environment.as_deref().and_then(Environment::parse);
        choice(
            environment.is_some() == self.environment.is_some(),
            "environment",
        )?;
        Ok(Click {
            id,
            app: AppId::from_bytes(self.app_id),
            link: LinkId::from_bytes(self.link_id),
            clicked_at: Timestamp::from_millis(self.clicked_at),
            network,
            network_by,
            bot,
            agent: Agent {
                platform: Platform::parse(&self.platform).ok_or_else(|| corrupt("platform"))?,
                os_version: self.os_version,
                model: self.model,
            },
            language: self.language,
            timezone: self.timezone,
            screen: self.screen.as_deref().and_then(screen_from_text),
            address: address.map_err(|_| corrupt("address"))?,
            address_hash: hash(self.address_hash, "address_hash")?,
            advertising_hash: hash(self.advertising_hash, "advertising_hash")?,
            country: self.country,
            user_agent: self.user_agent,
            referer: self.referer,
            destination_origin: self.destination_origin,
            captured: captured_from_json(id, &self.captured)?,
            environment,
        })
    }
}
