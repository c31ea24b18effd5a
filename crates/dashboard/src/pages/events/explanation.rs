//! Explains the codes of forwarding, and leads to the setting that changes the outcome.

use crate::network_label::NetworkLabel;
use crate::shell::Shell;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::forwarding::status_check::OUTCOME_UNCONFIRMED;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus, SkipReason, lifecycle};

/// What a code means, and where the cause can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) text: &'static str,
    setting: Option<SettingPage>,
}

/// A page with the setting behind an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingPage {
    Integration,
    Mapping,
    App,
    Billing,
    Held,
}

impl Explanation {
    const fn plain(text: &'static str) -> Self {
        Self {
            text,
            setting: None,
        }
    }

    const fn set_on(setting: SettingPage, text: &'static str) -> Self {
        Self {
            text,
            setting: Some(setting),
        }
    }

    /// Returns the label and the URL of the setting, for users who may see it.
    pub(crate) fn setting(
        &self,
        shell: &Shell,
        network: &NetworkLabel,
    ) -> Option<(&'static str, String)> {
        let setting = self.setting.filter(|_| shell.sees_apps)?;
        Some(match setting {
            SettingPage::Integration => {
                let page = format!("integrations/{}", network.id);
                ("Integration settings", shell.app_url(page))
            }
            SettingPage::Mapping => ("Event mapping", shell.app_url("settings/mapping")),
            SettingPage::App => ("App settings", shell.app_url("settings")),
            SettingPage::Billing => ("Billing providers", shell.app_url("integrations")),
            SettingPage::Held => ("Held installs", shell.app_url("held")),
        })
    }
}

impl Explanation {
    /// Returns the label and the URL of the setting if it concerns several networks.
    pub(crate) fn setting_of_all(&self, shell: &Shell) -> Option<(&'static str, String)> {
        if self.setting == Some(SettingPage::Integration) && shell.sees_apps {
            return Some(("Integrations", shell.app_url("integrations")));
        }
        self.setting(shell, &NetworkLabel::NONE)
    }
}

/// Explains why an event was not sent to a network, and what would change that.
pub(crate) const fn skip_explanation(skip: SkipReason) -> Explanation {
    use SettingPage::{App, Billing, Held, Integration, Mapping};
    match skip {
        SkipReason::Sandbox => {
            Explanation::plain("Sent with a test key. Test events are never forwarded.")
        }
        SkipReason::Erased => Explanation::plain("The device and its user were erased."),
        SkipReason::ReportingOnly => {
            Explanation::plain("Renewals and refunds count in reports and are never forwarded.")
        }
        SkipReason::IntegrationDisabled => Explanation::set_on(
            Integration,
            "The integration was off or incomplete when the event arrived. It is not sent later.",
        ),
        SkipReason::NotAttributed => Explanation::set_on(
            Integration,
            "Not credited to this network. The scope “All mapped events” would send it.",
        ),
        SkipReason::NotMapped => {
            Explanation::set_on(Mapping, "The event mapping has no row for this event.")
        }
        SkipReason::EnabledLater => Explanation::set_on(
            Mapping,
            "The event arrived before the integration was enabled or its event mapping changed.",
        ),
        SkipReason::Fraud => Explanation::set_on(
            Held,
            "The install is flagged and held for a review, or was rejected.",
        ),
        SkipReason::Attestation => Explanation::set_on(
            App,
            "The device did not prove that it runs the genuine app, and the app requires it.",
        ),
        SkipReason::Probabilistic => Explanation::set_on(
            Integration,
            "The install is a probabilistic match. “Forward probabilistic matches” would send it.",
        ),
        SkipReason::BillingSource => Explanation::set_on(
            Billing,
            "A billing provider reports the same payment, which is sent instead.",
        ),
        SkipReason::Consent => {
            Explanation::plain("The user did not consent to sharing data with ad networks.")
        }
        SkipReason::TooOld => Explanation::plain("The event is older than the network accepts."),
        SkipReason::NoClickId => Explanation::plain(
            "The network requires one of its click ids, and none is known. Links in ads record it.",
        ),
        SkipReason::NoConversionAction => Explanation::set_on(
            Integration,
            "The integration has no conversion action for this event.",
        ),
        SkipReason::DuplicateOfVerified => Explanation::plain(
            "A website or billing provider reports the same event, which is sent instead.",
        ),
        SkipReason::InsufficientIdentity => Explanation::plain(
            "No known identifier allows the network to match the user. Send the email address or \
             phone number as a hash, or the advertising id.",
        ),
        SkipReason::AmountNotForwardable => Explanation::plain(
            "A purchase is sent only with an amount that is at most 2,000 USD, not negative, and in \
             a currency with an exchange rate. The event's page shows what applies.",
        ),
    }
}

/// Explains why an event with this credit was not sent to a network.
pub(crate) fn skip_explanation_of(
    skip: SkipReason,
    credit: Option<CreditedNetwork>,
) -> Explanation {
    match (skip, credit) {
        (SkipReason::NotAttributed, Some(CreditedNetwork::Organic)) => Explanation::set_on(
            SettingPage::Integration,
            "Organic: no network gets the credit. The scope “All mapped events” would send it.",
        ),
        _ => skip_explanation(skip),
    }
}

/// Returns a short label for why events were not sent.
pub(crate) const fn skip_label(skip: SkipReason) -> &'static str {
    match skip {
        SkipReason::Sandbox => "Test event",
        SkipReason::Erased => "Erased",
        SkipReason::ReportingOnly => "Renewal or refund",
        SkipReason::IntegrationDisabled => "Integration was off",
        SkipReason::NotAttributed => "Not credited to the network",
        SkipReason::NotMapped => "Not in the event mapping",
        SkipReason::EnabledLater => "Arrived before it was switched on",
        SkipReason::Fraud => "Flagged install",
        SkipReason::Attestation => "App not proven genuine",
        SkipReason::Probabilistic => "Probabilistic match",
        SkipReason::BillingSource => "Sent by the billing provider",
        SkipReason::Consent => "No consent",
        SkipReason::TooOld => "Too old",
        SkipReason::AmountNotForwardable => "Amount does not count",
        SkipReason::NoConversionAction => "No conversion action",
        SkipReason::NoClickId => "No click id",
        SkipReason::DuplicateOfVerified => "Reported by another source",
        SkipReason::InsufficientIdentity => "Too few identifiers",
    }
}

/// Returns a short label for the reason of a delivery's status. A code of the network is its own
/// label.
pub(crate) fn reason_label(reason: &str) -> &str {
    if let Some(skip) = SkipReason::parse(reason) {
        return skip_label(skip);
    }
    match reason {
        lifecycle::EXPIRED => "Too old before it was accepted",
        lifecycle::FUTURE_TIMESTAMP => "Time in the future",
        lifecycle::OUTCOME_UNKNOWN | OUTCOME_UNCONFIRMED => "Outcome unknown",
        lifecycle::INTERRUPTED => "Interrupted",
        lifecycle::EVENT_GONE => "Event deleted",
        lifecycle::ATTRIBUTION_CHANGED => "Credited to another source now",
        lifecycle::NOT_FIRST_PAYMENT => "Not the first payment",
        lifecycle::CONSENT_WITHDRAWN => "Consent withdrawn",
        "no_source_url" => "No page address",
        "no_device_data" => "Too little about the device",
        "too_large" => "Too large",
        code => code,
    }
}

/// Explains the reason for a delivery's status. The networks' own codes are explained by the status,
/// and the response beside the attempt has the details.
pub(crate) fn reason_explanation(status: DeliveryStatus, reason: Option<&str>) -> Explanation {
    use SettingPage::{Billing, Integration};
    if let Some(skip) = reason.and_then(SkipReason::parse) {
        return skip_explanation(skip);
    }
    match reason {
        Some(lifecycle::EXPIRED) => Explanation::set_on(
            Integration,
            "The network did not accept it before it became too old, or the integration was \
             paused for too long.",
        ),
        Some(lifecycle::FUTURE_TIMESTAMP) => Explanation::plain(
            "The event's time is more than a day in the future. Check the sender's clock.",
        ),
        Some(lifecycle::OUTCOME_UNKNOWN | OUTCOME_UNCONFIRMED) => Explanation::plain(
            "The network did not say whether it has the event. Look for the delivery's \
             deduplication id in the network's event manager before you retry, because a retry \
             may count twice.",
        ),
        Some(lifecycle::INTERRUPTED) => Explanation::plain(
            "The server stopped during the request, so the network may have the event.",
        ),
        Some(lifecycle::EVENT_GONE) => Explanation::plain("The event was deleted."),
        Some(lifecycle::ATTRIBUTION_CHANGED) => {
            Explanation::plain("The event is credited to another source now.")
        }
        Some(lifecycle::NOT_FIRST_PAYMENT) => Explanation::set_on(
            Billing,
            "An earlier payment of the same device became known, so this is a renewal.",
        ),
        Some(lifecycle::CONSENT_WITHDRAWN) => {
            Explanation::plain("The user withdrew consent before the event was sent.")
        }
        Some("no_source_url") => Explanation::plain(
            "The network requires the address of the web page. Send sourceUrl with the event.",
        ),
        Some("no_device_data") => Explanation::plain(
            "The network requires the device's address, user agent or advertising id.",
        ),
        Some("too_large") => {
            Explanation::plain("The event alone exceeds the network's size limit.")
        }
        _ => status_explanation(status),
    }
}

/// Explains a delivery's status.
const fn status_explanation(status: DeliveryStatus) -> Explanation {
    use SettingPage::Integration;
    match status {
        DeliveryStatus::Pending => Explanation::plain("Waiting to be sent."),
        DeliveryStatus::Delivered => Explanation::plain("The network accepted the event."),
        DeliveryStatus::Validated => Explanation::set_on(
            Integration,
            "The network checked the event and did not store it, because the integration is in \
             test mode.",
        ),
        DeliveryStatus::Unconfirmed => {
            Explanation::plain("The network did not say whether it has the event.")
        }
        DeliveryStatus::Failed => Explanation::set_on(
            Integration,
            "The network rejected the event. Its response to the delivery says why.",
        ),
        DeliveryStatus::Expired => {
            Explanation::plain("The event became too old before it could be sent.")
        }
        DeliveryStatus::Cancelled => {
            Explanation::plain("The event was withdrawn before it was sent.")
        }
    }
}

/// Returns the words for the result of an attempt.
pub(crate) const fn verdict_label(verdict: AttemptVerdict) -> &'static str {
    match verdict {
        AttemptVerdict::Delivered => "Accepted",
        AttemptVerdict::Retry => "Will be retried",
        AttemptVerdict::Terminal => "Rejected for good",
        AttemptVerdict::Pause => "Rejected: integration paused",
        AttemptVerdict::Unknown => "Outcome unknown",
    }
}

/// Returns the words for the HTTP status of an attempt.
pub(crate) fn http_label(status: Option<u16>) -> String {
    let Some(code) = status else {
        return "no response".to_owned();
    };
    let meaning = match code {
        400 | 422 => "invalid request",
        401 => "credentials rejected",
        403 => "not permitted",
        404 => "not found",
        408 => "timeout",
        413 => "too large",
        429 => "too many requests",
        200..=299 => "ok",
        500..=599 => "error at the network",
        _ => return code.to_string(),
    };
    format!("{code} ({meaning})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(None, "no response")]
    #[case(Some(200), "200 (ok)")]
    #[case(Some(401), "401 (credentials rejected)")]
    #[case(Some(503), "503 (error at the network)")]
    #[case(Some(302), "302")]
    fn names_http_statuses(#[case] status: Option<u16>, #[case] expected: &str) {
        assert_eq!(http_label(status), expected);
    }

    #[rstest]
    #[case::own_code(DeliveryStatus::Failed, Some("too_large"), "size limit")]
    #[case::skip_code(DeliveryStatus::Failed, Some("no_click_id"), "click ids")]
    #[case::network_code(DeliveryStatus::Failed, Some("2804050"), "Its response")]
    #[case::no_code(DeliveryStatus::Pending, None, "Waiting")]
    fn every_reason_is_explained(
        #[case] status: DeliveryStatus,
        #[case] reason: Option<&str>,
        #[case] expected: &str,
    ) {
        let explanation = reason_explanation(status, reason);
        assert!(explanation.text.contains(expected), "{explanation:?}");
    }

    #[test]
    fn the_reason_of_an_organic_event_is_not_another_source() {
        let text = |credit| skip_explanation_of(SkipReason::NotAttributed, credit).text;
        assert!(text(Some(CreditedNetwork::Organic)).starts_with("Organic"));
        let other = CreditedNetwork::Ad(tributary_domain::integration::Network::A);
        assert!(text(Some(other)).starts_with("Not credited to this network"));
        let off = skip_explanation_of(SkipReason::IntegrationDisabled, Some(other)).text;
        assert!(off.contains("was off"), "{off}");
    }

    #[test]
    fn a_code_of_a_network_is_its_own_label() {
        assert_eq!(reason_label("2804050"), "2804050");
        assert_eq!(reason_label("consent"), "No consent");
        for reason in SkipReason::ALL {
            assert_ne!(skip_label(*reason), reason.as_str());
        }
    }

    #[test]
    fn tributarys_own_reasons_are_not_taken_for_a_networks_codes() {
        for reason in [
            lifecycle::EXPIRED,
            lifecycle::FUTURE_TIMESTAMP,
            lifecycle::OUTCOME_UNKNOWN,
            OUTCOME_UNCONFIRMED,
            lifecycle::INTERRUPTED,
            lifecycle::EVENT_GONE,
            lifecycle::ATTRIBUTION_CHANGED,
            lifecycle::NOT_FIRST_PAYMENT,
            lifecycle::DUPLICATE_OF_VERIFIED,
            lifecycle::CONSENT_WITHDRAWN,
            lifecycle::ERASED,
        ] {
            for status in DeliveryStatus::ALL {
                let own = reason_explanation(*status, Some(reason));
                assert_ne!(own, status_explanation(*status), "{reason}");
            }
        }
    }
}
