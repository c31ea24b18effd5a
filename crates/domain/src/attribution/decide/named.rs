//! Steps 1 and 2: the click that the device names.

use super::Case;
use super::course::{Course, Credit, Refusal, considered, without_click};
use super::{fraud, reason, time};
use crate::attribution::evidence::Delivery;
use crate::attribution::{
    Candidate, Considered, Facts, Flag, MatchState, MatchType, Method, Named, NamedClick, Rejection,
};

/// How sure a genuine click id is.
const CONFIDENCE: u8 = 100;
/// What a refusal is about.
const SUBJECT: &str = "The click that this install names";

/// The first of the clicks that the device names which may have the install. The first refusal is what the
/// install's state says, should none have it.
pub(super) fn step(case: &Case<'_>, facts: &Facts, course: &mut Course) -> Option<Credit> {
    let mut named: Vec<&NamedClick> = facts.named.iter().collect();
    named.sort_by_key(|one| one.by);
    named
        .into_iter()
        .find_map(|one| judge(case, facts, one, course))
}

fn judge(case: &Case<'_>, facts: &Facts, one: &NamedClick, course: &mut Course) -> Option<Credit> {
    let (state, rejection, click, reason) = match &one.named {
        Named::Found(candidate) => return found(case, facts, candidate, one.by, course),
        Named::BadToken => (
            MatchState::BadToken,
            Rejection::BadToken,
            None,
            reason::BAD_TOKEN.to_owned(),
        ),
        // Another app's click is nobody's business here, not even its id.
        Named::Foreign(_) => (
            MatchState::ForeignClick,
            Rejection::ForeignClick,
            None,
            reason::FOREIGN_CLICK.to_owned(),
        ),
        Named::Unknown(click) => (
            MatchState::PendingClick,
            Rejection::PendingClick,
            Some(*click),
            reason::pending(),
        ),
    };
    course.consider(Considered {
        click,
        ..without_click(method(one.by), Some(rejection))
    });
    course.refuse(Refusal { state, reason });
    None
}

fn method(by: Delivery) -> Method {
    match by {
        Delivery::Referrer => Method::Referrer,
        Delivery::Client | Delivery::AppLink => Method::ClickId,
    }
}

fn found(
    case: &Case<'_>,
    facts: &Facts,
    candidate: &Candidate,
    by: Delivery,
    course: &mut Course,
) -> Option<Credit> {
    let (evidence, rules) = (case.evidence, case.rules);
    let click = &candidate.click;
    let by_store = by == Delivery::Referrer;
    let (install_at, against, match_type) = if by_store {
        let install_at = time::install_at_by_store(evidence, click.clicked_at);
        let against = fraud::against_store_delivery(evidence, click.clicked_at);
        (install_at, against, MatchType::Referrer)
    } else {
        let against = fraud::against_click(evidence, click.clicked_at);
        (time::install_at(evidence), against, MatchType::ClickId)
    };
    let age_millis = time::age_millis(click.clicked_at, install_at);
    let age_seconds = time::in_seconds(age_millis);
    let outside = !time::is_within(age_millis, rules.click_window_hours);
    let rejected = fraud::objection(rules.fraud, candidate, against)
        .or_else(|| outside.then_some(Rejection::OutsideWindow));
    course.consider(Considered {
        rejected,
        ..considered(click, method(by), age_seconds)
    });
    if let Some(rejection) = rejected {
        let state = match rejection {
            Rejection::Implausible => MatchState::Implausible,
            Rejection::OutsideWindow => MatchState::OutsideWindow,
            Rejection::DuplicateClick => MatchState::DuplicateClick,
            // A crawler's click is as good as none.
            _ => MatchState::Organic,
        };
        let reason = reason::refused(SUBJECT, rejection, against, rules.click_window_hours);
        course.refuse(Refusal { state, reason });
        return None;
    }
    let mut credit = Credit::of_click(candidate, match_type, CONFIDENCE);
    credit.reason = reason::named(by, age_seconds, against);
    credit.flags = case.flags(facts, click, against);
    if by == Delivery::AppLink {
        // The tap opened the app: no time lies between them.
        credit.flags.remove(&Flag::ShortCtit);
    }
    if by_store && time::is_unverified(&evidence.times) {
        credit.flags.insert(Flag::UnverifiedTime);
    }
    Some(credit)
}
