//! A link's form fields, and field errors from the store.

use crate::form_state::FormState;
use std::collections::BTreeMap;
use tributary_domain::integration::Network;
use tributary_domain::link::Link;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl};

/// Builds the form for a stored link.
pub(super) fn filled(link: &Link) -> FormState {
    let url = |url: &Option<HttpsUrl>| url.as_ref().map(|url| url.as_str().to_owned());
    let destination = link.destination_url.as_ref();
    let campaign = &link.campaign;
    let pairs = |map: &BTreeMap<String, String>| {
        let lines: Vec<String> = map
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        lines.join("\n")
    };
    FormState::default()
        .with("name", link.name.as_str())
        .with("slug", link.slug.as_str())
        .with("type", link.kind.as_str())
        .with_optional("network", link.network.map(Network::as_str))
        .with_checkbox("active", link.active)
        .with_checkbox("test", link.is_test)
        .with_optional("iosUrl", url(&link.ios_url))
        .with_optional("androidUrl", url(&link.android_url))
        .with_optional("fallbackUrl", url(&link.fallback_url))
        .with_optional("destinationUrl", destination.map(PageUrl::as_str))
        .with("passParams", link.pass_params.join(", "))
        .with_optional("deepLink", link.deep_link.as_ref().map(DeepLink::as_str))
        .with("customData", pairs(&link.custom_data))
        .with_optional("campaign.id", campaign.id.clone())
        .with_optional("campaign.name", campaign.name.clone())
        .with_optional("campaign.adsetId", campaign.adset_id.clone())
        .with_optional("campaign.adsetName", campaign.adset_name.clone())
        .with_optional("campaign.adId", campaign.ad_id.clone())
        .with_optional("campaign.adName", campaign.ad_name.clone())
        .with("tags", link.tags.join(", "))
        .with_optional("folder", link.folder.clone())
}

/// Converts a refusal into field errors. Returns a refusal that is not about a field unchanged.
pub(super) fn faults_from_refusal(refusal: Refusal) -> Result<Faults, Refusal> {
    match refusal {
        Refusal::SlugTaken => {
            let mut faults = Faults::new();
            let problem = Problem::new(FaultCode::NotAllowed, refusal.to_string());
            faults.add("slug", problem);
            Ok(faults)
        }
        Refusal::Invalid(faults) => Ok(faults),
        other => Err(other),
    }
}
