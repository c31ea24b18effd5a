//! Install evidence sent by the device: the Play Store referrer and click ids.

use super::caller::SdkCaller;
use crate::fields::{Fields, InputValue, value_as, wrong_type};
use crate::sealing::AppSealer;
use crate::state::ApiState;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tributary_domain::app::AppSecret;
use tributary_domain::attribution::evidence::ClickIdSource;
use tributary_domain::attribution::referrer::{MetaCampaign, MetaEnvelope, Referrer};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::install::{ClaimedClick, ClickClaim};
use tributary_domain::vocabulary::fault::{Faults, Problem};
use tributary_domain::vocabulary::id::AppId;

/// Returns the click ids from the store referrer and from the client. Attribution decides which one
/// counts.
pub(super) fn claims(
    tokens: &ClickTokens,
    app: AppId,
    referrer: Option<&Referrer>,
    by_client: Option<&str>,
) -> Vec<ClickClaim> {
    let by_store = match referrer {
        Some(Referrer::Ours(text)) => Some((text.as_str(), ClickIdSource::Referrer)),
        _ => None,
    };
    let by_client = by_client.map(|text| (text, ClickIdSource::Client));
    let claim = |(text, source)| {
        let click = match tokens.verify(text) {
            Some(authentic) if authentic.belongs_to(app) => {
                ClaimedClick::Authentic(authentic.click)
            }
            Some(authentic) => ClaimedClick::Foreign(authentic.click),
            None => ClaimedClick::BadToken,
        };
        ClickClaim { click, source }
    };
    by_store.into_iter().chain(by_client).map(claim).collect()
}

/// Decrypts the Meta envelope in a referrer if the app's decryption key is set.
pub(super) fn decrypt_referrer(
    state: &ApiState,
    caller: &SdkCaller,
    referrer: Referrer,
) -> Referrer {
    match referrer {
        Referrer::Meta { envelope, .. } => Referrer::Meta {
            campaign: decrypt_meta_campaign(state, caller, &envelope).map(Box::new),
            envelope,
        },
        other => other,
    }
}

/// Returns the campaign in the envelope. Returns `None` if there is no key, the key is wrong, or
/// the content is not JSON. Even then the network is known: only Meta's referrers have an envelope.
fn decrypt_meta_campaign(
    state: &ApiState,
    caller: &SdkCaller,
    envelope: &MetaEnvelope,
) -> Option<MetaCampaign> {
    let sealed = caller.social_referrer_key.as_ref()?;
    let sealer = AppSealer::new(state, caller.app.organization, caller.app.id);
    let Some(key) = sealer.open_app_secret(AppSecret::SocialReferrerKey, sealed) else {
        tracing::error!(app = %caller.app.id, "failed to decrypt socialReferrerKey");
        return None;
    };
    read_campaign(&envelope.open(&key)?)
}

fn read_campaign(bytes: &[u8]) -> Option<MetaCampaign> {
    let raw: &RawValue = serde_json::from_slice(bytes).ok()?;
    let campaign = Some(InputValue::Text(raw)).filter(|value| value.is_object())?;
    let mut ignored = Faults::new();
    let mut fields = Fields::lenient(campaign, &mut ignored);
    let mut get = |name| fields.optional(name, value_as(text_or_digits));
    Some(MetaCampaign {
        campaign_group_id: get("campaign_group_id"),
        campaign_group_name: get("campaign_group_name"),
        campaign_id: get("campaign_id"),
        campaign_name: get("campaign_name"),
        adgroup_id: get("adgroup_id"),
        adgroup_name: get("adgroup_name"),
        ad_id: get("ad_id"),
    })
}

/// Reads an id as text. Meta sends ids as strings today; numbers are accepted as well.
fn text_or_digits(value: InputValue<'_>) -> Result<String, Problem> {
    let text = value.text().map(Cow::into_owned);
    let text = text.or_else(|| value.digits().map(str::to_owned));
    text.ok_or_else(|| wrong_type("a string"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::keyring::Keyring;
    use tributary_domain::vocabulary::id::ClickId;

    const APP: AppId = AppId::from_bytes([1; 16]);
    const OTHER: AppId = AppId::from_bytes([2; 16]);
    const CLICK: ClickId = ClickId::from_bytes([3; 16]);

    fn tokens() -> ClickTokens {
        ClickTokens::new(&Keyring::new([1; 32]))
    }

    fn ours(text: &str) -> Referrer {
        Referrer::Ours(text.to_owned())
    }

    #[rstest]
    #[case::nothing(None, None, &[])]
    #[case::organic_referrer(Some(Referrer::Organic), None, &[])]
    #[case::in_the_referrer(
        Some(ours(&tokens().sign(APP, CLICK))), None, &[(ClaimedClick::Authentic(CLICK), ClickIdSource::Referrer)]
    )]
    #[case::by_the_client(
        None, Some(tokens().sign(APP, CLICK)), &[(ClaimedClick::Authentic(CLICK), ClickIdSource::Client)]
    )]
    #[case::both(
        Some(ours("clk_forged")), Some(tokens().sign(APP, CLICK)),
        &[(ClaimedClick::BadToken, ClickIdSource::Referrer), (ClaimedClick::Authentic(CLICK), ClickIdSource::Client)]
    )]
    #[case::beside_an_organic_referrer(
        Some(Referrer::Organic), Some(tokens().sign(APP, CLICK)),
        &[(ClaimedClick::Authentic(CLICK), ClickIdSource::Client)]
    )]
    #[case::of_another_app(
        None, Some(tokens().sign(OTHER, CLICK)), &[(ClaimedClick::Foreign(CLICK), ClickIdSource::Client)]
    )]
    fn claims_of_referrer_and_client(
        #[case] referrer: Option<Referrer>,
        #[case] by_client: Option<String>,
        #[case] expected: &[(ClaimedClick, ClickIdSource)],
    ) {
        let found = claims(&tokens(), APP, referrer.as_ref(), by_client.as_deref());
        let found: Vec<_> = found
            .into_iter()
            .map(|claim| (claim.click, claim.source))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn known_fields_of_a_decrypted_envelope_are_read() {
        let json = br#"{"campaign_id": "7", "ad_id": 8, "campaign_name": null, "new": {"x": 1}}"#;
        let read = read_campaign(json).unwrap();
        assert_eq!(read.campaign_id.as_deref(), Some("7"));
        assert_eq!(read.ad_id.as_deref(), Some("8"));
        assert_eq!(read.campaign_name, None);
        assert_eq!(read_campaign(b"[]"), None);
        assert_eq!(read_campaign(b"\xff"), None);
    }
}
