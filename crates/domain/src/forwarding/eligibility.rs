//! Decides right before sending whether a delivery may be sent.

use super::conversion::Conversion;
use super::delivery::{DeliveryStatus, PendingDelivery};
use super::lifecycle::{
    ATTRIBUTION_CHANGED, CONSENT_WITHDRAWN, DeliveryProgress, ERASED, EVENT_GONE, NextStep,
    before_attempt, end_with,
};
use super::limits::expires_at;
use super::plan::SkipReason;
use crate::attribution::CreditedNetwork;
use crate::erasure::is_pseudonym;
use crate::integration::{EventScope, Integration};
use crate::vocabulary::time::Timestamp;

/// Cancels a delivery whose event was deleted.
pub fn end_without_event() -> NextStep {
    end_with(DeliveryStatus::Cancelled, EVENT_GONE)
}

/// Decides whether a delivery may be sent now. Returns its progress, or what happens to the
/// delivery instead. `unsendable` is the reason code if the network could not use the event.
pub fn check_eligibility(
    integration: &Integration,
    pending: &PendingDelivery,
    conversion: &Conversion,
    unsendable: Option<&str>,
    now: Timestamp,
) -> Result<DeliveryProgress, NextStep> {
    // The device was erased after planning, or an operator retried the delivery after the erasure.
    if conversion.event.device.as_ref().is_some_and(is_pseudonym) {
        return Err(end_with(DeliveryStatus::Cancelled, ERASED));
    }
    if !is_still_credited(integration, conversion) {
        return Err(end_with(DeliveryStatus::Cancelled, ATTRIBUTION_CHANGED));
    }
    let occurred_at = conversion.event.conversion_time();
    let progress = DeliveryProgress {
        network: integration.network,
        occurred_at,
        expires_at: expires_at(integration, occurred_at, conversion.clicked_at()),
        attempts_made: pending.attempts_made,
        ambiguous_since: pending.ambiguous_since,
    };
    if let Some(next) = before_attempt(&progress, now) {
        return Err(next);
    }
    match unsendable {
        None => Ok(progress),
        Some(code) if code == SkipReason::Consent.as_str() => {
            Err(end_with(DeliveryStatus::Cancelled, CONSENT_WITHDRAWN))
        }
        Some(code) => Err(end_with(DeliveryStatus::Failed, code)),
    }
}

/// Returns whether the event is still credited to this network. Credit may move after planning.
fn is_still_credited(integration: &Integration, conversion: &Conversion) -> bool {
    let credit = conversion.event.credit.as_ref();
    integration.scope == EventScope::All
        || credit.map(|credit| credit.network) == Some(CreditedNetwork::Ad(integration.network))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::erasure::pseudonym;
    use crate::forwarding::lifecycle::EXPIRED;
    use crate::forwarding::plan::samples::{NOW, active, credit};
    use crate::forwarding::samples::{conversion, pending};
    use crate::integration::Network;
    use rstest::rstest;
    use std::time::Duration;

    fn unchanged(_: &mut Conversion) {}

    fn erased(conversion: &mut Conversion) {
        conversion.event.device = Some(pseudonym([9; 16]));
    }

    fn credited_to_c(conversion: &mut Conversion) {
        conversion.event.credit = Some(credit(CreditedNetwork::Ad(Network::C)));
    }

    fn organic(conversion: &mut Conversion) {
        conversion.event.credit = None;
    }

    const CANCELLED: DeliveryStatus = DeliveryStatus::Cancelled;

    #[rstest]
    #[case::as_planned(unchanged, EventScope::Attributed, None, None)]
    #[case::erased(erased, EventScope::Attributed, None, Some((CANCELLED, ERASED)))]
    #[case::erased_comes_first(erased, EventScope::Attributed, Some("consent"), Some((CANCELLED, ERASED)))]
    #[case::credit_moved(credited_to_c, EventScope::Attributed, None, Some((CANCELLED, ATTRIBUTION_CHANGED)))]
    #[case::credit_lost(organic, EventScope::Attributed, None, Some((CANCELLED, ATTRIBUTION_CHANGED)))]
    #[case::network_gets_all_events(credited_to_c, EventScope::All, None, None)]
    #[case::consent_withdrawn(unchanged, EventScope::All, Some("consent"), Some((CANCELLED, CONSENT_WITHDRAWN)))]
    #[case::unusable(
        unchanged, EventScope::All, Some("no_source_url"), Some((DeliveryStatus::Failed, "no_source_url"))
    )]
    fn eligibility_before_sending(
        #[case] change: fn(&mut Conversion),
        #[case] scope: EventScope,
        #[case] unsendable: Option<&str>,
        #[case] expected: Option<(DeliveryStatus, &str)>,
    ) {
        let mut integration = active(Network::A);
        integration.scope = scope;
        let mut conversion = conversion(1);
        change(&mut conversion);
        let found = check_eligibility(&integration, &pending(1), &conversion, unsendable, NOW);
        let expected = expected.map(|(status, reason)| end_with(status, reason));
        assert_eq!(found.err(), expected);
    }

    #[test]
    fn an_event_that_is_too_old_expires_even_if_unsendable() {
        let late = NOW.plus(Duration::from_hours(8 * 24));
        let integration = active(Network::A);
        let found = check_eligibility(
            &integration,
            &pending(1),
            &conversion(1),
            Some("consent"),
            late,
        );
        assert_eq!(found, Err(end_with(DeliveryStatus::Expired, EXPIRED)));
    }
}
