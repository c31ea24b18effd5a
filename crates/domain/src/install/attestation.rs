//! What a `configure` call changes about a stored attribution, including its attestation.

use super::configure::ConfigureCommand;
use super::device_state::{Attribution, DeviceState};
use crate::attestation::{AttestationOutcome, AttestationPolicy};
use crate::attribution::{Decision, improves};
use crate::vocabulary::time::Timestamp;

impl ConfigureCommand {
    /// Returns whether the app forwards events only for devices with a verified attestation.
    pub fn requires_attestation(&self) -> bool {
        self.attestation.policy == AttestationPolicy::Require
    }
}

/// Returns the device's attestation after the call.
pub(super) fn outcome_after(
    command: &ConfigureCommand,
    state: &DeviceState,
) -> Option<AttestationOutcome> {
    let current = state.attribution.as_ref();
    let before = current.and_then(|current| current.decision.evidence.attestation);
    let is_first_open = state.device.is_none();
    let platform = command.traits.platform;
    command.attestation.after(before, platform, is_first_open)
}

/// Returns the attribution after a call, and what changed.
pub(super) fn attribution_after(
    command: &ConfigureCommand,
    state: &DeviceState,
    new_decision: Decision,
    first_open_at: Timestamp,
) -> (Attribution, Novelty) {
    match &state.attribution {
        None => {
            let first = Attribution::first(command.attribution_id, new_decision, command.at);
            (first.held_by(command.rules.fraud), Novelty::Decision)
        }
        Some(current) => {
            let is_better = improves(
                &current.summary(first_open_at),
                &new_decision,
                command.rules.click_window_hours,
                command.at,
            );
            if is_better {
                let replaced = current.replaced_by(new_decision, command.at);
                (replaced.held_by(command.rules.fraud), Novelty::Decision)
            } else {
                let updated = current.with_late_evidence(&new_decision);
                match Novelty::of_update(current, &updated) {
                    Novelty::Nothing => (updated, Novelty::Nothing),
                    // Its flags may start or end a hold.
                    novelty => (updated.held_by(command.rules.fraud), novelty),
                }
            }
        }
    }
}

/// What a call changed about an attribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Novelty {
    /// Nothing that matters for the device's events.
    Nothing,
    /// The attestation, and with it the flags or what may be forwarded.
    Attestation,
    /// The decision.
    Decision,
}

impl Novelty {
    /// Compares an attribution before and after late evidence. Another reason for a failure changes
    /// nothing that follows from it, so that forged tokens cannot cause work again and again.
    pub(super) fn of_update(before: &Attribution, after: &Attribution) -> Self {
        let is_same = before.decision.flags == after.decision.flags
            && before.is_attested() == after.is_attested();
        if is_same {
            Self::Nothing
        } else {
            Self::Attestation
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{after, at, call, configure};
    use super::super::{AdServicesOutcome, CandidateClicks, apply_ad_services};
    use super::*;
    use crate::access::Environment;
    use crate::app::AttributionRules;
    use crate::attestation::{AttestationFailure, PresentedOutcome};
    use crate::attribution::Flag;
    use crate::attribution::ad_services::AdServices;
    use crate::device::Platform;

    fn attested(seconds: i64, result: Option<Result<(), AttestationFailure>>) -> ConfigureCommand {
        ConfigureCommand {
            attestation: PresentedOutcome {
                policy: AttestationPolicy::Flag,
                result,
            },
            ..call(Platform::Ios, seconds)
        }
    }

    /// Calls `configure` once per result and returns the flags, and whether the events are planned
    /// again.
    fn attest(
        results: &[Option<Result<(), AttestationFailure>>],
    ) -> Vec<(Vec<&'static str>, bool)> {
        let mut state = DeviceState::default();
        let mut seen = Vec::new();
        for (second, result) in (0..).zip(results) {
            let outcome = configure(
                &attested(second, *result),
                &state,
                CandidateClicks::default(),
            );
            let flags = &outcome.attribution.decision.flags;
            let flags = flags.iter().map(|flag| flag.as_str()).collect();
            seen.push((flags, outcome.is_new_decision));
            assert_eq!(outcome.attribution.revision, 1, "the decision stays");
            state = after(outcome);
        }
        seen
    }

    #[test]
    fn events_are_planned_again_when_the_attestation_changes() {
        let forged = Some(Err(AttestationFailure::UntrustedCertificate));
        let stale = Some(Err(AttestationFailure::StaleToken));
        let verified = Some(Ok(()));
        let (missing, failed) = (vec!["attestation_missing"], vec!["attestation_failed"]);
        assert_eq!(
            attest(&[None, None, forged, stale, verified, forged, None]),
            [
                (missing.clone(), true),
                (missing, false),
                (failed.clone(), true),
                (failed, false),
                (vec![], true),
                (vec![], false),
                (vec![], false),
            ]
        );
        assert_eq!(attest(&[verified]), [(vec![], true)]);
    }

    #[test]
    fn the_policy_flags_no_existing_installs() {
        let first = call(Platform::Ios, 0);
        let first = configure(&first, &DeviceState::default(), CandidateClicks::default());
        assert_eq!(first.attribution.decision.evidence.attestation, None);
        let state = after(first);
        let silent = configure(&attested(1, None), &state, CandidateClicks::default());
        assert_eq!(silent.attribution.decision.evidence.attestation, None);
        assert!(silent.attribution.decision.flags.is_empty() && !silent.is_new_decision);
        let proven = configure(
            &attested(1, Some(Ok(()))),
            &state,
            CandidateClicks::default(),
        );
        let outcome = proven.attribution.decision.evidence.attestation;
        assert_eq!(outcome, Some(AttestationOutcome::Verified));
        assert!(proven.is_new_decision, "its events may be forwarded now");
    }

    #[test]
    fn a_better_decision_keeps_the_attestation() {
        let forged = Some(Err(AttestationFailure::WrongApp));
        let first = configure(
            &attested(0, forged),
            &DeviceState::default(),
            CandidateClicks::default(),
        );
        let outcome = AdServicesOutcome {
            environment: Environment::Live,
            rules: AttributionRules::default(),
            answer: AdServices::Tap(Box::default()),
            at: at(60),
        };
        let update = apply_ad_services(&outcome, &after(first)).unwrap();
        assert!(update.is_replaced);
        let decision = update.attribution.decision;
        assert!(decision.flags.contains(&Flag::AttestationFailed));
        let expected = AttestationOutcome::Failed(AttestationFailure::WrongApp);
        assert_eq!(decision.evidence.attestation, Some(expected));
    }
}
