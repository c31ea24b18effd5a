//! The fields of a link, from a form and into one.

use crate::filled::Filled;
use crate::form::Form;
use crate::reading::Reading;
use std::collections::BTreeMap;
use tributary_domain::integration::Network;
use tributary_domain::link::{
    Link, LinkChange, LinkKind, PASS_PARAMS_MAX, Slug, campaign_id, campaign_name, custom_data,
    pass_param,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl};

/// Reads the whole form: what is left empty goes back to its default.
pub(super) fn read(form: &Form) -> (LinkChange, Faults) {
    let mut reading = Reading::of(form);
    let slug = form.field("slug");
    let pairs = reading.pairs("customData");
    let custom_data = match pairs {
        Change::Set(pairs) => {
            let read = custom_data(pairs.into_iter().collect());
            let read = reading.faults.check("customData", read);
            read.map_or(Change::Keep, Change::Set)
        }
        Change::Reset => Change::Reset,
        Change::Keep => Change::Keep,
    };
    let change = LinkChange {
        name: reading.required("name", Name::parse),
        // Left empty, a new link gets one made up, and another keeps its own.
        slug: if slug.trim().is_empty() {
            None
        } else {
            reading.required("slug", Slug::parse)
        },
        kind: reading.choice("type", LinkKind::parse),
        network: reading.choice("network", Network::parse),
        active: reading.tick("active"),
        ios_url: reading.change("iosUrl", HttpsUrl::parse),
        android_url: reading.change("androidUrl", HttpsUrl::parse),
        fallback_url: reading.change("fallbackUrl", HttpsUrl::parse),
        destination_url: reading.change("destinationUrl", HttpsUrl::parse),
        pass_params: reading.list("passParams", PASS_PARAMS_MAX, pass_param),
        deep_link: reading.change("deepLink", DeepLink::parse),
        custom_data,
        campaign_id: reading.change("campaign.id", campaign_id),
        campaign_name: reading.change("campaign.name", campaign_name),
        adset_id: reading.change("campaign.adsetId", campaign_id),
        adset_name: reading.change("campaign.adsetName", campaign_name),
        ad_id: reading.change("campaign.adId", campaign_id),
        ad_name: reading.change("campaign.adName", campaign_name),
    };
    (change, reading.faults)
}

/// The form of a link as it is.
pub(super) fn filled(link: &Link) -> Filled {
    let url = |url: &Option<HttpsUrl>| url.as_ref().map(|url| url.as_str().to_owned());
    let campaign = &link.campaign;
    let pairs = |map: &BTreeMap<String, String>| {
        let lines: Vec<String> = map
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        lines.join("\n")
    };
    Filled::default()
        .with("name", link.name.as_str())
        .with("slug", link.slug.as_str())
        .with("type", link.kind.as_str())
        .with_optional("network", link.network.map(Network::as_str))
        .with_tick("active", link.active)
        .with_optional("iosUrl", url(&link.ios_url))
        .with_optional("androidUrl", url(&link.android_url))
        .with_optional("fallbackUrl", url(&link.fallback_url))
        .with_optional("destinationUrl", url(&link.destination_url))
        .with("passParams", link.pass_params.join(", "))
        .with_optional("deepLink", link.deep_link.as_ref().map(DeepLink::as_str))
        .with("customData", pairs(&link.custom_data))
        .with_optional("campaign.id", campaign.id.clone())
        .with_optional("campaign.name", campaign.name.clone())
        .with_optional("campaign.adsetId", campaign.adset_id.clone())
        .with_optional("campaign.adsetName", campaign.adset_name.clone())
        .with_optional("campaign.adId", campaign.ad_id.clone())
        .with_optional("campaign.adName", campaign.ad_name.clone())
}

/// What a refusal of the store says about a field; the others are no field's fault.
pub(super) fn refused(refusal: Refusal) -> Result<Faults, Refusal> {
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
