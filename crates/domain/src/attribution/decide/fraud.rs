//! What contradicts a click, and what is odd about an install.
//!
//! A contradiction costs the install its click, unless the app chose to mark it only. What is odd is marked
//! and changes nothing: each of these happens to honest people too.

use super::time::{self, whole_seconds};
use crate::app::FraudPolicy;
use crate::attribution::evidence::DeviceFingerprint;
use crate::attribution::{Candidate, Evidence, Flag, Rejection};
use crate::device::Platform;
use crate::vocabulary::id::LinkId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How far ahead of ours Google's clock may be.
const STORE_CLOCK_AHEAD_SECONDS: i64 = 2 * 60;
/// How long before our click the tap in the store may be. It comes after it; this is for clocks that differ.
pub(super) const STORE_TAP_EARLY_SECONDS: i64 = 2 * 60;
/// How long after our click the tap in the store may be, while it still belongs to the same visit.
pub(super) const STORE_TAP_LATE_SECONDS: i64 = 30 * 60;
/// Nobody downloads, installs and opens an app sooner after a click.
const CTIT_MIN: Duration = Duration::from_secs(10);
/// Installs from one address on one link within an hour, up to which it may be a household or an office:
/// as many as clicks make an address a shared one.
pub const INSTALL_BURST_MAX: u32 = 20;

/// What the model of an Apple device begins with. A simulator names its processor instead.
const APPLE_MODELS: &[&str] = &[
    "iphone", "ipad", "ipod", "mac", "appletv", "watch", "reality",
];
/// What the model of an Android device never begins with: Apple's devices, and emulators.
const NOT_ANDROID_MODELS: &[&str] = &[
    "iphone",
    "ipad",
    "ipod",
    "sdk_gphone",
    "google_sdk",
    "emulator",
    "android sdk built for",
];

/// How times contradict a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// No suspicion but a certainty: it led to nothing. It is refused whatever the app's policy.
    AfterFirstOpen,
    /// The tap in the store led to nothing either, even if its clock is ahead of ours.
    StoreTapAfterFirstOpen,
    /// An app is installed before it is opened. Somebody made these times up.
    InstallBeginAfterFirstOpen,
    /// Somebody saw the installation begin and made a click for it.
    AfterInstallBegin,
    /// The store's own times contradict each other.
    StoreTapAfterInstallBegin,
    /// The person was in the store before the click.
    StoreTapBeforeClick,
    /// The click did not lead to this visit of the store.
    StoreTapLongAfterClick,
}

/// What contradicts a tap in the store.
pub(super) fn store_tap_contradiction(evidence: &Evidence) -> Option<Contradiction> {
    let tap = evidence.times.click_at_server?;
    if is_after_first_open(evidence, tap) {
        return Some(Contradiction::StoreTapAfterFirstOpen);
    }
    let begin = evidence.times.install_begin_at_server?;
    (tap > begin).then_some(Contradiction::StoreTapAfterInstallBegin)
}

/// Whether a time of the store's is later than the first open, by more than clocks differ.
fn is_after_first_open(evidence: &Evidence, by_store: Timestamp) -> bool {
    let open = whole_seconds(evidence.first_open_at);
    whole_seconds(by_store) > open.saturating_add(STORE_CLOCK_AHEAD_SECONDS)
}

/// What contradicts a click of ours, whoever delivered its id.
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

/// What contradicts a click of ours whose id the store delivered.
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

/// Whether the app lets that cost the install its click.
pub(super) fn rejects(policy: FraudPolicy, contradiction: Contradiction) -> bool {
    let is_certain = matches!(
        contradiction,
        Contradiction::AfterFirstOpen | Contradiction::StoreTapAfterFirstOpen
    );
    is_certain || policy == FraudPolicy::Refuse
}

/// Why a click of ours may not have the install, its age apart. Never a bot's, never for a second time.
pub(super) fn rejection_of(
    policy: FraudPolicy,
    candidate: &Candidate,
    contradiction: Option<Contradiction>,
) -> Option<Rejection> {
    if candidate.click.bot.is_some() {
        return Some(Rejection::Bot);
    }
    if contradiction.is_some_and(|contradiction| rejects(policy, contradiction)) {
        return Some(Rejection::Implausible);
    }
    candidate.is_taken.then_some(Rejection::DuplicateClick)
}

/// Whether the first open came impossibly soon after the click.
pub(super) fn is_short_ctit(evidence: &Evidence, clicked_at: Timestamp) -> bool {
    let millis = time::age_millis(clicked_at, evidence.first_open_at);
    u64::try_from(millis).is_ok_and(|millis| Duration::from_millis(millis) < CTIT_MIN)
}

/// Whether this is one install too many from its address on its link.
pub(super) fn is_burst(installs_from_address: &[(LinkId, u32)], link: LinkId) -> bool {
    let others = installs_from_address.iter().filter(|(one, _)| *one == link);
    // With this one it would be more than the most.
    others.map(|(_, count)| *count).fold(0, u32::saturating_add) >= INSTALL_BURST_MAX
}

/// Whether there is no such device: another platform's model, or a version that is a name.
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
