//! Replays one install under other rules.

use super::rebuild::RebuiltInstall;
use super::{ReplayClick, ReplayGap, StoredInstall};
use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attribution::{
    AttributionCandidates, ClickLookup, Decision, InstallHold, MatchState, MatchType,
    PENDING_CLICK_TIMEOUT, Rejection, decide,
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
    let rebuilt = match improvement(install, rules) {
        Improvement::Kept => rebuilt,
        Improvement::Unclear => return Err(ReplayGap::LateEvidence),
        Improvement::TooLate => first_decision(install, environment, rebuilt, rules)?,
    };
    if rules.click_window_hours > install.attribution.decision.settings.click_window_hours
        && may_be_improved(install, &rebuilt)
    {
        return Err(ReplayGap::LateEvidence);
    }
    let candidates = rebuilt.candidates(is_taken);
    let decision = decide(&rebuilt.evidence, &candidates, rules);
    let stored = &install.attribution.decision;
    let mut credit = credit(stored, &decision).ok_or_else(|| unknown_ad(&decision))?;
    if !is_same(&credit, &install.attribution.credit()) {
        check_loss(install, &rebuilt, &candidates, &decision, rules)?;
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
    install: &StoredInstall,
    rebuilt: &RebuiltInstall<'_>,
    candidates: &AttributionCandidates,
    decision: &Decision,
    rules: &AttributionRules,
) -> Result<(), ReplayGap> {
    let is_by_id = matches!(
        decision.match_type,
        MatchType::ClickId | MatchType::Referrer
    );
    // An uncertain decision would have been replaced by an ad that Apple reported in time.
    let was_certain = !is_improvable(&install.attribution.decision);
    if rebuilt.lacks_apple_ad && was_certain && !is_by_id {
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
fn is_reproduced(
    install: &StoredInstall,
    environment: Environment,
    rebuilt: &RebuiltInstall<'_>,
) -> bool {
    let stored = &install.attribution.decision;
    decisions_then(install, environment, rebuilt)
        .iter()
        .filter_map(|decision| credit(stored, decision))
        .any(|credit| is_same(&credit, &install.attribution.credit()))
}

/// Decides under the rules of that time. The fraud policy of that time is not stored, so there is a
/// decision for either kind of policy.
fn decisions_then(
    install: &StoredInstall,
    environment: Environment,
    rebuilt: &RebuiltInstall<'_>,
) -> [Decision; 2] {
    let settings = install.attribution.decision.settings;
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
    [FraudPolicy::Flag, FraudPolicy::Refuse].map(|fraud| {
        let rules = AttributionRules {
            click_window_hours: settings.click_window_hours,
            probabilistic_ios: settings.probabilistic,
            probabilistic_android: settings.probabilistic,
            probabilistic_window_hours: settings.window_hours,
            fraud,
        };
        decide(&rebuilt.evidence, &candidates, &rules)
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

/// Whether the better evidence that replaced an install's first decision still replaces it.
enum Improvement {
    /// It does, or the first decision was never replaced.
    Kept,
    /// It arrived after the end of the tried click window, so the first decision stays.
    TooLate,
    /// Not known: it arrived after the end of the window, but the first decision may have waited for
    /// its click to be stored, which is allowed later.
    Unclear,
}

/// Applies the rule of [`improves`](crate::attribution::improves) to a stored improvement.
fn improvement(install: &StoredInstall, rules: &AttributionRules) -> Improvement {
    let (attribution, opened) = (&install.attribution, install.device.first_seen_at);
    let (decision, decided_at) = (&attribution.decision, attribution.decided_at);
    let ends = |hours: i64| window_end(opened, hours);
    // Only a decision that waited for a click is replaced after the end of its own window, or by a
    // decision without a credit.
    let is_kept = attribution.revision == 1
        || decided_at <= ends(rules.click_window_hours)
        || decided_at > ends(decision.settings.click_window_hours)
        || decision.match_type == MatchType::Organic;
    if is_kept {
        return Improvement::Kept;
    }
    let Some(superseded) = &attribution.supersedes else {
        return Improvement::Unclear;
    };
    if decided_at > superseded.decided_at.plus(PENDING_CLICK_TIMEOUT) {
        return Improvement::TooLate;
    }
    let is_pending = |rejection| rejection == Some(Rejection::PendingClick);
    let mut listed = decision.candidates.iter();
    let waited_for_another = listed.any(|one| is_pending(one.rejection));
    // The id of the credited click may have been known since the first open.
    let is_by_id = matches!(
        decision.match_type,
        MatchType::ClickId | MatchType::Referrer
    );
    match (waited_for_another, is_by_id) {
        (true, _) => Improvement::Kept,
        (false, true) => Improvement::Unclear,
        (false, false) => Improvement::TooLate,
    }
}

/// Returns the install with the evidence of its first decision. Fails if this evidence does not lead
/// to the first decision.
fn first_decision<'a>(
    install: &StoredInstall,
    environment: Environment,
    rebuilt: RebuiltInstall<'a>,
    rules: &AttributionRules,
) -> Result<RebuiltInstall<'a>, ReplayGap> {
    let first = rebuilt.before_improvement();
    let superseded = install.attribution.supersedes.as_ref();
    let superseded = superseded.ok_or(ReplayGap::LateEvidence)?;
    if superseded.match_type == MatchType::AdServices {
        // A view, which a tap or a click replaced. Only the credited ad is stored.
        let until = window_end(install.device.first_seen_at, rules.click_window_hours);
        return if superseded.decided_at <= until {
            Err(ReplayGap::AppleAdUnknown)
        } else {
            Ok(first)
        };
    }
    let then = decisions_then(install, environment, &first);
    let is_reproduced = then
        .iter()
        .any(|one| one.match_type == superseded.match_type);
    is_reproduced
        .then_some(first)
        .ok_or(ReplayGap::LateEvidence)
}

/// Returns whether late evidence may replace a decision.
fn is_improvable(decision: &Decision) -> bool {
    matches!(
        decision.match_type,
        MatchType::Organic | MatchType::Probabilistic
    )
}

/// Returns whether evidence arrived that a longer click window may accept. Only its kind is stored,
/// neither the evidence nor its time.
fn may_be_improved(install: &StoredInstall, rebuilt: &RebuiltInstall<'_>) -> bool {
    let decision = &install.attribution.decision;
    is_improvable(decision) && (rebuilt.lacks_apple_ad || rebuilt.lacks_click)
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
