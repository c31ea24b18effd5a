//! JSON form of an attribution.

use crate::campaign::CampaignOut;
use crate::decimal::hundredths;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::id::AppId;
use utoipa::ToSchema;

/// An install's attribution.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Attribution")]
pub(crate) struct DecisionOut {
    /// Attribution id. It stays the same when a later decision replaces this one.
    id: String,
    /// `network_a` to `network_d`, `apple_ads`, `other` or `organic`.
    #[schema(example = "network_a")]
    network: &'static str,
    /// `click_id`, `referrer`, `adservices`, `probabilistic` or `organic`.
    #[schema(example = "click_id")]
    match_type: &'static str,
    /// Confidence from 0 to 1; null for organic installs.
    #[schema(value_type = Option<f64>)]
    confidence: Option<Box<RawValue>>,
    link_id: Option<String>,
    click_id: Option<String>,
    campaign: CampaignOut,
    /// The link's deep link.
    deep_link: Option<String>,
    /// The link's custom data.
    custom_data: BTreeMap<String, String>,
    /// Query parameters in the click's URL, except known tracking parameters such as click ids.
    query_params: BTreeMap<String, String>,
    /// Why the install was attributed this way, in one sentence.
    reason: String,
    #[schema(format = DateTime)]
    decided_at: String,
}

impl DecisionOut {
    /// Builds the JSON form. Click ids are signed.
    pub(crate) fn of(attribution: Attribution, app: AppId, tokens: &ClickTokens) -> Self {
        let decision = attribution.decision;
        Self {
            id: attribution.id.to_string(),
            network: decision.network.as_str(),
            match_type: decision.match_type.as_str(),
            confidence: decision.confidence.map(u32::from).and_then(hundredths),
            link_id: decision.link.map(|link| link.to_string()),
            click_id: decision.click.map(|click| tokens.sign(app, click)),
            campaign: decision.campaign.into(),
            deep_link: decision.deep_link,
            custom_data: decision.custom_data,
            query_params: decision.query_params,
            reason: decision.reason,
            decided_at: rfc3339(attribution.decided_at),
        }
    }
}

/// Returns an example attribution for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "att_01k9z3v7q8e4r9m2x5c6b7n8d4",
        "network": "network_a",
        "matchType": "click_id",
        "confidence": 1,
        "linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
        "clickId": "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06",
        "campaign": {
            "id": "238", "name": "Spring", "adsetId": null, "adsetName": null, "adId": null, "adName": null
        },
        "deepLink": "runner://offer/42",
        "customData": {"invite": "abc"},
        "queryParams": {},
        "reason": "The click id that the app delivered is genuine, and its click is 21 minutes old.",
        "decidedAt": "2026-01-01T00:00:00.000Z"
    })
}
