//! Steps 1 and 2: the click that the device names.

use super::Case;
use super::course::{Course, Credit, Refusal, considered, without_click};
use super::{fraud, reason, time};
use crate::attribution::evidence::Delivery;
use crate::attribution::{
    Candidate, Considered, Facts, Flag, MatchState, MatchType, Method, Named, Rejection,
};
use crate::vocabulary::id::ClickId;

/// How sure a genuine click id is.
const CONFIDENCE: u8 = 100;
/// What a refusal is about.
const SUBJECT: &str = "The click that this install names";

/// The click that the device names, if it may have the install.
pub(super) fn step(case: &Case<'_>, facts: &Facts, course: &mut Course) -> Option<Credit> {
    let by_store = case.evidence.click_delivery == Some(Delivery::Referrer);
    let method = if by_store {
        Method::Referrer
    } else {
        Method::ClickId
    };
    let mut refuse = |state, rejection, click: Option<ClickId>, reason: String| {
        course.consider(Considered {
            click,
            ..without_click(method, Some(rejection))
        });
        course.refusal = Some(Refusal { state, reason });
        None
    };
    match facts.named.as_ref()? {
        Named::BadToken => refuse(
            MatchState::BadToken,
            Rejection::BadToken,
            None,
            reason::BAD_TOKEN.to_owned(),
        ),
        // Another app's click is nobody's business here, not even its id.
        Named::Foreign(_) => {
            let reason = reason::FOREIGN_CLICK.to_owned();
            refuse(
                MatchState::ForeignClick,
                Rejection::ForeignClick,
                None,
                reason,
            )
        }
        Named::Unknown(click) => {
            let reason = reason::pending();
            refuse(
                MatchState::PendingClick,
                Rejection::PendingClick,
                Some(*click),
                reason,
            )
        }
        Named::Found(candidate) => found(case, facts, candidate, by_store, course),
    }
}

fn found(
    case: &Case<'_>,
    facts: &Facts,
    candidate: &Candidate,
    by_store: bool,
    course: &mut Course,
) -> Option<Credit> {
    let (evidence, rules) = (case.evidence, case.rules);
    let click = &candidate.click;
    let (install_at, against, method, match_type) = if by_store {
        let install_at = time::install_at_by_store(evidence, click.clicked_at);
        let against = fraud::against_store_delivery(evidence, click.clicked_at);
        (install_at, against, Method::Referrer, MatchType::Referrer)
    } else {
        let against = fraud::against_click(evidence, click.clicked_at);
        (
            time::install_at(evidence),
            against,
            Method::ClickId,
            MatchType::ClickId,
        )
    };
    let age_millis = time::age_millis(click.clicked_at, install_at);
    let age_seconds = time::in_seconds(age_millis);
    let outside = !time::is_within(age_millis, rules.click_window_hours);
    let rejected = fraud::objection(rules.fraud, candidate, against)
        .or_else(|| outside.then_some(Rejection::OutsideWindow));
    course.consider(Considered {
        rejected,
        ..considered(click, method, age_seconds)
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
        course.refusal = Some(Refusal { state, reason });
        return None;
    }
    let mut credit = Credit::of_click(candidate, match_type, CONFIDENCE);
    credit.reason = reason::named(by_store, age_seconds, against);
    credit.flags = case.flags(facts, click, against);
    if by_store && time::is_unverified(&evidence.times) {
        credit.flags.insert(Flag::UnverifiedTime);
    }
    Some(credit)
}
