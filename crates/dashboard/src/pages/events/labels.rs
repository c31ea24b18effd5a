//! Explanations for codes.

use tributary_domain::attribution::{HoldState, MatchType};
use tributary_domain::event::EventSource;
use tributary_domain::ledger::UncountedReason;

pub(crate) const fn source_label(source: EventSource) -> &'static str {
    match source {
        EventSource::Sdk => "SDK",
        EventSource::Billing => "Billing",
        EventSource::Web => "Website",
    }
}

/// Explains why an event of an install with this hold does not count; `None` if it counts.
pub(crate) const fn hold_explanation(hold: HoldState) -> Option<&'static str> {
    match hold {
        HoldState::Held => Some("the install is held for a review"),
        HoldState::Released => None,
        HoldState::Rejected => Some("the install was rejected"),
    }
}

pub(crate) const fn uncounted_explanation(reason: UncountedReason) -> &'static str {
    match reason {
        UncountedReason::Unconvertible => "the currency is missing or has no exchange rate",
        UncountedReason::Negative => "the amount is negative",
        UncountedReason::OverLimit => "the amount exceeds 2,000 USD",
        UncountedReason::Zero => "the amount is 0",
        UncountedReason::Predicted => "the amount is a prediction, not a payment",
        UncountedReason::NotIncome => {
            "the event is not listed under “Revenue events” in the app's settings"
        }
        UncountedReason::SdkIgnored => "the app's settings ignore revenue reported by the SDK",
        UncountedReason::BillingSource => "a billing provider reports the same payments",
        UncountedReason::PaymentNotCounted => "the refunded payment was not counted",
        UncountedReason::DuplicateOfVerified => {
            "a website or billing provider reports the same payment"
        }
    }
}

pub(crate) const fn match_label(kind: MatchType) -> &'static str {
    match kind {
        MatchType::ClickId => "Matched by click id",
        MatchType::Referrer => "Matched by Play Store referrer",
        MatchType::AdServices => "Matched by Apple AdServices",
        MatchType::Probabilistic => "Probabilistic match",
        MatchType::Organic => "Organic, no ad matched",
    }
}
