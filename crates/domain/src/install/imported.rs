//! Devices of imported events.

use super::Attribution;
use crate::access::Actor;
use crate::attribution::evidence::ReferrerTimes;
use crate::attribution::{
    Decision, EvidenceSummary, HoldReview, HoldState, InstallHold, MatchState, MatchType,
    SettingsSummary,
};
use crate::device::{Consent, Device, Traits};
use crate::event::Event;
use crate::vocabulary::id::AttributionId;
use std::collections::{BTreeMap, BTreeSet};

/// Explanation of an imported decision.
const REASON: &str = "Decided by the database from which the install was imported.";

/// Number of decisions about a device whose install is not imported.
const NO_DECISIONS: u32 = 0;

/// Returns the device of an imported event, with the attribution that the event is credited to. What
/// only the device itself can say, such as its model and consent, is unknown until its next call.
/// Returns `None` if the event lacks its device, platform or credit. Until the install is imported,
/// the attribution has the revision 0.
pub fn imported_device(event: &Event, settings: SettingsSummary) -> Option<(Device, Attribution)> {
    let at = event.occurred_at;
    let credit = event.credit.as_ref()?;
    let device = Device {
        key: event.device.clone()?,
        traits: Traits::of(event.platform?),
        advertising_id: None,
        idfv: None,
        consent: Consent::default(),
        country: event.country.clone(),
        first_seen_at: at,
        last_seen_at: at,
    };
    let state = match credit.match_type {
        MatchType::Organic => MatchState::Organic,
        MatchType::ClickId
        | MatchType::Referrer
        | MatchType::AdServices
        | MatchType::Probabilistic => MatchState::Attributed,
    };
    let decision = Decision {
        state,
        match_type: credit.match_type,
        network: credit.network,
        confidence: None,
        click: credit.click,
        link: credit.link,
        campaign: credit.campaign.clone(),
        keyword: None,
        network_click_id: None,
        deep_link: None,
        custom_data: BTreeMap::new(),
        query_params: BTreeMap::new(),
        reason: REASON.to_owned(),
        flags: BTreeSet::new(),
        candidates: Vec::new(),
        evidence: EvidenceSummary::default(),
        times: ReferrerTimes::default(),
        settings,
    };
    let hold = credit.hold.map(|state| InstallHold {
        state,
        held_at: at,
        review: (state != HoldState::Held).then_some(HoldReview {
            decided_by: Actor::Operator,
            decided_at: at,
        }),
    });
    // The event's id is unique and begins with its time, as an attribution's id does.
    let id = AttributionId::from_bytes(*event.id.as_bytes());
    let mut attribution = Attribution::first(id, decision, at);
    attribution.hold = hold;
    if !event.is_install() {
        attribution.revision = NO_DECISIONS;
    }
    Some((device, attribution))
}
