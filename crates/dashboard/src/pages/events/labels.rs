//! Codes of the rules, in words.

use tributary_domain::attribution::MatchType;
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

pub(crate) const fn uncounted_explanation(reason: UncountedReason) -> &'static str {
    match reason {
        UncountedReason::Unconvertible => "no currency, or one without an exchange rate",
        UncountedReason::Negative => "less than nothing",
        UncountedReason::OverLimit => "more than 2,000 USD",
        UncountedReason::Zero => "an amount of 0",
        UncountedReason::Predicted => "a predicted amount, not a payment yet",
        UncountedReason::NotIncome => {
            "the event is not income; see “Income events” in the app's settings"
        }
        UncountedReason::SdkIgnored => "the app's settings ignore money that the SDK reports",
        UncountedReason::BillingSource => "a billing provider reports the same payments",
        UncountedReason::PaymentNotCounted => "the payment that it belongs to did not count",
        UncountedReason::DuplicateOfVerified => {
            "a website or a billing provider reports the same payment"
        }
    }
}

pub(crate) const fn match_label(kind: MatchType) -> &'static str {
    match kind {
        MatchType::ClickId => "by click id",
        MatchType::Referrer => "by the Play Store's referrer",
        MatchType::AdServices => "by Apple's AdServices",
        MatchType::Probabilistic => "by likeness",
        MatchType::Organic => "organic",
    }
}

/// Why a network does not hear of an event, and what would change that.
pub(crate) fn skip_explanation(skip: SkipReason) -> &'static str {
    match skip.as_str() {
        "sandbox" => "Sent with a test key; test events are never forwarded.",
        "reporting_only" => "Renewals and refunds update revenue and are no new acquisition.",
        "integration_disabled" => "The integration is switched off or not complete.",
        "not_attributed" => {
            "It is credited to somebody else. Scope “all” of the integration would send it anyway."
        }
        "not_mapped" => "The event mapping has no row for this event.",
        "enabled_later" => "It happened before the integration, or its mapping, was switched on.",
        "fraud" => "Its install is suspicious, and the app holds such events back.",
        "probabilistic" => {
            "Its install was matched by likeness; “Forward likely matches” would send it."
        }
        "billing_source" => "A billing provider reports the same payment, and that one is sent.",
        "consent" => "The person did not consent.",
        "too_old" => "It is older than the network takes.",
        "no_click_id" => "There is no click id of this network, and it takes nothing else.",
        "no_conversion_action" => "The integration names no conversion action for this event.",
        "duplicate_of_verified" => {
            "A website or a billing provider reports the same event, which is forwarded instead."
        }
        "insufficient_identity" => "Nothing is known that the network could match a person by.",
        "amount_not_forwardable" => "Its amount does not count, so it is not forwarded.",
        _ => "The rules keep it back.",
    }
}
