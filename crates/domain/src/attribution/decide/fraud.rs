//! Fraud checks: contradictions and flags.
//!
//! A contradicted click is rejected, unless the app's policy only flags it. A flag alone does not
//! change the decision, because every flag also occurs with honest users.

use super::time::{self, whole_seconds};
use crate::app::FraudPolicy;
use crate::attestation::AttestationOutcome;
use crate::attribution::evidence::DeviceFingerprint;
use crate::attribution::{Candidate, Evidence, Flag, Rejection};
use crate::click::BotReason;
use crate::device::Platform;
use crate::vocabulary::id::LinkId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How far Google's clock may be ahead of ours.
const STORE_CLOCK_AHEAD_SECONDS: i64 = 2 * 60;
/// How far before our click the store tap may be dated. The tap always follows the click; this
/// tolerates clock differences.
pub(super) const STORE_TAP_EARLY_SECONDS: i64 = 2 * 60;
/// Maximum time from our click to the store tap. A later tap does not belong to the same visit.
pub(super) const STORE_TAP_LATE_SECONDS: i64 = 30 * 60;
/// Minimum plausible time from click to first open (CTIT): download, installation and start.
const CTIT_MIN: Duration = Duration::from_secs(10);
/// Maximum number of installs from one address on one link within an hour; more are flagged as a
/// burst. A household or an office may reach this number. It is the same limit as for clicks: with
/// more than [`ADDRESS_CANDIDATES_MAX`](crate::attribution::ADDRESS_CANDIDATES_MAX) clicks, an
/// address counts as shared.
pub const INSTALL_BURST_MAX: u32 = 20;

/// Model prefixes of Apple devices. A simulator reports its processor instead.
const APPLE_MODELS: &[&str] = &[
    "iphone", "ipad", "ipod", "mac", "appletv", "watch", "reality",
];
/// Model prefixes that no Android device has: Apple devices and emulators.
const NOT_ANDROID_MODELS: &[&str] = &[
    "iphone",
    "ipad",
    "ipod",
    "sdk_gphone",
    "google_sdk",
    "emulator",
    "android sdk built for",
];

/// Contradiction between timestamps and a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// The click came after the first open. This is certain, so the click is rejected under every
    /// policy.
    AfterFirstOpen,
    /// The store tap came after the first open, even allowing for clock differences. This is
    /// certain too, so the tap is rejected under every policy.
    StoreTapAfterFirstOpen,
    /// The installation began after the first open, so the timestamps are forged.
    InstallBeginAfterFirstOpen,
    /// The click came after the installation had begun: click injection.
    AfterInstallBegin,
    /// The store tap came after the installation had begun, by the store's own clock.
    StoreTapAfterInstallBegin,
    /// The store tap came before the click.
    StoreTapBeforeClick,
    /// The store tap came too long after the click to belong to the same visit.
    StoreTapLongAfterClick,
}

/// Returns the contradiction in the store's own timestamps, if any.
pub(super) fn store_tap_contradiction(evidence: &Evidence) -> Option<Contradiction> {
    let tap = evidence.times.click_at_server?;
    if is_after_first_open(evidence, tap) {
        return Some(Contradiction::StoreTapAfterFirstOpen);
    }
    let begin = evidence.times.install_begin_at_server?;
    (tap > begin).then_some(Contradiction::StoreTapAfterInstallBegin)
}

/// Returns whether a store timestamp is later than the first open, even allowing for clock
/// differences.
fn is_after_first_open(evidence: &Evidence, by_store: Timestamp) -> bool {
    let open = whole_seconds(evidence.first_open_at);
    whole_seconds(by_store) > open.saturating_add(STORE_CLOCK_AHEAD_SECONDS)
}

/// Returns the contradiction between the timestamps and a click, if any. Applies to every click,
/// however its id was delivered.
pub(super) fn click_contradiction(
    evidence: &Evidence,
    clicked_at: Timestamp,
) -> Option<Contradiction> {
    if clicked_at > evidence.first_open_at {
        return Some(Contradiction::AfterFirstOpen);
    }
    let begin = evidence.times.install_begin_at_server?;
    if is_after_first_open(evidence, begin) {
        return Some(Contradiction::InstallBeginAfterFirstOpen);
    }
    let late = whole_seconds(clicked_at) > whole_seconds(begin);
    late.then_some(Contradiction::AfterInstallBegin)
}

/// Returns the contradiction between the timestamps and a click whose id the store delivered, if
/// any.
pub(super) fn referrer_contradiction(
    evidence: &Evidence,
    clicked_at: Timestamp,
) -> Option<Contradiction> {
    let tap_after_click = || {
        let tap = evidence.times.click_at_server?;
        let seconds = whole_seconds(tap).saturating_sub(whole_seconds(clicked_at));
        if seconds < -STORE_TAP_EARLY_SECONDS {
            return Some(Contradiction::StoreTapBeforeClick);
        }
        (seconds > STORE_TAP_LATE_SECONDS).then_some(Contradiction::StoreTapLongAfterClick)
    };
    click_contradiction(evidence, clicked_at)
        .or_else(|| store_tap_contradiction(evidence))
        .or_else(tap_after_click)
}

/// Returns whether a contradiction rejects the click under the app's policy.
pub(super) fn rejects(policy: FraudPolicy, contradiction: Contradiction) -> bool {
    let is_certain = matches!(
        contradiction,
        Contradiction::AfterFirstOpen | Contradiction::StoreTapAfterFirstOpen
    );
    is_certain || policy == FraudPolicy::Refuse
}

/// Returns why a click is rejected, apart from its age: bot, test link, contradiction or already credited.
pub(super) fn rejection_of(
    policy: FraudPolicy,
    candidate: &Candidate,
    contradiction: Option<Contradiction>,
) -> Option<Rejection> {
    match candidate.click.bot {
        Some(BotReason::TestLink) => return Some(Rejection::TestLink),
        Some(_) => return Some(Rejection::Bot),
        None => {}
    }
    if contradiction.is_some_and(|contradiction| rejects(policy, contradiction)) {
        return Some(Rejection::Implausible);
    }
    candidate.is_taken.then_some(Rejection::DuplicateClick)
}

/// Returns whether the first open came impossibly soon after the click.
pub(super) fn is_short_ctit(evidence: &Evidence, clicked_at: Timestamp) -> bool {
    let millis = time::age_millis(clicked_at, evidence.first_open_at);
    u64::try_from(millis).is_ok_and(|millis| Duration::from_millis(millis) < CTIT_MIN)
}

/// Returns whether this install exceeds the limit for its address and link.
pub(super) fn is_burst(installs_from_address: &[(LinkId, u32)], link: LinkId) -> bool {
    let others = installs_from_address.iter().filter(|(one, _)| *one == link);
    // The count does not include this install, so at the maximum this install exceeds the limit.
    others.map(|(_, count)| *count).fold(0, u32::saturating_add) >= INSTALL_BURST_MAX
}

/// Flags an install whose device did not prove that it runs the genuine app.
pub(super) const fn unproven_app(outcome: AttestationOutcome) -> Option<Flag> {
    match outcome {
        AttestationOutcome::Verified => None,
        AttestationOutcome::Failed(_) => Some(Flag::AttestationFailed),
        AttestationOutcome::Missing => Some(Flag::AttestationMissing),
    }
}

/// Flags a device that cannot exist: a model from another platform, or a version without digits.
pub(super) fn impossible_device(platform: Platform, device: &DeviceFingerprint) -> Option<Flag> {
    let model = device
        .model
        .as_deref()
        .map(|model| model.trim().to_lowercase());
    let begins = |words: &[&str]| {
        let model = model.as_ref().filter(|model| !model.is_empty());
        model.map(|model| words.iter().any(|word| model.starts_with(word)))
    };
    let wrong_model = match platform {
        Platform::Ios => begins(APPLE_MODELS) == Some(false),
        Platform::Android => begins(NOT_ANDROID_MODELS) == Some(true),
        Platform::Web => false,
    };
    let version = device
        .os_version
        .as_deref()
        .map(str::trim)
        .filter(|version| !version.is_empty());
    let wrong_version =
        version.is_some_and(|version| !version.contains(|c: char| c.is_ascii_digit()));
    (wrong_model || wrong_version).then_some(Flag::ImpossibleDevice)
}
