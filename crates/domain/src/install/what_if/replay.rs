//! Replays one install under other rules.

use super::rebuild::RebuiltInstall;
use super::{ReplayClick, ReplayGap, StoredInstall};
use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attribution::{
    AttributionCandidates, ClickLookup, Decision, InstallHold, MatchState, MatchType, decide,
};
use crate::click::address::AddressClass;
use crate::device::Platform;
use crate::event::Credit;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

/// The credit of an install under other rules.
pub(super) struct ReplayedCredit {
    pub(super) credit: Credit,
    /// Explanation of the decision.
    pub(super) reason: String,
}

/// Decides about a stored install under other rules. `is_taken` says whether another install has
/// claimed a click by then.
pub(super) fn replay(
    install: &StoredInstall,
    environment: Environment,
    rules: &AttributionRules,
    is_taken: impl Fn(&ReplayClick) -> bool,
) -> Result<ReplayedCredit, ReplayGap> {
    let rebuilt = RebuiltInstall::new(install, environment)?;
    if !is_reproduced(install, environment, &rebuilt) {
        return Err(ReplayGap::NotReproduced);
    }
    if is_improved_too_late(install, rules) {
        return Err(ReplayGap::LateEvidence);
    }
    let candidates = rebuilt.candidates(is_taken);
    let decision = decide(&rebuilt.evidence, &candidates, rules);
    let stored = &install.attribution.decision;
    let mut credit = credit(stored, &decision).ok_or_else(|| unknown_ad(&decision))?;
    if !is_same(&credit, &install.attribution.credit()) {
        check_loss(&rebuilt, &candidates, &decision, rules)?;
    }
    credit.hold = hold(install, &decision, rules.fraud);
    Ok(ReplayedCredit {
        credit,
        reason: decision.reason,
    })
}

/// Returns the credit of a replayed decision. Only the credited ad of Apple or of a third party is
/// stored; `None` if another one would count.
fn credit(stored: &Decision, replayed: &Decision) -> Option<Credit> {
    let is_ad = |one: &Decision| match one.match_type {
        MatchType::AdServices => true,
        _ => one.state == MatchState::ThirdParty,
    };
    let is_same_ad = is_ad(stored) && stored.match_type == replayed.match_type;
    let source = match is_ad(replayed) {
        true if is_same_ad => stored,
        true => return None,
        false => replayed,
    };
    Some(Credit {
        network: source.network,
        match_type: source.match_type,
        link: source.link,
        click: source.click,
        campaign: source.campaign.clone(),
        hold: None,
    })
}

fn unknown_ad(decision: &Decision) -> ReplayGap {
    match decision.match_type {
        MatchType::AdServices => ReplayGap::AppleAdUnknown,
        _ => ReplayGap::StoreAdUnknown,
    }
}

/// Fails if evidence that was not stored may have led to another decision than the new one.
fn check_loss(
    rebuilt: &RebuiltInstall<'_>,
    candidates: &AttributionCandidates,
    decision: &Decision,
    rules: &AttributionRules,
) -> Result<(), ReplayGap> {
    let is_by_id = matches!(
        decision.match_type,
        MatchType::ClickId | MatchType::Referrer
    );
    if rebuilt.lacks_apple_ad && !is_by_id {
        return Err(ReplayGap::AppleAdUnknown);
    }
    let is_pending = |lookup: &ClickLookup| matches!(lookup, ClickLookup::Unknown(_));
    let is_waiting = candidates
        .delivered
        .iter()
        .any(|one| is_pending(&one.lookup));
    let may_match_address = decision.match_type == MatchType::Organic
        && is_probabilistic_on(rules, rebuilt.evidence.platform)
        && rebuilt.evidence.fingerprint.address_class == Some(AddressClass::Other)
        && !is_waiting;
    if may_match_address && !rebuilt.knows_address {
        return Err(ReplayGap::AddressUnknown);
    }
    Ok(())
}

const fn is_probabilistic_on(rules: &AttributionRules, platform: Platform) -> bool {
    match platform {
        Platform::Ios => rules.probabilistic_ios,
        Platform::Android => rules.probabilistic_android,
        Platform::Web => false,
    }
}

/// Returns whether the rebuilt evidence leads to the stored credit, under the rules of that time.
/// The fraud policy of that time is not stored, so either kind of policy may lead to it.
fn is_reproduced(
    install: &StoredInstall,
    environment: Environment,
    rebuilt: &RebuiltInstall<'_>,
) -> bool {
    let stored = &install.attribution.decision;
    let is_taken = |one: &ReplayClick| {
        let owner = one.owner.as_ref();
        environment == Environment::Live
            && owner.is_some_and(|owner| {
                owner.device != install.device.key
                    && owner
                        .first_open_at
                        .is_none_or(|at| at <= install.device.first_seen_at)
            })
    };
    let candidates = rebuilt.candidates(is_taken);
    let policies = [FraudPolicy::Flag, FraudPolicy::Refuse];
    policies.into_iter().any(|fraud| {
        let rules = AttributionRules {
            click_window_hours: stored.settings.click_window_hours,
            probabilistic_ios: stored.settings.probabilistic,
            probabilistic_android: stored.settings.probabilistic,
            probabilistic_window_hours: stored.settings.window_hours,
            fraud,
        };
        let decision = decide(&rebuilt.evidence, &candidates, &rules);
        let credit = credit(stored, &decision);
        credit.is_some_and(|credit| is_same(&credit, &install.attribution.credit()))
    })
}

/// Compares two credits, apart from their holds.
fn is_same(one: &Credit, other: &Credit) -> bool {
    let without_hold = |credit: &Credit| Credit {
        hold: None,
        ..credit.clone()
    };
    without_hold(one) == without_hold(other)
}

/// Returns whether better evidence arrived in the click window of that time, but after the end of
/// the shorter one. The decision before it is not stored.
fn is_improved_too_late(install: &StoredInstall, rules: &AttributionRules) -> bool {
    let attribution = &install.attribution;
    let hours = rules.click_window_hours;
    let until = window_end(install.device.first_seen_at, hours);
    attribution.revision > 1
        && hours < attribution.decision.settings.click_window_hours
        && attribution.decided_at > until
}

fn window_end(first_open_at: Timestamp, hours: i64) -> Timestamp {
    first_open_at.plus(HOUR.saturating_mul(u32::try_from(hours).unwrap_or(0)))
}

/// Returns the hold under a policy. A review outlasts every decision.
fn hold(
    install: &StoredInstall,
    decision: &Decision,
    policy: FraudPolicy,
) -> Option<crate::attribution::HoldState> {
    let attribution = &install.attribution;
    let reviewed = attribution
        .hold
        .as_ref()
        .filter(|hold| hold.review.is_some());
    let is_flagged = !decision.flags.is_empty();
    let at = attribution.decided_at;
    InstallHold::after_decision(reviewed, policy, is_flagged, at).map(|hold| hold.state)
}
