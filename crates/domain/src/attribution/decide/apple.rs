//! Steps 3 and 6: Apple's AdServices record.
//!
//! Apple applies its own windows, a month for a tap and a day for a view, so they are not checked
//! again.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, RejectedClaim, without_click};
use super::{reason, time};
use crate::attribution::ad_services::{AdServices, AdServicesRecord};
use crate::attribution::{
    AttributionCandidates, ConsideredCandidate, CreditedNetwork, MatchMethod, MatchState,
    MatchType, Rejection,
};
use crate::link::Campaign;

/// Confidence of a tap, in percent.
const TAP_CONFIDENCE: u8 = 100;
/// Confidence of a view, in percent. Lower than for a tap, because the user saw other ads too.
const VIEW_CONFIDENCE: u8 = 90;

/// Credits the tap that Apple recorded.
pub(super) fn tap(
    case: &Case<'_>,
    _: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let AdServices::Tap(record) = &case.evidence.ad_services else {
        return None;
    };
    credit(case, record, MatchMethod::AdServicesTap, log)
}

/// Credits the view that Apple recorded.
pub(super) fn view(
    case: &Case<'_>,
    _: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let AdServices::View(record) = &case.evidence.ad_services else {
        return None;
    };
    credit(case, record, MatchMethod::AdServicesView, log)
}

fn credit(
    case: &Case<'_>,
    record: &AdServicesRecord,
    method: MatchMethod,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let evidence = case.evidence;
    if evidence.ad_services.is_test_data_in(evidence.environment) {
        return None;
    }
    let too_late = record.at.is_some_and(|at| at > evidence.first_open_at);
    let age = |at| time::in_seconds(time::age_millis(at, evidence.first_open_at));
    log.consider(ConsideredCandidate {
        network: Some(CreditedNetwork::AppleAds),
        clicked_at: record.at,
        age_seconds: record.at.map(age),
        ..without_click(method, too_late.then_some(Rejection::Implausible))
    });
    if too_late {
        let reason = reason::APPLE_TOO_LATE.to_owned();
        log.reject_claim(RejectedClaim {
            state: MatchState::Implausible,
            reason,
        });
        return None;
    }
    let (confidence, reason) = match method {
        MatchMethod::AdServicesView => (VIEW_CONFIDENCE, reason::VIEW),
        _ => (TAP_CONFIDENCE, reason::TAP),
    };
    Some(InstallCredit {
        campaign: Campaign {
            id: record.campaign_id.clone(),
            adset_id: record.ad_group_id.clone(),
            ad_id: record.ad_id.clone(),
            ..Campaign::default()
        },
        keyword: record.keyword_id.clone(),
        reason: reason.to_owned(),
        ..InstallCredit::without_click(
            MatchState::Attributed,
            MatchType::AdServices,
            CreditedNetwork::AppleAds,
            confidence,
        )
    })
}
