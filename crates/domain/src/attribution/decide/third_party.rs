//! Step 4: third-party referrer. It names an ad or a campaign that led the user to the store
//! without one of our links.
//!
//! There is no recorded click to compare with, so only the store's timestamps count. Without store
//! timestamps the device's timestamps are used, and without any timestamp the referrer is accepted.
//! In both of these cases the decision is flagged.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, RejectedClaim, without_click};
use super::{fraud, reason, time};
use crate::attribution::evidence::{Evidence, ReferrerTimes};
use crate::attribution::referrer::Referrer;
use crate::attribution::{
    AttributionCandidates, ConsideredCandidate, CreditedNetwork, Flag, MatchMethod, MatchState,
    MatchType, Rejection,
};
use crate::click::params::Utm;
use crate::integration::Network;
use crate::link::Campaign;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// Confidence of a store referrer, in percent.
const CONFIDENCE: u8 = 100;
/// Subject of the sentence that explains a rejection.
const SUBJECT: &str = "The ad named by the Play Store";

/// Credits the ad that the referrer names, if it is acceptable.
pub(super) fn step(
    case: &Case<'_>,
    _: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let (evidence, rules) = (case.evidence, case.rules);
    let referrer = evidence.referrer.as_ref()?;
    let credit = implied_credit(referrer)?;
    let (tap, install_at) = tap_and_install(evidence);
    let age_millis = tap.map(|tap| time::age_millis(tap, install_at));
    let contradiction = fraud::store_tap_contradiction(evidence);
    let refused =
        contradiction.is_some_and(|contradiction| fraud::rejects(rules.fraud, contradiction));
    let outside = age_millis.is_some_and(|age| !time::is_within(age, rules.click_window_hours));
    let rejected = match (refused, outside) {
        (true, _) => Some((Rejection::Implausible, MatchState::Implausible)),
        (false, true) => Some((Rejection::OutsideWindow, MatchState::OutsideWindow)),
        (false, false) => None,
    };
    log.consider(ConsideredCandidate {
        network: Some(credit.network),
        clicked_at: tap,
        age_seconds: age_millis.map(time::in_seconds),
        ..without_click(
            MatchMethod::ForeignReferrer,
            rejected.map(|(rejection, _)| rejection),
        )
    });
    if let Some((rejection, state)) = rejected {
        let reason = reason::rejected(SUBJECT, rejection, contradiction, rules.click_window_hours);
        log.reject_claim(RejectedClaim { state, reason });
        return None;
    }
    let mut flags: std::collections::BTreeSet<_> = contradiction
        .map(|_| Flag::Implausible)
        .into_iter()
        .collect();
    if evidence.times.click_at_server.is_none() {
        flags.insert(Flag::UnverifiedTime);
    }
    if tap.is_some_and(|tap| fraud::is_short_ctit(evidence, tap)) {
        flags.insert(Flag::ShortCtit);
    }
    Some(InstallCredit {
        reason: reason::third_party(referrer, contradiction),
        flags,
        ..credit
    })
}

/// Returns the times of the store tap and of the install, by the same clock if possible.
fn tap_and_install(evidence: &Evidence) -> (Option<Timestamp>, Timestamp) {
    let ReferrerTimes {
        click_at,
        install_begin_at,
        click_at_server,
        ..
    } = evidence.times;
    if click_at_server.is_some() {
        return (click_at_server, time::install_at(evidence));
    }
    (click_at, install_begin_at.unwrap_or(evidence.first_open_at))
}

/// Returns the credit that a referrer implies; `None` if it names no ad, or names one of our
/// clicks.
fn implied_credit(referrer: &Referrer) -> Option<InstallCredit> {
    let third_party = |network| {
        InstallCredit::without_click(
            MatchState::ThirdParty,
            MatchType::Referrer,
            network,
            CONFIDENCE,
        )
    };
    match referrer {
        Referrer::Google(ad) => Some(InstallCredit {
            network_click_id: Some((ad.parameter.to_owned(), ad.click_id.clone())),
            ..tagged(&ad.utm, third_party(CreditedNetwork::Ad(Network::B)))
        }),
        Referrer::Meta { campaign, .. } => Some(InstallCredit {
            campaign: campaign
                .as_ref()
                .map(|campaign| campaign.campaign())
                .unwrap_or_default(),
            ..third_party(CreditedNetwork::Ad(Network::A))
        }),
        Referrer::Other(utm) if **utm != Utm::default() => {
            Some(tagged(utm, third_party(CreditedNetwork::Other)))
        }
        Referrer::Other(_) | Referrer::Ours(_) | Referrer::Organic | Referrer::Unavailable => None,
    }
}

/// Adds the campaign tags to a credit. All of them become query parameters.
fn tagged(utm: &Utm, credit: InstallCredit) -> InstallCredit {
    let tags = [
        ("utm_source", &utm.source),
        ("utm_medium", &utm.medium),
        ("utm_campaign", &utm.campaign),
        ("utm_content", &utm.content),
        ("utm_term", &utm.term),
    ];
    let to_pair = |(name, value): (&str, &Option<String>)| Some((name.to_owned(), value.clone()?));
    InstallCredit {
        campaign: Campaign {
            name: utm.campaign.clone(),
            ..Campaign::default()
        },
        keyword: utm.term.clone(),
        query_params: tags
            .into_iter()
            .filter_map(to_pair)
            .collect::<BTreeMap<_, _>>(),
        ..credit
    }
}
