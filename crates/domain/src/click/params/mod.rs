//! Tracking parameters in a click's URL.

use crate::click::query::{ClickParameters, is_known};
use crate::device::AdvertisingId;
use crate::link::Campaign;
use std::collections::BTreeMap;

/// The networks' click ids. All that are present are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the networks' own names")]
pub struct NetworkClickIds {
    pub fbclid: Option<String>,
    pub gclid: Option<String>,
    pub gbraid: Option<String>,
    pub wbraid: Option<String>,
    pub ttclid: Option<String>,
    pub oppref: Option<String>,
}

/// Browser ids that a landing page read and passed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the networks' own names")]
pub struct BrowserIds {
    pub fbp: Option<String>,
    pub fbc: Option<String>,
    pub ttp: Option<String>,
    pub obref: Option<String>,
}

/// UTM campaign tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the usual names")]
pub struct Utm {
    pub source: Option<String>,
    pub medium: Option<String>,
    pub campaign: Option<String>,
    pub content: Option<String>,
    pub term: Option<String>,
}

/// Arm of an experiment that a `web_funnel` link passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// `trial`
    Trial,
    /// `control`
    Control,
}

crate::keywords! {
    Offer {
        Trial => "trial",
        Control => "control",
    }
}

/// Cleaned tracking parameters from a click.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrackingParams {
    /// The networks' click ids.
    pub click_ids: NetworkClickIds,
    /// Campaign, ad set and ad.
    pub campaign: Campaign,
    /// Creative id.
    pub creative_id: Option<String>,
    /// Placement on the network.
    pub placement: Option<String>,
    /// Site of the network on which the ad ran.
    pub site_source_name: Option<String>,
    /// Search keyword.
    pub keyword: Option<String>,
    /// UTM campaign tags.
    pub utm: Utm,
    /// The visitor's browser ids.
    pub browser_ids: BrowserIds,
    /// Arm of an experiment.
    pub offer: Option<Offer>,
    /// Other parameters. The app gets them back after the install.
    pub query_params: BTreeMap<String, String>,
}

/// Parameter for the arm of an experiment. The app also gets this parameter back after the install,
/// because on an `app_install` link it has no special meaning.
const OFFER: &str = "offer";

/// Parsed query, including what must not be stored in clear text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedQuery {
    /// Parameters to store.
    pub captured: TrackingParams,
    /// Advertising id in the URL. Only its hash is stored.
    pub advertising_id: Option<AdvertisingId>,
}

/// Parses the query of a click's URL, without its `?`.
pub fn capture(query: &str, link_campaign: &Campaign) -> ParsedQuery {
    ClickParameters::read(query).capture(link_campaign)
}

impl ClickParameters {
    /// Extracts the tracking parameters, with gaps filled from the link's campaign.
    pub fn capture(&self, link_campaign: &Campaign) -> ParsedQuery {
        let get = |key| self.get(key);
        let others = self
            .all()
            .iter()
            .filter(|one| !is_known(&one.key) || one.key == OFFER);
        let captured = TrackingParams {
            click_ids: NetworkClickIds {
                fbclid: get("fbclid"),
                gclid: get("gclid"),
                gbraid: get("gbraid"),
                wbraid: get("wbraid"),
                ttclid: get("ttclid"),
                oppref: get("oppref"),
            },
            campaign: self.campaign(link_campaign),
            creative_id: get("creative_id"),
            placement: get("placement"),
            site_source_name: get("site_source_name"),
            keyword: get("keyword"),
            utm: Utm {
                source: get("utm_source"),
                medium: get("utm_medium"),
                campaign: get("utm_campaign"),
                content: get("utm_content"),
                term: get("utm_term"),
            },
            browser_ids: BrowserIds {
                fbp: get("fbp"),
                fbc: get("fbc"),
                ttp: get("ttp"),
                obref: get("obref"),
            },
            offer: self.offer(),
            query_params: others
                .map(|one| (one.name.clone(), one.value.clone()))
                .collect(),
        };
        let advertising_id = ["idfa", "gaid"]
            .into_iter()
            .find_map(|key| AdvertisingId::parse(&self.get(key)?));
        ParsedQuery {
            captured,
            advertising_id,
        }
    }

    /// Returns the arm of an experiment. Compares the value as sent, not as cleaned.
    pub(super) fn offer(&self) -> Option<Offer> {
        self.exact(OFFER).and_then(Offer::parse)
    }

    /// Reads campaign, ad set and ad. Networks use two names for the ad set. `utm_campaign` is the
    /// fallback for the campaign's name.
    fn campaign(&self, link: &Campaign) -> Campaign {
        let campaign = Level {
            id: self.get("campaign_id"),
            name: self
                .get("campaign_name")
                .or_else(|| self.get("utm_campaign")),
        };
        let adset = Level {
            id: self.first(&["adset_id", "adgroup_id"]),
            name: self.first(&["adset_name", "adgroup_name"]),
        };
        let ad = Level {
            id: self.get("ad_id"),
            name: self.get("ad_name"),
        };
        let campaign = campaign.or(link.id.as_ref(), link.name.as_ref());
        let adset = adset.or(link.adset_id.as_ref(), link.adset_name.as_ref());
        let ad = ad.or(link.ad_id.as_ref(), link.ad_name.as_ref());
        Campaign {
            id: campaign.id,
            name: campaign.name,
            adset_id: adset.id,
            adset_name: adset.name,
            ad_id: ad.id,
            ad_name: ad.name,
        }
    }

    /// Returns the first parameter in the URL with one of these names.
    fn first(&self, keys: &[&str]) -> Option<String> {
        let found = self
            .all()
            .iter()
            .find(|one| keys.contains(&one.key.as_str()));
        found.map(|one| one.value.clone())
    }
}

/// Id and name of a campaign, an ad set or an ad.
struct Level {
    id: Option<String>,
    name: Option<String>,
}

impl Level {
    /// Fills gaps from the link. If the URL's id differs from the link's, the link's name is not
    /// used.
    fn or(self, link_id: Option<&String>, link_name: Option<&String>) -> Self {
        let is_another = matches!((&self.id, link_id), (Some(id), Some(link)) if id != link);
        let link_name = link_name.filter(|_| !is_another);
        Self {
            id: self.id.or_else(|| link_id.cloned()),
            name: self.name.or_else(|| link_name.cloned()),
        }
    }
}

#[cfg(test)]
mod tests;
