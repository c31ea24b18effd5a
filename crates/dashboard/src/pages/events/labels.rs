//! Explanations for codes.

use tributary_domain::attribution::{HoldState, MatchType};
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::SkipReason;
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

/// Explains why an event was not sent to a network, and what would change that.
pub(crate) fn skip_explanation(skip: SkipReason) -> &'static str {
    match skip.as_str() {
        "sandbox" => "Sent with a test key. Test events are never forwarded.",
        "reporting_only" => "Renewals and refunds count in reports and are never forwarded.",
        "integration_disabled" => "The integration is off or incomplete.",
        "not_attributed" => {
            "Credited to another source. The integration's scope “All mapped events” would send it."
        }
        "not_mapped" => "The event mapping has no row for this event.",
        "enabled_later" => {
            "The event arrived before the integration was enabled or its event mapping changed."
        }
        "fraud" => "The install is flagged and held for a review, or was rejected.",
        "attestation" => {
            "The device did not prove that it runs the genuine app, and the app requires it."
        }
        "probabilistic" => {
            "The install is a probabilistic match. “Forward probabilistic matches” would send it."
        }
        "billing_source" => "A billing provider reports the same payment, which is sent instead.",
        "consent" => "The user did not consent to sharing data with ad networks.",
        "too_old" => "The event is older than the network accepts.",
        "no_click_id" => "The network requires one of its click ids, and none is known.",
        "no_conversion_action" => "The integration has no conversion action for this event.",
        "duplicate_of_verified" => {
            "A website or billing provider reports the same event, which is sent instead."
        }
        "insufficient_identity" => "No known identifier allows the network to match the user.",
        "amount_not_forwardable" => {
            "The event's amount does not count, so the event is not forwarded."
        }
        _ => "Not forwarded.",
    }
}
