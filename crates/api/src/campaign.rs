//! JSON form of a campaign, used by links, attributions and events.

use serde::Serialize;
use tributary_domain::link::Campaign;
use utoipa::ToSchema;

/// Campaign, ad set and ad.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CampaignOut {
    id: Option<String>,
    name: Option<String>,
    adset_id: Option<String>,
    adset_name: Option<String>,
    ad_id: Option<String>,
    ad_name: Option<String>,
}

impl From<Campaign> for CampaignOut {
    fn from(campaign: Campaign) -> Self {
        Self {
            id: campaign.id,
            name: campaign.name,
            adset_id: campaign.adset_id,
            adset_name: campaign.adset_name,
            ad_id: campaign.ad_id,
            ad_name: campaign.ad_name,
        }
    }
}
